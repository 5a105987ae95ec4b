"""Writing buffers to a file in few calls, with the GIL released."""

from __future__ import annotations

import os
from collections.abc import Sequence

from zarrfs.store.base import Data

_IOV_MAX = os.sysconf("SC_IOV_MAX")


def write_parts(fd: int, parts: Sequence[Data]) -> None:
    """All bytes of ``parts``, from the file's position on; raises `OSError`."""
    # One write may take less than it is given: 2 GiB at most, or what there is room for.
    left = [view for view in (memoryview(part) for part in parts) if view.nbytes]
    at = 0
    while at < len(left):
        written = os.writev(fd, left[at : at + _IOV_MAX])
        while at < len(left) and written >= left[at].nbytes:
            written -= left[at].nbytes
            at += 1
        if written:
            left[at] = left[at].cast("B")[written:]
