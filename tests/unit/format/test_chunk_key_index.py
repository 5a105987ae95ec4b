"""From the key of a stored object back to the chunk it is."""

from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.format.chunk_layout import parse_chunk_keys

ENCODINGS = [
    *(
        {"name": name, "configuration": {"separator": s}}
        for name in ("default", "v2")
        for s in "/."
    ),
    {"name": "fanout", "configuration": {"max_children": 100}},
    {"name": "suffix", "configuration": {"suffix": ".7.tiff"}},
    {"name": "suffix", "configuration": {"suffix": "1", "base-encoding": "v2"}},
]
indices = st.lists(st.integers(0, 120) | st.integers(0, 10**15), max_size=4).map(tuple)


@examples(200)
@given(encoding=st.sampled_from(ENCODINGS), index=indices)
def test_every_key_leads_back(encoding, index):
    keys = parse_chunk_keys(encoding)
    assert keys.index(keys.key(index), len(index)) == index
    assert keys.index(keys.key(index), len(index) + 1) is None or not index


@examples(200)
@given(
    encoding=st.sampled_from(ENCODINGS),
    key=st.text("c0129./x²-", max_size=12),
    rank=st.integers(0, 3),
)
def test_only_keys_of_chunks_do(encoding, key, rank):
    keys = parse_chunk_keys(encoding)
    index = keys.index(key, rank)
    assert index is None or (len(index) == rank and keys.key(index) == key)
