"""Changes the shape of an array in metadata documents, and nothing else.

Members that this version of zarrfs does not know, the order of members and all white space stay as
their writer left them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import Any

from zarrfs import bounds
from zarrfs.errors import MetadataError
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.documents import V2_ARRAY


def with_shape(data: bytes, shape: Shape, document: str) -> bytes:
    """``zarr.json``, ``.zarray`` or ``meta`` of an array, changed to have ``shape``.

    Raises MetadataError naming ``document``, also if the number of axes differs.
    """
    text = _parsed(data, document)
    try:
        return text.replaced(_axes(text.value, (), shape))
    except ValueError as error:
        raise MetadataError(document, str(error)) from error


def with_shape_below(data: bytes, path: str, shape: Shape, document: str) -> bytes:
    """The ``zarr.json`` of a group, or ``.zmetadata``, changed for an array at ``path`` below it.

    Returns ``data`` itself if the document does not contain the array, or already has its
    shape. Raises MetadataError.
    """
    text = _parsed(data, document)
    edits: dict[Path, int] = {}
    try:
        for where, found in _consolidated(text.value, (), path):
            edits |= _axes(found, where, shape)
    except ValueError as error:
        raise MetadataError(document, f"what it says of {path}: {error}") from error
    return text.replaced(edits) if edits else data


def shapes_below(data: bytes, path: str, document: str) -> list[Shape]:
    """The shapes that a group's document contains for an array below it, one for each place."""
    found = _consolidated(_parsed(data, document).value, (), path)
    return [tuple(value["shape"]) for _, value in found if isinstance(value.get("shape"), list)]


def _parsed(data: bytes, document: str) -> JsonText:
    try:
        return JsonText(data)
    except (ValueError, RecursionError) as error:
        raise MetadataError(document, f"is not JSON: {bounds.why_not_json(data, error)}") from error


def _axes(value: Any, where: Path, shape: Shape) -> dict[Path, int]:
    """The values to replace in the document of an array at ``where``. Raises ValueError."""
    old = value.get("shape") if isinstance(value, Mapping) else None
    if not isinstance(old, list) or len(old) != len(shape):
        raise ValueError(f"has no shape of {len(shape)} axes")
    changed = zip(range(len(shape)), old, shape, strict=True)
    return {(*where, "shape", axis): new for axis, extent, new in changed if extent != new}


def _consolidated(group: Any, where: Path, path: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Every place in a group's document that holds the document of the array at ``path``."""
    if not isinstance(group, Mapping):
        return
    member: Path = ("metadata",)
    if isinstance(inline := group.get("consolidated_metadata"), Mapping):
        group, member = inline, ("consolidated_metadata", "metadata")
    if not isinstance(documents := group.get("metadata"), Mapping):
        return
    for name, value in documents.items():
        if not isinstance(value, Mapping):
            continue
        if name in (path, f"{path}/{V2_ARRAY}"):
            yield (*where, *member, name), value
        elif path.startswith(f"{name}/") and "consolidated_metadata" in value:
            # The document of a group below may contain consolidated metadata of its own.
            below = path.removeprefix(f"{name}/")
            yield from _consolidated(value, (*where, *member, name), below)


Path = tuple[str | int, ...]
"""The place of a value: names of members and positions in lists, from the outside in."""

_DECODER = JSONDecoder()
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")


class JsonText:
    """A JSON document that can be edited.

    value : the parsed document.

    Raises ValueError if the text is not JSON.
    """

    def __init__(self, data: bytes) -> None:
        # As in `json.loads`, so that both read the same text.
        self._encoding = json.detect_encoding(data)
        self._text = data.decode(self._encoding, "surrogatepass")
        self.value: Any = _DECODER.decode(self._text)

    def replaced(self, values: Mapping[Path, Any]) -> bytes:
        """The document with other values at these places, each of which must exist."""
        spans = sorted((*self._span(path), json.dumps(value)) for path, value in values.items())
        parts, at = [], 0
        for start, stop, text in spans:
            parts += [self._text[at:start], text]
            at = stop
        text = "".join([*parts, self._text[at:]])
        # Only in this case has decoding removed a byte order mark.
        return text.encode(self._encoding, "surrogatepass")

    def _span(self, path: Path) -> tuple[int, int]:
        """Start and end of the value at ``path``. Raises KeyError."""
        start = self._skip(0)
        for step in path:
            # The last of several members with one name counts, as in `json.loads`.
            found = [at for name, at in self._members(start) if name == step]
            if not found:
                raise KeyError(step)
            start = found[-1]
        return start, _DECODER.raw_decode(self._text, start)[1]

    def _members(self, start: int) -> Iterator[tuple[str | int, int]]:
        """For each member or item of the value at ``start``, its name or position and its start."""
        opening = self._text[start]
        if opening not in "{[":
            return
        at = self._skip(start + 1)
        position = 0
        while self._text[at] not in "}]":
            name: str | int = position
            if opening == "{":
                name, at = _DECODER.raw_decode(self._text, at)
                at = self._skip(self._skip(at) + 1)
            yield name, at
            at = self._skip(_DECODER.raw_decode(self._text, at)[1])
            if self._text[at] == ",":
                at = self._skip(at + 1)
            position += 1

    def _skip(self, at: int) -> int:
        """The first position from ``at`` on that is not white space."""
        match = _WHITE_SPACE.match(self._text, at)
        assert match is not None
        return match.end()
