"""Decoding with libdeflate.

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
    """Decodes into any memory, and tells where a stream ends.

    The package `deflate` brings the library, but functions of its own that do neither. Raises
    ImportError, OSError or AttributeError where it does not let its library be seen.
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
        """Whether ``data`` are one stream and nothing else, which is decoded and fills ``target``.

        What ``target`` holds is undefined where they are not.
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
            None,  # as many bytes as there is room for
        )
        return not failed and used.value == len(data)


@cache
def libdeflate() -> Libdeflate | None:
    """None where it cannot be called."""
    try:
        return Libdeflate()
    except (ImportError, OSError, AttributeError):
        return None
