"""Copies bytes of a file to another one without bringing them into the memory of the process."""

from __future__ import annotations

import os

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.local.beneath import READ
from zarrfs.store.local.local_errors import lacks_kernel_copy
from zarrfs.store.local.local_root import (
    LocalRoot,
    encode,
    object_info,
    pread_exactly,
    same_contents,
)
from zarrfs.store.write_parts import write_parts

# Bytes in memory at once where the kernel does not copy.
_PIECE = 4 << 20


def copy_range(root: LocalRoot, key: str, info: ObjectInfo, span: ByteRange, fd: int) -> bool:
    """See `zarrfs.store.write_parts.CopiesRanges`."""
    source = root.open_object(key, encode(key), READ)
    if source is None:
        return False
    try:
        if object_info(key, os.fstat(source)) != info:
            return False
        whole = _copy(source, span, fd)
        return whole and same_contents(info, os.fstat(source))
    finally:
        os.close(source)


def _copy(source: int, span: ByteRange, target: int) -> bool:
    """Append bytes of one file to another one; False if the file ends earlier."""
    at, stop = span.offset, span.offset + span.length
    try:
        while at < stop:
            if not (copied := os.copy_file_range(source, target, stop - at, at)):
                return False
            at += copied
        return True
    except OSError as error:
        if not lacks_kernel_copy(error):
            raise
    while at < stop:
        data = pread_exactly(source, at, min(_PIECE, stop - at))
        if data is None:
            return False
        at += len(data)
        write_parts(target, [data])
    return True
