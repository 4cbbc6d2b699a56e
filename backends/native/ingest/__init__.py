"""Ingest: files of text to columns by code made for their schema."""

from __future__ import annotations

from backends.native.ingest.lateness import Waiting, may_wait
from backends.native.ingest.reader import Block, Parsed, Reader, open_native

__all__ = ["Block", "Parsed", "Reader", "Waiting", "may_wait", "open_native"]
