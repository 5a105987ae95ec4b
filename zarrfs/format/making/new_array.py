"""The specification of a new array; parts of it may be omitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.data_type import DataType
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.text_forms import default_fill

DIMENSION_UNITS = "dimension_units"
"""The attribute in which TensorStore stores the units of the axes."""

FREE = ChunkConstraints()


@dataclass(frozen=True, slots=True)
class NewArray:
    """The specification of a new array; None means omitted.

    shape, data_type : required; the type as in v3 metadata.
    zarr_format : None: 3.
    chunks : constraints for the chunks that are decoded on their own.
    shards : constraints for stored objects; None: equal to ``chunks``, without sharding.
    chunk_grid : a grid that is not regular, as in metadata, instead of ``chunks`` and ``shards``.
    codecs : names and objects as in metadata; those of v2 have an ``id``. None: no compression in
        v3, and Blosc in v2, as in TensorStore, unless ``usual``.
    fill_value : as in v3 metadata.
    endian : byte order of stored elements, ``little`` or ``big``; None: little.
    order : axes from the slowest to the fastest within a chunk.
    key_encoding : of chunks, as in v3 metadata.
    dimension_names, dimension_units : one for each axis; None for an axis without one.
    others : further members of the v3 document.
    usual : whether omitted chunks and codecs are those of `usual_choice`; otherwise they are those
        of TensorStore.
    """

    shape: Shape | None = None
    data_type: Any = None
    zarr_format: Literal[2, 3] | None = None
    chunks: ChunkConstraints = FREE
    shards: ChunkConstraints | None = None
    chunk_grid: Any = None
    codecs: Sequence[Any] | None = None
    fill_value: Any = None
    endian: str | None = None
    order: Sequence[int] | None = None
    key_encoding: Any = None
    dimension_names: Sequence[str | None] | None = None
    dimension_units: Sequence[str | None] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)
    usual: bool = False


def json_document(value: Any) -> bytes:
    """The value as JSON. Raises ValueError for values that JSON lacks, such as NaN."""
    try:
        return json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"
    except ValueError as error:
        raise ValueError(f"cannot be written as JSON: {error}") from error


def needed(array: NewArray) -> tuple[Shape, Any]:
    """Shape and data type. Raises ValueError if one is missing."""
    if array.shape is None or array.data_type is None:
        missing = "shape" if array.shape is None else "data type"
        raise ValueError(f"the {missing} of the array must be given")
    if any(extent < 0 for extent in array.shape):
        raise ValueError(f"{min(array.shape)} is not a valid axis length")
    return array.shape, array.data_type


def fill_of(array: NewArray, data_type: DataType) -> tuple[Any, bytes]:
    """The fill value as in v3 metadata, and the bytes of one element. Raises ValueError."""
    value = default_fill(data_type) if array.fill_value is None else array.fill_value
    try:
        return value, data_type.fill_bytes(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"fill value {value!r}: {error}") from error


def attributes_of(array: NewArray, rank: int) -> dict[str, Any]:
    """User attributes, including the units of the axes."""
    attributes = dict(array.attributes)
    if units := per_axis("dimension units", array.dimension_units, rank):
        attributes[DIMENSION_UNITS] = units
    return attributes


def per_axis(what: str, values: Sequence[Any] | None, rank: int) -> list[Any] | None:
    """One value for each axis; None if no axis has one. Raises ValueError for a wrong number."""
    if values is None:
        return None
    if len(values) != rank:
        raise ValueError(f"{len(values)} {what} for {rank} axes")
    return None if values and all(value is None for value in values) else list(values)


def check_order(order: Sequence[int], rank: int) -> None:
    if sorted(order) != list(range(rank)):
        raise ValueError(f"order {list(order)} is not a permutation of {rank} axes")
