"""Files of a header, elements and a trailer, against the same bytes in memory."""

import pytest

from zarrfs.errors import NotPermitted
from zarrfs.views.framed import FlippedView, FramedView
from zarrfs.views.view import Answer, Data, RemainingWrite

HEADER, TRAILER = b"head-of-11!", b"end"
BODY = bytes(range(100, 140))


class Memory:
    """A body; ``at_once`` says whether its bytes are at hand."""

    def __init__(self, *, at_once: bool) -> None:
        self.data = bytearray(BODY)
        self.at_once = at_once
        self.size = len(BODY)

    def read_now(self, offset: int, size: int) -> Data | None:
        return bytes(self.data[offset : offset + size]) if self.at_once else None

    def read(self, offset: int, size: int, answer: Answer) -> None:
        answer(bytes(self.data[offset : offset + size]))

    def write(self, offset: int, data: Data) -> RemainingWrite | None:
        self.data[offset : offset + len(data)] = data

    def chunk_range_at(self, offset: int) -> tuple[int, int] | None:
        return 8 * (offset // 8), 8 * (offset // 8) + 8

    def peek(self, start: int, stop: int) -> Data | None:
        return bytes(self.data[start:stop])

    def close(self) -> None:
        pass


def read(view, offset: int, size: int) -> bytes:
    if (data := view.read_now(offset, size)) is None:
        answers: list[bytes] = []
        view.read(offset, size, answers.append)
        (data,) = answers
    return bytes(data)


@pytest.mark.parametrize("at_once", [True, False])
def test_every_range(at_once):
    view = FramedView(HEADER, Memory(at_once=at_once), TRAILER)
    whole = HEADER + BODY + TRAILER
    assert view.size == len(whole)
    for start in range(len(whole) + 3):
        for size in range(len(whole) + 5):
            assert read(view, start, size) == whole[start : start + size], (start, size)


def test_every_write():
    for start in range(len(HEADER + BODY + TRAILER)):
        for size in range(1, len(HEADER + BODY + TRAILER) - start + 1):
            body = Memory(at_once=True)
            view = FramedView(HEADER, body, TRAILER)
            before = HEADER + BODY + TRAILER
            view.write(start, before[start : start + size])
            assert bytes(body.data) == BODY
            other = bytes(b ^ 255 for b in before[start : start + size])
            inside = len(HEADER) <= start and start + size <= len(HEADER + BODY)
            if inside:
                view.write(start, other)
                assert read(view, start, size) == other
                continue
            with pytest.raises(NotPermitted):
                view.write(start, other)
            assert bytes(body.data) == BODY


def test_marks_may_be_written_and_are_ignored():
    view = FramedView(HEADER, Memory(at_once=True), TRAILER, range(4, 6))
    marked = HEADER[:4] + b"XY" + HEADER[6:]
    view.write(0, marked)
    view.write(5, b"Z")
    assert read(view, 0, 11) == HEADER
    with pytest.raises(NotPermitted):
        view.write(3, b"XYZ")


def test_what_lies_together_is_behind_the_header():
    view = FramedView(HEADER, Memory(at_once=True), TRAILER)
    assert view.chunk_range_at(3) is None
    assert view.chunk_range_at(len(HEADER) + 9) == (len(HEADER) + 8, len(HEADER) + 16)
    assert view.peek(len(HEADER) + 8, len(HEADER) + 16) == BODY[8:16]
    assert view.peek(3, 20) is None
    assert view.chunk_range_at(view.size - 1) is None


@pytest.mark.parametrize("place", [0, 3])
def test_the_first_bit_of_each_element(place):
    body = Memory(at_once=True)
    view = FlippedView(body, 4, place)
    whole = bytes(b ^ (0x80 if i % 4 == place else 0) for i, b in enumerate(BODY))
    for start in range(len(BODY)):
        for size in range(len(BODY) - start):
            assert read(view, start, size) == whole[start : start + size]
    view.write(5, whole[5:20])
    assert bytes(body.data) == BODY
