"""Small arrays of every layout that can be written to, and what their files must hold."""

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import zarr
from zarr.core.buffer import cpu

from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, sharding

BIG = {"name": "bytes", "configuration": {"endian": "big"}}

Index = tuple[int, ...]
Cells = np.ndarray[Any, np.dtype[np.uint8]]
"""Elements as bytes: of the array's shape, and one more axis for the bytes of an element."""


def _transpose(*order: int) -> dict[str, Any]:
    return {"name": "transpose", "configuration": {"order": list(order)}}


def _codecs(*codecs: Any) -> dict[str, Any]:
    return {"codecs": list(codecs)}


@dataclass(frozen=True)
class Kind:
    """An array and the chunks that its files show.

    part : bytes of what a byte order reverses; 0 where none does.
    inner, shard : shapes; ``shard`` is None where nothing is sharded.
    lengths : of the chunks of each axis, where they are not all as ``inner`` says.
    foreign : whether zarr-python can read it.
    """

    document: dict[str, Any]
    inner: Index
    shard: Index | None = None
    part: int = 0
    item: int = 2
    fill: bytes = b"\7\0"
    foreign: bool = True
    lengths: tuple[tuple[int, ...], ...] | None = None

    @property
    def shape(self) -> Index:
        return tuple(self.document["shape"])

    def store(self) -> dict[str, bytes]:
        """The objects of an empty array."""
        if self.document["zarr_format"] == 2:
            return {".zarray": json.dumps(self.document).encode()}
        return {"zarr.json": json.dumps(self.document).encode()}

    def empty(self) -> Cells:
        cells = np.empty((*self.shape, self.item), np.uint8)
        cells[...] = np.frombuffer(self.fill, np.uint8)
        return cells

    def boxes(self, tree: str) -> list[tuple[Index, Index]]:
        """Origin and shape of each file of ``chunks`` or ``shards``, by the file's path order."""
        if self.lengths is not None:
            axes = [
                list(zip(np.cumsum((0, *lengths))[:-1].tolist(), lengths, strict=True))
                for lengths in self.lengths
            ]
        else:
            shape = self.inner if tree == "chunks" else self.shard
            assert shape is not None
            axes = [
                [(i, n) for i in range(0, extent, n)]
                for extent, n in zip(self.shape, shape, strict=True)
            ]
        return [
            (tuple(o for o, _ in box), tuple(n for _, n in box)) for box in product(*axes)
        ]  # fmt: skip

    def names(self, tree: str) -> list[str]:
        if self.lengths is not None:
            counts = [len(lengths) for lengths in self.lengths]
        else:
            shape = self.inner if tree == "chunks" else self.shard
            assert shape is not None
            counts = [-(-n // c) for n, c in zip(self.shape, shape, strict=True)]
        return ["/".join(map(str, index or (0,))) for index in product(*map(range, counts))]

    @property
    def files(self) -> dict[str, tuple[Index, Index]]:
        """Origin and shape of what each chunk and shard file shows."""
        trees = ["chunks"] if self.shard is None else ["chunks", "shards"]
        return {
            f"{tree}/{name}": box
            for tree in trees
            for name, box in zip(self.names(tree), self.boxes(tree), strict=True)
        }

    def reversed_bytes(self) -> list[int]:
        """Order of an element's bytes in a big-endian file."""
        part = self.part or 1
        return [i for start in range(0, self.item, part) for i in range(start, start + part)[::-1]]


def _kind(
    shape: Index, chunks: Index, shard: Index | None = None, part: int = 2, **members: Any
) -> Kind:
    options = {
        name: members.pop(name)
        for name in ("item", "fill", "foreign", "lengths")
        if name in members
    }
    document = json.loads(array_document(shape, shard or chunks, **members))
    return Kind(document, chunks, shard, part, **options)


def _nested(*inside: Any) -> dict[str, Any]:
    return sharding((4, 2), codecs=[sharding((2, 2), codecs=[*inside], index_location="start")])


_V2 = {
    "zarr_format": 2, "shape": [9, 7], "chunks": [4, 3], "dtype": "<i2", "fill_value": 7,
    "order": "F", "compressor": {"id": "zlib", "level": 1},
    "filters": [{"id": "delta", "dtype": "<i2"}],
}  # fmt: skip

KINDS: dict[str, Kind] = {
    "plain": _kind((7, 6, 5), (3, 4, 2)),
    "one axis": _kind((23,), (5,)),
    "gzip big": _kind((9, 11), (4, 3), **_codecs(BIG, GZIP)),
    "transposed": _kind((5, 6, 7), (2, 3, 4), **_codecs(_transpose(2, 0, 1), LITTLE, ZSTD)),
    "raw24": _kind(
        (9, 5), (4, 2), part=0, item=3, fill=b"\1\2\3",
        data_type="r24", fill_value=[1, 2, 3], codecs=[{"name": "bytes"}], foreign=False,
    ),
    "complex128": _kind(
        (6, 5), (4, 2), part=8, item=16, fill=bytes(7) + b"\x80" + bytes(8),
        data_type="complex128", fill_value=[-0.0, 0.0], codecs=[LITTLE, ZSTD],
    ),
    "scalar": _kind((), ()),
    "empty": _kind((4, 0), (2, 3)),
    "overhung": _kind((3, 2), (8, 16)),
    "sharded": _kind((13, 10), (2, 3), (4, 6), codecs=[sharding((2, 3), codecs=[LITTLE, GZIP])]),
    "sharded start": _kind(
        (13, 10), (2, 3), (4, 6),
        codecs=[sharding((2, 3), index_location="start", index_codecs=[BIG, CRC32C])],
    ),
    "nested": _kind((13, 5), (2, 2), (8, 4), codecs=[_nested(LITTLE, CRC32C)]),
    "around": _kind((13, 10), (2, 3), (4, 6), codecs=[sharding((2, 3)), GZIP, CRC32C]),
    "around nested": _kind(
        (13, 5), (2, 2), (8, 4),
        codecs=[sharding((4, 2), codecs=[sharding((2, 2)), ZSTD]), CRC32C],
    ),
    "transposed before shards": _kind(
        (13, 10), (2, 3), (4, 6),
        codecs=[_transpose(1, 0), sharding((3, 2), codecs=[LITTLE, ZSTD])], foreign=False,
    ),
    "scalar shard": _kind((), (), (), codecs=[sharding(())], foreign=False),
    "rectilinear": _kind(
        (9, 7), (1, 1), foreign=False, lengths=((2, 3, 3, 1), (4, 3)),
        chunk_grid={
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [[2, [3, 2], 1], [4, 3]]},
        },
    ),
    "version 2": Kind(_V2, (4, 3), part=2),
}  # fmt: skip


def read_by_zarr_python(objects: Mapping[str, bytes], kind: Kind) -> bytes:
    """All elements, little-endian, in C order."""
    with _peer():
        elements = np.asarray(zarr.open_array(_zarr_store(objects), mode="r")[...])
    return elements.astype(elements.dtype.newbyteorder("<")).tobytes()


def write_by_zarr_python(
    objects: Mapping[str, bytes], cells: Cells, origin: Index, shape: Index
) -> dict[str, bytes]:
    """The objects after ``cells`` have been written into a box of the array."""
    store = _zarr_store(objects)
    where = tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))
    part = np.ascontiguousarray(cells[where])
    with _peer():
        array = zarr.open_array(store, mode="r+")
        elements = part.view(array.dtype.newbyteorder("<")).reshape(part.shape[:-1])
        array[where or ...] = elements
    return {key: buffer.to_bytes() for key, buffer in store._store_dict.items()}


@contextmanager
def _peer() -> Iterator[None]:
    # It warns of what is its own affair.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _zarr_store(objects: Mapping[str, bytes]) -> zarr.storage.MemoryStore:
    buffers = {key: cpu.Buffer.from_bytes(data) for key, data in objects.items()}
    return zarr.storage.MemoryStore(buffers)


@dataclass
class ModelFiles:
    """The bytes that every file of a mount must have, from one copy of the elements."""

    kind: Kind
    byteorder: str
    order: str
    cells: Cells

    def _file_window(self, path: str) -> Cells:
        """The elements of a file, little-endian, in the array's axis order, overhang and all."""
        if path not in self.kind.files:
            return self.cells
        origin, shape = self.kind.files[path]
        window = np.empty((*shape, self.kind.item), np.uint8)
        window[...] = np.frombuffer(self.kind.fill, np.uint8)
        part = self.cells[tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))]
        window[tuple(map(slice, part.shape[:-1]))] = part
        return window

    def _to_file(self, window: Cells, path: str) -> Cells:
        if self.byteorder == "big":
            window = window[..., self.kind.reversed_bytes()]
        if path == "array.bin" and self.order == "F":
            rank = len(self.kind.shape)
            window = window.transpose(*range(rank)[::-1], rank)
        return window

    def content(self, path: str) -> bytes:
        return self._to_file(self._file_window(path), path).tobytes()

    def write(self, path: str, offset: int, data: bytes) -> None:
        # Where each byte of the file lies in the window, or -1 beyond the array.
        window = self._file_window(path)
        whole = np.arange(self.cells.size).reshape(self.cells.shape)
        places = np.full(window.shape, -1)
        origin = self.kind.files.get(path, ((0,) * len(self.kind.shape), self.kind.shape))[0]
        part = whole[tuple(slice(o, o + n) for o, n in zip(origin, window.shape[:-1], strict=True))]
        places[tuple(map(slice, part.shape[:-1]))] = part
        flat = self._to_file(places, path).reshape(-1)[offset : offset + len(data)]
        inside = flat >= 0
        self.cells.reshape(-1)[flat[inside]] = np.frombuffer(data, np.uint8)[inside]

    def size(self, path: str) -> int:
        return math.prod(self._file_window(path).shape)

    def remove(self, path: str) -> None:
        origin, shape = self.kind.files[path]
        box = tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))
        self.cells[box] = np.frombuffer(self.kind.fill, np.uint8)
