"""``group.h5``: all arrays of a group in one file, read-only. Blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from zarrfs.array.node_readers import Node
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.nodes import Local, MountedArray, MountedNode, Remains
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.gathered import GatheredView
from zarrfs.views.headers.hdf5.group import MOST_ARRAYS, group_file

_MOST_MEMBERS = 4 * MOST_ARRAYS


class GroupFile(NamedTuple):
    """
    parts : where the elements of each array begin.
    shapes : of all arrays of the group.
    made : when, of the clock `time.monotonic`.
    """

    header: bytes
    parts: tuple[tuple[int, FlatArray], ...]
    shapes: tuple[tuple[FlatArray, Shape], ...]
    size: int
    made: float

    @property
    def has_old_shapes(self) -> bool:
        """Whether an array has been resized since."""
        return any(array.shape != shape or array.superseded for array, shape in self.shapes)

    def view(self) -> GatheredView:
        """For one reader."""
        parts = [(start, array.view(Local.FLAT)) for start, array in self.parts]
        # The arrays have to stay while their bytes are shown.
        return GatheredView(self.header, parts, self.size, self)


class MountedGroup(MountedNode):
    """A group that shows its arrays as one file.

    members : the nodes in the group. Raises ZarrfsError.
    fresh_seconds : how long the file stays what it is, whatever becomes of the group.
    """

    def __init__(
        self,
        node: Node,
        note: str | None,
        mtime_ns: int,
        layout: FlatConfig,
        members: Callable[[], Iterable[MountedNode]],
        fresh_seconds: float,
    ) -> None:
        super().__init__(node, note, mtime_ns)
        self._layout = layout
        self._members = members
        self._fresh_seconds = fresh_seconds
        self._file: GroupFile | None = None

    @property
    def shows_file(self) -> bool:
        return True

    def leave(self) -> Remains | None:
        # The file keeps its arrays, and those the group.
        self._file = None
        return super().leave()

    def file(self) -> GroupFile:
        """Made anew from time to time. Blocks. Raises ZarrfsError."""
        file = self._file
        if (
            file is None
            or time.monotonic() - file.made >= self._fresh_seconds
            or file.has_old_shapes
        ):
            file = self._file = self._make()
        return file

    def _make(self) -> GroupFile:
        arrays: dict[str, FlatArray] = {}
        others = []
        for member in islice(self._members(), _MOST_MEMBERS):
            name = member.node.path.rpartition("/")[2]
            if isinstance(member, FlatArray) and len(arrays) < MOST_ARRAYS:
                arrays[name] = member
            elif isinstance(member, MountedArray) or not member.is_group:
                others.append(name)
        metadata = self.node.metadata
        above = metadata.attributes if isinstance(metadata, GroupMetadata) else {}
        described = {
            name: array.described()
            for name, array in arrays.items()
            if isinstance(array.node.metadata, ArrayMetadata)
        }
        made = group_file(described, above, others)
        parts = sorted((at, name) for name, at in made.offsets.items() if at < made.size)
        placed = tuple((at, arrays[name]) for at, name in parts)
        shapes = tuple((array, array.shape) for array in arrays.values())
        return GroupFile(made.header, placed, shapes, made.size, time.monotonic())
