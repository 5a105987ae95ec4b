"""Keeps documents of an open node as text, and parses them on use.

Parsed JSON takes up to twenty times the memory of its text, and most of it is never used.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from zarrfs.bounds import is_name

_LARGE = 16 << 10
_LONG = 1 << 10
_ENTRY = 200  # bytes of the objects for a name and a text, and of their entry
_COMPRESSED = b"\x78"
# The character after "/": a path with it sorts after all paths that begin with the path and "/".
_BEHIND = chr(ord("/") + 1)


class KeptJson(Mapping[str, Any]):
    """JSON values by name, each kept as its text. Reading one value parses only that one."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = texts

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


class KeptAttributes(KeptJson):
    """Attributes of a node; the texts of long values are compressed."""

    __slots__ = ()

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        super().__init__({name: _packed(value) for name, value in attributes.items()})


def _packed(value: Any) -> bytes:
    """JSON text, compressed if it is long."""
    text = json.dumps(value).encode()
    return zlib.compress(text, 1) if len(text) > _LONG else text


def _unpacked(data: bytes) -> Any:
    # No JSON text begins like a compressed stream.
    return json.loads(zlib.decompress(data) if data.startswith(_COMPRESSED) else data)


def kept(attributes: Mapping[str, Any], document_size: int) -> Mapping[str, Any]:
    """Attributes in the form in which they are kept.

    document_size : bytes of the document that contained them.
    """
    return attributes if document_size <= _LARGE else KeptAttributes(attributes)


UseConsolidated = Literal["auto", "never", "only"]
"""When consolidated metadata decide what is below a group; see `zarrfs.array.hierarchy`."""


class Consolidated(KeptJson):
    """Documents of the nodes below a group, by relative path.

    The time for finding the nodes below a node depends on their number only. Paths that no program
    can reach, such as ``a/../b``, are left out.
    """

    __slots__ = ("_paths",)

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._paths = sorted(
            path for path in documents if not path or all(map(is_name, path.split("/")))
        )
        super().__init__({path: json.dumps(documents[path]).encode() for path in self._paths})

    def size_of(self, path: str) -> int:
        """Bytes of the document of a node; 0 if there is none."""
        return len(self._texts.get(path, b""))

    def has_below(self, path: str) -> bool:
        """Whether there is any document below ``path``."""
        at = bisect_left(self._paths, f"{path}/")
        return at < len(self._paths) and self._paths[at].startswith(f"{path}/")

    def names_below(self, path: str) -> set[str]:
        """Names directly below ``path`` that have a document, or are above one."""
        prefix = f"{path}/" if path else ""
        names: set[str] = set()
        at = bisect_left(self._paths, prefix)
        while at < len(self._paths) and self._paths[at].startswith(prefix):
            name, slash, _ = self._paths[at][len(prefix) :].partition("/")
            names.add(name)
            # All paths below a name are adjacent and add no name, so skip them.
            at = bisect_left(self._paths, prefix + name + _BEHIND, at) if slash else at + 1
        return names
