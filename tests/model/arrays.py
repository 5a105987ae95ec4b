"""Random arrays: the numbers, and an array of them that zarr-python writes."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from hypothesis import strategies as st

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """What an array is, and how it is stored.

    kept : part of the array that is written; the rest is fill value.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dtype: str
    endian: str
    order: tuple[int, ...] | None
    compressor: str | None
    checksum: bool
    fill: int
    separator: str
    kept: float

    def numbers(self) -> np.ndarray[Any, Any]:
        """The elements; little-endian."""
        dtype = np.dtype(self.dtype).newbyteorder("<")
        array = np.full(self.shape, self.fill, dtype)
        values = np.random.default_rng(1).integers(
            0, 2 if self.dtype == "bool" else 120, self.shape
        )
        kept = math.ceil(self.kept * (self.shape[0] if self.shape else 1))
        if self.shape:
            array[:kept] = values[:kept].astype(dtype)
        elif kept:
            array[()] = dtype.type(values)
        return array

    def write(self, path: Path) -> None:
        codecs: dict[str, Any] = {
            "serializer": zarr.codecs.BytesCodec(endian=self.endian),
            "filters": (),
            "compressors": [],
        }
        if self.order is not None:
            codecs["filters"] = (zarr.codecs.TransposeCodec(order=self.order),)
        if self.compressor == "zstd":
            codecs["compressors"].append(zarr.codecs.ZstdCodec(level=1))
        elif self.compressor == "gzip":
            codecs["compressors"].append(zarr.codecs.GzipCodec(level=1))
        elif self.compressor == "blosc":
            codecs["compressors"].append(zarr.codecs.BloscCodec(cname="lz4"))
        if self.checksum:
            codecs["compressors"].append(zarr.codecs.Crc32cCodec())
        array = zarr.create_array(
            path,
            shape=self.shape,
            chunks=self.chunks,
            shards=self.shards,
            dtype=self.dtype,
            fill_value=self.fill,
            chunk_key_encoding={"name": "default", "separator": self.separator},
            **codecs,
        )
        if math.prod(self.shape):
            array[...] = self.numbers()


@st.composite
def models(draw: st.DrawFn) -> Model:
    rank = draw(st.integers(0, 4))
    longest = (400, 60, 14, 8)[rank - 1] if rank else 0
    lengths = st.integers(1, longest) | st.sampled_from((0, 1)) if rank else st.nothing()
    shape = tuple(draw(lengths) for _ in range(rank))
    # At most a few hundred chunks, each of which is a file.
    chunks = tuple(draw(st.integers(max(1, -(-n // 5)), n + 2)) for n in shape)
    shards = None
    if rank and draw(st.booleans()):
        shards = tuple(c * draw(st.integers(1, 3)) for c in chunks)
    return Model(
        shape,
        chunks,
        shards,
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(("little", "big"))),
        draw(st.none() | st.permutations(range(rank)).map(tuple)) if rank else None,
        draw(st.sampled_from((None, "zstd", "gzip", "blosc"))),
        draw(st.booleans()),
        draw(st.sampled_from((0, 1))),
        draw(st.sampled_from("/.")),
        draw(st.sampled_from((0.0, 0.4, 1.0))),
    )


def chunk_at(
    numbers: np.ndarray[Any, Any], fill: int, index: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """A whole chunk of ``shape``, fill value where it overhangs."""
    chunk = np.full(shape, fill, numbers.dtype)
    part = numbers[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape, strict=True))]
    chunk[tuple(map(slice, part.shape))] = part
    return chunk
