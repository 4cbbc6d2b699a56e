"""Ingest: texts, of files or as they arrive, to columns by code made for their schema."""

from __future__ import annotations

from backends.native.ingest.arriving import read_natively
from backends.native.ingest.lateness import Waiting, may_wait
from backends.native.ingest.reader import Parsed, Reader, RecordBlock, form_of, open_native

__all__ = [
    "Parsed",
    "Reader",
    "RecordBlock",
    "Waiting",
    "form_of",
    "may_wait",
    "open_native",
    "read_natively",
]
