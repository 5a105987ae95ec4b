"""Counts how often each stored object is replaced, whoever does it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path
from types import TracebackType

_IN_MOVED_TO = 0x80
_IN_NONBLOCK = os.O_NONBLOCK
_EVENT = struct.Struct("iIII")


class Puts:
    """While it is entered, files that are renamed into the directories below ``root``.

    Directories that are made later are not watched: begin with a store that is full.
    """

    def __init__(self, root: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._root = root

    def __enter__(self) -> Puts:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.inotify_init1(_IN_NONBLOCK)
        assert self._file >= 0
        self._watched = {}
        for path in (self._root, *(p for p in self._root.rglob("*") if p.is_dir())):
            watch = libc.inotify_add_watch(self._file, os.fsencode(path), _IN_MOVED_TO)
            assert watch >= 0
            self._watched[watch] = path.relative_to(self._root)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            while events := os.read(self._file, 1 << 20):
                self._count(events)
        except BlockingIOError:
            pass
        finally:
            os.close(self._file)

    def _count(self, events: bytes) -> None:
        at = 0
        while at < len(events):
            watch, _, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            name = os.fsdecode(events[at : at + length].rstrip(b"\0"))
            at += length
            self.counts[str(self._watched[watch] / name)] += 1
