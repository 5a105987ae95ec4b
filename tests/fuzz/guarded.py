"""Memory that ends at a page that nobody may touch: one byte too far is a crash."""

import ctypes
import mmap

_PAGE = mmap.PAGESIZE


class Guarded:
    """Room for up to ``largest`` bytes, given out so that their end is the end of all that may
    be touched.
    """

    def __init__(self, largest: int) -> None:
        pages = -(-largest // _PAGE) + 1
        self._map = mmap.mmap(-1, pages * _PAGE)
        self._view = memoryview(self._map)
        self._stop = (pages - 1) * _PAGE
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        library = ctypes.CDLL(None, use_errno=True)
        if library.mprotect(ctypes.c_void_p(address + self._stop), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def room(self, size: int) -> memoryview:
        """Writable memory; None of what was given out before is valid any more."""
        return self._view[self._stop - size : self._stop]

    def holding(self, data: bytes) -> memoryview:
        """A copy of ``data``, read-only."""
        room = self.room(len(data))
        room[:] = data
        return room.toreadonly()
