"""Chunk key encodings: from a chunk's index to its key, relative to the array.

``default`` and ``v2`` are in the core specification. ``suffix`` and ``fanout`` are open
proposals (https://github.com/zarr-developers/zarr-extensions/pull/28 and .../pull/31).
``zarrs.default_suffix`` is the precursor of ``suffix`` in zarrs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zarrfs.format.chunk_grid import Index
from zarrfs.format.unserved import UnservedError

# No array has a chunk count of more digits.
_MOST_DIGITS = 20


class ChunkKeyEncoding(Protocol):
    """Names the stored object of each chunk."""

    def key(self, index: Index) -> str:
        """The key of chunk ``index``, relative to the array."""
        ...

    def index(self, key: str, rank: int) -> Index | None:
        """The chunk that has this key, in an array of ``rank`` axes; None if no chunk has it."""
        ...


def _index(encoding: ChunkKeyEncoding, key: str, texts: Sequence[str], rank: int) -> Index | None:
    """The coordinates in ``texts``, if their key is exactly ``key``; else None."""
    if len(texts) != rank or not all(text.isascii() and text.isdigit() for text in texts):
        return None
    if any(len(text) > _MOST_DIGITS for text in texts):
        return None
    index = tuple(map(int, texts))
    return index if encoding.key(index) == key else None


def _check_separator(separator: Any) -> None:
    if separator not in ("/", "."):
        raise ValueError(f"separator is {separator!r}")


@dataclass(frozen=True, slots=True)
class DefaultKeys:
    """``c/1/2`` or ``c.1.2``; ``c`` for a 0-dimensional array."""

    separator: str = "/"

    def __post_init__(self) -> None:
        _check_separator(self.separator)

    def key(self, index: Index) -> str:
        return self.separator.join(["c", *map(str, index)])

    def index(self, key: str, rank: int) -> Index | None:
        return _index(self, key, key.split(self.separator)[1:], rank)


@dataclass(frozen=True, slots=True)
class V2Keys:
    """``1.2`` or ``1/2``; ``0`` for a 0-dimensional array."""

    separator: str = "."

    def __post_init__(self) -> None:
        _check_separator(self.separator)

    def key(self, index: Index) -> str:
        return self.separator.join(map(str, index)) or "0"

    def index(self, key: str, rank: int) -> Index | None:
        return _index(self, key, key.split(self.separator) if rank else (), rank)


@dataclass(frozen=True, slots=True)
class SuffixKeys:
    """The key of another encoding, followed by a file name suffix: ``c/1/2.tiff``."""

    base: ChunkKeyEncoding
    suffix: str

    def __post_init__(self) -> None:
        if not isinstance(self.suffix, str) or "/" in self.suffix or "\0" in self.suffix:
            raise ValueError(f"suffix is {self.suffix!r}")

    def key(self, index: Index) -> str:
        return self.base.key(index) + self.suffix

    def index(self, key: str, rank: int) -> Index | None:
        if not key.endswith(self.suffix):
            return None
        return self.base.index(key.removesuffix(self.suffix), rank)


@dataclass(frozen=True, slots=True)
class FanoutKeys:
    """Coordinates in groups of digits, after the number of further groups: ``c/1/001/234``.

    No directory has more than ``max_children`` entries, a power of ten.
    """

    max_children: int = 1000

    def __post_init__(self) -> None:
        limit = self.max_children
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 100:
            raise ValueError(f"max_children is {limit!r}, must be at least 100")

    def key(self, index: Index) -> str:
        parts = ["c"]
        # A limit that is no power of ten counts as the next lower power.
        digits = len(str(self.max_children)) - 1
        for coordinate in index:
            text = str(coordinate)
            text = text.zfill(-(-len(text) // digits) * digits)
            groups = [text[i : i + digits] for i in range(0, len(text), digits)]
            parts += [str(len(groups) - 1), *groups]
        return "/".join(parts)

    def index(self, key: str, rank: int) -> Index | None:
        parts = key.split("/")[1:]
        texts = []
        while parts:
            if not (parts[0].isascii() and parts[0].isdigit()) or len(parts[0]) > _MOST_DIGITS:
                return None
            groups = int(parts[0]) + 1
            texts.append("".join(parts[1 : 1 + groups]).lstrip("0") or "0")
            parts = parts[1 + groups :]
        return _index(self, key, texts, rank)


def _suffix(configuration: Mapping[str, Any]) -> ChunkKeyEncoding:
    if not {"suffix"} <= set(configuration) <= {"suffix", "base-encoding"}:
        raise ValueError("expected suffix and base-encoding")
    base = configuration.get("base-encoding", "default")
    return SuffixKeys(parse_chunk_keys(base), configuration["suffix"])


def _default_suffix(configuration: Mapping[str, Any]) -> ChunkKeyEncoding:
    if not {"suffix"} <= set(configuration) <= {"suffix", "separator"}:
        raise ValueError("expected suffix and separator")
    base = DefaultKeys(configuration.get("separator", "/"))
    return SuffixKeys(base, configuration["suffix"])


CHUNK_KEY_ENCODINGS: dict[str, Callable[[Mapping[str, Any]], ChunkKeyEncoding]] = {
    "default": lambda configuration: DefaultKeys(**configuration),
    "v2": lambda configuration: V2Keys(**configuration),
    "suffix": _suffix,
    "fanout": lambda configuration: FanoutKeys(**configuration),
    "zarrs.default_suffix": _default_suffix,
}
"""Encodings by name; each is called with the members of its configuration."""


def parse_chunk_keys(value: Any) -> ChunkKeyEncoding:
    """The encoding that metadata give as a name, or as a name and a configuration.

    Raises UnservedError for an unknown encoding, ValueError for a malformed one.
    """
    match value:
        case str(name):
            configuration: Any = {}
        case {"name": str(name)}:
            configuration = value.get("configuration") or {}
        case _:
            raise ValueError(f"{value!r} is not a chunk key encoding")
    if (make := CHUNK_KEY_ENCODINGS.get(name)) is None:
        raise UnservedError(f"unknown chunk key encoding {name!r}")
    try:
        return make(configuration)
    except TypeError as error:
        raise ValueError(f"chunk key encoding {name!r}: {error}") from error
