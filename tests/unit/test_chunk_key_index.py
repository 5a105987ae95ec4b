"""From the key of a chunk back to the chunk."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zarrfs.format.chunk_key import DefaultKeys, FanoutKeys, SuffixKeys, V2Keys

ENCODINGS = (
    DefaultKeys("/"),
    DefaultKeys("."),
    V2Keys("."),
    V2Keys("/"),
    SuffixKeys(DefaultKeys(), ".tiff"),
    FanoutKeys(100),
    FanoutKeys(1000),
)
indices = st.lists(st.integers(0, 10**12) | st.integers(0, 3), max_size=4).map(tuple)


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(encoding=st.sampled_from(ENCODINGS), index=indices)
def test_there_and_back(encoding, index):
    assert encoding.index(encoding.key(index), len(index)) == index
    if index:  # the one chunk of an array without axes may be named as one on an axis is
        assert encoding.index(encoding.key(index), len(index) + 1) is None


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(encoding=st.sampled_from(ENCODINGS), key=st.text("c/.0123x\u0661", max_size=8))
def test_only_keys_of_chunks_have_one(encoding, key):
    for rank in range(4):
        found = encoding.index(key, rank)
        assert found is None or encoding.key(found) == key


@pytest.mark.parametrize(
    "key", ["c/01", "c/-1", "c/", "c//1", "c", "C/1", "c/1/2", "c/\u0663", "1", ""]
)
def test_what_is_no_key_of_an_axis(key):
    assert DefaultKeys().index(key, 1) is None
