"""``struct`` and its older form ``structured``: packed records, nested to any depth.

https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/struct
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs import bounds
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.fill_value import from_base64
from zarrfs.format.registry import parse_data_type

OLD_STRUCT = "structured"
"""The older name, of which fields are pairs, and a fill value may be Base64 of the record."""

Field = tuple[str, DataType]


def struct(name: str, configuration: Mapping[str, Any]) -> DataType:
    """Fields are objects with ``name`` and ``data_type``, or pairs of the two."""
    fields = configuration.get("fields")
    if set(configuration) != {"fields"} or not isinstance(fields, list | tuple) or not fields:
        raise ValueError(f"{name} takes a list of fields and nothing else")
    return struct_of([_field(value) for value in fields], name)


def _field(value: Any) -> Field:
    match value:
        case {"name": str(name), "data_type": data_type, **others} if not others:
            return name, parse_data_type(data_type)
        case [str(name), data_type]:
            return name, parse_data_type(data_type)
    raise ValueError(f"{value!r} is not a field with a name and a data_type")


def struct_of(fields: Sequence[Field], name: str = "struct") -> DataType:
    """Raises ValueError for names that repeat or are empty, and for fields of no fixed size."""
    bounds.check_count(len(fields), bounds.MOST_FIELDS, "fields")
    bounds.check_element(sum(data_type.item_size for _, data_type in fields))
    names = [field for field, _ in fields]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError("field names must be unique and not empty")
    for field, data_type in fields:
        if not data_type.fixed_size:
            raise ValueError(f"field {field!r} has no fixed size")
    # Empty if no field needs it, so that a plain struct costs no time.
    checked = tuple((n, t) for n, t in fields if t.check is not None)
    canonical = tuple((n, t) for n, t in fields if t.canonical is not None)
    has_words = any(t.words is not None for _, t in fields)
    return DataType(
        name,
        np.dtype([(n, t.dtype) for n, t in fields]),
        StructFill(tuple(fields)),
        check=FieldChecks(checked) if checked else None,
        canonical=CanonicalFields(canonical) if canonical else None,
        words=np.dtype([(n, t.dtype if t.words is None else t.words) for n, t in fields])
        if has_words
        else None,
    )


def subarray_of(data_type: DataType, shape: tuple[int, ...]) -> DataType:
    """A field that holds ``shape`` elements of ``data_type``, as in numpy and Zarr v2."""
    words = None if data_type.words is None else np.dtype((data_type.words, shape))
    return DataType(
        f"{data_type.name}{list(shape)}",
        np.dtype((data_type.dtype, shape)),
        SubarrayFill(data_type, shape),
        has_byte_order=data_type.has_byte_order,
        check=data_type.check,
        canonical=data_type.canonical,
        words=words,
    )


@dataclass(frozen=True, slots=True)
class StructFill:
    """An object with a value for every field, or base64 of the packed record."""

    fields: tuple[Field, ...]

    def __call__(self, value: Any, dtype: np.dtype[Any]) -> bytes:
        if value is None or (value == 0 and isinstance(value, int)):
            return bytes(dtype.itemsize)
        if isinstance(value, str):
            return from_base64(value, "an object or base64")
        if isinstance(value, list | tuple) and len(value) == len(self.fields):
            value = {name: item for (name, _), item in zip(self.fields, value, strict=True)}
        if not isinstance(value, Mapping) or set(value) != {name for name, _ in self.fields}:
            raise ValueError("expected an object with a value for every field")
        return b"".join(t.fill_bytes(value[name]) for name, t in self.fields)


@dataclass(frozen=True, slots=True)
class SubarrayFill:
    """One value for all elements, or base64 of all of them."""

    data_type: DataType
    shape: tuple[int, ...]

    def __call__(self, value: Any, dtype: np.dtype[Any]) -> bytes:
        if isinstance(value, list | tuple):
            # Each value becomes a whole row before the size of the row is checked.
            if not self.shape or len(value) != self.shape[0]:
                raise ValueError(f"expected {list(self.shape)} elements")
            parts = [SubarrayFill(self.data_type, self.shape[1:])(v, dtype) for v in value]
            return b"".join(parts)
        return self.data_type.fill_bytes(value) * math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class FieldChecks:
    fields: tuple[Field, ...]

    def __call__(self, elements: NDArray[Any]) -> None:
        for name, data_type in self.fields:
            if data_type.check is not None:
                data_type.check(np.ascontiguousarray(elements[name]))


@dataclass(frozen=True, slots=True)
class CanonicalFields:
    fields: tuple[Field, ...]

    def __call__(self, elements: NDArray[Any]) -> NDArray[Any]:
        elements = elements.copy()
        for name, data_type in self.fields:
            if data_type.canonical is not None:
                elements[name] = data_type.canonical(np.ascontiguousarray(elements[name]))
        return elements
