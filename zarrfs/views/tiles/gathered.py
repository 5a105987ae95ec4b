"""A file of a header and of the bytes of other files, each at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from zarrfs.cache.read.flights import Ticket
from zarrfs.errors import ChunkError, NotPermitted
from zarrfs.views.bits import BitsView, Masked, ZeroedView
from zarrfs.views.tiles.computed import Computed
from zarrfs.views.view import Answer, Data, RemainingWrite, ScatteredView, WritableView

# Bytes of bits that are made at once, of up to 64 times as many bytes of elements.
_BITS = 64 << 10


class Piece(NamedTuple):
    """Bytes ``first`` to ``stop`` (exclusive) of ``view``, which lie at ``at`` in the file."""

    view: WritableView
    first: int
    stop: int
    at: int


class Section(Protocol):
    """A range of a file with elements of one array."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...

    def pieces(self, offset: int, stop: int) -> Iterator[Piece]:
        """The files behind the bytes from ``offset`` to ``stop`` of the file, in order."""
        ...

    def was_read(self, offset: int, stop: int, *, kept: bool) -> None:
        """The reader has asked for these bytes; called once for each request.

        kept : whether they stay with the reader, or with the kernel.
        """
        ...

    def close(self) -> None:
        """The reader has closed the file."""
        ...


class WholeFile:
    """A section that is another file.

    most : bytes that are read of it at once.
    """

    def __init__(self, start: int, view: WritableView, most: int = 1 << 62) -> None:
        self.start = start
        self.stop = start + view.size
        self.view = view
        self._most = most

    @classmethod
    def at(cls, place: Masked | int, view: WritableView) -> WholeFile:
        """The elements of ``view`` where a file has them, or what it has of them."""
        if isinstance(place, int):
            return cls(place, view)
        if place.zeroed:
            return cls(place.start, ZeroedView(view, place.other))
        return cls(place.start, BitsView(view, place.other), _BITS)

    def pieces(self, offset: int, stop: int) -> Iterator[Piece]:
        for low in range(offset, stop, self._most):
            high = min(stop, low + self._most)
            yield Piece(self.view, low - self.start, high - self.start, low)

    def was_read(self, offset: int, stop: int, *, kept: bool) -> None:
        pass

    def close(self) -> None:
        self.view.close()


@dataclass(eq=False, repr=False)
class SectionedView(ScatteredView):
    """
    sections : in order; they do not overlap. The bytes around them are those of ``header``.
    writable : whether elements may be changed. The header's bytes follow from metadata; a program
        may write the same ones again.
    marks : bytes of the header that programs change while they have the file open. Writes to them
        are ignored.
    """

    header: Computed
    sections: Sequence[Section]
    size: int
    writable: bool = field(default=False, kw_only=True)
    marks: range = field(default=range(0), kw_only=True)

    def read_now(self, offset: int, size: int) -> Data | None:
        size = self._cut(offset, size)
        pieces = self._pieces(offset, size)
        if len(pieces) == 1 and pieces[0].stop - pieces[0].first == size:
            return pieces[0].view.read_now(pieces[0].first, size)
        found = []
        for piece in pieces:
            if (data := piece.view.read_now(piece.first, piece.stop - piece.first)) is None:
                return None
            found.append(data)
        out = self.header.read(offset, size)
        for piece, data in zip(pieces, found, strict=True):
            out[piece.at - offset : piece.at - offset + len(data)] = data
        return memoryview(out)

    def read(self, offset: int, size: int, answer: Answer) -> None:
        size = self._cut(offset, size)
        pieces = self._pieces(offset, size)
        if len(pieces) == 1 and pieces[0].stop - pieces[0].first == size:
            pieces[0].view.read(pieces[0].first, size, answer)
            return
        out = self.header.read(offset, size)
        ticket = Ticket(
            len(pieces) + 1, lambda error: answer(memoryview(out) if error is None else error)
        )

        def put(at: int, data: Data | ChunkError) -> None:
            if isinstance(data, ChunkError):
                ticket.finish(error=data)
            else:
                out[at : at + len(data)] = data
                ticket.finish()

        for piece in pieces:
            piece.view.read(piece.first, piece.stop - piece.first, partial(put, piece.at - offset))
        ticket.finish()

    def section_at(self, offset: int) -> tuple[int | None, int]:
        """The number of the section that has a byte, None for the header, and where that ends."""
        for number, section in enumerate(self.sections):
            if offset < section.start:
                return None, section.start
            if offset < section.stop:
                return number, section.stop
        return None, self.size

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        data = memoryview(data)
        if not self.writable:
            raise NotPermitted(f"{len(data)} bytes at {offset}: this file cannot be changed")
        here, stop = offset, offset + len(data)
        while here < stop:
            number, end = self.section_at(here)
            there = data[here - offset : min(end, stop) - offset]
            if number is None and not self.header.agrees(here, there, self.marks):
                raise NotPermitted("the header follows from metadata")
            here += len(there)
        rests = []
        for piece in self._pieces(offset, len(data)):
            at = piece.at - offset
            part = data[at : at + piece.stop - piece.first]
            if (rest := piece.view.write(piece.first, part)) is not None:
                rests.append(rest)
        return partial(_all, rests) if rests else None

    def close(self) -> None:
        for section in self.sections:
            section.close()

    def _pieces(self, offset: int, size: int) -> list[Piece]:
        found: list[Piece] = []
        for section, low, high in self._touched(offset, size):
            found += section.pieces(low, high)
        return found

    def _touched(self, offset: int, size: int) -> Iterator[tuple[Section, int, int]]:
        for section in self.sections:
            low, high = max(offset, section.start), min(offset + size, section.stop)
            if low < high:
                yield section, low, high


@dataclass(eq=False, repr=False)
class GatheredView(SectionedView):
    """A file of several arrays, or of boxes: no page of it is also one of another file.

    kept : whether what was read stays with the reader, or with the kernel; may be set.
    owner : of the files; it lives as long as this view.
    """

    kept: bool = field(kw_only=True)
    owner: object = None

    def read_now(self, offset: int, size: int) -> Data | None:
        if (data := super().read_now(offset, size)) is not None:
            self._was_read(offset, size)
        return data

    def read(self, offset: int, size: int, answer: Answer) -> None:
        super().read(offset, size, answer)
        # After the boxes that the reader waits for.
        self._was_read(offset, size)

    def _was_read(self, offset: int, size: int) -> None:
        for section, low, high in self._touched(offset, size):
            section.was_read(low, high, kept=self.kept)


def _all(rests: Sequence[RemainingWrite]) -> None:
    for rest in rests:
        rest()
