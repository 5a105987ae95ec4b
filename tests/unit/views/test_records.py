"""Elements in records, against the same bytes in memory."""

from itertools import pairwise

import pytest

from tests.unit.views.test_framed import BODY, Memory, read
from zarrfs.errors import NotPermitted
from zarrfs.views.records import Records, RecordsView

RECORDS = Records(b"mark", 8, len(BODY) // 8)
WHOLE = b"".join(b"mark" + BODY[i : i + 8] for i in range(0, len(BODY), 8))
RANGES = [(a, b) for a in range(len(WHOLE) + 3) for b in range(a, len(WHOLE) + 5)]


@pytest.mark.parametrize("at_once", [True, False])
def test_every_range(at_once):
    view = RecordsView(Memory(at_once=at_once), RECORDS)
    assert view.size == len(WHOLE)
    for start, stop in RANGES:
        assert read(view, start, stop - start) == WHOLE[start:stop], (start, stop)


def test_every_write():
    """All bytes of elements are new, and those of marks are the same."""
    new = bytes(byte ^ 0xFF for byte in BODY)
    new_whole = b"".join(b"mark" + new[i : i + 8] for i in range(0, len(new), 8))
    inside = {(start, min(stop, len(WHOLE))) for start, stop in RANGES}
    for start, stop in inside:
        if start >= stop:
            continue
        memory = Memory(at_once=True)
        view = RecordsView(memory, RECORDS)
        assert view.write(start, new_whole[start:stop]) is None
        expected = WHOLE[:start] + new_whole[start:stop] + WHOLE[stop:]
        assert read(view, 0, len(WHOLE)) == expected, (start, stop)


def test_a_mark_cannot_be_changed():
    memory = Memory(at_once=True)
    view = RecordsView(memory, RECORDS)
    for at in range(12, 16):
        with pytest.raises(NotPermitted):
            view.write(at - 2, b"\x01\x02?\x04")
    assert memory.data == BODY


def test_what_is_woven_is_the_file():
    for cuts in ([0, 40], [0, 3, 8, 17, 24, 40], list(range(41))):
        out = bytearray(len(WHOLE))
        end = 0
        for first, last in pairwise(cuts):
            for offset, piece in RECORDS.woven(first, memoryview(BODY)[first:last]):
                assert offset == end
                out[offset : offset + len(piece)] = piece
                end = offset + len(piece)
        assert out == WHOLE
