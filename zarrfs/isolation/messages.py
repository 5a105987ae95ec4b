"""The messages between this process and one that decodes for it."""

from __future__ import annotations

from struct import Struct

REQUEST = Struct("<IQQQ?")
"""Bytes of the parameters (JSON) and of the data, which follow; of memory; of the result, and
whether the result must have exactly so many bytes, or at most."""

REPLY = Struct("<BQ")
"""Whether the request failed, and the bytes of the result or of the reason, which follow."""
