"""``grib``: one GRIB message as a chunk, as kerchunk refers to it. It is for reading only.

https://fsspec.github.io/kerchunk/reference.html#kerchunk.codecs.GRIBCodec
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.unserved import missing_package

_COORDINATES = {"latitude": "latitudes", "longitude": "longitudes"}
_OVERHEAD = 1 << 20

# ecCodes keeps tables that it loads when they are first needed, for all threads.
_one_at_a_time = Lock()


@dataclass(frozen=True, slots=True)
class GribCodec:
    """``var`` is a coordinate that the grid has, or anything else for the message's values."""

    var: str
    dtype: str | None = None

    def bind(self, spec: ChunkSpec) -> BoundGrib:
        if spec.dtype.kind not in "fiu":
            raise ValueError(f"grib cannot hold {spec.data_type.name}")
        return BoundGrib(spec, _eccodes(), _COORDINATES.get(self.var, "values"))


def _eccodes() -> ModuleType:
    try:
        return import_module("eccodes")
    except (ImportError, RuntimeError) as error:
        raise missing_package("the codec grib", "grib") from error


@dataclass(frozen=True, slots=True)
class BoundGrib:
    spec: ChunkSpec
    eccodes: Any
    key: str
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        """A message has the grid and more besides, and at most 64 bits a value."""
        return SizeBound(16 * self.spec.elements + _OVERHEAD, exact=False)

    def decode(self, data: Buffer) -> Chunk:
        try:
            with _one_at_a_time:
                values = self._values(bytes(data))
        except self.eccodes.CodesInternalError as error:
            raise DecodeError(f"grib: {error}") from error
        if values.size != self.spec.elements:
            raise DecodeError(f"grib: has {values.size} elements, expected {self.spec.elements}")
        with np.errstate(all="ignore"):
            return values.astype(self.spec.dtype).reshape(self.spec.shape)

    def _values(self, message: bytes) -> Chunk:
        eccodes = self.eccodes
        handle = eccodes.codes_new_from_message(message)
        try:
            # Before the library takes memory for them.
            points = eccodes.codes_get_long(handle, "numberOfDataPoints")
            if points != self.spec.elements:
                raise DecodeError(f"grib: has {points} points, expected {self.spec.elements}")
            values = np.asarray(eccodes.codes_get_array(handle, self.key))
            if self.key == "values" and eccodes.codes_get_long(handle, "bitmapPresent"):
                values[values == eccodes.codes_get_double(handle, "missingValue")] = np.nan
            return values
        finally:
            eccodes.codes_release(handle)

    def encode(self, chunk: Chunk) -> Buffer:
        raise ValueError("GRIB messages are not written")
