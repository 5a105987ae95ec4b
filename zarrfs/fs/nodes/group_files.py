"""Files that have several arrays of a group, such as ``group.h5``. Blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from typing import NamedTuple

from zarrfs import bounds
from zarrfs.array.node_readers import Node
from zarrfs.errors import EntryNotFound, StoreListingUnsupported
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.nodes.flat_array import FlatArray, gathered
from zarrfs.fs.nodes.nodes import Local, MountedArray, MountedNode, Remains
from zarrfs.fs.nodes.variable_array import VariableArray
from zarrfs.views.bits import count_equal
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.form import LARGEST_HEADER, GroupForm, Inexpressible
from zarrfs.views.headers.grouped import MOST_MEMBERS, Below, Grouped, Member, Wanted
from zarrfs.views.headers.hdf5.file import MOST_TEXTS
from zarrfs.views.headers.hdf5.group import MOST_ARRAYS
from zarrfs.views.headers.registry import chosen_of_group, find_group_format
from zarrfs.views.tiles.gathered import GatheredView
from zarrfs.views.variable import read_texts

_versions = count(1)
# Elements of all arrays of a file. A file with headers and gaps around them can be as large.
_MOST_BYTES = bounds.LARGEST_LENGTH >> 1


class GroupFile(NamedTuple):
    """
    form : the header, and where the elements of ``arrays`` are, in the same order.
    shapes : of all arrays that were looked at.
    version : of the header; another one after a change.
    made : when, of the clock `time.monotonic`.
    """

    form: GroupForm
    arrays: tuple[FlatArray, ...]
    shapes: tuple[tuple[FlatArray, Shape], ...]
    version: int
    made: float

    @property
    def has_old_shapes(self) -> bool:
        """Whether an array has been resized since."""
        return any(array.shape != shape or array.superseded for array, shape in self.shapes)

    @property
    def writable(self) -> bool:
        return self.form.writable and all(array.writable is not None for array in self.arrays)

    def view(self) -> GatheredView:
        """For one reader."""
        # The arrays have to stay while their bytes are shown.
        return gathered(self.form, self.arrays, self, writable=self.writable)

    def same_bytes(self, other: GroupFile) -> bool:
        """Whether nothing but elements can differ."""
        mine, its = self.form, other.form
        return (
            self.arrays == other.arrays
            and (mine.size, mine.placed) == (its.size, its.placed)
            and mine.header == its.header
        )


class MountedGroup(MountedNode):
    """A group with files of its arrays.

    name : of the group, for people.
    views : as `registry.chosen_of_group` takes them.
    layout : of the elements of ``array.bin``.
    members : the nodes that a format asks for, by path. Raises ZarrfsError.
    fresh_seconds : how long a file stays what it is, whatever becomes of the group.
    """

    def __init__(
        self,
        node: Node,
        note: str | None,
        mtime_ns: int,
        name: str,
        views: Collection[str],
        layout: FlatConfig,
        members: Callable[[Wanted], Iterable[tuple[str, MountedNode]]],
        fresh_seconds: float,
    ) -> None:
        super().__init__(node, note, mtime_ns)
        self._name = name
        self._layout = layout
        self._members = members
        self._fresh_seconds = fresh_seconds
        self._files: dict[int, GroupFile] = {}
        self._shown = {
            Local.FIRST_VIEW + number: name
            for number, name in chosen_of_group(views)
            if find_group_format(name).members(self._attributes) != []
        }

    def names(self) -> Iterator[tuple[str, int]]:
        yield from ((name, local) for local, name in self._shown.items())
        yield from super().names()

    def is_group_file(self, local: int) -> bool:
        return local in self._shown

    def is_of_children(self, local: int) -> bool:
        return find_group_format(self._shown[local]).members(self._attributes) is Below.CHILDREN

    def may_lack(self, local: int) -> bool:
        """Whether only the arrays tell if there is such a file."""
        group_format = find_group_format(self._shown[local])
        return not (
            group_format.always and isinstance(group_format.members(self._attributes), Below)
        )

    def leave(self) -> Remains | None:
        # The files keep their arrays, and those the group.
        self._files.clear()
        return super().leave()

    def file(self, local: int) -> GroupFile:
        """Made anew from time to time. Blocks.

        Raises EntryNotFound if the format cannot represent the group, and any other ZarrfsError.
        """
        file = self._files.get(local)
        if (
            file is None
            or time.monotonic() - file.made >= self._fresh_seconds
            or file.has_old_shapes
        ):
            made = self._make(self._shown[local])
            if file is not None and made.same_bytes(file):
                made = made._replace(version=file.version)
            file = self._files[local] = made
        return file

    @property
    def _attributes(self) -> dict[str, object]:
        metadata = self.node.metadata
        return {} if metadata is None else dict(metadata.attributes)

    def _make(self, name: str) -> GroupFile:
        group_format = find_group_format(name)
        wanted = group_format.members(self._attributes)
        try:
            nodes = list(islice(self._members(wanted), MOST_MEMBERS + 1))
        except StoreListingUnsupported:
            raise EntryNotFound(name) from None
        arrays: dict[str, FlatArray] = {}
        members: list[Member] = []
        groups: dict[str, Mapping[str, object]] = {}
        size = 0
        others = ["…"] if len(nodes) > MOST_MEMBERS else []
        layout = self._layout if isinstance(wanted, Below) else FlatConfig()
        for path, node in nodes[:MOST_MEMBERS]:
            if (
                not isinstance(wanted, Below)
                and isinstance(node, FlatArray)
                and node.rows is not None
            ):
                continue  # boxes of an array that grows would move
            metadata = node.node.metadata
            if len(members) >= MOST_ARRAYS or not isinstance(metadata, ArrayMetadata):
                pass
            elif isinstance(node, FlatArray) and size + node.data_size(Local.FLAT) <= _MOST_BYTES:
                size += node.data_size(Local.FLAT)
                arrays[path] = node
                read = node.layout.read
                elements = Elements(node.array, Window.whole(read), FlatConfig())
                count_in = partial(count_equal, elements)
                data_type = metadata.layout.data_type
                texts = read_texts(elements, data_type, MOST_TEXTS, LARGEST_HEADER)
                members.append(Member(path, node.described(layout), read, texts, count_in))
                continue
            elif isinstance(node, VariableArray) and (texts := node.texts()) is not None:
                described = describe(metadata, layout, node.node.path)
                members.append(Member(path, described, metadata.layout.read, texts))
                continue
            if isinstance(node, MountedArray) or not node.is_group:
                others.append(path)
            elif wanted is Below.HIERARCHY and metadata is not None:
                groups[path] = metadata.attributes
        try:
            form = group_format.make(Grouped(self._name, self._attributes, members, others, groups))
        except Inexpressible as error:
            raise EntryNotFound(f"{name}: {error}") from None
        return GroupFile(
            form,
            tuple(arrays[placed.path] for placed in form.placed),
            tuple((array, array.shape) for array in arrays.values()),
            next(_versions),
            time.monotonic(),
        )
