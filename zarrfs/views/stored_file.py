"""A stored object as a file, byte for byte, without decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zarrfs.errors import ChunkError, EntryNotFound, StoreConflict, StoreError, reason_of
from zarrfs.store.base import ByteRange, Generation, Store
from zarrfs.views.bytes_view import ReadOnlyView
from zarrfs.views.view import Answer, Data


@dataclass(eq=False, repr=False)
class StoredFileView(ReadOnlyView):
    """The object ``key``. Each read fetches a part of its current state.

    size : in bytes, when it was opened.
    generation : of the only state that is read; None: each read is of the current one.
    run : runs a function in a thread.
    """

    store: Store
    key: str
    size: int
    run: Callable[[Callable[[], None]], object]
    generation: Generation | None = None

    def check(self) -> None:
        """Blocks. Raises EntryNotFound, or StoreError if the object cannot be read."""
        self._part(0, 1)

    def read_now(self, offset: int, size: int) -> Data | None:
        return None

    def read(self, offset: int, size: int, answer: Answer) -> None:
        if self.generation is not None and offset >= self.size:
            answer(b"")
            return

        def fetch() -> None:
            try:
                data = self._part(offset, size)
            except StoreError as error:
                answer(ChunkError(self.key, error.reason))
            except Exception as error:  # noqa: BLE001 - a reader waits for an answer
                answer(ChunkError(self.key, f"failed: {reason_of(error)}"))
            else:
                answer(data)

        self.run(fetch)

    def _part(self, offset: int, size: int) -> Data:
        blobs = self.store.get_ranges(self.key, [ByteRange(offset, size)])
        if blobs is None:
            raise EntryNotFound(self.key)
        if self.generation not in (None, blobs[0].info.generation):
            raise StoreConflict(self.key, "was changed after it was opened")
        return blobs[0].data
