"""Repairs a damaged shard: keeps its readable inner chunks in a valid shard.

An inner chunk is kept only if its place in the shard is certain and it decodes. An index that
passes its own checks gives the places. Entries of an index that does not are clues: an entry is
trusted if no other entry claims any of its bytes, and if the bytes decode with a codec that would
detect bytes of anything but an inner chunk. Without any index the places of inner chunks are
unknown, and none is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import unpack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.shards.parts import MemoryPart, read_index
from zarrfs.errors import DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.format.shard_index import MISSING, IndexCodec

_ENTRY = 16
# Bytes of an index up to which it is searched for byte by byte.
_LARGEST_SEARCHED = 1 << 18


@dataclass(frozen=True, slots=True)
class Salvage:
    """
    parts : of the new shard; None if no inner chunk could be kept.
    kept : inner chunks in it.
    lost : places in the shard's index of the other inner chunks, as far as is known.
    index : the error of the index; None: it is valid.
    """

    parts: list[Buffer] | None
    kept: int
    lost: list[Index]
    index: str | None


def salvage_shard(data: memoryview, layout: ChunkLayout, shape: Shape) -> Salvage:
    """Look through the bytes of a shard of decoded ``shape``. Takes twice their memory.

    Raises DecodeError for shards that cannot be examined: those with codecs around them, or with
    shards in them.
    """
    if len(layout.levels) > 1 or layout.levels[0].around:
        raise DecodeError("shards within shards, or within codecs, are not taken apart")
    index = layout.levels[0].index_codec(shape)
    inner = layout.chunk_codec(layout.levels[0].inner_shape)
    try:
        return _from_index(data, index, inner)
    except DecodeError as error:
        wrong = str(error)
    # Other bytes must fail to decode as an inner chunk: by their form, or by a checksum.
    if not inner.encoded.exact or _checksums(inner):
        for entries, stop in _candidates(data, index):
            kept, lost = _believable(data[:stop], entries, index, inner)
            if kept:
                return Salvage(_shard(index, kept), len(kept), lost, wrong)
    return Salvage(None, 0, [], wrong)


def _from_index(data: memoryview, index: IndexCodec, inner: ChunkCodec) -> Salvage:
    """The result for a shard with a valid index. Raises DecodeError if the index is bad."""
    entries = read_index(MemoryPart(data), index)
    kept: dict[Index, Buffer] = {}
    lost = []
    for place in np.ndindex(*index.counts):
        try:
            where = entries.locate(place, inner.encoded.maximum)
            if where is None:
                continue
            part = data[where[0] : where[0] + where[1]]
            inner.decode(part)
        except Exception:  # noqa: BLE001 - an unexpected error of a decoder is damage, too
            lost.append(place)
        else:
            kept[place] = part
    return Salvage(_shard(index, kept), len(kept), lost, None)


def _shard(index: IndexCodec, kept: Mapping[Index, Buffer]) -> list[Buffer] | None:
    """The parts of a shard of inner chunks by their places, which are in order; None if empty."""
    lengths = np.zeros(index.counts, np.int64)
    for place, data in kept.items():
        lengths[place] = len(data)
    return index.assembled(lengths, list(kept.values())) if kept else None


def _checksums(codec: ChunkCodec) -> int:
    return sum(each.verifies for each in codec.bytes_bytes)


def _candidates(data: memoryview, index: IndexCodec) -> Iterator[tuple[NDArray[np.uint64], int]]:
    """Possible entries of a bad index, each with the offset where the inner chunks end.

    The index of a truncated shard, if at its end, is not in its proper place.
    """
    if len(index.codec.bytes_bytes) != _checksums(index.codec):
        return  # compressed: its entries cannot be recognised
    if index.location == "start":
        yield _entries(data[: index.nbytes], index), len(data)
        return
    first = max(0, len(data) - index.size)
    last = len(data) - _ENTRY if index.nbytes <= _LARGEST_SEARCHED else first
    for start in range(first, last + 1):
        if start > first and not _plausible(bytes(data[start : start + _ENTRY]), start):
            continue
        entries = _entries(data[start : start + index.nbytes], index)
        offsets, lengths = entries[:, 0], entries[:, 1]
        if ((offsets < start) & (offsets + lengths == start)).any():
            yield entries, start


def _plausible(entry: bytes, limit: int) -> bool:
    """Whether an entry, in either byte order, is missing or ends at most at ``limit``."""
    return entry == b"\xff" * _ENTRY or any(
        sum(unpack(order + "QQ", entry)) <= limit for order in "<>"
    )


def _entries(raw: memoryview, index: IndexCodec) -> NDArray[np.uint64]:
    """Pairs of offset and length, in the order of the index; missing beyond the end of ``raw``."""
    padded = bytes(raw[: len(raw) - len(raw) % _ENTRY]).ljust(index.nbytes, b"\xff")
    decoded = index.codec.array_bytes.decode(padded)
    for codec in reversed(index.codec.array_array):
        decoded = codec.decode(decoded)
    return np.ascontiguousarray(decoded).reshape(-1, 2)


def _believable(
    data: memoryview, entries: NDArray[np.uint64], index: IndexCodec, inner: ChunkCodec
) -> tuple[dict[Index, Buffer], list[Index]]:
    """The inner chunks whose places are certain, and the places of the other entries.

    data : up to the index, if that is at the end. If no inner chunk ends there, the index may begin
        elsewhere, and its entries then belong to other inner chunks: none is certain.

    Damage is mostly a run of bytes. If it ends within an entry, the rest of that entry may by
    chance point to another inner chunk (zeros point to the first one). So an entry beside an
    impossible one is not trusted.
    """
    first = index.size if index.location == "start" else 0
    claims: list[tuple[int, int, int]] = []
    wrong: set[int] = set()
    for number, (offset, length) in enumerate(entries.tolist()):
        if offset == MISSING and length == MISSING:
            continue
        if first <= offset <= len(data) - length and 0 < length <= inner.encoded.maximum:
            claims.append((offset, offset + length, number))
        else:
            wrong.add(number)
    claims.sort()
    end, last = -1, -1
    for start, stop, number in claims:
        if start < end:
            wrong |= {last, number}
        if stop > end:
            end, last = stop, number
    doubtful = wrong | {number + 1 for number in wrong} | {number - 1 for number in wrong}
    places = list(np.ndindex(*index.counts))
    kept: dict[Index, Buffer] = {}
    reached = 0
    lost = [places[number] for number in wrong]
    for start, stop, number in claims:
        if number in wrong:
            continue
        if number not in doubtful and _decodes(inner, data[start:stop]):
            kept[places[number]] = data[start:stop]
            reached = stop
        else:
            lost.append(places[number])
    if index.location == "end" and reached < len(data):
        kept.clear()
    return dict(sorted(kept.items())), sorted(lost)


def _decodes(inner: ChunkCodec, part: Any) -> bool:
    try:
        inner.decode(part)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True
