"""The arithmetic of ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.ranges import Span, merge, resolve
from zarrfs.store.remote.ranges.assemble import Piece, cut
from zarrfs.store.remote.requests import BadReply

SPANS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 60)).map(lambda p: Span(p[0], p[0] + p[1])),
    max_size=20,
)


@given(offset=st.integers(-30, 30), length=st.integers(0, 30), size=st.integers(0, 20))
def test_resolve_agrees_with_slices(offset, length, size):
    data = bytes(range(size))
    span = resolve(ByteRange(offset, length), size)
    start = offset if offset >= 0 else size + offset
    expected = bytes(i for i in range(start, start + length) if 0 <= i < size)
    assert data[span.start : span.stop] == expected
    assert 0 <= span.start <= span.stop <= size


@given(spans=SPANS, max_gap=st.integers(0, 50), max_length=st.integers(1, 200))
def test_merge_covers_every_span_and_wastes_no_more_than_it_may(spans, max_gap, max_length):
    merged = merge(spans, max_gap=max_gap, max_length=max_length)
    longest = max((s.stop - s.start for s in spans), default=0)
    for span in spans:
        if span.stop > span.start:
            assert any(m.start <= span.start and span.stop <= m.stop for m in merged)
    for request in merged:
        assert request.stop - request.start <= max(max_length, longest)
        wanted = {i for s in spans for i in range(s.start, s.stop)}
        gap = 0
        for i in range(request.start, request.stop):
            gap = 0 if i in wanted else gap + 1
            assert gap <= max_gap
    assert merged == sorted(merged, key=lambda s: s.start)


@given(spans=SPANS, max_gap=st.integers(0, 50), data=st.data())
def test_cut_finds_every_range_in_what_was_fetched(spans, max_gap, data):
    content = bytes(i % 251 for i in range(560))
    info = ObjectInfo(len(content), None, ())
    pieces = [
        Piece(s.start, content[s.start : s.stop])
        for s in merge(spans, max_gap=max_gap, max_length=100)
    ]
    if data.draw(st.booleans()):
        pieces.append(Piece(0, content))
    ranges = [ByteRange(s.start, s.stop - s.start) for s in spans]
    for wanted, blob in zip(ranges, cut(pieces, ranges, info), strict=True):
        assert bytes(blob.data) == content[wanted.offset : wanted.offset + wanted.length]


def test_cut_refuses_what_was_not_fetched():
    with pytest.raises(BadReply):
        cut([Piece(5, b"abc")], [ByteRange(4, 2)], ObjectInfo(10, None, ()))
