"""From a node of the hierarchy to the directory that shows it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from zarrfs.array.groups_above import Groups, GroupsAbove, NamesBeside, nothing_above
from zarrfs.array.making.resize import ResizeConfig
from zarrfs.array.neighbours import Neighbour, Neighbours, read_neighbours
from zarrfs.array.node_readers import Node, join
from zarrfs.cache.caches import Caches
from zarrfs.cache.write.growth import Growth, most_rows
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import UnsupportedError, ZarrfsError, reason_of
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.nodes.array_views import ArrayViews
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.group_files import MountedGroup
from zarrfs.fs.nodes.nodes import MountedArray, MountedFile, MountedNode
from zarrfs.fs.nodes.variable_array import VariableArray
from zarrfs.store.base import Store
from zarrfs.store.plain_directory import PlainDirectory
from zarrfs.threads import ThreadPool
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import parse_region
from zarrfs.views.facts.around import around, read_outside
from zarrfs.views.facts.facts import Around
from zarrfs.views.headers.grouped import Wanted
from zarrfs.views.headers.names import ARRAY, file_stem, node_name

_FILE_THREADS = 8
# Seconds for which the arrays beside others are kept, and how many.
_KEPT_LOCAL, _KEPT_REMOTE = 1.0, 30.0
_MOST_KEPT = 16

log = logging.getLogger(__name__)


Members: TypeAlias = Callable[[str, Wanted], Iterable[tuple[str, MountedNode]]]


@dataclass(slots=True, eq=False, repr=False)
class NodeOpener:
    """Opens nodes, each for itself: one that cannot be served does not concern the others.

    group : the attributes of the group at a path, above a node that is being opened.
    node : finds the node of a path. Blocks. Raises ZarrfsError.
    is_kept : whether that takes no request; see `Hierarchy.is_kept`.
    members : the nodes of the group of a path that a format asks for, opened.
    plain : the source, where that is a directory of data of any kind.
    """

    store: Store
    config: FileSystemConfig
    caches: Caches
    group: Callable[[str], Mapping[str, Any]]
    node: Callable[[str], Node | None]
    is_kept: Callable[[str], bool]
    members: Members
    plain: PlainDirectory | None = None
    # Threads that read files; few mounts have any to read.
    _file_threads: ThreadPool = field(default_factory=lambda: ThreadPool(_FILE_THREADS))
    _started_ns: int = field(default_factory=time.time_ns)
    # The groups above the source, once an array has asked for them.
    _groups_above: Groups | None = None
    # The first name of each directory outside the store.
    _linked: dict[str, str] = field(default_factory=dict)
    # The arrays beside others, and when they were read, of the clock `time.monotonic`.
    _neighbours: dict[str, tuple[float, Neighbours]] = field(default_factory=dict)

    @property
    def _layout(self) -> FlatConfig:
        return FlatConfig(self.config.byteorder, self.config.order)

    def run(self, work: Callable[[], None]) -> None:
        """Have one of the threads that read files do ``work``."""
        self._file_threads.submit(work)

    def close(self) -> None:
        """Stop the threads that read files."""
        self._file_threads.close()

    def open(self, node: Node, *, strict: bool) -> MountedNode:
        """The node as a directory. One that cannot be served shows why, and is counted.

        strict : whether the reason is raised instead, as a ZarrfsError.
        """
        mtime_ns = node.mtime_ns or self._started_ns
        if node.entry is not None and node.entry.form == "file" and self.plain is not None:
            return MountedFile(node, self.plain, self.run)
        reason = node.problem
        if isinstance(node.metadata, ArrayMetadata):
            try:
                return self._open_array(node, node.metadata, mtime_ns)
            except ZarrfsError as error:
                if strict:
                    raise
                reason = str(error)
            except Exception as error:
                # A fault of this program or of a package. The node's siblings do not suffer.
                log.exception("cannot open %s", f"/{node.path}")
                reason = f"cannot be opened: {reason_of(error)}"
                if strict:
                    raise UnsupportedError(self.store.url, reason) from error
            node = node._replace(metadata=None, problem=reason)
        if self.config.region is not None and strict:
            raise UnsupportedError(
                self.store.url, "a region is one of an array, and this is a group"
            )
        if node.metadata is None or reason is not None:
            self.caches.stats.error(node.path, reason or "cannot be served")
        if node.metadata is None or not node.documents:
            return MountedNode(node, reason, mtime_ns)
        return MountedGroup(
            node,
            reason,
            mtime_ns,
            node_name(self.store.url, node.path),
            self.config.views,
            self._layout,
            partial(self.members, node.path),
            self.config.attribute_seconds,
        )

    def _open_array(self, node: Node, metadata: ArrayMetadata, mtime_ns: int) -> MountedArray:
        """Raises BudgetExceeded, and whatever a codec or data type of other packages raises."""
        if rows := self._rows_to_come(metadata):
            layout = metadata.layout.resized((rows, *metadata.shape[1:]))
            metadata = metadata._replace(layout=layout)
        other = self._other_name(node.path)
        source = self.caches.open(
            node.path, metadata, document=node.own_document, read_only=other is not None
        )
        region = None
        if self.config.region is not None:
            if not metadata.layout.data_type.fixed_size:
                raise UnsupportedError(self.store.url, "a region is of elements of fixed size")
            region = parse_region(self.config.region, metadata.shape)
        named = self.config.names == "node"
        stem = file_stem(node_name(self.store.url, node.path)) if named else ARRAY
        if not metadata.layout.data_type.fixed_size:
            return VariableArray(node, source, mtime_ns, self._layout, stem)
        growth = None
        if rows and isinstance(source, WritableArray) and self.caches.write_back is not None:
            largest = self.caches.largest_load
            clearing = ResizeConfig(largest, store_fill=self.config.store_fill)
            growth = Growth(self.caches.write_back, source, clearing)
        facts_around = self._around(node.path, metadata)
        views = ArrayViews(
            self.config.views, self._layout, facts_around, region, stem, growth is not None
        )
        array = FlatArray(node, source, mtime_ns, views, self.caches.cache, growth)
        if other is not None:
            array.linked = True
            array.add_note(f"is written through its other name {other}, to which a link leads")
        return array

    def _other_name(self, path: str) -> str | None:
        """The name through which an array is written to, if that is another one.

        An array has one name for writing, or the caches of one would undo what came through
        the other.
        """
        if not self.config.writable or (real := self.store.real_key(path)) == path:
            return None
        first = self._linked.setdefault(real, path) if os.path.isabs(real) else real
        return None if first == path else f"/{first}"

    def _around(self, path: str, metadata: ArrayMetadata) -> Callable[[], Around]:
        """Reads the arrays beside it that say what it means; groups are in memory."""
        beside = partial(self._beside, path.rpartition("/")[0])
        search = partial(self._search_above, path)
        outside = read_outside(path, self.group, metadata, beside, search)
        return partial(around, path, self.group, metadata, outside.neighbours, outside.groups)

    def _beside(self, group: str, names: Iterable[str]) -> Neighbours:
        """The arrays of these names in a group, which many arrays share."""
        now = time.monotonic()
        fresh = _KEPT_LOCAL if self.store.traits.near else _KEPT_REMOTE
        kept = {p: k for p, k in list(self._neighbours.items()) if now - k[0] < fresh}
        found: dict[str, Neighbour] = {}
        for name in names:
            path = join(group, name)
            beside = kept.get(path)
            # Another writer may have made it longer, with the array that asks.
            if beside is None or not self._is_shape_of(beside[1], path):
                ask = partial(read_neighbours, self.store, self.node, self.is_kept)
                beside = now, ask(group, [name])
                kept[path] = beside
            found |= beside[1]
        self._neighbours = dict(list(kept.items())[-_MOST_KEPT:])
        return found

    def _is_shape_of(self, kept: Neighbours, path: str) -> bool:
        """Whether an array has the shape that was kept. A remote store is not asked."""
        if not self.store.traits.near:
            return True
        one = next(iter(kept.values()), None)
        try:
            node = self.node(path if one is None else one.path)
        except ZarrfsError:
            return True
        metadata = None if node is None else node.metadata
        shape = metadata.shape if isinstance(metadata, ArrayMetadata) else None
        return shape == (None if one is None else one.metadata.shape)

    def _search_above(self, path: str, names: NamesBeside) -> GroupsAbove:
        """The groups above the source, of which an array in it asks.

        A remote store is asked only for an array that is the source itself. For others, the
        requests would not be worth it.
        """
        if path and (self._groups_above == () or not self.store.traits.near):
            return nothing_above(names)
        if path and self._groups_above is not None:
            # Most arrays have their coordinates beside them, and need nothing else.
            wanted = names(self._groups_above)
            if not wanted:
                return GroupsAbove(self._groups_above)
            found = self.config.groups_above(lambda _groups: wanted)
        else:
            found = self.config.groups_above(names)
        self._groups_above = found.groups
        return found

    def _rows_to_come(self, metadata: ArrayMetadata) -> int:
        """How many an array can have that may be resized; 0 where it may not."""
        layout, shape = metadata.layout, metadata.shape
        if not self.config.resize or not shape or not layout.data_type.fixed_size:
            return 0
        if self.config.order == "F" and len(shape) > 1:
            # Its first axis is the fastest one: it does not grow at the end.
            return 0
        return most_rows(shape, layout.data_type.item_size, layout.stored.axes[0].reach)
