"""Boxes of the datasets of HDF5 files, as HDF5 reads them: what a process that does only this runs.

HDF5 and its filters trust the data. `zarrfs.isolation` runs `decode` in a process of its own.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from struct import pack
from typing import Any

import numpy as np

from zarrfs.store.foreign.kinds import exact_state_of

_CACHE = 64 << 20
AS_STORED = (4, 5)
"""The numbers of H5T_BITFIELD and H5T_OPAQUE, which HDF5 converts to no other type."""
# The open file of this process: its path, its state, and itself.
_opened: list[tuple[str, tuple[int, ...], Any]] = []


def prepare() -> Any:
    """Import h5py, with the filters of hdf5plugin if that is installed. Raises ImportError."""
    for name in [name for name in os.environ if name.startswith("HDF5_")]:
        del os.environ[name]
    # Files are opened for reading only, and some file systems have no locks.
    os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
    h5py = import_module("h5py")
    with suppress(ImportError):
        import_module("hdf5plugin").register(force=True)
    return h5py


def described(dtype: np.dtype[Any]) -> Any:
    """The type as JSON, from which `_dtype` makes it again."""
    if dtype.names is None:
        return dtype.str
    assert dtype.fields is not None
    return [[name, described(dtype.fields[name][0])] for name in dtype.names]


def _dtype(value: Any) -> np.dtype[Any]:
    if isinstance(value, str):
        return np.dtype(value)
    return np.dtype([(name, _dtype(field)) for name, field in value])


def decode(parameters: dict[str, Any], data: bytes) -> bytes:
    """The bytes of the chunk ``index`` of a dataset. Raises ValueError and OSError."""
    box, index = parameters["box"], parameters["index"]
    name = box["dataset"].encode("utf-8", "surrogateescape")
    return read(_file(parameters["file"])[name], box, index)


def encoded(name: str | bytes) -> str:
    """The name of a dataset for `decode`, whatever its bytes."""
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def _file(path: str) -> Any:
    state = exact_state_of(os.stat(path))
    if not _opened or _opened[0][:2] != (path, state):
        h5py = prepare() if "h5py" not in sys.modules else sys.modules["h5py"]
        for *_, file in _opened:
            file.close()
        # HDF5 looks there for files with names that are not absolute.
        os.chdir(os.path.dirname(path))
        _opened[:] = [(path, state, h5py.File(path, "r", rdcc_nbytes=_CACHE))]
    return _opened[0][2]


def read(dataset: Any, box: dict[str, Any], index: list[int]) -> bytes:
    """A whole chunk; zeros stand for what lies outside of the dataset."""
    begin = [i * n for i, n in zip(index, box["chunks"], strict=True)]
    ends = [
        min(at + n, length)
        for at, n, length in zip(begin, box["chunks"], box["shape"], strict=True)
    ]
    # The other axes belong to the element.
    axes = box["axes"]
    if dataset.id.get_type().get_class() in AS_STORED:
        found = _as_stored(dataset, begin[:axes], ends[:axes])
    else:
        found = np.asarray(dataset[tuple(map(slice, begin[:axes], ends[:axes]))])
    inside: list[Any] = [slice(None)] * axes + list(map(slice, begin[axes:], ends[axes:]))
    elements = found[tuple(inside)]
    if box["dtype"] is None:
        return _texts(elements, box["chunks"])
    chunk = np.zeros(box["chunks"], _dtype(box["dtype"]))
    chunk[tuple(map(slice, elements.shape))] = elements
    return chunk.tobytes()


def _as_stored(dataset: Any, begin: list[int], ends: list[int]) -> np.ndarray[Any, Any]:
    """A box of a dataset, without a conversion of its elements."""
    h5py = sys.modules["h5py"]
    counts = tuple(end - at for at, end in zip(begin, ends, strict=True))
    found = np.zeros(counts, dataset.dtype)
    if not found.size:
        return found
    inside, outside = dataset.id.get_space(), h5py.h5s.ALL
    if counts:
        inside.select_hyperslab(tuple(begin), counts)
        outside = h5py.h5s.create_simple(counts)
    else:
        inside = h5py.h5s.ALL
    dataset.id.read(outside, inside, found, mtype=dataset.id.get_type())
    return found


def _texts(elements: np.ndarray[Any, Any], chunks: list[int]) -> bytes:
    """Strings as the codec ``vlen-utf8`` stores them."""
    chunk = np.full(chunks, b"", object)
    chunk[tuple(map(slice, elements.shape))] = elements
    parts = [pack("<I", chunk.size)]
    for value in chunk.reshape(-1):
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        raw.decode("utf-8")  # raises ValueError
        parts += (pack("<I", len(raw)), raw)
    return b"".join(parts)
