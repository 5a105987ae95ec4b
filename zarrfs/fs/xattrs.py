"""Extended attributes: those of the metadata, and those that zarrfs adds.

``user.zarr.*`` has attributes as stored; a value that is not a plain string is JSON.
``user.zarrfs.*`` has the attributes that zarrfs adds.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from zarrfs.errors import NoSuchAttribute
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.nodes.nodes import Local, MountedArray, MountedNode
from zarrfs.fs.nodes.place import Place

# The kernel's limits, see xattr(7).
_LONGEST_VALUE = 65536
_LONGEST_NAME = 255
_LONGEST_LIST = 65536

_MOST_KEPT = 64
_LARGEST_KEPT = 65536  # bytes of the values of one node


class Encoded(NamedTuple):
    """The attributes of one node, encoded.

    names : in their order.
    values : None if they have many bytes; then each is encoded when a program asks for it.
    source : what they were made from: the metadata of the node, and its note.
    """

    names: dict[str, None]
    values: dict[str, bytes] | None
    source: tuple[object, str | None] = (None, None)


PREFIX = "user."
"""Each attribute that zarrfs has begins so."""


class NodeXattrs:
    """The attributes of the directories of nodes, and of the flat files of arrays.

    The attributes of recently used nodes stay encoded, because encoding takes as long as parsing
    the metadata. Shared state, under ``_lock``: ``_kept``, and the right to encode.
    """

    def __init__(self, config: FileSystemConfig) -> None:
        self._config = config
        self._kept: OrderedDict[str, Encoded] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, node: MountedNode) -> Encoded | None:
        """The attributes of a node, if they are encoded already. Does not block."""
        if (found := self._kept.get(node.node.path)) is None:
            return None
        metadata, note = found.source
        return found if metadata is node.node.metadata and note == node.note else None

    def encoded(self, node: MountedNode) -> Encoded:
        """The attributes of a node. Blocks."""
        with self._lock:
            if (found := self.known(node)) is None:
                path = node.node.path
                found = self._kept[path] = _encoded(node, self._config)
                self._kept.move_to_end(path)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
            return found

    def value(self, node: MountedNode, name: str) -> bytes:
        """One value, where `Encoded` has none. Blocks. Raises NoSuchAttribute."""
        with self._lock:
            for other, value in _values(node, self._config):
                if other == name and (data := _encode(value)) is not None:
                    return data
        raise NoSuchAttribute(name)


def _encoded(node: MountedNode, config: FileSystemConfig) -> Encoded:
    source = node.node.metadata, node.note
    names: dict[str, None] = {}
    values: dict[str, bytes] | None = {}
    kept = 0
    for name, data in _carried(_values(node, config)):
        names[name] = None
        kept += len(data)
        if kept > _LARGEST_KEPT:
            values = None
        if values is not None:
            values[name] = data
    return Encoded(names, values, source)


def _values(node: MountedNode, config: FileSystemConfig) -> Iterator[tuple[str, Any]]:
    """Names and values of attributes, of which large ones are parsed one at a time."""
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
    yield from values.items()
    if metadata is not None:
        for name, value in metadata.attributes.items():
            yield f"user.zarr.attributes.{name}", value


def own_xattrs(place: Place) -> Encoded | None:
    """Those of what is no node: few and short; None where the place has those of its node."""
    if place.local in (Local.DIRECTORY, Local.FLAT, Local.NPY):
        return None
    values: dict[str, Any] = {}
    node, found = place.node, place.node.place(place.local)
    if isinstance(node, MountedArray) and found is not None and found.is_file:
        grid = found.tree.grid
        values = {
            "user.zarrfs.index": list(found.chunk),
            "user.zarrfs.origin": list(grid.origin(found.chunk)),
            "user.zarrfs.shape": list(grid.chunk_shape(found.chunk)),
            "user.zarrfs.valid_shape": list(grid.valid_shape(found.chunk)),
            "user.zarrfs.store_key": node.array.array.key(node.stored_object(found)),
        }
    encoded = dict(_carried(values.items()))
    return Encoded(dict.fromkeys(encoded), encoded)


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


def _carried(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Leave out attributes that exceed the limits of the kernel."""
    room = _LONGEST_LIST
    for name, value in values:
        try:
            length = len(os.fsencode(name))
        except UnicodeEncodeError:
            continue
        if length > _LONGEST_NAME or "\0" in name or (data := _encode(value)) is None:
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
