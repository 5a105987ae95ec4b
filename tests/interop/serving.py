"""Compares the files of one array with what the array is."""

import io
from itertools import islice

import numpy as np

from .served_files import ServedFiles
from .spec import Array, Shape, Spec, grid

# More of them show nothing that these do not.
_CHUNKS = 4


def check_served(files: ServedFiles, spec: Spec, data: Array, directory: str = "") -> None:
    """Every view of an array against the elements it was written from."""
    prefix = f"{directory}/" if directory else ""
    assert files.read(f"{prefix}array.bin") == data.tobytes()
    _check_npy(files.read(f"{prefix}array.npy"), data)
    _check_chunks(files, f"{prefix}chunks", spec, data, spec.inner)
    if spec.sharded:
        _check_chunks(files, f"{prefix}shards", spec, data, spec.stored)
    else:
        assert "shards" not in files.names(directory)


def _check_npy(file: bytes, data: Array) -> None:
    loaded = np.load(io.BytesIO(file), allow_pickle=False)
    assert loaded.dtype == data.dtype
    assert loaded.shape == data.shape
    assert loaded.tobytes() == data.tobytes()


def _check_chunks(files: ServedFiles, root: str, spec: Spec, data: Array, shape: Shape) -> None:
    counts = [-(-n // c) for n, c in zip(data.shape, shape, strict=True)]
    assert files.names(root) == [str(i) for i in range(counts[0] if counts else 1)]
    indices = list(grid(data.shape, shape))
    # Evenly among all, with the first and the last, which may hang over.
    step = max(1, len(indices) // _CHUNKS)
    for index in {*islice(indices, 0, None, step), *indices[-1:]}:
        name = "/".join(map(str, index)) or "0"
        assert files.read(f"{root}/{name}") == spec.chunk(data, index, shape), f"{root}/{name}"
