"""Copies a whole array or hierarchy to another place, and into another form."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.stored_keys import delete_keys, keys_below
from zarrfs.array.node_readers import join
from zarrfs.cache.caches import Caches
from zarrfs.counted import counted
from zarrfs.errors import (
    AlreadyExists,
    ChunkError,
    StoreListingUnsupported,
    StoreReadOnly,
    UsageError,
    ZarrfsError,
)
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.copying.array_copy import ArrayCopy, Copied, CopyTask
from zarrfs.library.copying.boxes import AT_ONCE, BoxCopy
from zarrfs.library.copying.form import CopyForm
from zarrfs.library.copying.nodes import PlannedArray, PlannedNodes
from zarrfs.library.copying.record import RECORD, CopyRecord
from zarrfs.library.copying.task import caches_of, open_target, perform
from zarrfs.library.engine import (
    Engine,
    EngineConfig,
    batches,
    engine,
    for_workers,
    per_task,
    run,
)
from zarrfs.library.source import SourceOptions, hierarchy_of, open_source, source_name
from zarrfs.library.transfer.transfer import Progress
from zarrfs.store.base import ANY, Store
from zarrfs.store.foreign.kinds import ZIP_ENDINGS
from zarrfs.store.open import create_store
from zarrfs.store.redact import shown_url

_MOST_SAID = 3


class CopyFailed(ZarrfsError):
    """Parts of the source could not be copied. The text names them."""


@dataclass(frozen=True, slots=True)
class CopyConfig:
    """
    path : of the array or group below the source.
    region : of an array, as `parse_region` takes it; empty: the whole array.
    form : what is to be other than in the source.
    overwrite : whether an array or group at the destination is replaced.
    verify : whether everything is read back and compared.
    dry_run : only plan.
    source : how source and destination are opened.
    engine : who does it.
    progress : told how many of how many bytes of decoded elements are copied.
    """

    path: str = ""
    region: str = ""
    form: CopyForm = field(default_factory=CopyForm)
    overwrite: bool = False
    verify: bool = False
    dry_run: bool = False
    source: SourceOptions = field(default_factory=SourceOptions)
    engine: EngineConfig = field(default_factory=EngineConfig)
    progress: Progress = lambda done, total: None


class ArrayPlan(NamedTuple):
    """One array of a copy, as it is planned.

    metadata : of the copy.
    nbytes : of its elements, decoded, in the source's data type.
    source_objects, objects : objects of the source that hold it, and of the destination, at most.
    decoded : how often each chunk of the source is decoded; 0: chunks are passed on as they are.
    """

    path: str
    metadata: ArrayMetadata
    nbytes: int
    source_objects: int
    objects: int
    decoded: float

    @property
    def requests(self) -> int:
        """About the most requests that stores get for it, if both are remote."""
        return math.ceil(self.source_objects * max(1.0, self.decoded)) + self.objects


@dataclass(slots=True)
class CopyResult:
    """
    groups : number of groups.
    arrays : all arrays.
    documents : number of metadata documents of the copy.
    copied : what this call has copied.
    resumed : whether an earlier call had begun.
    """

    groups: int
    arrays: list[ArrayPlan]
    documents: int
    copied: Copied = field(default_factory=Copied)
    resumed: bool = False


def copy_node(source: str, target: str, config: CopyConfig) -> CopyResult:
    """Copy an array, or a group with everything below it. Blocks.

    source : as for `zarrfs.open_array`.
    target : a directory or a URL, which need not exist.

    The metadata of the copy are stored last, so nothing incomplete looks like an array.

    Raises UsageError, AlreadyExists, CopyFailed where parts of the source cannot be had, and other
    ZarrfsError. Whatever is raised, the same call continues, and copies what is missing.
    """
    source, target = source_name(source), source_name(target)
    if target.lower().endswith(ZIP_ENDINGS):
        raise UsageError(
            f"{target}: is an archive, which cannot be written to: copy to a directory"
        )
    with ExitStack() as stack:
        workers = stack.enter_context(engine(config.engine, config.source.memory_bytes))
        options = config.source if workers is None else for_workers(config.source, source, target)
        store = open_source(source, options)
        stack.callback(store.close)
        nodes = PlannedNodes(hierarchy_of(store, options), config.path, config.region, config.form)
        caches = stack.enter_context(caches_of(store, options))
        copies = [
            ArrayCopy(
                *(source, array.path, target, array.below, options),
                *(array.source.fingerprint, array.documents, array.region, config.verify),
            )
            for array in nodes.arrays
        ]
        plans = []
        for array, copy in zip(nodes.arrays, copies, strict=True):
            # Nothing is read or written for a plan.
            boxes = BoxCopy(caches, store, array.source, store, copy)
            plans.append(_plan(copy, boxes))
            boxes.close()
        result = CopyResult(nodes.groups, plans, len(nodes.documents))
        if config.dry_run:
            return result
        _check_separate(join(store.url, config.path.strip("/")), target)
        made = create_store(target, options.store_config())
        stack.callback(made.close)
        if (reason := made.read_only) is not None:
            raise StoreReadOnly(made.url, reason)
        replaces = _replaces(made, overwrite=config.overwrite)
        record = CopyRecord(
            made, _identity(source, config, copies), overwrite=config.overwrite, removing=replaces
        )
        result.resumed = record.resumed
        try:
            if record.removing:
                _remove(made)
                record.removing = False
                record.write()
            chunks = open_target(target, options)
            stack.callback(chunks.close)
            work = _Work(caches, store, chunks, workers, record, config)
            result.copied = work.copy([*zip(nodes.arrays, copies, plans, strict=True)])
            for key, data in nodes.documents.in_order():
                made.put(key, [data], expected=ANY)
            record.remove()
        except BaseException:
            record.let_go()
            raise
        if nodes.problems:
            raise CopyFailed(f"all else was copied, but not {_some(nodes.problems)}")
        return result


@dataclass(eq=False)
class _Work:
    """Copies arrays, one after the other."""

    caches: Caches
    source: Store
    target: Store
    workers: Engine | None
    record: CopyRecord
    config: CopyConfig
    _done: int = 0
    _total: int = 0
    _failed: list[str] = field(default_factory=list)

    def copy(self, arrays: list[tuple[PlannedArray, ArrayCopy, ArrayPlan]]) -> Copied:
        """Raises CopyFailed at the end if chunks of the source cannot be had, other errors now."""
        self._total = sum(plan.nbytes for _, _, plan in arrays)
        whole = Copied()
        for array, copy, _ in arrays:
            boxes = BoxCopy(self.caches, self.source, array.source, self.target, copy)
            with closing(boxes):
                whole = whole.plus(self._copy(copy, boxes))
        self.record.write()
        if self._failed:
            parts = f"{counted(len(self._failed), 'part')} could not be copied"
            raise CopyFailed(f"{parts}: {_some(self._failed)}; the same command goes on")
        self.config.progress(self._total, self._total)
        return whole

    def _copy(self, copy: ArrayCopy, boxes: BoxCopy) -> Copied:
        name = f"{copy.target_path}:{'x'.join(map(str, boxes.plan.tiles.lengths))}"
        tasks = self._tasks(name, copy, boxes)
        whole = Copied()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            if self.workers is None:
                results = run(threads, AT_ONCE, boxes.perform, tasks, self.record.write_if_due)
            else:
                workers = self.workers
                results = run(
                    workers.executor, workers.at_once, perform, tasks, self.record.write_if_due
                )
            for task, done in results:
                if isinstance(done, ChunkError):
                    self._failed.append(str(done))
                    continue
                if isinstance(done, ZarrfsError):
                    raise done
                whole = whole.plus(done)
                self.record.done[name].add(task.numbers)
                self._done += done.nbytes
                self.config.progress(self._done, self._total)
        return whole

    def _tasks(self, name: str, copy: ArrayCopy, boxes: BoxCopy) -> Iterator[CopyTask]:
        most = 1 if self.workers is None else per_task(boxes.nbytes_of_boxes)
        for some in batches(enumerate(boxes.plan.tiles), most):
            left = [(n, tile) for n, tile in some if n not in self.record.done[name]]
            self._done += sum(boxes.nbytes(tile) for n, tile in some if (n, tile) not in left)
            if left:
                yield CopyTask(copy, tuple(n for n, _ in left), tuple(tile for _, tile in left))


def _plan(copy: ArrayCopy, boxes: BoxCopy) -> ArrayPlan:
    metadata = copy.metadata
    decoded = 0.0 if boxes.passing is not None else boxes.plan.decoded
    return ArrayPlan(
        copy.target_path,
        metadata,
        boxes.nbytes_in_all,
        boxes.source_objects,
        math.prod(metadata.layout.stored.counts) if metadata.elements else 0,
        decoded,
    )


def _check_separate(source: str, target: str) -> None:
    """Raises UsageError if one lies in the other."""
    one, other = (_comparable(url) for url in (source, target))
    if one.startswith(other) or other.startswith(one):
        raise UsageError(f"{target}: one of source and destination lies in the other")


def _comparable(url: str) -> str:
    path = url.removeprefix("file://")
    if "://" not in path and "::" not in path:
        path = os.path.realpath(path)
    return path.rstrip("/") + "/"


def _replaces(store: Store, *, overwrite: bool) -> bool:
    """Whether there is a node to be removed. Raises AlreadyExists if that is not allowed."""
    if store.info(RECORD) is not None:
        return False
    if Hierarchy(store).node("") is not None:
        if not overwrite:
            raise AlreadyExists(f"{store.url}: already exists (--overwrite replaces it)")
        return True
    try:
        names = list(islice(store.list_dir(""), 1))
    except StoreListingUnsupported:
        names = []
    if names:
        has = f"is not empty (it has {names[0]!r}) and is not a Zarr node"
        raise AlreadyExists(f"{store.url}: {has}")
    return False


def _remove(store: Store) -> None:
    """Everything but the record, the metadata of the root first."""
    for name in sorted(DOCUMENT_NAMES):
        store.delete(name, expected=ANY)
    delete_keys(store, (key for key in keys_below(store, "") if key != RECORD))


def _identity(source: str, config: CopyConfig, copies: list[ArrayCopy]) -> dict[str, Any]:
    """Properties that must be the same to go on with a copy."""
    form = [(c.target_path, sorted(c.documents.items())) for c in copies]
    return {
        "source": shown_url(source),
        "path": config.path.strip("/"),
        "region": config.region,
        "form": _digest(form),
        "state of the source": _digest([c.fingerprint for c in copies]),
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, default=lambda data: bytes(data).decode("latin-1"))
    return hashlib.sha256(text.encode()).hexdigest()


def _some(texts: list[str]) -> str:
    more = f" (and {len(texts) - _MOST_SAID} more)" if len(texts) > _MOST_SAID else ""
    return "; ".join(texts[:_MOST_SAID]) + more


__all__ = ["ArrayPlan", "CopyConfig", "CopyFailed", "CopyResult", "copy_node"]
