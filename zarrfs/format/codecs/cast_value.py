"""``cast_value``: the same numbers in another data type.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs import bounds
from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.codecs.elementwise import BoundElementwise, KeepsPlaces, bind_elementwise
from zarrfs.format.data_type import DataType
from zarrfs.format.registry import parse_data_type

_ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative",
              "nearest-away")  # fmt: skip

Pairs = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class CastValueCodec(KeepsPlaces):
    """``encode`` and ``decode`` are the two scalar maps, in the JSON forms of fill values."""

    data_type: DataType
    rounding: str
    out_of_range: str | None
    encode: Pairs
    decode: Pairs

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


# The rules apply in this order: the scalar map, exact representation, rounding, the rule for
# numbers out of range. A number that no rule covers is an error.

# Integers of fewer bits are exact in a float64.
_EXACT_BITS = 53


def is_number(data_type: DataType) -> bool:
    """Whether the values of a data type are real numbers."""
    dtype = data_type.dtype
    return dtype.kind in "iuf" or (
        dtype.kind == "V" and dtype.name.startswith(("float", "bfloat")) and dtype.names is None
    )


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast from ``source`` to ``target``; ``scalars`` are pairs of 0-dimensional elements."""

    source: DataType
    target: DataType
    rounding: str
    out_of_range: str | None
    scalars: tuple[tuple[Chunk, Chunk], ...]

    def __post_init__(self) -> None:
        if self.out_of_range == "wrap" and not self._to_integer:
            # Decoding to a float may be combined with an encoding that wraps.
            object.__setattr__(self, "out_of_range", None)

    @property
    def _to_integer(self) -> bool:
        return self.target.dtype.kind in "iu"

    def __call__(self, elements: Chunk) -> Chunk:
        """Raises ValueError if a value cannot be cast."""
        flat = np.ascontiguousarray(elements).reshape(-1)
        result = np.zeros(flat.shape, self.target.dtype)
        left = np.ones(flat.shape, bool)
        for old, new in self.scalars:
            matches = left & _equal(flat, old)
            result[matches] = new
            left &= ~matches
        rest = flat[left]
        if self._to_integer:
            whole = rest if rest.dtype.kind in "iu" else self._round(rest.astype(np.float64))
            result[left] = self._to_integers(whole)
        else:
            result[left] = self._to_floats(rest)
        return result.reshape(elements.shape)

    def _round(self, values: NDArray[np.float64]) -> Chunk:
        if not np.isfinite(values).all():
            raise ValueError(f"cast_value: {self.target.name} has no NaN and no infinity")
        return _rounded(values, np.floor(values), np.ceil(values), self.rounding)

    def _to_integers(self, values: Chunk) -> Chunk:
        low, high = self.target.integers
        if values.size == 0 or (int(values.min()) >= low and int(values.max()) <= high):
            return values.astype(self.target.dtype)
        wide = np.array([int(v) for v in values.tolist()], object)
        if self.out_of_range == "clamp":
            wide = np.minimum(np.maximum(wide, low), high)
        elif self.out_of_range == "wrap":
            wide = (wide - low) % (high - low + 1) + low
        else:
            raise ValueError(f"cast_value: a value is out of the range of {self.target.name}")
        return wide.astype(self.target.dtype)

    def _to_floats(self, values: Chunk) -> Chunk:
        wide = values.astype(np.float64)
        if self.source.dtype.kind in "iu" and self.source.item_size == 8:
            # Integers that a float64 cannot hold exactly are rounded before they become one.
            digits = _finfo(self.target.dtype).nmant + 1
            large = np.abs(wide) >= 2.0**_EXACT_BITS
            exact = values[large].astype(object)
            lost = [1 << max(0, abs(value).bit_length() - digits) for value in exact]
            low = exact - exact % np.array(lost, object)
            wide[large] = _rounded(exact, low, low + np.array(lost, object), self.rounding)
        return self._narrow(wide)

    def _narrow(self, values: NDArray[np.float64]) -> Chunk:
        """Convert from float64 to the target, with the rounding and the rule for out of range."""
        target = self.target.dtype
        if target == np.float64:
            return values
        own = target.type in (np.float16, np.float32)
        nearest = (values if own else _narrowed(values)).astype(target)
        back = nearest.astype(np.float64)
        least, largest = float(_finfo(target).min), float(_finfo(target).max)
        beyond = np.isfinite(values) & (np.abs(values) > largest)
        if (np.isnan(values) & ~np.isnan(back)).any() or (np.isinf(values) & ~np.isinf(back)).any():
            raise ValueError(f"cast_value: {self.target.name} lacks a NaN or an infinity")
        inside = np.isfinite(values) & ~beyond
        if (inside & ~np.isfinite(back)).any() or (inside & (values < 0) & (back > 0)).any():
            raise ValueError(f"cast_value: a value is out of the range of {self.target.name}")
        if self.rounding == "nearest-even" and not beyond.any():
            return nearest
        chosen = _rounded(values, *_around(values, nearest, least, largest), self.rounding)
        outside = np.isfinite(values) & (np.abs(chosen) > largest)
        if outside.any():
            if self.out_of_range != "clamp":
                raise ValueError(f"cast_value: a value is out of the range of {self.target.name}")
            infinity = float(np.array(np.inf).astype(target).astype(np.float64))
            most = infinity if np.isinf(infinity) else largest
            chosen[outside] = np.copysign(most, values[outside])
        result = np.where(np.isfinite(values), chosen.astype(target), nearest)
        if (np.isnan(result) & ~np.isnan(values)).any():
            raise ValueError(f"cast_value: a value is out of the range of {self.target.name}")
        return result


def _narrowed(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Numbers that round to those of smaller types as the values do.

    The nearest ones would not: other types than NumPy's get numbers by way of a float32, so values
    would be rounded twice. Each value that is no float32 gets the neighbour with an odd last bit.
    """
    found: NDArray[np.float32] = values.astype(np.float32)
    even = np.isfinite(found) & (found != values) & (found.view(np.int32) % 2 == 0)
    towards = np.where(values[even] > found[even], np.float32(np.inf), np.float32(-np.inf))
    found[even] = np.nextafter(found[even], towards)
    return found


def _around(values: Chunk, nearest: Chunk, least: float, largest: float) -> tuple[Chunk, Chunk]:
    """The numbers of a type next to each value, below and above, or the value itself.

    least, largest : of the type of ``nearest``. Beyond the largest one lies one more step: a value
        that rounds below that stays the largest.
    """
    back = nearest.astype(np.float64)
    down, up = (_neighbour(nearest, end).astype(np.float64) for end in (least, largest))
    low, high = np.where(back > values, down, back), np.where(back < values, up, back)
    step = largest - float(_neighbour(np.array([largest]).astype(nearest.dtype), least)[0])
    for sign, inner, outer in ((1, low, high), (-1, high, low)):
        magnitude = sign * values
        inner[magnitude > largest] = sign * largest
        outer[magnitude > largest] = sign * (largest + step)
        far = magnitude >= largest + step
        inner[far] = outer[far] = values[far]
    return low, high


def _rounded(values: Chunk, low: Chunk, high: Chunk, rounding: str) -> Chunk:
    """The neighbour, ``low`` or ``high``, that the rounding takes for each value.

    A value that is its own neighbour stays. All are floats, or Python's integers.
    """
    match rounding:
        case "towards-zero":
            up = values < 0
        case "towards-positive":
            up = values > low
        case "towards-negative":
            up = values < low
        case _:
            twice, ends = values + values, low + high
            step = np.where(high > low, high - low, 1)
            # The even one of two neighbours is the one on the grid of twice the step.
            prefers_high = values > 0 if rounding == "nearest-away" else low // step % 2 == 1
            up = (twice > ends) | ((twice == ends) & prefers_high)
    return np.where((values != low) & up, high, low)


def _equal(elements: Chunk, scalar: Chunk) -> NDArray[np.bool_]:
    if elements.dtype.kind in "iu":
        return np.asarray(elements == scalar)
    wide, value = elements.astype(np.float64), float(scalar.astype(np.float64))
    return np.isnan(wide) if np.isnan(value) else wide == value


def _finfo(target: np.dtype[Any]) -> Any:
    if target.type in (np.float16, np.float32, np.float64):
        return np.finfo(target)
    # Imported only if one of its types is used.
    return import_module("ml_dtypes").finfo(target)


def _neighbour(elements: Chunk, towards: float) -> Chunk:
    neighbour: Chunk = np.nextafter(elements, np.array(towards).astype(elements.dtype))
    return neighbour
