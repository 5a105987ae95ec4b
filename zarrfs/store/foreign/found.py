"""The arrays and groups that a translator finds in a file, in the form that is kept."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

Refs = dict[str, Any]
Shape = tuple[int, ...]

# An array that is stored as one piece is cut into chunks of at most so many bytes.
_ONE_CHUNK, _CHUNK = 16 << 20, 4 << 20
MOST_REFERENCES = 1_000_000
"""To the chunks of one array."""

TYPES = "zarrfs_types"
"""The attribute with the types of others that are numbers: lines of a type, a space, and a name.

It is text, because netCDF has no attributes that are objects.
"""

KEY = ".zarrfs-foreign.json"
"""The key of what is not a reference: `Found` without ``refs``, as JSON."""


def with_types(attributes: dict[str, Any], dtypes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, and the numpy data types that some of them have in the file."""
    stated = {
        name: dtype.name
        for name, dtype in dtypes.items()
        if getattr(dtype, "kind", None) in ("i", "u", "f") and name.isprintable()
    }
    lines = [f"{kind} {name}" for name, kind in stated.items()]
    return {**attributes, TYPES: "\n".join(lines)} if lines else attributes


@dataclass(slots=True)
class Found:
    """Arrays and groups by path, and what is not served.

    refs : documents as text, references, and inlined bytes, by key.
    boxes : by the path of an array, how HDF5 reads its chunks without a reference.
    notes : by the path of what is not served, the reason.
    others : the state of each other file that holds data, by path.
    """

    refs: Refs = field(default_factory=dict)
    boxes: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    others: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def document(self, path: str, document: dict[str, Any]) -> None:
        self.refs[f"{path}/zarr.json" if path else "zarr.json"] = json.dumps(document)

    def note(self, path: str, reason: str) -> None:
        """Have an entry at ``path`` that says why nothing is served there."""
        self.notes[path] = reason[:1000]
        # This names the entry in listings; the reason is given instead of it.
        self.document(path, {"zarrfs_note": self.notes[path]})

    def name_for(self, group: str, name: str) -> str:
        """The path for a child of a group, with a name that a node of Zarr can have."""
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if name.startswith((".", "__")) or not name.strip(".") or name == "zarr.json":
            name = f"_{name.lstrip('._')}"
        path = f"{group}/{name}" if group else name
        while f"{path}/zarr.json" in self.refs:
            path += "_"
        return path

    def all_refs(self) -> Refs:
        """The references, and what else there is as one more of them."""
        if not (self.boxes or self.notes or self.others):
            return self.refs
        more = {"boxes": self.boxes, "notes": self.notes, "others": self.others}
        return {**self.refs, KEY: json.dumps(more)}


def inlined(data: bytes) -> str:
    """Bytes that are kept in the references themselves."""
    return "base64:" + base64.b64encode(data).decode()


def array_document(
    shape: Sequence[int],
    data_type: Any,
    lengths: Sequence[Any],
    codecs: list[dict[str, Any]],
    fill_value: Any,
    attributes: dict[str, Any],
) -> dict[str, Any]:
    """The ``zarr.json`` of an array.

    lengths : of the chunks along each axis: one, or a list of lengths and runs of lengths.
    """
    grid: dict[str, Any] = {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}
    if not all(isinstance(length, int) for length in lengths):
        shapes = {"kind": "inline", "chunk_shapes": list(lengths)}
        grid = {"name": "rectilinear", "configuration": shapes}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": attributes,
    }


def chunk_key(index: Sequence[int]) -> str:
    """The key of a chunk below an array of `array_document`."""
    return "/".join(("c", *map(str, index)))


def cut(shape: Shape, item: int) -> Shape:
    """Chunks of an array in C order that lie in one piece; the whole array if it is small."""
    if math.prod(shape) * item <= _ONE_CHUNK:
        return shape
    axis, below = len(shape) - 1, item
    while below * shape[axis] <= _CHUNK:
        below *= shape[axis]
        axis -= 1
    most = max(1, _CHUNK // below)
    # With a divisor no chunk is shorter than the others.
    even = next((n for n in range(most, most // 8, -1) if not shape[axis] % n), most)
    return (*(1,) * axis, even, *shape[axis + 1 :])


def pieces(
    path: str, shape: Shape, item: int, begin: int
) -> tuple[list[Any], dict[Shape, list[Any]]]:
    """Lengths of chunks, as `array_document` takes them, and references to all chunks by index.

    The array lies in C order from ``begin`` on, and has elements. Raises ValueError.
    """
    chunk = cut(shape, item)
    counts = [-(-n // c) for n, c in zip(shape, chunk, strict=True)]
    if math.prod(counts) > MOST_REFERENCES:
        raise ValueError(f"it has more than {MOST_REFERENCES} pieces")
    found: dict[Shape, list[Any]] = {}
    for index in product(*map(range, counts)):
        start, size = 0, item
        for i, c, n in zip(index, chunk, shape, strict=True):
            start = start * n + i * c
            size *= min(c, n - i * c)
        found[index] = [path, begin + start * item, size]
    lengths: list[Any] = [
        [[c, n // c], n % c] if n % c else c for n, c in zip(shape, chunk, strict=True)
    ]
    return lengths, found
