"""``pcodec`` and ``numcodecs.pcodec``: numbers as pcodec's standalone format.

https://numcodecs.readthedocs.io/en/stable/compression/pcodec.html

Complex numbers are stored as pairs of floats, as in zarrs, and times as the integers that they
count, as in numcodecs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, is_panic, reason_of
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.codecs.elementwise import float_parts
from zarrfs.format.unserved import module_of

_TYPES = ("u2", "u4", "u8", "i2", "i4", "i8", "f2", "f4", "f8")
_OVERHEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class PcodecCodec:
    """The parameters of `numcodecs.pcodec.PCodec`."""

    level: int = 8
    mode_spec: str = "auto"
    delta_spec: str = "auto"
    paging_spec: str = "equal_pages_up_to"
    delta_encoding_order: int | None = None
    equal_pages_up_to: int = 262144

    def bind(self, spec: ChunkSpec) -> BoundPcodec:
        module = module_of("pcodec", "numcodecs.pcodec")
        numbers = _numbers(spec.dtype)
        if numbers.str[1:] not in _TYPES:
            raise ValueError(f"pcodec cannot hold {spec.data_type.name}")
        return BoundPcodec(spec, module.standalone, module.PCodec(**asdict(self)), numbers)


def _numbers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that pcodec gets for elements of ``dtype``: each is one number or a pair."""
    if dtype.kind in "mM":
        return np.dtype("<i8")
    if dtype.names == ("real", "imag"):
        return dtype["real"]  # an integer, too
    return float_parts(dtype) or dtype


@dataclass(frozen=True, slots=True)
class BoundPcodec:
    spec: ChunkSpec
    standalone: Any
    codec: Any
    numbers: np.dtype[Any]
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(2 * self.spec.nbytes + _OVERHEAD, exact=False)

    def decode(self, data: Buffer) -> Chunk:
        flat = np.empty(self.spec.nbytes // self.numbers.itemsize, self.numbers)
        try:
            # Into memory of the right size, so that no count in the data is trusted.
            progress = self.standalone.simple_decompress_into(bytes(data), flat)
        except BaseException as error:
            if not isinstance(error, RuntimeError | TypeError | ValueError) and not is_panic(error):
                raise
            raise DecodeError(f"pcodec: {reason_of(error)}") from error
        if progress.n_processed != len(flat) or not progress.finished:
            raise DecodeError(f"pcodec: holds another number of elements than {len(flat)}")
        return flat.view(self.spec.dtype).reshape(self.spec.shape)

    def encode(self, chunk: Chunk) -> Buffer:
        flat = np.ascontiguousarray(chunk).reshape(-1)
        return self.codec.encode(flat.view(self.numbers))  # type: ignore[no-any-return]
