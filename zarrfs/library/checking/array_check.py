"""Reads every stored chunk of one array, several at once, and tells what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

from zarrfs.array.array import Array
from zarrfs.array.making.stored_keys import keys_below
from zarrfs.array.node_readers import Node, join
from zarrfs.array.shards.shard_salvage import salvage_shard
from zarrfs.errors import (
    DecodeError,
    StoreConflict,
    StoreError,
    StoreListingUnsupported,
    ZarrfsError,
    reason_of,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.library.checking.findings import MOST_INDICES, Finding
from zarrfs.library.checking.lost_chunks import (
    ASIDE,
    RECORD,
    LostChunks,
    missing_in,
    remember,
    still_lost,
)
from zarrfs.library.engine import batches
from zarrfs.library.source import SourceOptions, find_array, open_caches, open_source
from zarrfs.memory.budget import MemoryBudget

# Share of the memory for a batch of inner chunks.
_BATCH_SHARE = 8
# A damaged shard, what is kept of it, and what it is put together to.
_SALVAGE_COST = 4
# Decoded bytes and number of objects that one thread reads one after the other.
_BATCH_BYTES, _BATCH_OBJECTS = 1 << 20, 64


@dataclass(slots=True)
class CheckedObjects:
    """
    unverified : chunks without a checksum.
    """

    findings: list[Finding] = field(default_factory=list)
    objects: int = 0
    chunks: int = 0
    unverified: int = 0

    def plus(self, other: CheckedObjects) -> CheckedObjects:
        return CheckedObjects(
            self.findings + other.findings,
            self.objects + other.objects,
            self.chunks + other.chunks,
            self.unverified + other.unverified,
        )


class ArrayCheck:
    """One array. Thread-safe.

    batch_objects : how many objects one thread should read.
    """

    def __init__(self, array: Array, node: Node, budget: MemoryBudget, *, repair: bool) -> None:
        self._array = array
        self._node = node
        self._budget = budget
        self._repair = repair
        size = array.layout.spec(array.layout.stored.largest_chunk).nbytes
        self.batch_objects = min(max(1, _BATCH_BYTES // max(1, size)), _BATCH_OBJECTS)

    def stored(self, report: Callable[[Finding], object]) -> Iterator[Index]:
        """The objects that hold chunks; reports what else is there, and what is lost."""
        # First, so that what this repair cannot save is not told twice.
        for finding in still_lost(self._array):
            report(finding)
        grid = self._array.layout.stored
        path, keys = self._array.path, self._array.metadata.chunk_keys
        last = keys.key(tuple(max(n - 1, 0) for n in grid.counts))
        try:
            for key in keys_below(self._array.store, path, last.count("/") + 1):
                # Those of another version may be there too.
                if key in self._node.documents or key in DOCUMENT_NAMES:
                    continue
                index = keys.index(key, len(grid.axes))
                if index is not None and grid.contains(index):
                    yield index
                    continue
                if key.startswith(f"{ASIDE}/"):
                    if not key.endswith(RECORD):
                        report(Finding("aside", join(path, key), "was set aside by a repair"))
                elif index is not None:
                    reason = f"chunk {list(index)} lies outside the grid of {list(grid.counts)}"
                    report(Finding("orphan", join(path, key), reason))
                else:
                    reason = "is neither a chunk nor a metadata document of the array"
                    report(Finding("orphan", join(path, key), reason))
        except StoreListingUnsupported:
            yield from grid.every_index()
        except StoreError as error:
            report(Finding("access", error.key, error.reason))

    def check(self, indices: Iterable[Index]) -> CheckedObjects:
        """Read these objects."""
        done = CheckedObjects()
        for stored in indices:
            try:
                self._check(stored, done)
            except ZarrfsError as error:
                done.findings.append(Finding("access", self._array.key(stored), str(error)))
            except Exception as error:  # noqa: BLE001 - one object must not end the check of others
                reason = f"failed: {reason_of(error)}"
                done.findings.append(Finding("access", self._array.key(stored), reason))
        return done

    def _check(self, stored: Index, done: CheckedObjects) -> None:
        reasons: Counter[str] = Counter()
        bad: list[Index] = []
        readable = unreadable = 0
        for batch in self._batches(stored):
            cost = sum(self._cost(index) for index in batch) + self._array.shard_cost
            self._budget.reserve(cost)
            try:
                for result in self._array.read_chunks(batch):
                    if result.error is None:
                        readable += 1
                        continue
                    unreadable += 1
                    reasons[result.error.reason] += 1
                    bad += [result.index] if len(bad) < MOST_INDICES else []
            finally:
                self._budget.release(cost)
        verified = self._array.layout.verifies(self._array.layout.stored.chunk_shape(stored))
        done.objects += 1
        done.chunks += readable + unreadable
        done.unverified += 0 if verified else readable
        if not unreadable:
            return
        ((reason, _),) = reasons.most_common(1)
        sharded = self._array.layout.sharded
        if len(reasons) > 1:
            reason += f" (and {len(reasons) - 1} more)"
        repaired = unrepaired = None
        if self._repair:
            repaired, unrepaired = (
                self._repaired(stored) if sharded else (None, "nothing of a chunk can be saved")
            )
        done.findings.append(
            Finding(
                "shard" if sharded else "chunk",
                self._array.key(stored),
                reason,
                tuple(bad),
                unreadable,
                readable,
                repaired,
                unrepaired,
            )
        )

    def _cost(self, index: Index) -> int:
        return self._array.decoder.cost(self._array.layout.read.chunk_shape(index))

    def _batches(self, stored: Index) -> Iterator[list[Index]]:
        """The chunks of a stored object, in parts that are read at once."""
        layout = self._array.layout
        if not layout.sharded:
            yield [stored]
            return
        origin, valid = layout.stored.origin(stored), layout.stored.valid_shape(stored)
        batch: list[Index] = []
        cost = 0
        most = self._budget.total // _BATCH_SHARE - self._array.shard_cost
        for index in layout.read.chunks_in(origin, valid):
            more = self._cost(index)
            if batch and cost + more > most:
                yield batch
                batch, cost = [], 0
            batch.append(index)
            cost += more
        yield batch

    def _repaired(self, stored: Index) -> tuple[str | None, str | None]:
        """The result of the repair of a damaged shard, with the reason if it is incomplete."""
        array = self._array
        key = array.key(stored)
        limit = self._budget.total // _SALVAGE_COST
        if (info := array.stored_info(stored)) is None:
            return None, "it no longer exists"
        if info.size > limit:
            return None, f"it has {info.size} bytes, more than the memory for a repair"
        cost = _SALVAGE_COST * info.size
        self._budget.reserve(cost)
        try:
            blob = array.store.get(key, limit=info.size)
            if blob is None:
                return None, "it no longer exists"
            shape = array.layout.stored.chunk_shape(stored)
            saved = salvage_shard(memoryview(blob.data), array.layout, shape)
            if saved.parts is None:
                return None, "nothing in it can be read for certain"
            aside = self._set_aside(key, blob.data)
            array.store.put(key, saved.parts, expected=blob.info.generation)
            array.forget([stored])
            lost = self._lost(stored, None if saved.index is not None else saved.lost)
            if lost:
                remember(array, LostChunks(stored, lost, aside))
        except DecodeError as error:
            return None, str(error)
        except StoreConflict:
            return None, "a writer changed it at the same time"
        finally:
            self._budget.release(cost)
        repaired = f"kept {saved.kept} inner chunks; the original is now {aside}"
        if not lost:
            return repaired, None
        # Without an index nobody knows which inner chunks there were.
        most = "at most " if saved.index is not None else ""
        return repaired, f"{most}{len(lost)} of its chunks lost, which read as the fill value"

    def _lost(self, stored: Index, places: list[Index] | None) -> tuple[Index, ...]:
        """The chunks at ``places`` of a shard; None: all that it does not hold."""
        chunks = [index for batch in self._batches(stored) for index in batch]
        if places is None:
            return tuple(missing_in(self._array, stored, chunks))
        wanted = set(places)
        return tuple(index for index in chunks if self._array.layout.locate(index)[1] in wanted)

    def _set_aside(self, key: str, data: bytes | memoryview) -> str:
        """Store the bytes where they disturb nobody; the new key."""
        relative = key.removeprefix(f"{self._array.path}/") if self._array.path else key
        base = join(self._array.path, f"{ASIDE}/{relative}")
        for number in range(1000):
            aside = f"{base}.{number}" if number else base
            if self._array.store.info(aside) is None:
                self._array.store.put(aside, [data], expected=None)
                return aside
        raise StoreConflict(base, "there are too many originals already")


class CheckTask(NamedTuple):
    """Some stored objects of an array, which must not be another one by then."""

    source: str
    path: str
    fingerprint: str
    options: SourceOptions
    indices: tuple[Index, ...]


def check_objects(task: CheckTask) -> CheckedObjects:
    """Read the objects of a task. Opens everything anew, so that nothing stays in a worker."""
    options = replace(task.options, consolidated="never")
    with closing(open_source(task.source, options)) as store:
        node, metadata = find_array(store, task.path, options)
        if metadata.fingerprint != task.fingerprint:
            raise StoreConflict(task.path, "was changed by another program while it was checked")
        with open_caches(store, options) as caches:
            array = caches.open(task.path, metadata).array
            check = ArrayCheck(array, node, caches.budget, repair=False)
            parts = batches(task.indices, check.batch_objects)
            with ThreadPoolExecutor(caches.loaders) as pool:
                return reduce(CheckedObjects.plus, pool.map(check.check, parts), CheckedObjects())
