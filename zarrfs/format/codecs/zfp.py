"""``zfp``, and ``numcodecs.zfpy``, which is the same stream with a header.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp
https://numcodecs.readthedocs.io/en/stable/compression/zfpy.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.foreign import ZFPY_DECOMPRESS
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.codecs.zfp_stream import block_bits, stream_bytes
from zarrfs.format.unserved import UnservedError, module_of
from zarrfs.isolation.decoders import isolated

_MOST_AXES = 4
_MOST_RATE = 16  # bits per byte of an element; zfp needs about half of them
_MOST_PRECISION = 128
_STREAM = "zarrfs.format.codecs.zfp_stream"
_PROCESS_MEMORY = 64 << 20
_PARAMETERS = {"fixed_accuracy": "tolerance", "fixed_rate": "rate", "fixed_precision": "precision"}
_NUMCODECS_MODES = {2: "fixed_rate", 3: "fixed_precision", 4: "fixed_accuracy", 5: "reversible"}


@dataclass(frozen=True, slots=True)
class ZfpCodec:
    """``value`` is the parameter of the mode; ``reversible`` has none."""

    mode: str
    value: float | None
    has_header: bool

    def bind(self, spec: ChunkSpec) -> BoundZfp:
        module = module_of("zfp", "zfpy")
        if not self.has_header and not ZFPY_DECOMPRESS.there:
            raise UnservedError("zfp: this zfpy decodes no stream without a header")
        if len(spec.shape) > _MOST_AXES:
            raise ValueError(f"zfp takes at most {_MOST_AXES} axes, not {len(spec.shape)}")
        if not spec.elements:
            raise ValueError("zfp takes no chunk without elements")
        promotion = promotion_of(spec.dtype)
        if promotion is None or (self.has_header and not promotion.is_native):
            raise ValueError(f"zfp cannot hold {spec.data_type.name}")
        parameters = self._parameters()
        if "rate" in parameters:
            _check_rate(parameters["rate"], promotion.native, max(1, len(spec.shape)))
        return BoundZfp(spec, module, promotion, parameters, self.has_header)

    def _parameters(self) -> dict[str, Any]:
        """Arguments of zfpy's functions; no argument or only negative ones mean ``reversible``."""
        if self.value is None or (self.has_header and self.value < 0):
            return {}
        is_precision = self.mode == "fixed_precision"
        return {_PARAMETERS[self.mode]: int(self.value) if is_precision else self.value}


def _check_rate(rate: float, dtype: np.dtype[Any], axes: int) -> None:
    """Raises ValueError for blocks of fewer bits than zfp writes, or of many more than it needs.

    zfp accepts any rate, and then writes or reads beyond its memory.
    """
    least = 1 + {"f4": 8, "f8": 11}.get(dtype.str[1:], 0)
    if rate > _MOST_RATE * dtype.itemsize or block_bits(dtype, axes, rate) < least:
        raise ValueError(f"zfp: rate {rate} is not possible for {dtype.name}")


def zfp(mode: str, **parameters: Any) -> ZfpCodec:
    """Make the codec from the configuration of ``zfp``. Raises ValueError."""
    if mode == "expert":
        raise UnservedError("zfp: the Python binding of zfp has no expert mode")
    expected = {_PARAMETERS[mode]} if mode in _PARAMETERS else set()
    if (mode not in _PARAMETERS and mode != "reversible") or set(parameters) != expected:
        raise ValueError(f"zfp: mode {mode!r} with {sorted(parameters)}")
    return _codec(mode, parameters, has_header=False)


def zfpy(mode: int = 4, **parameters: Any) -> ZfpCodec:
    """Make the codec from numcodecs' configuration of ``zfpy``, in which -1 means unused."""
    if mode not in _NUMCODECS_MODES:
        raise ValueError(f"zfpy: mode {mode!r}")
    nested = parameters.pop("compression_kwargs", None)
    if isinstance(nested, dict):
        parameters = {**nested, **parameters}
    return _codec(_NUMCODECS_MODES[mode], parameters, has_header=True)


def _codec(mode: str, parameters: dict[str, Any], *, has_header: bool) -> ZfpCodec:
    if mode not in _PARAMETERS:
        return ZfpCodec(mode, None, has_header)
    value = parameters.get(_PARAMETERS[mode], -1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"zfp: {_PARAMETERS[mode]} is {value!r}")
    if not math.isfinite(value) or (value < 0 and not has_header):
        raise ValueError(f"zfp: {_PARAMETERS[mode]} is {value!r}")
    if mode == "fixed_precision" and (value > _MOST_PRECISION or value != int(value)):
        raise ValueError(f"zfp: precision is {value!r}")
    return ZfpCodec(mode, value, has_header)


@dataclass(frozen=True, slots=True)
class BoundZfp:
    spec: ChunkSpec
    module: Any
    promotion: Promotion
    parameters: dict[str, Any]
    has_header: bool
    is_memory_layout = False

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.spec.shape or (1,)

    @property
    def encoded(self) -> SizeBound:
        rate = self.parameters.get("rate")
        return SizeBound(stream_bytes(self.promotion.native, self._shape, rate), exact=False)

    def decode(self, data: Buffer) -> Chunk:
        if not len(data):
            raise DecodeError("zfp: no data")
        self.encoded.check(len(data), "zfp: has")
        limit = self.encoded.maximum
        native = self.promotion.native
        size = self.spec.elements * native.itemsize
        parameters = {
            "dtype": native.str,
            "shape": self._shape,
            "header": self.has_header,
            "mode": self.parameters,
        }
        try:
            decoded = isolated(_STREAM).decode(
                parameters, data, size=size, memory=4 * (limit + size) + _PROCESS_MEMORY
            )
        except DecodeError as error:
            raise DecodeError(f"zfp: {error}") from error
        chunk = np.frombuffer(decoded, native).reshape(self.spec.shape)
        return self.promotion.demote(chunk)

    def encode(self, chunk: Chunk) -> Buffer:
        native = np.ascontiguousarray(self.promotion.promote(chunk)).reshape(self._shape)
        return self.module.compress_numpy(  # type: ignore[no-any-return]
            native, write_header=self.has_header, **self.parameters
        )


# Elements that zfp does not support become 32- or 64-bit numbers (section "Compression").
# Unsigned types of 32 and 64 bits keep their value, as in zarrs.

_NATIVE = ("i4", "i8", "f4", "f8")
_INT32 = np.dtype("<i4")


@dataclass(frozen=True, slots=True)
class Promotion:
    """``native`` is the type that zfp gets, ``shift`` the bits by which small integers move up."""

    dtype: np.dtype[Any]
    native: np.dtype[Any]
    shift: int = 0

    @property
    def is_native(self) -> bool:
        """Whether zfp gets the elements' own bits (for times, the integers that they count)."""
        return self.dtype == self.native or self.dtype.kind in "mM"

    def promote(self, chunk: Chunk) -> Chunk:
        """Raises ValueError for unsigned values that the signed type cannot hold."""
        if self.is_native:
            return np.ascontiguousarray(chunk).view(self.native)
        if not self.shift:
            if self.native.kind == "i" and chunk.size and chunk.max() > np.iinfo(self.native).max:
                raise ValueError("zfp: a value is too large")
            return chunk.astype(self.native)
        promoted: Chunk = (chunk.astype(_INT32) - self._middle) << self.shift
        return promoted

    def demote(self, chunk: Chunk) -> Chunk:
        if self.is_native:
            return chunk.view(self.dtype)
        if self.native.kind == "f":
            return chunk.astype(self.dtype)
        limits = np.iinfo(self.dtype)
        if not self.shift:
            return np.maximum(chunk, 0).astype(self.dtype)
        values: Chunk = (chunk >> self.shift) + self._middle
        return np.clip(values, limits.min, limits.max).astype(self.dtype)

    @property
    def _middle(self) -> int:
        return 1 << 8 * self.dtype.itemsize - 1 if self.dtype.kind == "u" else 0


def promotion_of(dtype: np.dtype[Any]) -> Promotion | None:
    """The promotion for elements of ``dtype``; None if zfp cannot encode them as numbers."""
    kind, size = dtype.kind, dtype.itemsize
    if dtype.str[1:] in _NATIVE:
        return Promotion(dtype, dtype)
    if kind in "mM":
        return Promotion(dtype, np.dtype("<i8"))
    if kind == "f" or dtype.name == "bfloat16":
        return Promotion(dtype, np.dtype("<f4")) if size == 2 else None
    if kind in "iu":
        if size > 2:
            return Promotion(dtype, np.dtype(f"<i{size}"))
        return Promotion(dtype, _INT32, 31 - 8 * size)
    return None
