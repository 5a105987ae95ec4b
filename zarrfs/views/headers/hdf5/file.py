"""A file of groups of contiguous datasets: all bytes before the elements."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.headers.attributes import TypedAttribute
from zarrfs.views.headers.hdf5 import messages as m
from zarrfs.views.tiles.tiling import PAGE

_ALIGNMENT = 64
# netCDF-C, as Python's wheels have it, reads so much at each open, and the kernel reads ahead of
# that. In a file of many elements none lie there: they would be decoded for nobody.
_AWAY = (4 << 20) + (128 << 10)
_MANY = 16 << 20
MOST_TEXTS = 2**16 - 1
"""Objects of a heap."""
# The text by which netCDF recognises such a scale.
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.{:10d}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """
    kind : the type of the elements, as `messages.number_type` makes it.
    nbytes : of all elements.
    fill : one element as in the file; None: not defined.
    dimensions : the name of the dimension scale of each axis, in the same group; empty: none.
    scale : whether the dataset is the dimension scale of its own name.
    values : the elements, if they are part of the header; None: they follow the header.
    texts : the elements in UTF-8, in place of ``values``, at most `MOST_TEXTS`.
    absent : whether there are no elements, for a scale that has only a name and a length.
    chunks : the shape of the chunks; empty: the elements are contiguous.
    root : where the root of the tree of the chunks begins, from the place of the elements on.
    span : bytes of the tree and the chunks.
    """

    name: str
    kind: bytes
    shape: Shape
    nbytes: int
    fill: bytes | None = None
    attributes: Sequence[TypedAttribute] = ()
    dimensions: Sequence[str] = ()
    scale: bool = False
    values: bytes | None = None
    texts: Sequence[bytes] | None = None
    absent: bool = False
    chunks: Shape = ()
    root: int = 0
    span: int = 0

    @property
    def behind(self) -> bool:
        """Whether the elements follow the header."""
        return self.values is None and self.texts is None and not self.absent


class Group(NamedTuple):
    """
    path : in the file; empty for the root.
    datasets : their names differ, also from those of groups in the group.
    """

    path: str
    datasets: Sequence[Dataset]
    attributes: Sequence[TypedAttribute] = ()

    def path_of(self, dataset: Dataset) -> str:
        return self.within(dataset.name)

    def within(self, name: str) -> str:
        """The path in the file of what has a name in the group."""
        return f"{self.path}/{name}" if self.path else name


@dataclass(frozen=True, slots=True)
class Made:
    """
    header : zeros follow it where the elements do not begin at once.
    offsets : by path, where the elements of each dataset without `values` begin.
    """

    header: bytes
    offsets: dict[str, int]
    size: int


@dataclass(slots=True)
class _Addresses:
    """The addresses of all structures, by path; zeros until all sizes are known."""

    objects: dict[str, int] = field(default_factory=dict)
    data: dict[str, int] = field(default_factory=dict)
    heap: int = 0
    end: int = 0


def make_file(groups: Sequence[Group]) -> Made:
    """``groups`` : the root first, and each one after the one that it is in."""
    places = _Addresses()
    # The first pass finds the addresses: their values do not change the size of a header.
    _write(groups, places)
    return Made(
        _write(groups, places),
        {path: places.data[path] for path, dataset in _datasets(groups) if dataset.behind},
        places.end,
    )


def _datasets(groups: Sequence[Group]) -> Iterator[tuple[str, Dataset]]:
    return ((group.path_of(dataset), dataset) for group in groups for dataset in group.datasets)


def _write(groups: Sequence[Group], places: _Addresses) -> bytes:
    parts: list[bytes] = []
    at = m.SUPERBLOCK
    inside: dict[str, list[str]] = {}
    for group in groups[1:]:
        inside.setdefault(group.path.rpartition("/")[0], []).append(group.path)
    scales = [path for path, dataset in _datasets(groups) if dataset.scale]
    numbers = {path: i for i, path in enumerate(scales)}
    lists: list[str] = []
    for group in groups:
        paths = [*map(group.path_of, group.datasets), *inside.get(group.path, ())]
        links = [(path.rpartition("/")[2], places.objects.get(path, 0)) for path in paths]
        places.objects[group.path] = at
        parts.append(m.object_header([*m.group(links), *map(_attribute, group.attributes)]))
        at += len(parts[-1])
        for dataset in group.datasets:
            messages = _messages(dataset, group, places, numbers, 1 + len(lists))
            places.objects[group.path_of(dataset)] = at
            parts.append(m.object_header(messages))
            at += len(parts[-1])
            if not dataset.scale:
                lists += map(group.within, dataset.dimensions)
    if lists:
        parts.append(bytes(-at % 8))
        at += len(parts[-1])
        heap = m.heap([struct.pack("<Q", places.objects[path]) for path in lists])
        places.heap = at
        parts.append(heap)
        at += len(heap)
    behind = [dataset.nbytes for _, dataset in _datasets(groups) if dataset.behind]
    first = _AWAY if sum(behind) >= _MANY else 0
    for path, dataset in sorted(_datasets(groups), key=lambda found: found[1].behind):
        if dataset.absent or not dataset.nbytes:
            places.data[path] = m.UNDEFINED
            continue
        values = dataset.values
        if dataset.behind:
            at = max(at, first)
        if dataset.texts is not None:
            heap_at = at + -at % 8
            parts += [bytes(heap_at - at), heap := m.heap(dataset.texts)]
            at = heap_at + len(heap)
            values = m.texts(heap_at, [len(text) for text in dataset.texts])
        start = at + -at % (PAGE if dataset.chunks else _ALIGNMENT)
        if values is not None:
            parts += [bytes(start - at), values]
        places.data[path] = start
        at = start + (dataset.span or dataset.nbytes)
    places.end = at
    return m.superblock(at) + b"".join(parts)


def _messages(
    dataset: Dataset,
    group: Group,
    places: _Addresses,
    numbers: dict[str, int],
    entry: int,
) -> list[m.Message]:
    """
    numbers : of the scales of the file.
    entry : number in the heap of the scale of the first axis.
    """
    path = group.path_of(dataset)
    address = places.data.get(path, 0)
    found: list[m.Message] = [
        (m.DATASPACE, m.dataspace(dataset.shape)),
        (m.DATATYPE, dataset.kind),
        (m.FILL, m.fill_value(dataset.fill)),
        (m.LAYOUT, _layout(dataset, address)),
    ]
    if dataset.scale:
        name = _NO_VARIABLE.format(*dataset.shape) if dataset.absent else dataset.name
        found += [m.text_attribute("CLASS", "DIMENSION_SCALE"), m.text_attribute("NAME", name)]
        number = np.array(numbers[path], "<i4")
        found.append(m.number_attribute("_Netcdf4Dimid", number))
        found += _reference_list(dataset, group, places)
    elif dataset.dimensions:
        data = b"".join(
            struct.pack("<IQI", 1, places.heap, entry + axis)
            for axis in range(len(dataset.dimensions))
        )
        kind = m.sequence_type(m.REFERENCE)
        found.append(m.attribute("DIMENSION_LIST", kind, (len(dataset.dimensions),), data))
    return [*found, *map(_attribute, dataset.attributes)]


def _layout(dataset: Dataset, address: int) -> bytes:
    if not dataset.chunks:
        return m.contiguous(address, dataset.nbytes)
    item = dataset.nbytes // math.prod(dataset.shape)
    return m.chunked(address + dataset.root, dataset.chunks, item)


def _reference_list(scale: Dataset, group: Group, places: _Addresses) -> list[m.Message]:
    """The axes of the datasets that the scale belongs to."""
    pairs = [
        struct.pack("<QIxxxx", places.objects.get(group.path_of(d), 0), axis)
        for d in group.datasets
        if not d.scale
        for axis, name in enumerate(d.dimensions)
        if name == scale.name
    ]
    if not pairs or len(pairs) > _MOST_REFERENCES:
        return []
    index = m.number_type(np.dtype("<u4"))
    kind = m.pair_type(("dataset", m.REFERENCE), ("dimension", index), 8, 16)
    return [m.attribute("REFERENCE_LIST", kind, (len(pairs),), b"".join(pairs))]


_MOST_REFERENCES = 2000
"""Messages have less than 64 KiB."""


def _attribute(one: TypedAttribute) -> m.Message:
    value = one.value
    if isinstance(value, str):
        return m.text_attribute(one.name, value)
    if isinstance(value, list):
        return m.texts_attribute(one.name, value)
    return m.number_attribute(one.name, value)
