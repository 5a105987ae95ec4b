"""Decodes with libdeflate.

https://github.com/ebiggers/libdeflate/blob/master/libdeflate.h
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Literal

from zarrfs.foreign import DEFLATE_LIBRARY
from zarrfs.format.codec import Buffer
from zarrfs.format.codecs.native import Contexts, address_of, source_of


class Libdeflate:
    """Decodes into any memory, and finds where a stream ends.

    The package `deflate` contains the library, but its own functions do neither. Raises
    ImportError, OSError or AttributeError if the package does not export its library.
    """

    def __init__(self) -> None:
        module = importlib.import_module(DEFLATE_LIBRARY.module)
        library = ctypes.CDLL(module.__file__)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        create, free = library.libdeflate_alloc_decompressor, library.libdeflate_free_decompressor
        create.restype, create.argtypes = pointer, ()
        free.restype, free.argtypes = None, (pointer,)
        self._contexts = Contexts(create, free)
        self._functions = {
            "gzip": library.libdeflate_gzip_decompress_ex,
            "zlib": library.libdeflate_zlib_decompress_ex,
        }
        for function in self._functions.values():
            function.restype = ctypes.c_int
            function.argtypes = (pointer, pointer, size, pointer, size, pointer, pointer)

    def fills(self, form: Literal["gzip", "zlib"], data: Buffer, target: memoryview) -> bool:
        """Whether ``data`` are exactly one stream whose decoded bytes fill ``target``.

        If so, ``target`` holds the decoded bytes; otherwise its content is undefined.
        """
        if not len(data) or not len(target):
            return False
        used = ctypes.c_size_t()
        failed = self._functions[form](
            self._contexts.own(),
            source_of(data),
            len(data),
            address_of(target),
            len(target),
            ctypes.byref(used),
            None,  # as many bytes as fit
        )
        return not failed and used.value == len(data)


@cache
def libdeflate() -> Libdeflate | None:
    """The library; None if it cannot be called."""
    try:
        return Libdeflate()
    except (ImportError, OSError, AttributeError):
        return None
