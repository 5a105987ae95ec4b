"""Reads everything in a source, and tells what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from zarrfs import bounds
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import (
    LARGEST_DOCUMENT,
    DocumentReader,
    Node,
    join,
    readers_of,
)
from zarrfs.cache.caches import Caches
from zarrfs.errors import (
    BudgetExceeded,
    MetadataError,
    NodeNotFound,
    StoreError,
    StoreListingUnsupported,
    StoreReadOnly,
    UsageError,
    ZarrfsError,
)
from zarrfs.format.metadata.documents import DOCUMENT_NAMES, V3_NODE, load_json
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.format.metadata.strict import deviations
from zarrfs.format.metadata.v3 import problems
from zarrfs.library.checking.array_check import ArrayCheck, CheckedObjects, CheckTask, check_objects
from zarrfs.library.checking.consolidated import ConsolidatedList
from zarrfs.library.checking.findings import Finding, Totals
from zarrfs.library.engine import (
    Engine,
    EngineConfig,
    batches,
    engine,
    for_workers,
    per_task,
    run,
)
from zarrfs.library.source import SourceOptions, open_caches, open_source, source_name
from zarrfs.store.base import Store

# Groups within groups.
_DEEPEST = 256
# Parts of an array that are read or wait, for each thread.
_QUEUED = 4
_NOT_MENDED = "a repair does not mend this"


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """
    path : of the array or group below the source; everything below it is checked.
    repair : whether to save what can be read of damaged shards, and to remove leftovers.
    engine : who reads the chunks; a repair needs this process.
    found : called with each finding, by one thread at a time.
    progress : called with how much was looked at so far, likewise.
    """

    path: str = ""
    repair: bool = False
    source: SourceOptions = field(default_factory=SourceOptions)
    engine: EngineConfig = field(default_factory=EngineConfig)
    found: Callable[[Finding], object] = lambda finding: None
    progress: Callable[[Totals], object] = lambda totals: None


def check_source(source: str, config: CheckConfig) -> Totals:
    """Look at all metadata and decode all chunks, in bounded memory. Blocks.

    A repair never deletes data: the original of what it replaces is kept beside the array.

    Raises NodeNotFound where there is no Zarr at all, StoreReadOnly where a repair cannot
    write, and other ZarrfsError where the source cannot be opened.
    """
    with engine(config.engine, config.source.memory_bytes) as workers:
        if workers is not None and config.repair:
            raise UsageError("a repair needs one process: leave --scheduler out")
        if workers is not None:
            config = replace(config, source=for_workers(config.source, source))
        with closing(open_source(source, config.source)) as store:
            if config.repair and (reason := store.read_only) is not None:
                raise StoreReadOnly(store.url, reason)
            with open_caches(store, config.source) as caches:
                return _Check(store, caches, config, source, workers).run()


@dataclass(eq=False)
class _Check:
    store: Store
    caches: Caches
    config: CheckConfig
    source: str
    workers: Engine | None
    _totals: Totals = field(default_factory=Totals)

    def __post_init__(self) -> None:
        self._documents = DocumentReader(self.config.source.memory_bytes)
        self._readers = readers_of(self.config.source.zarr_format)

    def run(self) -> Totals:
        path = "/".join(name for name in self.config.path.split("/") if name)
        if (node := self._node_or_bare_group(path, strict=True)) is None:
            raise NodeNotFound(f"{join(self.store.url, path)}: no Zarr array or group here")
        self._check_leftovers()
        self._check_node(node)
        return self._totals

    def _report(self, finding: Finding) -> None:
        if finding.is_note:
            self._totals.notes += 1
        else:
            self._totals.problems += 1
            self._totals.repaired += finding.is_mended
        if self.config.repair and not finding.is_note and finding.repaired is None:
            finding = replace(finding, unrepaired=finding.unrepaired or _NOT_MENDED)
        self.config.found(finding)

    def _check_leftovers(self) -> None:
        try:
            names = self.store.leftovers(remove=self.config.repair)
        except StoreError as error:
            self._report(Finding("access", error.key, error.reason))
            return
        for name in names:
            self._report(
                Finding(
                    "leftover",
                    name,
                    "is a temporary file of a writer that was killed",
                    repaired="removed" if self.config.repair else None,
                )
            )

    # --- nodes ------------------------------------------------------------------

    def _node(self, path: str, *, strict: bool = False) -> Node | None:
        """The stored node, whatever consolidated metadata say.

        strict : raise StoreError where the store does not give out its metadata: no problem of
            the data, but a reason why they cannot be checked.
        """
        for reader in self._readers:
            try:
                node = reader.read(self.store, path, self._documents)
            except StoreError as error:
                if strict:
                    raise type(error)(join(self.store.url, error.key), error.reason) from error
                return Node(path, None, str(error), tuple(reader.markers), None)
            if node is not None:
                return node
        return None

    def _node_or_bare_group(self, path: str, *, strict: bool = False) -> Node | None:
        """As `_node`; also a directory without documents that nodes lie in."""
        if (node := self._node(path, strict=strict)) is not None:
            return node
        try:
            has_children = bool(Hierarchy(self.store).children(path))
        except (StoreError, NodeNotFound):
            return None
        return Node(path, GroupMetadata(0, {}, None), None, (), None) if has_children else None

    def _check_node(
        self,
        node: Node,
        above: tuple[object, ...] = (),
        lists: tuple[ConsolidatedList, ...] = (),
    ) -> None:
        """
        above : the states of the groups that the node is in, as far as they tell them apart.
        lists : those of them that have consolidated metadata.
        """
        self._check_documents(node)
        for each in lists:
            for reason in each.differences(node):
                self._report(Finding("metadata", each.key, reason))
        if isinstance(node.metadata, ArrayMetadata):
            self._totals.arrays += 1
            self._check_array(node, node.metadata)
        elif isinstance(node.metadata, GroupMetadata):
            self._totals.groups += 1
            state = self._state(node)
            if len(above) >= _DEEPEST or (state is not None and state in above):
                reason = "is a link to a group above it, or lies too deep"
                self._report(Finding("access", node.path, reason))
                return
            own = None
            if node.metadata.children is not None:
                own = ConsolidatedList(node, _document(node), node.metadata.children)
                lists = (*lists, own)
            for child in self._children(node, node.metadata, lists):
                self._check_node(child, (*above, state), lists)
            for path in () if own is None else own.not_seen():
                if self._node(join(node.path, path)) is None:
                    reason = f"consolidated metadata list {path}, which does not exist"
                    self._report(Finding("metadata", _document(node), reason))

    def _state(self, group: Node) -> object:
        """Tells a group from all others of a local store, where links can lead in circles."""
        if not self.store.traits.near or not group.documents:
            return None
        try:
            info = self.store.info(_document(group))
        except StoreError:
            return None
        return None if info is None else info.generation

    def _check_documents(self, node: Node) -> None:
        key = join(node.path, V3_NODE)
        document: Any = None
        if V3_NODE in node.documents:
            try:
                blob = self.store.get(key, limit=LARGEST_DOCUMENT)
                document = None if blob is None else load_json(bytes(blob.data), key)
            except (StoreError, MetadataError):
                pass
        if node.metadata is None:
            reasons = [] if document is None else problems(document, key)
            key = join(node.path, node.documents[0]) if node.documents else node.path
            for reason in reasons or [node.problem or "cannot be served"]:
                self._report(Finding("metadata", key, reason.removeprefix(f"{key}: ")))
            return
        if node.problem is not None:
            document_name, _, reason = node.problem.removeprefix(f"{node.path}/").partition(": ")
            self._report(Finding("metadata", join(node.path, document_name), reason))
        elif document is not None:
            for reason in deviations(document):
                self._report(Finding("deviation", key, reason))

    def _children(
        self, group: Node, metadata: GroupMetadata, lists: tuple[ConsolidatedList, ...]
    ) -> Iterator[Node]:
        """The nodes in a group; tells of what else is there, and of what is missing."""
        consolidated = (
            set()
            if metadata.children is None
            else {path.partition("/")[0] for path in metadata.children if path}
        )
        try:
            for entry in self.store.list_dir(group.path):
                name = entry.rstrip("/")
                path = join(group.path, name)
                if not entry.endswith("/"):
                    if name not in group.documents and name not in DOCUMENT_NAMES:
                        self._report(Finding("orphan", path, "belongs to no array or group"))
                    continue
                if (node := self._node_or_bare_group(path)) is None:
                    self._report(Finding("orphan", path + "/", "is neither an array nor a group"))
                    continue
                consolidated.discard(name)
                yield node
        except StoreListingUnsupported:
            listed = consolidated.union(*(each.names_in(group) for each in lists))
            for name in sorted(filter(bounds.is_name, listed)):
                if (node := self._node(join(group.path, name))) is not None:
                    consolidated.discard(name)
                    yield node
            if not lists:
                reason = "the store cannot list, so what is in the group is not checked"
                self._report(Finding("access", group.path, reason))
        except StoreError as error:
            self._report(Finding("access", error.key, error.reason))
            return
        for name in sorted(consolidated):
            reason = f"consolidated metadata list {name}, which does not exist"
            self._report(Finding("metadata", _document(group), reason))

    def _check_array(self, node: Node, metadata: ArrayMetadata) -> None:
        try:
            array = self.caches.open(node.path, metadata).array
        except BudgetExceeded as error:
            self._report(Finding("access", node.path, str(error)))
            return
        check = ArrayCheck(array, node, self.caches.budget, repair=self.config.repair)
        stored = check.stored(self._report)
        if (workers := self.workers) is None:
            threads = self.caches.loaders
            parts = batches(stored, check.batch_objects)
            with ThreadPoolExecutor(threads) as pool:
                self._add(node.path, run(pool, threads * _QUEUED, check.check, parts))
        else:
            size = array.layout.spec(array.layout.stored.largest_chunk).nbytes
            options = self.config.source
            tasks = (
                CheckTask(source_name(self.source), node.path, metadata.fingerprint, options, part)
                for part in batches(stored, per_task(size))
            )
            self._add(node.path, run(workers.executor, workers.at_once, check_objects, tasks))

    def _add(self, path: str, results: Iterable[tuple[Any, CheckedObjects | ZarrfsError]]) -> None:
        """Report the results for objects of the array at ``path`` as they come."""
        for _, done in results:
            if isinstance(done, ZarrfsError):
                self._report(Finding("access", path, str(done)))
                continue
            for finding in done.findings:
                self._report(finding)
            self._totals.objects += done.objects
            self._totals.chunks += done.chunks
            self._totals.unverified += done.unverified
            self.config.progress(self._totals)


def _document(group: Node) -> str:
    return join(group.path, group.documents[-1] if group.documents else "")
