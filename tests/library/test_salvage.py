"""Whatever happens to a shard, what is saved of it is what was there."""

import gzip

import numpy as np
import pytest

from tests.fs.documents import CRC32C, GZIP, LITTLE, array_document, sharding
from tests.fs.shards import index_bytes, shard, with_checksum
from zarrfs.array.shards.shard_salvage import salvage_shard
from zarrfs.errors import DecodeError
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.v3 import parse_node

SIDE = 16
CHUNKS = 6
NUMBERS = np.random.default_rng(1).integers(0, 50, CHUNKS * SIDE).astype("<i2")
CODECS = {
    "crc32c": ([LITTLE, CRC32C], with_checksum),
    "gzip": ([LITTLE, GZIP], lambda data: gzip.compress(data, 6, mtime=0)),
    "raw": ([LITTLE], lambda data: data),
}


def layout_of(location, codecs, **members):
    sharded = sharding((SIDE,), codecs=codecs, index_location=location, **members)
    document = array_document((CHUNKS * SIDE,), (CHUNKS * SIDE,), codecs=[sharded])
    node = parse_node(load_json(document, "zarr.json"))
    assert isinstance(node, ArrayMetadata)
    return node.layout


class Case:
    def __init__(self, location, name, missing=2):
        codecs, encode = CODECS[name]
        self.location = location
        self.layout = layout_of(location, codecs)
        parts = [encode(NUMBERS[i * SIDE : (i + 1) * SIDE].tobytes()) for i in range(CHUNKS)]
        # One that is not stored, which must stay so.
        parts[missing] = None
        self.missing = missing
        self.whole = shard(parts, location)
        self.index = self.layout.levels[0].index_codec((CHUNKS * SIDE,))
        self.inner = self.layout.chunk_codec((SIDE,))

    def salvage(self, data):
        """Which inner chunks were saved, each of which must be what it was."""
        saved = salvage_shard(memoryview(bytes(data)), self.layout, (CHUNKS * SIDE,))
        if saved.parts is None:
            assert saved.kept == 0
            return set()
        new = b"".join(saved.parts)
        start = 0 if self.location == "start" else len(new) - self.index.size
        entries = self.index.decode(new[start : start + self.index.size], len(new))
        kept = set()
        for i in range(CHUNKS):
            where = entries.locate((i,), 1 << 20)
            if where is not None:
                chunk = self.inner.decode(new[where[0] : sum(where)])
                assert chunk.tobytes() == NUMBERS[i * SIDE : (i + 1) * SIDE].tobytes(), i
                kept.add(i)
        assert len(kept) == saved.kept
        assert self.missing not in kept
        assert not kept & {place[0] for place in saved.lost}
        return kept


STORED = {0, 1, 3, 4, 5}


@pytest.fixture(params=["end", "start"])
def location(request):
    return request.param


@pytest.mark.parametrize("name", ["crc32c", "gzip"])
class TestAnyDamage:
    def test_a_flipped_bit(self, location, name):
        case = Case(location, name)
        for position in range(len(case.whole)):
            bad = bytearray(case.whole)
            bad[position] ^= 1 << position % 8
            kept = case.salvage(bad)
            if location == "start":
                # In the index it costs an entry, one that it now overlaps, and those beside them.
                assert len(kept) >= (1 if position < case.index.size else 4)
        assert case.salvage(case.whole) == STORED

    def test_a_damaged_checksum_of_the_index_costs_nothing(self, location, name):
        case = Case(location, name)
        bad = bytearray(case.whole)
        bad[-1 if location == "end" else case.index.size - 1] ^= 1
        assert case.salvage(bad) == STORED

    @pytest.mark.parametrize("missing", [0, 2])
    def test_cut_short_anywhere(self, location, name, missing):
        case = Case(location, name, missing)
        counts = [len(case.salvage(case.whole[:length])) for length in range(len(case.whole))]
        if location == "start":
            # As many as are still there.
            assert counts[-1] == len(STORED) - 1
            assert counts == sorted(counts)
        else:
            # Without its checksum, and then without its last entries.
            assert counts[-4:] == [len(STORED)] * 4
            assert counts[0] == 0

    def test_followed_by_something_or_missing_its_beginning(self, location, name):
        case = Case(location, name)
        for junk in (b"\0", b"\xff" * 16, b"junk" * 50):
            kept = case.salvage(case.whole + junk)
            assert kept == (STORED if location == "start" else kept)
            case.salvage(case.whole[len(junk) :])

    def test_bytes_that_were_overwritten(self, location, name):
        case = Case(location, name)
        random = np.random.default_rng(3)
        for _ in range(1000):
            bad = bytearray(case.whole)
            first, last = sorted(random.integers(0, len(bad) + 1, 2).tolist())
            with_what = (bytes(last - first), random.bytes(last - first), b"\xff" * (last - first))
            bad[first:last] = with_what[random.integers(3)]
            assert len(bad) == len(case.whole)
            case.salvage(bad)

    def test_entries_that_claim_the_same_bytes_are_not_believed(self, location, name):
        case = Case(location, name)
        entries = [
            tuple(
                int(n)
                for n in case.index.decode(
                    case.whole[-case.index.size :]
                    if location == "end"
                    else case.whole[: case.index.size],
                    len(case.whole),
                )._entries[i]
            )
            for i in range(CHUNKS)
        ]
        entries[0] = entries[1]
        index = bytearray(index_bytes(entries))
        index[-1] ^= 1
        body = (
            case.whole[: -case.index.size] if location == "end" else case.whole[case.index.size :]
        )
        bad = body + bytes(index) if location == "end" else bytes(index) + body
        assert case.salvage(bad) == STORED - {0, 1}


def test_inner_chunks_that_anything_decodes_to_need_a_good_index(location):
    case = Case(location, "raw")
    bad = bytearray(case.whole)
    bad[-1 if location == "end" else case.index.size - 1] ^= 1
    assert case.salvage(bad) == set()
    cut = case.salvage(case.whole[:-1])
    assert cut == ({0, 1, 3, 4} if location == "start" else set())


def test_a_compressed_index_tells_nothing_when_it_is_bad():
    layout = layout_of("end", [LITTLE, CRC32C], index_codecs=[LITTLE, CRC32C, CRC32C])
    assert salvage_shard(memoryview(b"abc" * 90), layout, (CHUNKS * SIDE,)).parts is None


def test_shards_within_shards_are_not_taken_apart():
    layout = layout_of("end", [sharding((SIDE // 2,))])
    with pytest.raises(DecodeError, match="within"):
        salvage_shard(memoryview(b""), layout, (CHUNKS * SIDE,))
