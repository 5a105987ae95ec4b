"""What goes between this process and one that decodes for it."""

from __future__ import annotations

from struct import Struct

REQUEST = Struct("<IQQQ")
"""Bytes of the parameters (JSON) and of the data that follow; of memory and of the result."""

REPLY = Struct("<BQ")
"""Whether it failed, and bytes of the result or of the reason, which follow."""
