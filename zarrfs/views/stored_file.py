"""A stored object as a file, byte for byte, without decoding."""

from __future__ import annotations

from collections.abc import Callable

from zarrfs.errors import ChunkError, EntryNotFound, StoreConflict, StoreError, reason_of
from zarrfs.store.base import ByteRange, Generation, Store
from zarrfs.views.bytes_view import ReadOnlyView
from zarrfs.views.view import Answer, Data


class StoredFileView(ReadOnlyView):
    """The object ``key``. Each read fetches a part of its current state.

    size : in bytes, when it was opened.
    generation : of the only state that is read; None: each read is of the current one.
    run : runs a function in a thread.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        size: int,
        run: Callable[[Callable[[], None]], object],
        generation: Generation | None = None,
    ) -> None:
        self._store = store
        self._key = key
        self._run = run
        self._generation = generation
        self.size = size

    def check(self) -> None:
        """Blocks. Raises EntryNotFound, or StoreError if the object cannot be read."""
        self._part(0, 1)

    def read_now(self, offset: int, size: int) -> Data | None:
        return None

    def read(self, offset: int, size: int, answer: Answer) -> None:
        if self._generation is not None and offset >= self.size:
            answer(b"")
            return

        def fetch() -> None:
            try:
                data = self._part(offset, size)
            except StoreError as error:
                answer(ChunkError(self._key, error.reason))
            except Exception as error:  # noqa: BLE001 - a reader waits for an answer
                answer(ChunkError(self._key, f"failed: {reason_of(error)}"))
            else:
                answer(data)

        self._run(fetch)

    def _part(self, offset: int, size: int) -> Data:
        blobs = self._store.get_ranges(self._key, [ByteRange(offset, size)])
        if blobs is None:
            raise EntryNotFound(self._key)
        if self._generation not in (None, blobs[0].info.generation):
            raise StoreConflict(self._key, "was changed after it was opened")
        return blobs[0].data
