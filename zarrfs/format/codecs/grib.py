"""``grib``: one GRIB message as a chunk, as kerchunk refers to it. For reading only.

https://fsspec.github.io/kerchunk/reference.html#kerchunk.codecs.GRIBCodec
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.unserved import missing_package
from zarrfs.isolation.decoders import isolated

_MESSAGE = "zarrfs.format.codecs.grib_message"
_COORDINATES = {"latitude": "latitudes", "longitude": "longitudes"}
_OVERHEAD = 1 << 20
# Bytes per element for its float64 value and the library's own data while it decodes.
_MEMORY_PER_ELEMENT, _MEMORY = 64, 256 << 20


@dataclass(frozen=True, slots=True)
class GribCodec:
    """``var`` names a coordinate of the grid; any other name means the message's values."""

    var: str
    dtype: str | None = None

    def bind(self, spec: ChunkSpec) -> BoundGrib:
        if spec.dtype.kind not in "fiu":
            raise ValueError(f"grib cannot hold {spec.data_type.name}")
        if find_spec("eccodes") is None:
            raise missing_package("the codec grib", "grib")
        return BoundGrib(spec, _COORDINATES.get(self.var, "values"))


@dataclass(frozen=True, slots=True)
class BoundGrib:
    spec: ChunkSpec
    key: str
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        """A message holds the grid and more besides, and at most 64 bits per value."""
        return SizeBound(16 * self.spec.elements + _OVERHEAD, exact=False)

    def decode(self, data: Buffer) -> Chunk:
        self.encoded.check(len(data))
        native = self.spec.dtype.newbyteorder("=")
        parameters = {"key": self.key, "elements": self.spec.elements, "dtype": native.str}
        decoded = isolated(_MESSAGE).decode(
            parameters,
            data,
            size=self.spec.elements * native.itemsize,
            memory=_MEMORY + _MEMORY_PER_ELEMENT * self.spec.elements,
        )
        chunk = np.frombuffer(decoded, native).reshape(self.spec.shape)
        return chunk.astype(self.spec.dtype, copy=False)

    def encode(self, chunk: Chunk) -> Buffer:
        raise ValueError("GRIB messages are not written")
