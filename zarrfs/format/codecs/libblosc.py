"""Decodes with the C library of Blosc.

https://github.com/Blosc/c-blosc/blob/main/blosc/blosc.h
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache

from zarrfs.foreign import BLOSC_LIBRARY


class Libblosc:
    """Decodes into any memory.

    numcodecs contains the library. Its own function takes 3 to 4 µs for each call, and does not say
    how many bytes were decoded. Raises ImportError, OSError or AttributeError if the package does
    not export its library.
    """

    def __init__(self) -> None:
        module = importlib.import_module(BLOSC_LIBRARY.module)
        self._decompress = ctypes.CDLL(module.__file__).blosc_decompress_ctx
        pointer = ctypes.c_void_p
        self._decompress.restype = ctypes.c_int
        self._decompress.argtypes = (pointer, pointer, ctypes.c_size_t, ctypes.c_int)

    def fills(self, source: bytes | int, target: int, size: int) -> bool:
        """Whether a container decodes to exactly ``size`` bytes, which are then at ``target``.

        The content of the target is undefined otherwise. The library trusts the sizes in the header
        of the container. So the caller compares them first with the bytes that there are, and with
        the room at ``target``.

        source : the container, or its address.
        target : an address.
        """
        decoded: int = self._decompress(source, target, size, 1)
        return decoded == size


@cache
def libblosc() -> Libblosc | None:
    """The library; None if it cannot be called."""
    try:
        return Libblosc()
    except (ImportError, OSError, AttributeError):
        return None
