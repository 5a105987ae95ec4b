"""Extended attributes: those of the metadata, and those that zarrfs adds.

``user.zarr.*`` has attributes as stored; a value that is not a plain string is JSON.
``user.zarrfs.*`` has the attributes that zarrfs adds.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from zarrfs.errors import NoSuchAttribute
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.nodes.nodes import Local, MountedArray, MountedNode, TreePlace
from zarrfs.fs.nodes.place import Place

# The kernel's limits, see xattr(7).
_LONGEST_VALUE = 65536
_LONGEST_NAME = 255
_LONGEST_LIST = 65536

_MOST_KEPT = 64
_LARGEST_KEPT = 65536  # bytes of the values of one node


class _Encoded(NamedTuple):
    """The attributes of one node, encoded.

    values : None if they have many bytes; then each is encoded when a program asks for it.
    """

    metadata: object
    note: str | None
    names: frozenset[str]
    order: tuple[str, ...]
    values: dict[str, bytes] | None


PREFIX = "user."
"""Each attribute that zarrfs has begins so."""


class NodeXattrs:
    """The attributes of the directories of nodes, and of the flat files of arrays.

    The attributes of recently used nodes stay encoded, because encoding takes as long as parsing
    the metadata. Shared state, under ``_lock``: ``_kept``, and the right to encode.
    """

    def __init__(self, config: FileSystemConfig) -> None:
        self._config = config
        self._kept: OrderedDict[str, _Encoded] = OrderedDict()
        self._lock = threading.Lock()

    def names(self, node: MountedNode, *, blocking: bool) -> tuple[str, ...] | None:
        """All names; None if the attributes are not encoded yet and the caller may not block."""
        encoded = self._encoded(node, blocking=blocking)
        return None if encoded is None else encoded.order

    def value(self, node: MountedNode, name: str, *, blocking: bool) -> bytes | None:
        """One value; None as in `names`. Raises NoSuchAttribute."""
        if (encoded := self._encoded(node, blocking=blocking)) is None:
            return None
        if name not in encoded.names:
            raise NoSuchAttribute(name)
        if encoded.values is not None:
            return encoded.values[name]
        if not blocking:
            return None
        with self._lock:
            found = next(
                (make() for other, make in _values(node, self._config) if other == name), None
            )
        if found is None or (data := _encode(found)) is None:
            raise NoSuchAttribute(name)
        return data

    def _encoded(self, node: MountedNode, *, blocking: bool) -> _Encoded | None:
        path = node.node.path
        with self._lock if blocking else nullcontext():
            found = self._kept.get(path)
            same = found is not None and found.metadata is node.node.metadata
            if found is not None and same and found.note == node.note:
                return found
            if not blocking:
                return None
            found = self._kept[path] = _all_of(node, self._config)
            self._kept.move_to_end(path)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return found


def _all_of(node: MountedNode, config: FileSystemConfig) -> _Encoded:
    metadata, note = node.node.metadata, node.note
    values: dict[str, bytes] | None = {}
    order, kept = [], 0
    for name, data in _carried(_values(node, config)):
        order.append(name)
        kept += len(data)
        if values is not None:
            values[name] = data
        if kept > _LARGEST_KEPT:
            values = None
    return _Encoded(metadata, note, frozenset(order), tuple(order), values)


def _values(node: MountedNode, config: FileSystemConfig) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, each with the attribute that its value is made from; parses large attributes."""
    values: dict[str, Any] = {"user.zarrfs.path": f"/{node.node.path}"}
    if node.note is not None:
        values["user.zarrfs.note"] = node.note
    if config.region is not None:
        values["user.zarrfs.region"] = config.region
    metadata = node.node.metadata
    if metadata is not None:
        values["user.zarr.zarr_format"] = metadata.zarr_format
        values["user.zarr.node_type"] = "group"
        values["user.zarr.attributes"] = metadata.attributes
    if isinstance(metadata, ArrayMetadata):
        values |= _array_values(metadata, config.byteorder)
    for name, value in values.items():
        yield name, partial(_same, value)
    if metadata is not None:
        for name in metadata.attributes:
            yield f"user.zarr.attributes.{name}", partial(metadata.attributes.__getitem__, name)


def _same(value: Any) -> Any:
    return value


def own_xattrs(place: Place) -> dict[str, bytes] | None:
    """Those of what is no node: few and short; None where the place has those of its node."""
    tree_place = place.node.place(place.local)
    if tree_place is not None and isinstance(place.node, MountedArray):
        return _chunk_xattrs(place.node, tree_place)
    return None if place.local in (Local.DIRECTORY, Local.FLAT, Local.NPY) else {}


def _chunk_xattrs(node: MountedArray, place: TreePlace) -> dict[str, bytes]:
    """Attributes of a chunk or shard file, and of the directories above it."""
    if not place.is_file:
        return {}
    array = node.array.array
    grid = place.tree.grid
    values = {
        "user.zarrfs.index": list(place.chunk),
        "user.zarrfs.origin": list(grid.origin(place.chunk)),
        "user.zarrfs.shape": list(grid.chunk_shape(place.chunk)),
        "user.zarrfs.valid_shape": list(grid.valid_shape(place.chunk)),
        "user.zarrfs.store_key": array.key(node.stored_object(place)),
    }
    return dict(_carried((name, partial(_same, value)) for name, value in values.items()))


def _array_values(metadata: ArrayMetadata, byteorder: str) -> dict[str, Any]:
    layout = metadata.layout
    values: dict[str, Any] = {f"user.zarr.{name}": v for name, v in metadata.summary.items()}
    values["user.zarr.node_type"] = "array"
    values["user.zarr.shape"] = list(metadata.shape)
    if metadata.dimension_names:
        values["user.zarr.dimension_names"] = list(metadata.dimension_names)
    values["user.zarrfs.chunk_shape"] = list(layout.read.largest_chunk)
    values["user.zarrfs.chunk_counts"] = list(layout.read.counts)
    if layout.sharded:
        values["user.zarrfs.shard_shape"] = list(layout.stored.largest_chunk)
        values["user.zarrfs.shard_counts"] = list(layout.stored.counts)
    big = byteorder == "big" and layout.data_type.fixed_size
    dtype = layout.data_type.stored_dtype(big_endian=True) if big else layout.data_type.dtype
    values["user.zarrfs.dtype"] = dtype.str
    return values


def _carried(
    values: Iterable[tuple[str, Callable[[], Any]]],
) -> Iterator[tuple[str, bytes]]:
    """Leave out attributes that exceed the limits of the kernel."""
    room = _LONGEST_LIST
    for name, make in values:
        try:
            length = len(os.fsencode(name))
        except UnicodeEncodeError:
            continue
        if length > _LONGEST_NAME or "\0" in name or (data := _encode(make())) is None:
            continue
        # The list has a zero behind each name.
        if (room := room - length - 1) < 0:
            break
        yield name, data


def _encode(value: Any) -> bytes | None:
    """The bytes of a value; None if it exceeds the limits of the kernel."""
    text = value if isinstance(value, str) else json.dumps(value, default=dict)
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:
        return None
    return None if len(data) > _LONGEST_VALUE else data
