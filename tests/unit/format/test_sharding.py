"""``sharding_indexed``: the rows of the table "Sharding" that need no store."""

import json

import numpy as np
import pytest

from tests.fs.documents import array_document, sharding
from zarrfs.errors import DecodeError, MetadataError
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.registry import find_codec

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
MISSING = 2**64 - 1


def sharded(parse, location="end", index_codecs=(LITTLE,), before=(), after=(), **members):
    """A 4 x 4 array of int16 with one shard of four inner chunks of 2 x 2."""
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [2, 2],
            "codecs": [LITTLE],
            "index_codecs": list(index_codecs),
            "index_location": location,
        },
    }
    return parse(
        **{
            "shape": [4, 4],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
            "codecs": [*before, sharding, *after],
            "fill_value": 9,
            **members,
        }
    )


def whole_shard(array):
    """The codec that decodes a shard whole, as where it cannot be looked into."""
    level = array.layout.levels[0]
    return level.sharding.bind(array.layout.spec((4, 4)))


INNER = [np.full((2, 2), i, "<i2").tobytes() for i in range(4)]


BODY = b"".join(INNER)


def shard(entries, body=BODY):
    return body + np.array(entries, "<u8").tobytes()


def tiles(chunk):
    return [int(chunk[y, x]) for y in (0, 2) for x in (0, 2)]


class TestIndex:
    @pytest.mark.parametrize("codecs", [[LITTLE], [BIG], [LITTLE, CRC]], ids=str)
    def test_it_keeps_nothing_of_the_shard(self, parse, codecs):
        """It stays in memory for long, and a shard that was read whole should not."""
        codec = sharded(parse, index_codecs=codecs).layout.levels[0].index_codec((4, 4))
        encoded = codec.codec.encode(np.full((2, 2, 2), MISSING, "<u8"))
        whole = bytearray(b"chunks") + encoded
        index = codec.decode(memoryview(whole)[6:], len(whole))
        whole.clear()  # an error if anything refers to it
        assert index.locate((1, 0), 9) is None

    def test_at_the_start(self, parse):
        array = sharded(parse, "start")
        entries = np.array([(64, 8), (72, 8), (80, 8), (88, 8)], "<u8").tobytes()
        assert tiles(whole_shard(array).decode(entries + b"".join(INNER))) == [0, 1, 2, 3]

    @pytest.mark.parametrize("entry", [
        (MISSING, 8), (0, MISSING), (0, 0), (MISSING - 1, 8), (8, MISSING - 1), (2**63, 2**63),
        (96, 8), (89, 8), (0, 9), (0, 7),
    ])  # fmt: skip
    def test_an_entry_that_cannot_be(self, parse, entry):
        data = shard([entry, (8, 8), (16, 8), (24, 8)], b"".join(INNER))
        with pytest.raises(DecodeError):
            whole_shard(sharded(parse)).decode(data)

    @pytest.mark.parametrize("codec", [
        {"name": "gzip", "configuration": {"level": 1}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
    ])  # fmt: skip
    def test_a_compressing_index_is_refused(self, parse, codec):
        with pytest.raises(MetadataError, match="size"):
            sharded(parse, index_codecs=(LITTLE, codec))


class TestWriting:
    def test_an_inner_chunk_of_fill_values_is_missing(self, parse):
        array = sharded(parse)
        chunk = np.full((4, 4), 9, "<i2")
        chunk[0, 0] = 1
        data = bytes(whole_shard(array).encode(chunk))
        assert len(data) == 8 + 64
        assert np.frombuffer(data[-64:], "<u8").tolist() == [0, 8] + [MISSING] * 6

    @pytest.mark.parametrize(("fill", "value"), [("NaN", "0x7f800001"), (0.0, -0.0)])
    def test_fill_equality_is_bitwise(self, parse, fill, value):
        array = sharded(parse, data_type="float32", fill_value=fill)
        element = array.layout.data_type.element(array.layout.data_type.fill_bytes(value))
        chunk = np.empty((4, 4), "<f4")
        chunk[...] = element
        data = bytes(whole_shard(array).encode(chunk))
        assert len(data) == 4 * 16 + 64
        assert whole_shard(array).decode(data).tobytes() == chunk.tobytes()


class TestLayout:
    def test_inner_chunks_that_do_not_divide_the_shard(self, parse):
        with pytest.raises(MetadataError, match="divide"):
            sharded(parse, chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 3]}})

    def test_codecs_behind_the_shard(self, parse):
        array = sharded(parse, after=(CRC,))
        assert len(array.layout.levels[0].around) == 1
        ((bound, _, _),) = array.layout.wrappings((4, 4))
        assert bytes(bound[0].decode(bound[0].encode(b"abc"), None)) == b"abc"

    def test_a_transpose_before_the_shard(self, parse):
        """The inner chunk shape is in transposed space."""
        sharding = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1, 3, 2], "codecs": [LITTLE], "index_codecs": [LITTLE],
            },
        }  # fmt: skip
        array = parse(
            shape=[4, 2, 3],
            chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 2, 3]}},
            codecs=[{"name": "transpose", "configuration": {"order": [1, 2, 0]}}, sharding],
        )
        assert array.layout.read.regular_shape == (2, 1, 3)
        assert array.layout.levels[0].axis_order == (1, 2, 0)
        assert array.layout.levels[0].entry((1, 0, 0)) == (0, 0, 1)

    def test_wrong_rank_of_the_inner_chunk(self, parse):
        sharding = {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2], "codecs": [LITTLE], "index_codecs": [LITTLE]},
        }
        with pytest.raises(MetadataError):
            parse(codecs=[sharding])


def test_what_is_around_shards_is_kept_without_the_grid_of_their_array():
    """Grids may be large, and an array that grows has many."""
    text = array_document(
        (40,), (20,), codecs=[sharding((4,)), {"name": "gzip", "configuration": {"level": 1}}]
    )
    layout = parse_node(json.loads(text), "zarr.json").layout
    around = layout.wrappings((20,))
    assert around[0].codecs
    assert layout.resized((60,)).wrappings((20,)) is around


def test_the_codec_is_registered():
    kind, _ = find_codec("sharding_indexed")
    assert kind == "array -> bytes"
