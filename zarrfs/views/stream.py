"""Reading ahead of whoever scans a flat file."""

from __future__ import annotations

from zarrfs.views.flat import FlatView
from zarrfs.views.slabs import Slabs
from zarrfs.views.view import Answer, Data

# A scan is believed in after this many bytes in a row. The kernel keeps several
# requests in flight, which need not arrive in order.
_BELIEVED = 1 << 20
_DISORDER = 8 << 20


class StreamView:
    """One reader of a flat file: finds out whether it scans, and keeps ahead of it if so.

    Its methods are called by the event loop only.
    """

    def __init__(self, view: FlatView, slabs: Slabs) -> None:
        self._view = view
        self._slabs = slabs
        self._end = 0
        self._run = 0
        self._scans = False
        self._fetched = -1
        self.size = view.size

    def read_now(self, offset: int, size: int) -> Data | None:
        self._watch(offset, size)
        if not self._scans:
            return self._view.read_now(offset, size)
        return self._from_slabs(offset, size)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        if not self._scans:
            self._view.read(offset, size, answer)
            return
        stop = min(offset + size, self.size)
        position = offset

        def proceed() -> None:
            """Called whenever a slab has been made, or has failed, in any thread."""
            nonlocal position
            while position < stop and (slab := self._slabs.ready(position)) is not None:
                position = slab.stop
            if position < stop and self._slabs.fetch(position, proceed):
                return
            data = self._from_slabs(offset, size)
            if data is None:
                # A chunk is bad or memory is short: the chunks asked for, one by one.
                self._view.read(offset, size, answer)
            else:
                answer(data)

        proceed()

    def close(self) -> None:
        self._stop()

    def _watch(self, offset: int, size: int) -> None:
        if self._end - _DISORDER <= offset <= self._end + _DISORDER and self._end:
            self._run += size
            self._end = max(self._end, offset + size)
        else:
            self._run = size
            self._end = offset + size
            self._stop()
        if not self._scans and self._run >= _BELIEVED and self._slabs.possible:
            self._scans = True
            self._slabs.enter()

    def _stop(self) -> None:
        if self._scans:
            self._scans = False
            self._slabs.leave()

    def _from_slabs(self, offset: int, size: int) -> Data | None:
        stop = min(offset + size, self.size)
        parts: list[memoryview] = []
        while offset < stop:
            slab = self._slabs.ready(offset)
            if slab is None or slab.data is None:
                return None
            end = min(stop, slab.stop)
            parts.append(slab.data[offset - slab.start : end - slab.start])
            if slab.stop != self._fetched and slab.stop < self.size:
                self._fetched = slab.stop
                self._slabs.fetch(slab.stop, None)
            offset = end
        return parts[0] if len(parts) == 1 else b"".join(parts)
