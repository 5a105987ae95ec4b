"""``bitround``: keeps some bits of each number's precision. Decoding changes nothing.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.codecs.elementwise import KeepsPlaces, float_parts

_MANTISSAS = {"float16": 10, "float32": 23, "float64": 52, "bfloat16": 7}


@dataclass(frozen=True, slots=True)
class BitroundCodec(KeepsPlaces):
    """``keepbits`` of the mantissa, or of an integer from its highest set bit.

    If ``keepbits`` is at least the number of these bits, every number stays unchanged.
    """

    keepbits: int

    def bind(self, spec: ChunkSpec) -> BoundBitround:
        dtype = spec.dtype
        part = float_parts(dtype)
        if part is None and dtype.kind not in "iumM":
            raise ValueError(f"bitround cannot round {spec.data_type.name}")
        if isinstance(self.keepbits, bool) or not isinstance(self.keepbits, int):
            raise ValueError("keepbits must be an integer")
        if self.keepbits < (0 if part is not None else 1):
            raise ValueError("keepbits is too small")
        return BoundBitround(spec, self.keepbits, part)


@dataclass(frozen=True, slots=True)
class BoundBitround:
    encoded: ChunkSpec
    keepbits: int
    part: np.dtype[Any] | None

    def decode(self, chunk: Chunk) -> Chunk:
        return chunk

    def encode(self, chunk: Chunk) -> Chunk:
        flat = np.ascontiguousarray(chunk).reshape(-1)
        if self.part is None:
            rounded = _round_integers(flat, self.keepbits)
        else:
            drop = max(0, _MANTISSAS[self.part.name] - self.keepbits)
            words = flat.view(np.dtype(f"<u{self.part.itemsize}"))
            exponent = _MANTISSAS[self.part.name]
            rounded = _round_mantissas(words, drop, exponent)
        return rounded.view(chunk.dtype).reshape(chunk.shape)


def _round_mantissas(words: Chunk, drop: int, exponent_shift: int) -> Chunk:
    """Round to nearest, ties to even. NaN and infinities (all exponent bits set) stay."""
    if drop == 0:
        return words
    unsigned = words.dtype.type
    sign_bits = 1
    exponent_bits = words.dtype.itemsize * 8 - exponent_shift - sign_bits
    exponents = unsigned(((1 << exponent_bits) - 1) << exponent_shift)
    half = (words >> unsigned(drop) & unsigned(1)) + unsigned((1 << drop - 1) - 1)
    rounded = (words + half) >> unsigned(drop) << unsigned(drop)
    return np.where((words & exponents) == exponents, words, rounded)


def _round_integers(values: Chunk, keepbits: int) -> Chunk:
    """Round the magnitude's highest bits to nearest, ties to even; saturate on overflow."""
    size = values.dtype.itemsize
    words = values.view(np.dtype(f"<u{size}"))
    signed = values.dtype.kind != "u"
    negative = (words >> (8 * size - 1)).astype(bool) if signed else np.zeros(words.shape, bool)
    magnitude = np.where(negative, ~words + words.dtype.type(1), words).astype(np.uint64)
    drop = np.maximum(_bit_lengths(magnitude).astype(np.int64) - keepbits, 0).astype(np.uint64)
    one = np.uint64(1)
    half = np.where(
        drop > 0, ((magnitude >> drop) & one) + (one << np.maximum(drop, one) - one) - one, 0
    ).astype(np.uint64)
    limit = np.uint64((1 << (8 * size - signed)) - 1)
    overflows = magnitude > limit - half
    rounded = (np.where(overflows, magnitude, magnitude + half) >> drop) << drop
    words = rounded.astype(words.dtype)
    return np.where(negative, ~words + words.dtype.type(1), words)


def _bit_lengths(values: Chunk) -> Chunk:
    lengths = np.zeros(values.shape, np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        high = values >> np.uint64(shift)
        lengths = np.where(high > 0, lengths + np.uint64(shift), lengths)
        values = np.where(high > 0, high, values)
    return lengths + (values > 0)
