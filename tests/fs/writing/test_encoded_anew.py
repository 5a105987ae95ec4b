"""Another program encodes an array anew while changes of it wait to be stored."""

import json

import pytest

from tests.fs.documents import GZIP, LITTLE, array_document, group_document, sharding
from tests.fs.write_store import Request, WriteStore
from zarrfs.errors import EncodingChanged
from zarrfs.fuse.errnos import errno_of

pytestmark = pytest.mark.timeout(60)

BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [0]}}
KEYS = {"name": "default", "configuration": {"separator": "."}}
ANEW = {
    "codec": {"codecs": [LITTLE, GZIP]},
    "byte order": {"codecs": [BIG]},
    "type": {"data_type": "uint16"},
    "transpose": {"codecs": [TRANSPOSE, LITTLE]},
    "shards": {"codecs": [sharding((2,))]},
    "fill value": {"fill_value": 8},
    "keys": {"chunk_key_encoding": KEYS},
}


def v2(**members) -> bytes:
    document = {
        "zarr_format": 2, "shape": [16], "chunks": [4], "dtype": "<i2", "compressor": None,
        "fill_value": 7, "order": "C", "filters": None,
    }  # fmt: skip
    return json.dumps({**document, **members}).encode()


def assert_kept(mount, store, journal, file, key) -> None:
    before = store.objects.get(key)
    with pytest.raises(EncodingChanged, match="changed how the array is encoded") as failure:
        file.fsync()
    assert errno_of(failure.value) == 5
    with pytest.raises(EncodingChanged):
        file.flush()
    mount.loop.run(mount.fs.reload)
    assert store.objects.get(key) == before
    # What is written from now on is stored as the array is encoded now.
    mount.write("array.bin", 16, b"\2\2")
    errors = mount.fs.drain()
    assert any("1 changed chunk of / kept in" in str(error) for error in errors), errors
    assert store.objects.get(key) == before
    (entry,) = (journal / "conflicts").iterdir()
    assert entry.stat().st_size > 2
    assert [path.name for path in journal.iterdir()] == ["conflicts"]


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("anew", ANEW.values(), ids=ANEW)
def test_changes_are_kept_as_conflicts(opened, tmp_path, anew, cheap):
    journal = tmp_path / "journal"
    old = b"\1\0" * 4
    objects = {"zarr.json": array_document((16,), (4,)), "c/0": old}
    store = WriteStore(objects, cheap=cheap)
    mount = opened(store, journal=str(journal))
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    store.replace("zarr.json", array_document((16,), (4,), **anew))
    assert_kept(mount, store, journal, file, "c/0")


@pytest.mark.parametrize(
    "anew", [{"dtype": ">i2"}, {"compressor": {"id": "zlib", "level": 1}}, {"chunks": [8]}]
)
def test_of_version_2(opened, tmp_path, anew):
    journal = tmp_path / "journal"
    store = WriteStore({".zarray": v2()})
    mount = opened(store, journal=str(journal))
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    store.replace(".zarray", v2(**anew))
    assert_kept(mount, store, journal, file, "0")


@pytest.mark.parametrize(
    "document",
    [
        array_document((16,), (4,), attributes={"said": "more"}),
        array_document((20,), (4,)),
    ],
    ids=["attributes", "shape"],
)
def test_other_changes_of_the_metadata_are_none_of_it(opened, document):
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    file.fsync()
    store.replace("zarr.json", document)
    file.write(2, b"\1\1")
    file.fsync()
    assert store.objects["c/0"][:4] == b"\1\1\1\1"


def test_changes_are_stored_once_the_array_is_as_it_was(opened):
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    store.replace("zarr.json", array_document((16,), (4,), data_type="uint16"))
    with pytest.raises(EncodingChanged):
        file.fsync()
    store.replace("zarr.json", array_document((16,), (4,)))
    file.fsync()
    assert store.objects["c/0"][:2] == b"\1\1"


GROUP = json.dumps({"zarr_format": 3, "node_type": "group"}).encode()


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored before", "never stored"])
def test_changes_of_a_deleted_array_are_kept_as_conflicts(
    opened, tmp_path, monkeypatch, cheap, stored
):
    """Whatever is made in its place would take chunks that are stored now for its own."""
    monkeypatch.setattr("zarrfs.array.making.array_documents._LOOK_S", 0)
    journal = tmp_path / "journal"
    store = WriteStore({"zarr.json": array_document((16,), (4,))}, cheap=cheap)
    mount = opened(store, journal=str(journal))
    file = mount.edit("array.bin")
    if stored:
        file.write(8, b"\1\1")
        file.fsync()
    file.write(0, b"\1\1")
    store.replace("zarr.json", None)
    with pytest.raises(EncodingChanged, match="deleted the array") as failure:
        file.fsync()
    assert errno_of(failure.value) == 5
    # It may come back, as one that was moved away for a moment.
    store.replace("zarr.json", array_document((16,), (4,)))
    file.fsync()
    file.write(0, b"\2\2")
    before = store.objects.pop("c/0")
    store.replace("zarr.json", None)
    assert before[:2] == b"\1\1"
    assert any("1 changed chunk of / kept in" in str(error) for error in mount.fs.drain())
    assert "c/0" not in store.objects
    assert len(list((journal / "conflicts").iterdir())) == 1


def test_an_array_that_consolidated_metadata_describe_needs_no_document(opened):
    """They lead readers to its chunks."""
    array = array_document((16,), (4,))
    inline = {"kind": "inline", "must_understand": False, "metadata": {"a": json.loads(array)}}
    group = {**json.loads(GROUP), "attributes": {}, "consolidated_metadata": inline}
    store = WriteStore({"zarr.json": json.dumps(group).encode(), "a/zarr.json": array})
    file = opened(store).edit("a/array.bin")
    file.write(0, b"\1\1")
    store.replace("a/zarr.json", None)
    file.fsync()
    assert store.objects["a/c/0"][:2] == b"\1\1"
    # The group's document, which may be large, is read again only if it has changed.
    store.requests.clear()
    file.write(2, b"\2\2")
    file.fsync()
    assert store.objects["a/c/0"][:4] == b"\1\1\2\2"
    assert Request("get", "zarr.json") not in store.requests
    store.replace("zarr.json", GROUP)
    file.write(0, b"\3\3")
    with pytest.raises(EncodingChanged, match="deleted the array"):
        file.fsync()


def test_changes_of_what_is_a_group_now_are_kept_as_conflicts(opened, tmp_path):
    journal = tmp_path / "journal"
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    mount = opened(store, journal=str(journal))
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    store.replace("zarr.json", GROUP)
    with pytest.raises(EncodingChanged, match="group in place of the array"):
        file.fsync()
    assert any("kept in" in str(error) for error in mount.fs.drain())
    assert "c/0" not in store.objects
    assert len(list((journal / "conflicts").iterdir())) == 1


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("resize", [False, True])
def test_changes_of_rows_that_are_gone_are_kept_as_conflicts(opened, tmp_path, cheap, resize):
    """A store of them would be seen by nobody, until the array is made longer again."""
    journal = tmp_path / "journal"
    store = WriteStore({"zarr.json": array_document((16,), (4,))}, cheap=cheap)
    mount = opened(store, journal=str(journal), resize=resize)
    file = mount.edit("array.bin")
    for offset in (0, 8, 24):
        file.write(offset, b"\1\1")
    store.replace("zarr.json", array_document((6,), (4,)))
    with pytest.raises(EncodingChanged, match="made the array smaller") as failure:
        file.fsync()
    assert errno_of(failure.value) == 5
    # The second chunk has elements of both, of which the store has no use for some.
    assert {key for key in store.objects if key[0] == "c"} == {"c/0"}
    assert any("2 changed chunks of / kept in" in str(error) for error in mount.fs.drain())
    assert {key for key in store.objects if key[0] == "c"} == {"c/0"}
    assert len(list((journal / "conflicts").iterdir())) == 2
    # Elements that are there again can be stored.
    store.replace("zarr.json", array_document((8,), (4,)))
    file.write(8, b"\2\2")
    with pytest.raises(EncodingChanged):
        file.fsync()
    assert store.objects["c/1"][:2] == b"\2\2"
    assert "c/3" not in store.objects


@pytest.mark.parametrize("cheap", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("codecs", [[LITTLE], [sharding((2,))]], ids=["chunks", "shards"])
@pytest.mark.parametrize("count", [2, 4])
def test_rows_that_another_program_adds_are_not_erased(opened, tmp_path, cheap, codecs, count):
    """They may lie in an object that has changes, too, which the next mount stores."""
    journal, more = str(tmp_path / "journal"), {"codecs": codecs}
    store = WriteStore({"zarr.json": array_document((6,), (4,), **more)}, cheap=cheap)
    mount = opened(store, journal=journal)
    file = mount.edit("array.bin")
    file.write(0, b"\0\1")
    file.fsync()  # with a look at the shape, which is no reason not to look again
    file.write(0, b"\1\1")
    other = opened(WriteStore({"zarr.json": array_document((8,), (4,), **more)}))
    other.write("array.bin", 8, b"\7\0\7\0\3\3\4\4")
    for key in ("zarr.json", "c/1"):
        store.replace(key, other.store.objects[key])
    before = store.objects["c/1"]
    file.write(8, b"\2\2" * (count // 2))
    with pytest.raises(EncodingChanged, match="made the array larger") as failure:
        file.fsync()
    assert errno_of(failure.value) == 5
    assert "c/0" in store.objects
    assert store.objects["c/1"] == before
    mount.fs.drain()
    assert store.objects["c/1"] == before
    mount = opened(store, journal=journal)
    assert mount.read("array.bin")[:2] == b"\1\1"
    wanted = b"\2\2" * (count // 2) + b"\7\0\7\0"[count:]
    assert mount.read("array.bin")[8:] == wanted + b"\3\3\4\4"


@pytest.mark.parametrize("codecs", [[LITTLE], [sharding((2,))]], ids=["chunks", "shards"])
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("there", [True, False])
def test_rows_that_come_after_the_look_at_the_shape_are_not_erased(opened, codecs, count, there):
    documents = {n: array_document((n,), (4,), codecs=codecs) for n in (6, 8)}
    other = opened(WriteStore({"zarr.json": documents[8]}))
    store = WriteStore({"zarr.json": documents[6]})
    file = opened(store).edit("array.bin")
    if there:
        file.write(8, b"\7\0\7\0")
        file.fsync()
    other.write("array.bin", 8, b"\7\0\7\0\3\3\4\4")
    added = other.store.objects["c/1"]

    def add(request):
        if request == Request("put", "c/1"):
            store.before = lambda _request: None
            store.replace("zarr.json", documents[8])
            store.replace("c/1", added)

    store.before = add
    file.write(8, b"\2\2" * (count // 2))
    with pytest.raises(EncodingChanged, match="made the array larger"):
        file.fsync()
    assert store.objects["c/1"] == added


def test_changes_of_rows_that_this_mount_added_and_another_removed(opened):
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    file = opened(store, resize=True).edit("array.bin")
    file.write(32, b"\1\1")
    file.fsync()
    assert json.loads(store.objects["zarr.json"])["shape"] == [17]
    store.replace("zarr.json", array_document((16,), (4,)))
    file.write(32, b"\2\2")
    with pytest.raises(EncodingChanged, match="made the array smaller"):
        file.fsync()
    assert store.objects["c/4"][:2] == b"\1\1"


def test_consolidated_metadata_that_contradict_the_array_are_named(opened):
    stored = array_document((4,), (4,))
    listed = json.loads(array_document((4,), (2,)))
    below = {"kind": "inline", "must_understand": False, "metadata": {"a": listed}}
    group = group_document(consolidated_metadata=below)
    mounted = opened(WriteStore({"zarr.json": group, "a/zarr.json": stored}), consolidated="always")
    with pytest.raises(EncodingChanged, match=r"a/zarr\.json.*consolidate the metadata anew"):
        mounted.write("a/array.bin", 0, bytes(8))
