"""What is kept of documents as long as a node is open: text, which is parsed when it is wanted.

Parsed JSON takes up to twenty times the memory of its text, and most of it is never asked for.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

_LARGE = 16 << 10
_LONG = 1 << 10
_ENTRY = 200  # bytes of a name, a text and their place
_COMPRESSED = b"\x78"
# The character behind "/": what begins with a path and "/" comes before it.
_BEHIND = chr(ord("/") + 1)


class KeptAttributes(Mapping[str, Any]):
    """Attributes of a node, each kept as the JSON text of its value.

    Looking at one parses that one, and looking at all parses each once.
    """

    __slots__ = ("_texts",)

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._texts = {name: _packed(value) for name, value in attributes.items()}

    @property
    def nbytes(self) -> int:
        texts = self._texts.items()
        return sum(_ENTRY + len(name) + len(text) for name, text in texts)

    def __getitem__(self, name: str) -> Any:
        return _unpacked(self._texts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, name: object) -> bool:
        return name in self._texts


def _packed(value: Any) -> bytes:
    """JSON text, compressed where it is long."""
    text = json.dumps(value).encode()
    return zlib.compress(text, 1) if len(text) > _LONG else text


def _unpacked(data: bytes) -> Any:
    # No JSON begins like a compressed stream.
    return json.loads(zlib.decompress(data) if data.startswith(_COMPRESSED) else data)


def kept(attributes: Mapping[str, Any], document_size: int) -> Mapping[str, Any]:
    """Attributes in the form in which they are kept.

    document_size : bytes of the document that they were in.
    """
    return attributes if document_size <= _LARGE else KeptAttributes(attributes)


class Consolidated(Mapping[str, Any]):
    """Documents of the nodes below a group by relative path, kept as JSON text each.

    Finding the nodes below one takes time by their number, whatever else there is.
    """

    __slots__ = ("_paths", "_texts")

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._texts = {path: json.dumps(value).encode() for path, value in documents.items()}
        self._paths = sorted(self._texts)

    @property
    def nbytes(self) -> int:
        return sum(map(len, self._texts.values())) + sum(map(len, self._paths))

    def __getitem__(self, path: str) -> Any:
        return json.loads(self._texts[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._texts

    def size_of(self, path: str) -> int:
        """Bytes of the document of a node; 0 where there is none."""
        return len(self._texts.get(path, b""))

    def has_below(self, path: str) -> bool:
        """Whether there is any document below ``path``."""
        at = bisect_left(self._paths, f"{path}/")
        return at < len(self._paths) and self._paths[at].startswith(f"{path}/")

    def names_below(self, path: str) -> set[str]:
        """Names of all that is directly below ``path``, with a document or only above one."""
        prefix = f"{path}/" if path else ""
        names: set[str] = set()
        at = bisect_left(self._paths, prefix)
        while at < len(self._paths) and self._paths[at].startswith(prefix):
            name, slash, _ = self._paths[at][len(prefix) :].partition("/")
            names.add(name)
            # All that is below a name lies side by side, and tells nothing new.
            at = bisect_left(self._paths, prefix + name + _BEHIND, at) if slash else at + 1
        return names
