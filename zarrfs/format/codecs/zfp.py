"""``zfp``, and ``numcodecs.zfpy``, which is the same stream behind a header.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp
https://numcodecs.readthedocs.io/en/stable/compression/zfpy.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.codecs.zfp_promotion import Promotion, promotion_of
from zarrfs.format.unserved import UnservedError, missing_package

_MOST_AXES = 4
_PARAMETERS = {"fixed_accuracy": "tolerance", "fixed_rate": "rate", "fixed_precision": "precision"}
_NUMCODECS_MODES = {2: "fixed_rate", 3: "fixed_precision", 4: "fixed_accuracy", 5: "reversible"}


@dataclass(frozen=True, slots=True)
class ZfpCodec:
    """``value`` is the parameter of the mode; ``reversible`` has none."""

    mode: str
    value: float | None
    has_header: bool

    def bind(self, spec: ChunkSpec) -> BoundZfp:
        module = _zfpy()
        if len(spec.shape) > _MOST_AXES:
            raise ValueError(f"zfp takes at most {_MOST_AXES} axes, not {len(spec.shape)}")
        if not spec.elements:
            raise ValueError("zfp takes no chunk without elements")
        promotion = promotion_of(spec.dtype)
        if promotion is None or (self.has_header and not promotion.is_native):
            raise ValueError(f"zfp cannot hold {spec.data_type.name}")
        keyword = _PARAMETERS.get(self.mode)
        return BoundZfp(spec, module, promotion, {keyword: self.value} if keyword else {},
                        self.has_header)  # fmt: skip


def zfp(mode: str, **parameters: Any) -> ZfpCodec:
    """From the configuration of ``zfp``. Raises ValueError."""
    if mode == "expert":
        raise UnservedError("zfp: the Python binding of zfp has no expert mode")
    expected = {_PARAMETERS[mode]} if mode in _PARAMETERS else set()
    if (mode not in _PARAMETERS and mode != "reversible") or set(parameters) != expected:
        raise ValueError(f"zfp: mode {mode!r} with {sorted(parameters)}")
    return _codec(mode, parameters, has_header=False)


def zfpy(mode: int = 4, **parameters: Any) -> ZfpCodec:
    """From the configuration of numcodecs' ``zfpy``, where what is not used is -1."""
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
    return ZfpCodec(mode, value, has_header)


def _zfpy() -> Any:
    try:
        return import_module("zfpy")
    except ImportError as error:
        raise missing_package("the codec zfp", "zfp") from error


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
        """zfp works on blocks of 4 elements along each axis, each of its own size."""
        blocks = math.prod(-(-length // 4) for length in self._shape)
        values = 4 ** len(self._shape)
        return SizeBound(blocks * (values * (self.promotion.native.itemsize + 1) + 32) + 64,
                         exact=False)  # fmt: skip

    def decode(self, data: Buffer) -> Chunk:
        if not len(data):
            raise DecodeError("zfp: no data")
        limit = self.encoded.maximum
        if len(data) > limit:
            raise DecodeError(f"zfp: has {len(data)} bytes, at most {limit} are possible")
        # zfp does not look where its input ends. Behind it stands first one thing and then
        # another: where the result differs, the data was cut short.
        padding = limit + 64 - len(data)
        chunk = self._decode(bytes(data) + bytes(padding))
        again = self._decode(bytes(data) + b"\xff" * padding)
        if chunk.tobytes() != again.tobytes():
            raise DecodeError("zfp: the stream ends too early")
        return self.promotion.demote(chunk.reshape(self.spec.shape))

    def _decode(self, data: bytes) -> Chunk:
        native = self.promotion.native
        try:
            if not self.has_header:
                decoded = self.module._decompress(
                    data, self.module.dtype_to_ztype(native), self._shape, **self.parameters
                )
            else:
                self._check_header(data)
                decoded = self.module.decompress_numpy(data)
        except (ValueError, TypeError, RuntimeError, IndexError) as error:
            raise DecodeError(f"zfp: {error}") from error
        return np.asarray(decoded)

    def _check_header(self, data: bytes) -> None:
        # zfpy allocates what its header says.
        header = self.module.header(data)
        shape = [header[n] for n in ("nw", "nz", "ny", "nx") if header[n]]
        if math.prod(shape) != self.spec.elements or header["type"] != self.promotion.native.type:
            raise DecodeError(f"zfp: the header says {shape} of {header['type']}")

    def encode(self, chunk: Chunk) -> Buffer:
        native = np.ascontiguousarray(self.promotion.promote(chunk)).reshape(self._shape)
        return self.module.compress_numpy(  # type: ignore[no-any-return]
            native, write_header=self.has_header, **self.parameters
        )
