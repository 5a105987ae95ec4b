"""``cast_value``: the same numbers in another data type.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.codecs.cast_rules import Cast, is_number
from zarrfs.format.codecs.elementwise import BoundElementwise, bind_elementwise, same_axes
from zarrfs.format.data_type import DataType
from zarrfs.format.registry import parse_data_type

_ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative",
              "nearest-away")  # fmt: skip

Pairs = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class CastValueCodec:
    """``encode`` and ``decode`` are the two scalar maps, in the JSON forms of fill values."""

    data_type: DataType
    rounding: str
    out_of_range: str | None
    encode: Pairs
    decode: Pairs

    def axis_order(self, rank: int) -> tuple[int, ...]:
        return same_axes(rank)

    def bind(self, spec: ChunkSpec) -> BoundElementwise:
        if not is_number(spec.data_type):
            raise ValueError(f"cast_value cannot cast {spec.data_type.name}")
        bound = bind_elementwise(
            spec,
            self.data_type,
            self._cast(spec.data_type, self.data_type, self.encode),
            self._cast(self.data_type, spec.data_type, self.decode),
        )
        _check_fill(spec, bound)
        return bound

    def _cast(self, source: DataType, target: DataType, pairs: Pairs) -> Cast:
        scalars = tuple(
            (source.element(source.fill_bytes(a)), target.element(target.fill_bytes(b)))
            for a, b in pairs
        )
        return Cast(source, target, self.rounding, self.out_of_range, scalars)


def _check_fill(spec: ChunkSpec, bound: BoundElementwise) -> None:
    """Check that the fill value survives encoding and decoding, bit for bit except for NaN."""
    encoded = bound.encoded.data_type.element(bound.encoded.fill)
    with np.errstate(all="ignore"):
        back = np.asarray(bound.to_decoded(encoded.reshape(1)), spec.dtype)
    fill = spec.data_type.element(spec.fill).reshape(1)
    if not np.array_equal(_comparable(back), _comparable(fill), equal_nan=True):
        raise ValueError("cast_value: the fill value does not survive the cast")


def _comparable(elements: Chunk) -> Chunk:
    return elements if elements.dtype.kind in "iu" else elements.astype(np.float64)


def cast_value(
    data_type: Any,
    rounding: str = "nearest-even",
    out_of_range: str | None = None,
    scalar_map: Any = None,
) -> CastValueCodec:
    """Make the codec from the members of its configuration. Raises ValueError."""
    target = parse_data_type(data_type)
    if not is_number(target):
        raise ValueError(f"cast_value cannot cast to {target.name}")
    if rounding not in _ROUNDINGS:
        raise ValueError(f"rounding is {rounding!r}")
    if out_of_range not in (None, "clamp", "wrap"):
        raise ValueError(f"out_of_range is {out_of_range!r}")
    if scalar_map is None:
        scalar_map = {}
    if not isinstance(scalar_map, dict) or set(scalar_map) - {"encode", "decode"}:
        raise ValueError("scalar_map must be an object of encode and decode")
    return CastValueCodec(
        target, rounding, out_of_range,
        _pairs(scalar_map.get("encode")), _pairs(scalar_map.get("decode")),
    )  # fmt: skip


def _pairs(value: Any) -> Pairs:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or any(
        not isinstance(pair, list | tuple) or len(pair) != 2 for pair in value
    ):
        raise ValueError("a scalar map is a list of pairs")
    bounds.check_count(len(value), bounds.MOST_SCALARS, "pairs in a scalar map")
    return tuple((a, b) for a, b in value)
