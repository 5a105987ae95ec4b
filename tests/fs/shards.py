"""Shards put together by hand."""

from collections.abc import Sequence
from typing import Literal

import google_crc32c
import numpy as np

MISSING = 2**64 - 1


def with_checksum(data: bytes) -> bytes:
    return data + google_crc32c.value(data).to_bytes(4, "little")


def index_bytes(entries: Sequence[tuple[int, int]]) -> bytes:
    """Offsets and lengths as the index codecs ``bytes`` and ``crc32c`` have them."""
    return with_checksum(np.array(entries, "<u8").tobytes())


def shard(
    inner: Sequence[bytes | None],
    location: Literal["start", "end"] = "end",
    entries: dict[int, tuple[int, int]] | None = None,
) -> bytes:
    """The encoded inner chunks one after another, with their index.

    inner : None is an inner chunk that is not stored.
    entries : index entries to write in place of the true ones.
    """
    first = 16 * len(inner) + 4 if location == "start" else 0
    offset = first
    index = []
    for data in inner:
        index.append((MISSING, MISSING) if data is None else (offset, len(data)))
        offset += len(data or b"")
    for position, entry in (entries or {}).items():
        index[position] = entry
    body = b"".join(data or b"" for data in inner)
    return index_bytes(index) + body if location == "start" else body + index_bytes(index)
