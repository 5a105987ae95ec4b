"""``numcodecs.delta``, ``fixedscaleoffset``, ``quantize``, ``astype`` and ``packbits``.

https://numcodecs.readthedocs.io/en/stable/filter/

In v3 they are array -> array codecs, which zarr-python runs on the chunk's elements in C order. In
v2 they are buffer filters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.codecs.numcodecs_config import (
    FAILURES,
    configured,
    own_members,
    type_parameters,
)
from zarrfs.format.numpy_types import data_type_of

_ELEMENTWISE = ("fixedscaleoffset", "quantize", "astype")


@dataclass(frozen=True, slots=True)
class NumcodecsFilter:
    """``configuration`` is that of numcodecs, as JSON text, so that it can be compared."""

    configuration: str

    @property
    def _members(self) -> dict[str, Any]:
        return json.loads(self.configuration)  # type: ignore[no-any-return]

    def axis_order(self, rank: int) -> tuple[int, ...] | None:
        return tuple(range(rank)) if self._members["id"] in _ELEMENTWISE else None

    def bind(self, spec: ChunkSpec) -> BoundFilter:
        members = self._members
        if members["id"] == "packbits":
            if spec.dtype != np.bool_:
                raise ValueError("packbits takes bool elements only")
            encoded = ChunkSpec((1 + -(-spec.elements // 8),), data_type_of(np.dtype("u1")), b"\0")
            return BoundFilter(configured(members), spec.shape, spec.dtype, encoded)
        decoded_name, encoded_name = type_parameters(members["id"])
        members.setdefault(decoded_name, spec.dtype.str)
        if (decoded := _little(members[decoded_name])) != spec.dtype:
            raise ValueError(f"takes {decoded}, not {spec.dtype}")
        members[decoded_name] = decoded.str
        encoded_type = data_type_of(_little(members.get(encoded_name) or decoded.str))
        members[encoded_name] = encoded_type.dtype.str
        codec = configured(members)
        bound = BoundFilter(codec, spec.shape, spec.dtype, spec._replace(data_type=encoded_type))
        return replace(bound, encoded=bound.encoded._replace(fill=bound.encoded_fill(spec)))


def _little(name: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(name)
        return dtype.newbyteorder("<")
    except TypeError as error:
        raise ValueError(f"{name!r} is not a dtype") from error


@dataclass(frozen=True, slots=True)
class BoundFilter:
    codec: Any
    decoded_shape: Shape
    decoded_dtype: np.dtype[Any]
    encoded: ChunkSpec

    def decode(self, chunk: Chunk) -> Chunk:
        try:
            with np.errstate(all="ignore"):
                decoded = self.codec.decode(np.ascontiguousarray(chunk))
            return np.asarray(decoded).view(self.decoded_dtype).reshape(self.decoded_shape)
        except FAILURES as error:
            raise DecodeError(f"{self.codec.codec_id}: {reason_of(error)}") from error

    def encode(self, chunk: Chunk) -> Chunk:
        with np.errstate(all="ignore"):
            encoded = self.codec.encode(np.ascontiguousarray(chunk))
        return np.asarray(encoded).view(self.encoded.dtype).reshape(self.encoded.shape)

    def encoded_fill(self, spec: ChunkSpec) -> bytes:
        """One encoded fill element: the first element of an encoded chunk of fill values."""
        with np.errstate(all="ignore"):
            element = self.codec.encode(spec.data_type.element(spec.fill).reshape(1))
        return np.asarray(element).view(self.encoded.dtype).tobytes()


def numcodecs_filter(codec_id: str, **configuration: Any) -> NumcodecsFilter:
    return NumcodecsFilter(json.dumps(own_members(codec_id, configuration), sort_keys=True))
