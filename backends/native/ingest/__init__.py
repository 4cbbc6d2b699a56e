"""Ingest: texts, of files or as they arrive, to columns by code made for their schema."""

from __future__ import annotations

from backends.native.ingest.reader import Parsed, Reader, RecordBlock, form_of, open_native

__all__ = [
    "Parsed",
    "Reader",
    "RecordBlock",
    "form_of",
    "open_native",
]
