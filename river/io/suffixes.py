"""What the suffixes of files say of their formats."""

from __future__ import annotations

from typing import Final

SUFFIXES: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".log": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".raw": "raw",
    ".bin": "raw",
    ".wav": "wav",
}
"""By suffix, in small letters, the format."""

ARROW: Final = tuple(suffix for suffix, kind in SUFFIXES.items() if kind in ("parquet", "arrow"))
"""Those of files that pyarrow reads and writes."""
