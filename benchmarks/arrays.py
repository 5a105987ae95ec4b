"""The arrays, built once: a smooth field with shot noise, which codecs halve."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scale import Scale

_VERSION = 1  # of what `_field` draws

_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
_ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
_GZIP = {"name": "gzip", "configuration": {"level": 5}}
_BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "lz4",
        "clevel": 5,
        "shuffle": "shuffle",
        "typesize": 2,
        "blocksize": 0,
    },
}
_CHUNK = (64, 128, 128)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to store an array.

    chunk : shape of what the chunk grid is made of, so of a shard where there is an inner
        chunk; -1 is the length of the axis.
    inner : shape of the inner chunks, or None.
    """

    title: str
    chunk: tuple[int, ...]
    codecs: tuple[Mapping[str, Any], ...]
    inner: tuple[int, ...] | None = None
    image: bool = False


KINDS: Mapping[str, Kind] = {
    "a": Kind("blosc-lz4 shuffle", _CHUNK, (_LITTLE, _BLOSC)),
    "b": Kind("zstd-3", _CHUNK, (_LITTLE, _ZSTD)),
    "c": Kind("gzip-5", _CHUNK, (_LITTLE, _GZIP)),
    "d": Kind("uncompressed", _CHUNK, (_LITTLE,)),
    "e": Kind("zstd-3 in shards", (128, 256, 256), (_LITTLE, _ZSTD), inner=(32, 32, 32)),
    "f": Kind("rows, zstd-3", (1, -1), (_LITTLE, _ZSTD), image=True),
    "g": Kind("chunks of 16³, zstd-3", (16, 16, 16), (_LITTLE, _ZSTD)),
}


@dataclass(frozen=True, slots=True)
class Arrays:
    """The arrays of one scale, in ``directory``, each built when it is first asked for."""

    directory: Path
    scale: Scale

    def path(self, kind: str) -> Path:
        """The Zarr array of a kind."""
        document = self.metadata(kind)
        path = self.directory / f"{kind}-{_hash(document)}.zarr"
        if not path.exists():
            plain = self.memmap(kind)
            partial = _fresh(path)
            _write(partial, document, plain)
            partial.rename(path)
        return path

    def plain(self, kind: str) -> Path:
        """A file of the same bytes as `array.bin`."""
        document = {"shape": self.shape(kind), "dtype": str(self.dtype(kind))}
        path = self.directory / f"plain-{_hash(document)}.bin"
        if not path.exists():
            partial = _fresh(path)
            with partial.open("wb") as file:
                for block in _field(self.shape(kind), self.dtype(kind)):
                    file.write(block.data)
            partial.rename(path)
        return path

    def memmap(self, kind: str) -> NDArray[Any]:
        return np.memmap(self.plain(kind), self.dtype(kind), "r", shape=self.shape(kind))

    def shape(self, kind: str) -> tuple[int, ...]:
        return self.scale.image if KINDS[kind].image else self.scale.volume

    def dtype(self, kind: str) -> np.dtype[Any]:
        return np.dtype("<f4" if KINDS[kind].image else "<u2")

    def size(self, kind: str) -> int:
        """Bytes decoded."""
        return math.prod(self.shape(kind)) * self.dtype(kind).itemsize

    def copy(self, kind: str, name: str) -> Path:
        """An array of that kind that may be written to, made afresh."""
        path = self.directory / f"{name}-{self.scale.name}.zarr"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.path(kind), path)
        # Else the disk is busy with it while the first contender is measured.
        os.sync()
        return path

    def empty(self, name: str, grid: tuple[int, ...]) -> Path:
        """An array of that many chunks, none of them stored."""
        chunk = tuple(16 for _ in grid)
        shape = tuple(count * 16 for count in grid)
        document = array_document(shape, "uint16", chunk, (_LITTLE, _ZSTD))
        path = self.directory / f"{name}-{_hash(document)}.zarr"
        path.mkdir(parents=True, exist_ok=True)
        (path / "zarr.json").write_text(json.dumps(document))
        return path

    def metadata(self, kind: str) -> dict[str, Any]:
        """The ``zarr.json`` of a kind."""
        made = KINDS[kind]
        shape = self.shape(kind)
        chunk = tuple(
            size if length < 0 else length for length, size in zip(made.chunk, shape, strict=True)
        )
        codecs = made.codecs
        if made.inner is not None:
            sharding = {
                "chunk_shape": made.inner,
                "codecs": made.codecs,
                "index_codecs": [_LITTLE, {"name": "crc32c"}],
                "index_location": "end",
            }
            codecs = ({"name": "sharding_indexed", "configuration": sharding},)
        return array_document(shape, self.dtype(kind).name, chunk, codecs)


def array_document(
    shape: tuple[int, ...],
    data_type: str,
    chunk: tuple[int, ...],
    codecs: tuple[Mapping[str, Any], ...],
    fill_value: object = 0,
) -> dict[str, Any]:
    """The ``zarr.json`` of an array."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs,
        "fill_value": fill_value,
        "attributes": {},
    }


def _hash(document: Mapping[str, Any]) -> str:
    text = json.dumps([_VERSION, document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _fresh(path: Path) -> Path:
    """Where to build ``path``, so that what is there is complete."""
    partial = path.with_name(f"{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.unlink(missing_ok=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    return partial


def _write(path: Path, document: Mapping[str, Any], data: NDArray[Any]) -> None:
    import tensorstore as ts

    # What is built here is not worth waiting for the disk, file by file.
    context = ts.Context({"file_io_sync": False})
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "metadata": {k: v for k, v in document.items() if k != "zarr_format"},
    }
    array = ts.open(spec, context=context, create=True).result()
    step = 128 if data.ndim == 3 else 1024
    for start in range(0, data.shape[0], step):
        stop = min(start + step, data.shape[0])
        array[start:stop].write(data[start:stop]).result()


def _field(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Blocks of rows: cells on a background, each element with the noise of its own height."""
    rng = np.random.default_rng(0)
    rows = 16 if len(shape) == 3 else 256
    scales = rng.uniform(15, 60, len(shape))
    axes = np.meshgrid(*(np.arange(n, dtype=np.float32) for n in shape), indexing="ij", sparse=True)
    waves = [np.cos(axis / scale) for axis, scale in zip(axes, scales, strict=True)]
    for start in range(0, shape[0], rows):
        block = 300 + 200 * waves[0][start : start + rows]
        for wave in waves[1:]:
            block = block * (1 + wave * np.float32(0.6))
        block = block.clip(20)
        block += rng.standard_normal(block.shape, np.float32) * np.sqrt(block)
        counts = block.clip(0, 65535).astype(np.uint16)
        # Photons of a detector with a gain, where the image is not one of counts.
        yield counts if dtype.kind == "u" else counts.astype(dtype) * np.float32(0.25)
