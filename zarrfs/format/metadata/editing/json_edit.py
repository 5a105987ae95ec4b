"""Replacing single values in JSON text, every other character left as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import Any

Path = tuple[str | int, ...]
"""Where a value is: names of members and positions in lists, from the outside."""

_DECODER = JSONDecoder()
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")


class JsonText:
    """A JSON document that can be edited.

    value : what it says.

    Raises ValueError where it is no JSON.
    """

    def __init__(self, data: bytes) -> None:
        # What `json.loads` does, so that both read the same.
        self._encoding = json.detect_encoding(data)
        self._text = data.decode(self._encoding, "surrogatepass")
        self.value: Any = _DECODER.decode(self._text)

    def replaced(self, values: Mapping[Path, Any]) -> bytes:
        """The document with other values at these places, each of which must be there."""
        spans = sorted((*self._span(path), json.dumps(value)) for path, value in values.items())
        parts, at = [], 0
        for start, stop, text in spans:
            parts += [self._text[at:start], text]
            at = stop
        text = "".join([*parts, self._text[at:]])
        # Decoding took a mark of the byte order away in this case alone.
        return text.encode(self._encoding, "surrogatepass")

    def _span(self, path: Path) -> tuple[int, int]:
        """Where the value at ``path`` begins and ends. Raises KeyError."""
        start = self._skip(0)
        for step in path:
            # The last of several members of one name counts, as for `json.loads`.
            found = [at for name, at in self._members(start) if name == step]
            if not found:
                raise KeyError(step)
            start = found[-1]
        return start, _DECODER.raw_decode(self._text, start)[1]

    def _members(self, start: int) -> Iterator[tuple[str | int, int]]:
        """Names or positions in the object or list at ``start``, and where their values begin."""
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
        """The first place from ``at`` on that is no white space."""
        match = _WHITE_SPACE.match(self._text, at)
        assert match is not None
        return match.end()
