"""Arrays that get another shape: data, metadata, what is left behind, and being killed."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, Crc32cCodec

from tests.fs.arrays import open_array
from tests.fs.documents import array_document, sharding
from tests.fs.shards import shard
from tests.fs.write_store import WriteStore, refusing
from zarrfs.array.making import resize as resizing
from zarrfs.array.making.beyond import Region
from zarrfs.array.making.resize import Resize, ResizeConfig
from zarrfs.cache.write.growth import most_rows
from zarrfs.errors import (
    ChunkError,
    NodeNotFound,
    StoreConflict,
    StoreUnavailable,
    UnsupportedError,
)
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")

FILL = 7


def make(root, shape, chunks, *, shards=None, separator="/", version=3, order="C"):
    encoding = {"name": "default" if version == 3 else "v2", "separator": separator}
    array = zarr.create_array(
        root, shape=shape, chunks=chunks, shards=shards, dtype="int16", fill_value=FILL,
        zarr_format=version, overwrite=True, attributes={"unit": "K"},
        chunk_key_encoding=encoding, order=order if version == 2 else None,
        compressors="auto" if version == 2 else [BloscCodec(), Crc32cCodec()],
    )  # fmt: skip
    data = np.arange(1000, 1000 + np.prod(shape, dtype=int), dtype="int16").reshape(shape)
    if data.size:
        array[...] = data
    return data


def expected(data, shape):
    """What an array of ``data`` holds after it was resized."""
    resized = np.full(shape, FILL, data.dtype)
    common = tuple(slice(min(a, b)) for a, b in zip(data.shape, shape, strict=True))
    resized[common] = data[common]
    return resized


def resize(root, shape, **config):
    store = LocalStore(root)
    try:
        return Resize(store, "", shape, ResizeConfig(**config)).run()
    finally:
        store.close()


shapes = st.tuples(st.integers(0, 11), st.integers(0, 9))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(shapes, min_size=2, max_size=4),
    st.sampled_from([((3, 2), None), ((2, 2), (4, 6)), ((1, 9), None)]),
    st.sampled_from("/."),
    st.sampled_from([(3, "C"), (2, "C"), (2, "F")]),
)
def test_others_read_what_numpy_says(tmp_path_factory, shapes, grid, separator, version):
    root = tmp_path_factory.mktemp("array")
    chunks, shards = grid
    if version[0] == 2 and shards:
        shards = None
    # zarr-python writes chunks of length 0 for an axis of 0 in version 2.
    first = tuple(max(1, n) for n in shapes[0])
    data = make(
        root, first, chunks, shards=shards, separator=separator, version=version[0],
        order=version[1],
    )  # fmt: skip
    for shape in shapes[1:]:
        done = resize(root, shape)
        assert done.problems == ()
        assert done.metadata.shape == shape
        data = expected(data, shape)
        array = zarr.open_array(root, mode="r")
        assert array.shape == shape
        np.testing.assert_array_equal(array[...], data)
    # Nothing but what the shape has is stored.
    keys = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    kept = {".zattrs", ".zarray", "zarr.json"}
    inside = done.metadata.layout.stored.counts
    names = {done.metadata.chunk_keys.key(i) for i in itertools.product(*map(range, inside))}
    assert set(keys) - kept <= names


@pytest.mark.parametrize("cheap", [True, False])
@pytest.mark.parametrize("separator", ["/", "."])
def test_growing_and_shrinking_by_billions_of_chunks_is_cheap(tmp_path, separator, cheap):
    make(tmp_path, (10, 8), (3, 4), separator=separator)
    store = WriteStore.of_directory(tmp_path, cheap=cheap)
    Resize(store, "", (10**12, 8)).run()
    assert Resize(store, "", (5, 8)).run().problems == ()
    assert len(store.requests) < 100
    assert [k for k in store.objects if k != "zarr.json"]
    assert all(
        int(key.replace(".", "/").split("/")[1]) < 2 for key in store.objects if key != "zarr.json"
    )


def test_whoever_asks_is_told_how_many_objects_are_cleared():
    document = array_document((2000,), (1,), fill_value=FILL)
    objects = {f"c/{number}": b"\1\0" for number in range(2000)}
    told: list[int] = []
    Resize(
        WriteStore({"zarr.json": document, **objects}), "", (1,), ResizeConfig(cleared=told.append)
    ).run()
    assert told == list(range(1, 2000))


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_what_others_left_beyond_the_end_is_cleared_before_it_comes_in(tmp_path, shards):
    data = make(tmp_path, (8, 8), (2, 2), shards=shards)
    document = (tmp_path / "zarr.json").read_bytes()
    # As software that changes the metadata alone leaves it.
    (tmp_path / "zarr.json").write_bytes(document.replace(b"8", b"3", 1))
    assert zarr.open_array(tmp_path, mode="r").shape == (3, 8)
    resize(tmp_path, (8, 8))
    np.testing.assert_array_equal(
        zarr.open_array(tmp_path, mode="r")[...], expected(data[:3], (8, 8))
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("separator", ["/", "."])
def test_leftovers_are_found_in_any_directory(tmp_path, separator, version):
    """There may be too many to ask for each."""
    shape, grown = (1, 600, 2), (4, 600, 3)
    zarr.create_array(
        tmp_path, shape=shape, chunks=(1, 1, 1), dtype="int16", fill_value=FILL,
        zarr_format=version,
        chunk_key_encoding={"name": "default" if version == 3 else "v2", "separator": separator},
    )  # fmt: skip
    leftovers_are_cleared(WriteStore.of_directory(tmp_path), shape, grown)


SUFFIX = {"suffix": ".tiff"}


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "suffix", "configuration": SUFFIX},
        {
            "name": "suffix",
            "configuration": SUFFIX
            | {"base-encoding": {"name": "v2", "configuration": {"separator": "/"}}},
        },
        {"name": "fanout", "configuration": {"max_children": 100}},
    ],
    ids=["c/1/2.tiff", "1/2.tiff", "c/0/1/0/2"],
)
def test_leftovers_are_found_whatever_the_chunk_keys_are(keys):
    shape, grown = (1, 600, 2), (4, 600, 3)
    document = array_document(shape, (1, 1, 1), chunk_key_encoding=keys)
    leftovers_are_cleared(WriteStore({"zarr.json": document}), shape, grown)


def leftovers_are_cleared(store, shape, grown):
    """Of an array of ``shape`` that grows; what lies beyond ``grown`` stays."""
    key = Resize(store, "", shape)._after.array.key
    leftovers = {(0, 0, 2), (0, 599, 2), (1, 0, 0), (1, 5, 1), (3, 599, 2), (2, 300, 0)}
    others = {(0, 0, 0), (0, 599, 1), (4, 0, 0), (1, 600, 0), (1, 0, 3)}
    for index in leftovers | others:
        store.replace(key(index), b"\1\0")
    store.requests.clear()
    Resize(store, "", grown).run()
    assert set(store.objects) - {"zarr.json", ".zarray", ".zattrs"} == {key(i) for i in others}
    assert len(store.requests) < 100


@pytest.mark.parametrize(("chunks", "shards"), [((2, 4), None), ((2, 2), (4, 4))])
def test_an_edge_that_holds_fill_value_beyond_the_end_is_not_stored_anew(tmp_path, chunks, shards):
    make(tmp_path, (5, 6), chunks, shards=shards)
    store = WriteStore.of_directory(tmp_path)
    assert Resize(store, "", (8, 8)).run().problems == ()
    assert store.counted("put", "delete") == {}


@pytest.mark.parametrize("inner", [(4, 4), (2, 2)], ids=["chunks", "shards"])
def test_no_single_element_beyond_the_end_comes_in(inner):
    codecs = {"codecs": [sharding(inner)]} if inner == (2, 2) else {}
    document = array_document((3, 5), (4, 4), **codecs)
    for row, column in np.ndindex(4, 4):
        stored = np.full((4, 4), FILL, "<i2")
        stored[row, column] = 1
        parts = stored.reshape(4 // inner[0], inner[0], 4 // inner[1], inner[1]).swapaxes(1, 2)
        data = [part.tobytes() for part in parts.reshape(-1, *inner)]
        store = WriteStore({"zarr.json": document})
        for index in np.ndindex(2, 2):
            store.replace("c/{}/{}".format(*index), shard(data) if codecs else data[0])
        Resize(store, "", (8, 8)).run()
        array = open_array(store)
        ones = set()
        for found in array.read_chunks(list(np.ndindex(array.layout.read.counts))):
            first = array.layout.read.origin(found.index)
            ones |= {(first[0] + i, first[1] + j) for i, j in np.argwhere(found.chunk == 1)}
        assert ones == {
            i
            for i in itertools.product((row, row + 4), (column, column + 4))
            if i[0] < 3 and i[1] < 5
        }


def test_an_inner_chunk_beyond_the_end_is_removed_even_if_it_cannot_be_read(tmp_path):
    data = make(tmp_path, (4, 2), (2, 2), shards=(4, 2))
    store = WriteStore.of_directory(tmp_path)
    index = np.frombuffer(store.objects["c/0/0"][-36:-4], "<u8").reshape(2, 2)
    damaged = bytearray(store.objects["c/0/0"])
    damaged[int(index[1, 0])] ^= 0xFF
    store.replace("c/0/0", bytes(damaged))
    store.replace("zarr.json", store.objects["zarr.json"].replace(b"4", b"2", 1))
    Resize(store, "", (4, 2)).run()
    array = zarr.open_array(as_directory(store, tmp_path / "after"), mode="r")
    np.testing.assert_array_equal(array[...], expected(data[:2], (4, 2)))


@pytest.mark.parametrize(("elements", "at_once"), [(1000, 8), (300_000, 3), (600_000, 1)])
def test_only_as_many_objects_are_cut_at_once_as_memory_has_room_for(
    monkeypatch, elements, at_once
):
    found = []

    class Watched(ThreadPoolExecutor):
        def __init__(self, threads):
            found.append(threads)
            super().__init__(threads)

    monkeypatch.setattr(resizing, "ThreadPoolExecutor", Watched)
    store = WriteStore({"zarr.json": array_document((10_000,), (elements,))})
    # To cut a chunk takes four times its bytes.
    Resize(store, "", (10,), ResizeConfig(memory=8_000_000, threads=8)).run()
    assert set(found) == {at_once}


def test_a_leftover_that_others_change_all_the_time_keeps_the_array_from_growing(tmp_path):
    make(tmp_path, (2, 4), (2, 4))
    store = WriteStore.of_directory(tmp_path)
    chunk = store.objects["c/0/0"]
    store.replace("c/1/0", chunk)
    tries = []

    def before(request):
        if request.operation == "delete":
            tries.append(request)
            store.replace(request.key, chunk)

    store.before = before
    with pytest.raises(StoreConflict, match="keep changing"):
        Resize(store, "", (4, 4)).run()
    assert 1 < len(tries) < 100
    assert json.loads(store.objects["zarr.json"])["shape"] == [2, 4]


def test_a_store_that_deletes_nothing_is_not_asked_for_every_object(tmp_path, monkeypatch):
    monkeypatch.setattr(resizing, "_AT_ONCE", 4)
    make(tmp_path, (40,), (1,))
    store = WriteStore.of_directory(tmp_path)

    store.before = refusing(StoreUnavailable, "delete")
    problems = Resize(store, "", (0,)).run().problems
    assert len(problems) == 4
    assert len(store.counted("delete")) == 4
    assert json.loads(store.objects["zarr.json"])["shape"] == [0]


def test_what_lies_beyond_what_is_asked_for_is_left_alone():
    """Others may be about to grow the array further."""
    region = Region((5, 4), (3, 4))
    found = {index for index in np.ndindex(7, 6) if index in region}
    assert found == set(region) == set(itertools.product((3, 4), range(4)))
    assert len(found) == region.size


def test_the_plan_says_what_would_be_lost(tmp_path):
    make(tmp_path, (6, 6), (2, 2))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    store = LocalStore(tmp_path)
    plan = Resize(store, "", (3, 6))
    assert plan.loses_data
    assert (plan.old, plan.new) == ((6, 6), (3, 6))
    assert sorted(plan.lost_objects()) == [
        ("c/1/0", False), ("c/1/1", False), ("c/1/2", False),
        ("c/2/0", True), ("c/2/1", True), ("c/2/2", True),
    ]  # fmt: skip
    grow = Resize(store, "", (7, 6))
    assert not grow.loses_data
    assert list(grow.lost_objects()) == []
    store.close()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("version", [2, 3])
def test_documents_change_in_their_numbers_alone(tmp_path, version):
    root = zarr.create_group(tmp_path, zarr_format=version)
    inner = root.create_group("g")
    for group in (root, inner):
        group.create_array("a", shape=(6, 4), chunks=(2, 2), dtype="u1", attributes={"é": [6, 4]})
    zarr.consolidate_metadata(tmp_path, path="g", zarr_format=version)
    zarr.consolidate_metadata(tmp_path, zarr_format=version)
    names = (".zarray", ".zmetadata") if version == 2 else ("zarr.json",)
    documents = {p: p.read_text() for p in tmp_path.rglob("*") if p.name in names}
    store = LocalStore(tmp_path)
    Resize(store, "g/a", (9, 4)).run()
    store.close()
    changed = {p for p, text in documents.items() if p.read_text() != text}
    places = {"g/a/", "g/", ""}
    assert {str(p.relative_to(tmp_path).parent) for p in changed} == {
        p.rstrip("/") or "." for p in places
    }
    for path in changed:
        assert len(path.read_text()) == len(documents[path])
    assert zarr.open_consolidated(tmp_path, zarr_format=version)["g/a"].shape == (9, 4)
    assert zarr.open_consolidated(tmp_path, zarr_format=version)["a"].shape == (6, 4)
    assert zarr.open_consolidated(tmp_path / "g", zarr_format=version)["a"].shape == (9, 4)


def killed_after(store, requests):
    """Has every request beyond so many fail, as if the process had been killed."""
    left = [requests]

    def before(_request):
        left[0] -= 1
        if left[0] < 0:
            raise StoreUnavailable("", "killed")

    store.before = before


@pytest.mark.parametrize("shards", [None, (4, 4)])
@pytest.mark.parametrize("shape", [(2, 3), (6, 5)])
def test_killed_at_any_request_it_has_the_old_shape_or_the_new_one(tmp_path, shards, shape):
    zarr.create_group(tmp_path)
    data = make(tmp_path / "a", (5, 3), (2, 2), shards=shards)
    zarr.consolidate_metadata(tmp_path)
    first = WriteStore.of_directory(tmp_path).objects
    for requests in range(100):
        store = WriteStore(first)
        resized = Resize(store, "a", shape)
        killed_after(store, requests)
        try:
            done = resized.run().problems == ()
        except (StoreUnavailable, ChunkError):
            done = False
        store.before = lambda _request: None
        found = Resize(store, "a", shape).old
        assert found in ((5, 3), shape)
        common = tuple(map(min, (5, 3), found))
        after = as_directory(store, tmp_path / f"after{requests}")
        array = zarr.open_array(after / "a", mode="r")
        kept = array[: common[0], : common[1]]
        np.testing.assert_array_equal(kept, data[: common[0], : common[1]])
        # Whoever grows it later sees fill value all the same.
        Resize(store, "a", found).run()
        later = tuple(n + 2 for n in found)
        Resize(store, "a", later).run()
        again = as_directory(store, tmp_path / f"again{requests}")
        array = zarr.open_array(again / "a", mode="r")
        np.testing.assert_array_equal(array[...], expected(expected(data, found), later))
        if done:
            break
    assert 5 < requests < 99


def as_directory(store, root):
    for key, data in store.objects.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@pytest.mark.parametrize(("key", "rows"), [("zarr.json", 4), ("c/2/0", 8)], ids=["end", "middle"])
def test_attributes_that_somebody_changes_meanwhile_stay(tmp_path, key, rows):
    make(tmp_path, (5, 6), (2, 2))
    store = WriteStore.of_directory(tmp_path)
    # Of elements beyond the end.
    store.replace("c/2/0", store.objects["c/0/0"])
    changed = json.loads(store.objects["zarr.json"]) | {"attributes": {"unit": "m"}}

    def before(request):
        if request.key == key and (key != "zarr.json" or request.operation == "put"):
            store.before = lambda _request: None
            store.replace("zarr.json", json.dumps(changed).encode())

    resized = Resize(store, "", (rows, 6))
    store.before = before
    resized.run()
    document = json.loads(store.objects["zarr.json"])
    assert document["shape"] == [rows, 6]
    assert document["attributes"] == {"unit": "m"}


def test_what_another_host_grew_meanwhile_is_not_cleared(tmp_path):
    make(tmp_path, (3, 4), (2, 4))
    store = WriteStore.of_directory(tmp_path)
    other = json.loads(store.objects["zarr.json"]) | {"shape": [4, 4]}
    chunk = store.objects["c/0/0"]

    def before(request):
        # It grows the array and stores data of the new row, just after the edge was read.
        if request.operation in ("get", "ranges") and request.key == "c/1/0":
            store.before = lambda _request: None
            store.replace("zarr.json", json.dumps(other).encode())
            store.replace("c/1/0", chunk)

    resized = Resize(store, "", (5, 4))
    store.before = before
    with pytest.raises(StoreConflict):
        resized.run()
    assert store.objects["c/1/0"] == chunk
    assert json.loads(store.objects["zarr.json"])["shape"] == [4, 4]


def test_a_shape_that_is_not_the_expected_one(tmp_path):
    make(tmp_path, (6, 6), (2, 2))
    store = WriteStore.of_directory(tmp_path)
    with pytest.raises(StoreConflict, match=r"expected \[5, 6\]"):
        Resize(store, "", (4, 6), expected=(5, 6))


def test_consolidated_metadata_that_say_something_else_are_not_made_worse(tmp_path):
    zarr.create_group(tmp_path)
    make(tmp_path / "a", (6, 6), (2, 2))
    zarr.consolidate_metadata(tmp_path)
    zarr.open_array(tmp_path / "a").resize((10, 6))
    store = WriteStore.of_directory(tmp_path)
    with pytest.raises(StoreConflict, match="consolidate the metadata anew"):
        Resize(store, "a", (8, 6))


def test_a_group_that_cannot_be_written_takes_the_array_back(tmp_path):
    zarr.create_group(tmp_path)
    make(tmp_path / "a", (6, 6), (2, 2))
    zarr.consolidate_metadata(tmp_path)
    store = WriteStore.of_directory(tmp_path)
    objects = dict(store.objects)

    store.before = refusing(StoreUnavailable, "put", key="zarr.json")
    with pytest.raises(StoreUnavailable):
        Resize(store, "a", (3, 6)).run()
    assert store.objects == objects


def test_a_damaged_edge_keeps_an_array_from_growing_but_not_from_shrinking(tmp_path):
    make(tmp_path, (5, 4), (2, 4))
    store = WriteStore.of_directory(tmp_path)
    store.replace("c/2/0", b"junk")
    with pytest.raises(ChunkError, match="c/2/0"):
        Resize(store, "", (9, 4)).run()
    store.replace("c/0/0", b"junk")
    done = Resize(store, "", (1, 4)).run()
    assert [type(problem) for problem in done.problems] == [ChunkError]
    assert done.metadata.shape == (1, 4)


def with_grid(tmp_path, grid, shape):
    make(tmp_path, (6,), (2,))
    document = json.loads((tmp_path / "zarr.json").read_text())
    document |= {"chunk_grid": grid, "shape": [shape]}
    return WriteStore({"zarr.json": json.dumps(document).encode()})


def test_rectilinear_grids_as_far_as_they_reach(tmp_path):
    grid = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[2, [3, 2]]]},
    }
    store = with_grid(tmp_path, grid, 6)
    assert Resize(store, "", (8,)).run().metadata.layout.stored.counts == (3,)
    assert Resize(store, "", (2,)).run().metadata.layout.stored.counts == (1,)
    with pytest.raises(UnsupportedError, match="cannot be of shape"):
        Resize(store, "", (9,))


def test_a_grid_whose_last_chunk_ends_with_the_array(tmp_path):
    grid = {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [4]}}
    store = with_grid(tmp_path, grid, 10)
    with pytest.raises(UnsupportedError, match="its chunks would have other shapes"):
        Resize(store, "", (11,))
    assert Resize(store, "", (8,)).run().metadata.shape == (8,)
    assert Resize(store, "", (10,)).run().metadata.shape == (10,)


def test_too_large_for_any_file(tmp_path):
    make(tmp_path, (6, 6), (2, 2))
    with pytest.raises(UnsupportedError, match="8 EiB"):
        resize(tmp_path, (2**62, 6))


def test_an_array_may_have_as_many_rows_as_a_file_has_room_for():
    assert most_rows((3, 5, 7), 4, None) == (2**63 - 1) // 140
    assert most_rows((3, 5, 7), 4, 1000) == 1000
    assert most_rows((3, 5, 7), 4, 2**62) == (2**63 - 1) // 140
    assert most_rows((3,), 2, None) == 2**62 - 1
    assert most_rows((3, 0), 4, None) == 0


def test_no_array(tmp_path):
    zarr.create_group(tmp_path)
    with pytest.raises(NodeNotFound):
        Resize(LocalStore(tmp_path), "", (6, 6))
    with pytest.raises(NodeNotFound):
        Resize(LocalStore(tmp_path), "missing", (6, 6))


def test_strings_are_resized_with_whole_chunks(tmp_path):
    array = zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype=str, fill_value="")
    array[...] = np.array(["a", "b", "c", "d"], object)
    resize(tmp_path, (2,))
    resize(tmp_path, (4,))
    assert zarr.open_array(tmp_path, mode="r")[...].tolist() == ["a", "b", "", ""]
