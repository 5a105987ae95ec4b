"""Checks the files of a repository that ``icechunk`` takes into memory as a whole, before it does.

``icechunk`` decompresses snapshots and manifests without a limit, and keeps them. So each of them
is read once before, without being decompressed, and counted. All other metadata of a repository
are small.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.bounds import (
    LARGEST_MANIFESTS,
    LARGEST_PARSED,
    LARGEST_PARSED_REFERENCES,
    LARGEST_REFERENCES,
    OutOfBoundsError,
    load_json,
    parsed_size,
)
from zarrfs.store.remote.requests import BadReply, Reader, TooLarge

_MAGIC = "ICE🧊CHUNK".encode()
_HEADER = 39  # magic, name of the writer, version, kind of file, compression
_PLAIN = 0
_SMALL = 1 << 20


class MetadataFiles:
    """The files of one repository that ``icechunk`` may read. Thread-safe.

    Shared state, under ``_lock``: ``_counted``, the manifests that were counted, and ``_total``,
    the bytes that they take in memory at most. ``_arrays``, the manifests of each array by its
    path, is set before threads share this object.

    reader, root : read the files, which are below the path ``root``.
    """

    def __init__(self, reader: Reader, root: str) -> None:
        self._reader = reader
        self._root = root.rstrip("/")
        self._lock = threading.Lock()
        self._counted: set[str] = set()
        self._total = 0
        self._arrays: Mapping[str, Sequence[str]] = {}

    def check_small(self, paths: Sequence[str]) -> None:
        """Raises `BadReply` if one of these files is not small."""
        for path in paths:
            try:
                self._read(path, _SMALL)
            except TooLarge as error:
                raise BadReply(f"{path} {error}") from error

    def check_whole(self, path: str) -> None:
        """Raises `BadReply` if a file that describes the repository or a snapshot is too large."""
        self._size(path, LARGEST_PARSED)

    def describe(self, snapshot: str | Mapping[str, Any]) -> None:
        """Take over which manifests each array has.

        snapshot : as ``Repository.inspect_snapshot`` describes it. Raises `BadReply`.
        """
        found: Any = snapshot
        if isinstance(snapshot, str):
            text = snapshot.encode()
            if parsed_size(text) > LARGEST_PARSED_REFERENCES:
                raise BadReply("the snapshot has too many arrays")
            found = load_json(text)
        nodes: list[dict[str, Any]] = found["nodes"]
        self._arrays = {
            node["path"].strip("/"): [ref["id"] for ref in node.get("manifest_refs", ())]
            for node in nodes
            if node["node_type"] == "array"
        }

    def needs_manifests(self, path: str) -> bool:
        """Whether the manifests of the array that ``path`` is in are not counted yet."""
        return not self._counted.issuperset(self._manifests(path))

    def count_manifests(self, path: str) -> None:
        """Count the manifests of the array that ``path`` is in. Blocks.

        Raises `BadReply` if all that were counted so far take more than `LARGEST_MANIFESTS` bytes,
        and as `Reader.get` does.
        """
        for name in self._manifests(path):
            with self._lock:
                if name not in self._counted:
                    left = LARGEST_MANIFESTS - self._total
                    self._total += self._size(f"manifests/{name}", left)
                    self._counted.add(name)

    def _read(self, path: str, most: int) -> memoryview | None:
        """All of a file; None if it is missing. Raises `TooLarge` above ``most`` bytes."""
        try:
            return memoryview(self._reader.get(f"{self._root}/{path}", most).data)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _manifests(self, path: str) -> Sequence[str]:
        parts = path.strip("/").split("/")
        for count in range(len(parts), -1, -1):
            if (names := self._arrays.get("/".join(parts[:count]))) is not None:
                return names
        return ()

    def _size(self, path: str, most: int) -> int:
        """The most bytes that a file takes in memory. Raises `BadReply` above ``most``."""
        try:
            data = self._read(path, min(most, LARGEST_REFERENCES))
            if data is None:
                return 0  # icechunk says what is missing
            size = _decoded(data, most)
        except (TooLarge, OutOfBoundsError) as error:
            raise BadReply(f"{path} {error}") from error
        if size > most:
            raise BadReply(f"{path} takes more than the {most} bytes of memory that are allowed")
        return size


def _decoded(data: memoryview, most: int) -> int:
    if len(data) <= _HEADER or data[: len(_MAGIC)] != _MAGIC:
        return len(data)  # icechunk reads no further
    body = data[_HEADER:]
    return len(body) if data[_HEADER - 1] == _PLAIN else most_decoded(body, most)


_FRAME, _SKIPPABLE, _SKIPPABLE_MASK = 0xFD2FB528, 0x184D2A50, 0xFFFFFFF0
_LARGEST_BLOCK = 128 << 10
_DICTIONARY_ID = (0, 1, 2, 4)
_CONTENT_SIZE = (0, 2, 4, 8)
_RLE = 1


def most_decoded(data: memoryview, most: int) -> int:
    """An upper bound of the bytes that a zstd stream decodes to; above ``most`` if it is larger.

    Nothing is decoded (RFC 8878, section 3.1): a block decodes to at most 128 KiB.

    A stream that breaks off counts up to there. Raises `OutOfBoundsError` for anything else than
    frames of this format, because a decoder may know older formats.
    """
    at = total = 0
    while at < len(data) and total <= most:
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic & _SKIPPABLE_MASK == _SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != _FRAME:
            raise OutOfBoundsError("is not compressed with zstd alone")
        described = data[at + 4] if at + 4 < len(data) else 0
        single_segment, checksum = described >> 5 & 1, described >> 2 & 1
        content_size = _CONTENT_SIZE[described >> 6] or single_segment
        at += 5 + (not single_segment) + _DICTIONARY_ID[described & 3] + content_size
        last = False
        while not last and at < len(data) and total <= most:
            block = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            total += _LARGEST_BLOCK
            at += 3 + (1 if kind == _RLE else size)
        at += 4 * checksum
    return total
