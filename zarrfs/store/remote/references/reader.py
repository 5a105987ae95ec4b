"""Reads the objects that a document of references describes: parts of objects, and inlined bytes.

https://fsspec.github.io/kerchunk/spec.html

fsspec keeps inlined bytes in the encoded form of the document, and reports the length of that form
as their size. This reader returns the decoded bytes and their size.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from fsspec.implementations.reference import ReferenceNotReachable

from zarrfs import bounds
from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.ranges.assemble import Piece, cut
from zarrfs.store.remote.references.parquet import ParquetReferences
from zarrfs.store.remote.requests import BadReply, BrokenReply, RequestConfig, TooLarge

_T = TypeVar("_T")

_BASE64 = b"base64:"
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class ReferenceReader:
    """A `Reader` on fsspec's file system of references."""

    def __init__(self, filesystem: Any, config: RequestConfig) -> None:
        self._filesystem = filesystem
        self._plain = PlainReader(filesystem, config)

    def info(self, path: str) -> ObjectInfo:
        return self._read(path, _info, self._plain.info)

    def get(self, path: str, limit: int) -> Blob:
        def whole(data: bytes) -> Blob:
            if len(data) > limit:
                raise TooLarge(len(data), limit)
            return Blob(data, _info(data))

        return self._read(path, whole, lambda path: self._plain.get(path, limit))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        def parts(data: bytes) -> list[Blob]:
            return cut([Piece(0, data)], ranges, _info(data))

        return self._read(path, parts, lambda path: self._plain.get_ranges(path, ranges))

    def list_dir(self, path: str) -> Iterator[str]:
        references = self._filesystem.references
        if isinstance(references, ParquetReferences):
            return references.names(path.strip("/"))
        return self._plain.list_dir(path)

    def close(self) -> None:
        self._plain.close()

    def _read(
        self, path: str, of_inlined: Callable[[bytes], _T], of_object: Callable[[str], _T]
    ) -> _T:
        if (data := self._inlined(path)) is not None:
            return of_inlined(data)
        try:
            return of_object(path)
        except Exception as error:
            raise self._reason(path, error) from error

    def _inlined(self, path: str) -> bytes | None:
        """The bytes that the document itself holds for ``path``; None if it names an object.

        Raises FileNotFoundError if the document has no entry.
        """
        try:
            found = self._filesystem.references[path]
        except KeyError:
            raise FileNotFoundError(path) from None
        if isinstance(found, str):
            found = found.encode()
        if not isinstance(found, bytes | bytearray):
            # Anything else is no chunk that was never written, which would read as fill values.
            if not self._is_place(found):
                raise BadReply(bounds.shown(f"the references have no place for it: {found!r}"))
            return None
        data = bytes(found)
        if not data.startswith(_BASE64):
            return data
        try:
            return base64.b64decode(data[len(_BASE64) :], validate=True)
        except binascii.Error as error:
            raise BadReply(f"the references have no base64 for it: {error}") from error

    def _is_place(self, found: Any) -> bool:
        """Whether it is a URL, or a URL with offset and length in bytes."""
        if not isinstance(found, list | tuple) or len(found) not in (1, 3):
            return False
        url, *numbers = found
        return isinstance(url or self._filesystem.target, str) and all(
            type(number) is int and number >= 0 for number in numbers
        )

    def _reason(self, path: str, error: Exception) -> Exception:
        """The failure of the object that a reference names, in place of fsspec's own error."""
        cause = error.__cause__ if isinstance(error, ReferenceNotReachable) else error
        if not isinstance(cause, Exception):
            return error
        if isinstance(cause, BrokenReply):
            return BadReply(f"refers to bytes beyond the end of its target: {cause}")
        if not isinstance(cause, _MISSING):
            return cause
        # Not as a chunk that was never written, which would read as fill values.
        target = self._filesystem.references.get(path)
        return BadReply(f"refers to {target[0] if target else path}, which does not exist")


def _info(data: bytes) -> ObjectInfo:
    # The document is read once, so all its bytes have the same state.
    return ObjectInfo(len(data), None, (len(data),))
