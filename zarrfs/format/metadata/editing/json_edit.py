"""Replaces single values in JSON text and keeps every other character."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import Any

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
