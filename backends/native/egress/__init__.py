"""Egress: columns of results to the bytes that a sink of text writes for them."""

from __future__ import annotations

from backends.native.egress.encoder import Encoded, Encoder, encoder

__all__ = ["Encoded", "Encoder", "encoder"]
