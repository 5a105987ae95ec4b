"""Chunks that repairs lost: recorded beside the originals, until a program writes them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zarrfs.array.array import Array
from zarrfs.array.node_readers import join
from zarrfs.errors import StoreError, StoreListingUnsupported
from zarrfs.format.chunk_grid import Index
from zarrfs.library.checking.findings import MOST_INDICES, Finding
from zarrfs.store.base import ANY

ASIDE = ".zarrfs-damaged"
"""Directory beside an array's chunks in which the originals of repaired objects are kept."""

RECORD = ".lost.json"
"""Ends the key of a record in that directory."""

_LARGEST_RECORD = 16 << 20
_MOST_RECORDED = 100_000


class LostChunks(NamedTuple):
    """Inner chunks of one shard.

    shard : index of the stored object.
    chunks : as the array counts them.
    aside : key of the damaged original.
    """

    shard: Index
    chunks: tuple[Index, ...]
    aside: str


def remember(array: Array, lost: LostChunks) -> None:
    """Store a record, with what an earlier one of the same shard tells. Raises StoreError."""
    key = _key(array, lost.shard)
    known = _read(array, key)
    chunks = sorted({*lost.chunks, *(() if known is None else known.chunks)})
    document = {"shard": lost.shard, "chunks": chunks[:_MOST_RECORDED], "original": lost.aside}
    array.store.put(key, [json.dumps(document).encode()], expected=ANY)


def still_lost(array: Array) -> Iterator[Finding]:
    """The chunks in all records of an array that no program has written since."""
    try:
        names = list(array.store.list_dir(join(array.path, ASIDE)))
    except StoreListingUnsupported:
        return
    for name in names:
        if not name.endswith(RECORD):
            continue
        key = join(array.path, f"{ASIDE}/{name}")
        try:
            lost = _read(array, key)
            if lost is None:
                yield Finding("access", key, "is not a record of lost chunks")
                continue
            missing = tuple(_missing(array, lost))
        except StoreError as error:
            yield Finding("access", error.key, error.reason)
            continue
        if missing:
            yield Finding(
                "lost",
                array.key(lost.shard),
                f"{len(missing)} of its chunks could not be saved and read as the fill value; "
                f"the original is {lost.aside}; write them anew, or delete {key}",
                missing[:MOST_INDICES],
                len(missing),
            )


def missing_in(array: Array, stored: Index, chunks: Iterable[Index]) -> Iterator[Index]:
    """Those that a stored shard does not hold. Raises StoreError."""
    wanted = list(chunks)
    info = array.stored_info(stored)
    if info is None:
        yield from wanted
        return
    # The index of the shard is in memory afterwards.
    for _ in array.read_chunks(wanted[:1]):
        pass
    yield from (index for index in wanted if array.inner_length(index, info) == 0)


def _missing(array: Array, lost: LostChunks) -> Iterator[Index]:
    if array.layout.sharded and array.layout.stored.contains(lost.shard):
        inside = (index for index in lost.chunks if array.layout.read.contains(index))
        yield from missing_in(array, lost.shard, inside)


def _key(array: Array, shard: Index) -> str:
    name = ".".join(map(str, shard)) or "0"
    return join(array.path, f"{ASIDE}/{name}{RECORD}")


def _read(array: Array, key: str) -> LostChunks | None:
    """None where there is none, or something else."""
    blob = array.store.get(key, limit=_LARGEST_RECORD)
    if blob is None:
        return None
    try:
        document = json.loads(bytes(blob.data))
        rank = len(array.layout.stored.axes)
        shard, *chunks = (
            tuple(map(int, index)) for index in (document["shard"], *document["chunks"])
        )
        aside = str(document["original"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if any(len(index) != rank for index in (shard, *chunks)):
        return None
    return LostChunks(shard, tuple(chunks), aside)
