"""A file whose content is made anew while programs have it open."""

from __future__ import annotations

from collections.abc import Callable

from zarrfs.views.view import Answer, Data, RemainingWrite, ScatteredView, WritableView


class RefreshedView(ScatteredView):
    """The view that ``make`` returns for the current ``version``. Event loop only.

    No range is a chunk's: code that pushes pages to the kernel must know where the file ends.

    size : of the file; the view may have more bytes.
    """

    def __init__(
        self,
        make: Callable[[], WritableView],
        version: Callable[[], object],
        size: Callable[[], int],
    ) -> None:
        self._make = make
        self._version = version
        self._size = size
        self._made_of = version()
        self._view = make()

    @property
    def size(self) -> int:
        return self._size()

    def read_now(self, offset: int, size: int) -> Data | None:
        return self._current().read_now(offset, self._cut(offset, size))

    def read(self, offset: int, size: int, answer: Answer) -> None:
        self._current().read(offset, self._cut(offset, size), answer)

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        return self._current().write(offset, data)

    def close(self) -> None:
        self._view.close()

    def _current(self) -> WritableView:
        if self._made_of != (now := self._version()):
            self._view.close()
            self._made_of = now
            self._view = self._make()
        return self._view
