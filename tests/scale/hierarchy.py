"""The store that a scale test mounts: groups of small arrays with many chunks."""

from pathlib import Path

import numpy as np

from tests.fs.documents import array_document

_GROUP = '{"zarr_format": 3, "node_type": "group"}'
PER_GROUP = 500
CHUNK = 64  # elements
STORED = 2
"""Chunks of each array that are there; the others read as fill value, so names cost no files."""


def array_path(number: int) -> str:
    return f"g{number // PER_GROUP}/a{number}"


def contents(number: int, chunks: int) -> np.ndarray:
    """The elements of an array as they are made, uint16."""
    elements = np.zeros(chunks * CHUNK, "<u2")
    stored = min(STORED, chunks) * CHUNK
    elements[:stored] = (np.arange(stored) + 31 * number) % 65521 + 1
    return elements


def make(place: Path, arrays: int, chunks: int) -> None:
    """Makes so many arrays of one axis, each of so many chunks."""
    document = array_document((chunks * CHUNK,), (CHUNK,), data_type="uint16", fill_value=0)
    place.mkdir()
    (place / "zarr.json").write_text(_GROUP)
    for number in range(arrays):
        path = place / array_path(number)
        if number % PER_GROUP == 0:
            path.parent.mkdir()
            (path.parent / "zarr.json").write_text(_GROUP)
        (path / "c").mkdir(parents=True)
        (path / "zarr.json").write_bytes(document)
        elements = contents(number, chunks)
        for chunk in range(min(STORED, chunks)):
            data = elements[chunk * CHUNK : (chunk + 1) * CHUNK].tobytes()
            (path / "c" / str(chunk)).write_bytes(data)
