"""The file that holds an archive, guarded while its table of contents is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zarrfs import bounds


class WatchedFile:
    """A binary file with limits on each read.

    largest : most bytes of one read; None: any number.
    furthest : offset beyond which no seek and no read may go; None: no limit.
    look : called with the bytes of each read.

    Raises OutOfBoundsError before anything is read.
    """

    def __init__(
        self,
        file: Any,
        *,
        largest: int | None = None,
        furthest: int | None = None,
        look: Callable[[bytes], None] | None = None,
    ) -> None:
        self._file = file
        self._largest, self._furthest, self._look = largest, furthest, look

    def read(self, size: int = -1) -> bytes:
        self._check(self._file.tell() + max(size, 0))
        most = self._largest
        if most is not None and size > most:
            raise bounds.OutOfBoundsError(
                f"its table of contents needs {size} bytes at once, at most {most} are allowed"
            )
        data: bytes = self._file.read(size if most is None or size >= 0 else most + 1)
        if most is not None and len(data) > most:
            raise bounds.OutOfBoundsError(f"its table of contents has more than {most} bytes")
        if self._look is not None:
            self._look(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0:
            self._check(offset)
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        pass  # its owner closes it

    def _check(self, offset: int) -> None:
        if self._furthest is not None and offset > self._furthest:
            raise bounds.OutOfBoundsError(
                f"decompresses to more than {self._furthest} bytes; unpack it"
            )
