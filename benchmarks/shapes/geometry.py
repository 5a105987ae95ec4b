"""One array: its shape, data type, chunk grid and codecs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.arrays import array_document

Codec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a seed draws.

    style : how the chunks lie in the array, as `drawing.STYLES` names it.
    shape, chunk : elements along each axis; a chunk is an inner chunk where there are shards.
    shard : elements of a shard along each axis, or None.
    codecs : of a chunk, as ``zarr.json`` lists them.
    plane_axis : the axis along which planes are taken, or None of an array of one axis.
    """

    seed: int
    style: str
    data_type: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    shard: tuple[int, ...] | None
    codecs: tuple[Codec, ...]
    plane_axis: int | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements in ``array.bin``."""
        return np.dtype(self.data_type).newbyteorder("<")

    @property
    def size(self) -> int:
        """Bytes of ``array.bin``."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def decoded_bytes(self) -> int:
        """Bytes of all chunks, which may overhang the array."""
        each = zip(self.shape, self.chunk, strict=True)
        return math.prod(-(-n // c) * c for n, c in each) * self.dtype.itemsize

    @property
    def chunk_bytes(self) -> int:
        return math.prod(self.chunk) * self.dtype.itemsize

    @property
    def shard_bytes(self) -> int:
        """Decoded bytes of a stored object."""
        return math.prod(self.shard or self.chunk) * self.dtype.itemsize

    @property
    def metadata(self) -> dict[str, Any]:
        """The ``zarr.json``."""
        codecs = self.codecs
        if self.shard is not None:
            little = {"name": "bytes", "configuration": {"endian": "little"}}
            sharding = {
                "chunk_shape": self.chunk,
                "codecs": self.codecs,
                "index_codecs": [little, {"name": "crc32c"}],
                # One in two, as the seed is.
                "index_location": "start" if self.seed % 2 else "end",
            }
            codecs = ({"name": "sharding_indexed", "configuration": sharding},)
        fill = [0.0, 0.0] if self.dtype.kind == "c" else 0
        return array_document(self.shape, self.data_type, self.shard or self.chunk, codecs, fill)

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """In short, for one line."""
        grid = f"/ {_product(self.chunk)}"
        if self.shard is not None:
            grid += f" in {_product(self.shard)}"
        return f"{self.data_type} {_product(self.shape)} {grid} {self.codecs_in_short}"

    @property
    def codecs_in_short(self) -> str:
        return "+".join(filter(None, map(_codec_in_short, self.codecs))) or "none"


def _product(lengths: tuple[int, ...]) -> str:
    return "×".join(map(str, lengths))


def _codec_in_short(codec: Codec) -> str:
    settings = codec.get("configuration", {})
    match codec["name"]:
        case "bytes":
            return "big" if settings.get("endian") == "big" else ""
        case "transpose":
            return "t" + "".join(map(str, settings["order"]))
        case "blosc":
            letter = {"noshuffle": "", "shuffle": "/s", "bitshuffle": "/b"}[settings["shuffle"]]
            return f"blosc-{settings['cname']}-{settings['clevel']}{letter}"
        case name:
            return f"{name}-{settings['level']}" if "level" in settings else str(name)
