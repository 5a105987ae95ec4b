"""Arrays whose codecs cannot encode: no file of them can be opened for writing."""

import json
import zlib

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.write_store import WriteStore
from zarrfs.errors import ReadOnly
from zarrfs.format.codecs import gzip
from zarrfs.fs.attributes import OpenMode

pytestmark = pytest.mark.timeout(60)

LEVEL_AS_TEXT = {"id": "zlib", "level": "1"}
V3_LEVEL_AS_TEXT = {"name": "numcodecs.zlib", "configuration": {"level": "1"}}
ELEMENTS = np.arange(16, dtype="<i2")
FILES = ["array.bin", "array.npy", "chunks/0"]


def v2_document(**members):
    return json.dumps(
        {
            "zarr_format": 2,
            "shape": [16],
            "chunks": [16],
            "dtype": "<i2",
            "order": "C",
            "fill_value": 0,
            "filters": None,
            "compressor": LEVEL_AS_TEXT,
            **members,
        }
    ).encode()


@pytest.fixture
def store():
    return WriteStore({".zarray": v2_document(), "0": zlib.compress(ELEMENTS.tobytes())})


@pytest.mark.parametrize("name", FILES)
def test_no_file_opens_for_writing(opened, store, name):
    mounted = opened(store)
    with pytest.raises(ReadOnly, match="cannot be written to: its codecs cannot encode"):
        mounted.edit(name)
    assert mounted.write_back.budget.used == 0
    assert mounted.array().clean


@pytest.mark.parametrize("name", FILES)
def test_every_file_can_still_be_read(opened, store, name):
    mounted = opened(store)
    with pytest.raises(ReadOnly):
        mounted.edit(name)
    assert mounted.read(name).endswith(ELEMENTS.tobytes())


def test_the_reason_is_told(opened, store):
    mounted = opened(store)
    with pytest.raises(ReadOnly):
        mounted.edit("array.bin")
    with pytest.raises(ReadOnly):
        mounted.edit("array.npy")
    told = mounted.tree.stats.snapshot()["errors"]["last"]
    assert [error["key"] for error in told] == ["/", "/"]
    assert "cannot be written to" in told[0]["reason"]
    note = mounted.tree.find(mounted.stat("").inode).node.note
    assert note == told[0]["reason"]


def test_an_earlier_note_stays(opened, store):
    store = WriteStore({**store.objects, ".zattrs": b"{"})
    mounted = opened(store)
    earlier = mounted.read("zarrfs-note.txt").decode()
    for _ in range(2):
        with pytest.raises(ReadOnly):
            mounted.edit("array.bin")
    note = mounted.read("zarrfs-note.txt").decode()
    assert note.startswith(earlier + "cannot be written to: ")
    assert len(note.splitlines()) == len(earlier.splitlines()) + 1


def test_truncation_at_the_open_or_by_name_removes_nothing(opened, store):
    before = dict(store.objects)
    mounted = opened(store, resize=True)
    inode = mounted.stat("array.bin").inode
    mode = OpenMode(read=True, write=True, truncate=True)
    for truncate, how in ((mounted.fs.open_file, mode), (mounted.fs.set_size, 20)):
        with pytest.raises(ReadOnly):
            mounted.loop.run(truncate, inode, how)
    assert store.objects == before


@pytest.mark.parametrize("size", [3, 16])
def test_a_codec_around_shards_that_needs_whole_elements(opened, size):
    shuffle = {"name": "numcodecs.shuffle", "configuration": {"elementsize": size}}
    shards = sharding((4,), index_codecs=[LITTLE])
    store = WriteStore({"zarr.json": array_document((16,), (16,), codecs=[shards, shuffle])})
    mounted = opened(store)
    mounted.write("array.bin", 0, bytes(range(32)))
    assert len(store.objects["c/0"]) == 4 * 16 + 32


@pytest.mark.parametrize(
    "codecs",
    [
        [LITTLE, V3_LEVEL_AS_TEXT],
        [sharding((2,), codecs=[LITTLE, V3_LEVEL_AS_TEXT])],
        [sharding((2,)), V3_LEVEL_AS_TEXT],
        [sharding((4,), codecs=[sharding((2,)), V3_LEVEL_AS_TEXT])],
    ],
    ids=["chunks", "inner chunks", "around shards", "around inner shards"],
)
def test_wherever_the_codec_is(opened, codecs):
    store = WriteStore({"zarr.json": array_document((16,), (4,), codecs=codecs)})
    with pytest.raises(ReadOnly):
        opened(store).edit("array.bin")


def test_a_codec_that_refuses_only_the_fill_value(opened, monkeypatch):
    def refuse_sevens(data, level):
        if set(bytes(data)) == {7, 0}:
            raise ValueError("no sevens")
        return zlib.compress(data, level)

    monkeypatch.setitem(gzip._COMPRESS, "zlib", refuse_sevens)
    codecs = [LITTLE, {"name": "numcodecs.zlib", "configuration": {"level": 1}}]
    store = WriteStore({"zarr.json": array_document((4,), (4,), codecs=codecs)})
    opened(store).write("array.bin", 0, ELEMENTS[:4].tobytes())
    assert zlib.decompress(store.objects["c/0"]) == ELEMENTS[:4].tobytes()


def test_a_large_chunk_is_not_encoded_as_a_whole(opened, monkeypatch):
    document = v2_document(
        shape=[50_001, 1001], chunks=[50_001, 1001], compressor={"id": "zlib", "level": 1}
    )
    mounted = opened(WriteStore({".zarray": document}), memory=1 << 30)
    lengths = []

    def measured(data, level):
        lengths.append(len(data))
        return zlib.compress(data, level)

    monkeypatch.setitem(gzip._COMPRESS, "zlib", measured)
    mounted.edit("array.bin").close()
    assert lengths == [1 << 20]


def test_a_large_chunk_whose_codec_cannot_encode(opened):
    document = v2_document(shape=[50_001, 1001], chunks=[50_001, 1001])
    with pytest.raises(ReadOnly):
        opened(WriteStore({".zarray": document}), memory=1 << 30).edit("array.bin")
