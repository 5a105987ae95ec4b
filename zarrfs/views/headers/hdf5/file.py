"""A file of contiguous datasets in one group: all bytes before the elements."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.headers.attributes import TypedAttribute
from zarrfs.views.headers.hdf5 import messages as m
from zarrfs.views.tiles.tiling import PAGE

_ALIGNMENT = 64
# The text by which netCDF recognises such a scale.
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.{:10d}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """
    kind : the type of the elements, as `messages.number_type` makes it.
    nbytes : of all elements.
    fill : one element as in the file; None: not defined.
    dimensions : the name of the dimension scale of each axis; empty: none.
    scale : whether the dataset is the dimension scale of its own name.
    values : the elements, if they are part of the header; None: they follow the header.
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
    absent: bool = False
    chunks: Shape = ()
    root: int = 0
    span: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """
    header : ends where the first elements begin.
    offsets : by name, where the elements of each dataset without `values` begin.
    """

    header: bytes
    offsets: dict[str, int]
    size: int


@dataclass(slots=True)
class _Addresses:
    """The addresses of all structures; zeros until all sizes are known."""

    objects: dict[str, int] = field(default_factory=dict)
    data: dict[str, int] = field(default_factory=dict)
    heap: int = 0
    end: int = 0


def make_file(datasets: Sequence[Dataset], attributes: Sequence[TypedAttribute] = ()) -> Made:
    """``attributes`` : of the file. The names of the datasets must differ."""
    places = _Addresses()
    # The first pass finds the addresses: their values do not change the size of a header.
    _write(datasets, attributes, places)
    return Made(
        _write(datasets, attributes, places),
        {d.name: places.data[d.name] for d in datasets if d.values is None and not d.absent},
        places.end,
    )


def _write(
    datasets: Sequence[Dataset], attributes: Sequence[TypedAttribute], places: _Addresses
) -> bytes:
    links = [(d.name, places.objects.get(d.name, 0)) for d in datasets]
    parts = [m.object_header([*m.group(links), *map(_attribute, attributes)])]
    at = m.SUPERBLOCK + len(parts[0])
    numbers = {d.name: i for i, d in enumerate(d for d in datasets if d.scale)}
    lists = [name for d in datasets if not d.scale for name in d.dimensions]
    entry = 1
    for dataset in datasets:
        parts.append(m.object_header(_messages(dataset, datasets, places, numbers, entry)))
        entry += 0 if dataset.scale else len(dataset.dimensions)
        places.objects[dataset.name] = at
        at += len(parts[-1])
    if lists:
        parts.append(bytes(-at % 8))
        at += len(parts[-1])
        heap = m.heap([struct.pack("<Q", places.objects[name]) for name in lists])
        places.heap = at
        parts.append(heap)
        at += len(heap)
    for dataset in sorted(datasets, key=lambda d: d.values is None):
        if dataset.absent or not dataset.nbytes:
            places.data[dataset.name] = m.UNDEFINED
            continue
        start = at + -at % (PAGE if dataset.chunks else _ALIGNMENT)
        if dataset.values is not None:
            parts += [bytes(start - at), dataset.values]
        places.data[dataset.name] = start
        at = start + (dataset.span or dataset.nbytes)
    places.end = at
    header = m.superblock(at) + b"".join(parts)
    behind = [
        places.data[d.name] for d in datasets if d.values is None and not d.absent and d.nbytes
    ]
    return header.ljust(min(behind, default=len(header)), b"\0")


def _messages(
    dataset: Dataset,
    datasets: Sequence[Dataset],
    places: _Addresses,
    numbers: dict[str, int],
    entry: int,
) -> list[m.Message]:
    """
    numbers : of the scales.
    entry : number in the heap of the scale of the first axis.
    """
    address = places.data.get(dataset.name, 0)
    found: list[m.Message] = [
        (m.DATASPACE, m.dataspace(dataset.shape)),
        (m.DATATYPE, dataset.kind),
        (m.FILL, m.fill_value(dataset.fill)),
        (m.LAYOUT, _layout(dataset, address)),
    ]
    if dataset.scale:
        name = _NO_VARIABLE.format(*dataset.shape) if dataset.absent else dataset.name
        found += [m.text_attribute("CLASS", "DIMENSION_SCALE"), m.text_attribute("NAME", name)]
        number = np.array(numbers[dataset.name], "<i4")
        found.append(m.number_attribute("_Netcdf4Dimid", number))
        found += _reference_list(dataset, datasets, places)
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


def _reference_list(
    scale: Dataset, datasets: Sequence[Dataset], places: _Addresses
) -> list[m.Message]:
    """The axes of the datasets that the scale belongs to."""
    pairs = [
        struct.pack("<QIxxxx", places.objects.get(d.name, 0), axis)
        for d in datasets
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
