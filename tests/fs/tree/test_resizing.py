"""``-o resize``: files that grow and shrink, without a kernel."""

import json

import numpy as np
import pytest
import zarr

from tests.fs.writable import Writable
from tests.fs.write_store import WriteStore, refusing
from tests.waiting import wait_until
from zarrfs.errors import FileTooLarge, InvalidElement, NotPermitted, StoreUnavailable
from zarrfs.views.flat import FlatView

FILL = 9
ROW = 5 * 2


@pytest.fixture(params=[None, (4, 4)], ids=["plain", "sharded"])
def root(tmp_path, request):
    return make(tmp_path / "array", request.param)


def make(path, shards=None, shape=(6, 5)):
    chunks = (4, 2) if shards is None else (2, 2)
    zarr.create_array(path, data=values(*shape), chunks=chunks, shards=shards, fill_value=FILL)
    return path


def values(*shape):
    return np.arange(100, 100 + np.prod(shape), dtype="<i2").reshape(shape)


def stored(store, tmp_path):
    """What zarr-python reads."""
    root = tmp_path / f"copy{len(list(tmp_path.iterdir()))}"
    for key, data in store.objects.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)
    return zarr.open_array(root, mode="r")[...]


@pytest.fixture
def fs(root, opened):
    return opened(WriteStore.of_directory(root), resize=True)


def rows_of(fs):
    return json.loads(fs.store.objects["zarr.json"])["shape"][0]


def truncate(fs, path, size):
    return fs.loop.run(fs.fs.set_size, fs.stat(path).inode, size)


def test_a_row_begun_is_filled_up_when_the_file_is_closed(fs, tmp_path):
    file = fs.edit("array.bin")
    file.write(6 * ROW, b"\1\0\2")
    assert fs.stat("array.bin").size == 6 * ROW + 3
    file.flush()
    # What reads the store, or another view, sees whole rows.
    assert rows_of(fs) == 7
    assert fs.stat("array.bin").size == 6 * ROW + 3
    assert len(fs.read("array.npy")) == 128 + 7 * ROW
    file.write(6 * ROW + 3, b"\0\3")
    file.close()
    assert fs.stat("array.bin").size == 7 * ROW
    row = np.array([1, 2, 3, FILL, FILL], "<i2").tobytes()
    row = row[:5] + np.array([FILL], "<i2").tobytes()[1:] + row[6:]
    assert fs.read("array.bin") == values(6, 5).tobytes() + row
    assert stored(fs.store, tmp_path).tobytes() == values(6, 5).tobytes() + row


def test_a_row_begun_is_no_longer_the_last_when_another_file_goes_on(fs):
    begun, other = fs.edit("array.bin"), fs.edit("array.npy")
    begun.write(6 * ROW, b"\1\0\2")
    other.write(128 + 7 * ROW, bytes(ROW))
    assert fs.stat("array.bin").size == 8 * ROW
    begun.close()
    other.close()


def test_a_new_npy_file_may_be_saved_over_the_old_one(fs, tmp_path):
    data = values(9, 5) * 3
    np.save(tmp_path / "new.npy", data)
    truncate(fs, "array.npy", 0)
    fs.write("array.npy", 0, (tmp_path / "new.npy").read_bytes())
    assert fs.read("array.npy") == (tmp_path / "new.npy").read_bytes()
    assert fs.read("array.bin") == data.tobytes()
    np.save(tmp_path / "new.npy", values(9, 6))
    with pytest.raises(NotPermitted):
        fs.write("array.npy", 0, (tmp_path / "new.npy").read_bytes())
    assert fs.read("array.bin") == data.tobytes()


def test_an_object_that_cannot_be_cleared_now_does_not_come_back(fs, tmp_path):
    def before(request):
        if request.operation == "delete" or request.key.startswith("c/0"):
            raise StoreUnavailable(request.key, "not now")

    fs.store.before = before
    truncate(fs, "array.bin", 0)
    fs.store.before = lambda _request: None
    truncate(fs, "array.bin", 6 * ROW)
    assert fs.read("array.bin") == np.full((6, 5), FILL, "<i2").tobytes()
    assert np.array_equal(stored(fs.store, tmp_path), np.full((6, 5), FILL, "<i2"))


def test_rows_that_are_not_in_the_metadata_yet_stay_when_far_more_come(fs, tmp_path):
    """Where the array is to grow far, what others left there is cleared first."""
    more = values(3, 5) + 1000
    far = 200
    file = fs.edit("array.bin")
    file.write(6 * ROW, more.tobytes())
    assert rows_of(fs) == 6
    fs.store.requests.clear()
    file.write(far * ROW, more.tobytes())
    # Whoever is killed in between has not told of elements that are not there.
    assert [one.key for one in fs.store.requests if one.operation == "put"].index("zarr.json") > 0
    assert file.read(6 * ROW, 4 * ROW) == more.tobytes() + np.full(5, FILL, "<i2").tobytes()
    file.close()
    expected = np.full((far + 3, 5), FILL, "<i2")
    expected[:6], expected[6:9], expected[far:] = values(6, 5), more, more
    assert np.array_equal(stored(fs.store, tmp_path), expected)


def test_elements_that_others_left_do_not_come_in_from_memory(root, opened, tmp_path):
    """A chunk that reaches beyond the end was read before it was cleared there."""
    whole = values(6, 5)
    # As software that changes the metadata alone leaves it.
    document = (root / "zarr.json").read_bytes()
    (root / "zarr.json").write_bytes(document.replace(b"6", b"5", 1))
    fs = opened(WriteStore.of_directory(root), resize=True)
    assert rows_of(fs) == 5
    file = fs.edit("array.bin")
    assert file.read(0, 5 * ROW) == whole[:5].tobytes()
    file.write(1000 * ROW, b"\7\0")
    assert file.read(5 * ROW, ROW) == np.full(5, FILL, "<i2").tobytes()
    file.close()
    expected = np.full((1001, 5), FILL, "<i2")
    expected[:5], expected[1000, 0] = whole[:5], 7
    assert np.array_equal(stored(fs.store, tmp_path), expected)


def test_a_store_that_fails_leaves_the_size(fs, tmp_path):
    fs.store.before = refusing(StoreUnavailable, "put", key="zarr.json")
    with pytest.raises(StoreUnavailable):
        truncate(fs, "array.bin", ROW)
    assert fs.stat("array.bin").size == 6 * ROW
    assert fs.read("array.bin") == values(6, 5).tobytes()
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(ROW))
    with pytest.raises(StoreUnavailable):
        file.flush()
    fs.store.before = lambda _request: None
    file.close()
    expected = np.concatenate([values(6, 5), np.zeros((1, 5), "<i2")])
    assert np.array_equal(stored(fs.store, tmp_path), expected)


def test_partly_new_chunks_make_room_for_others(tmp_path, opened):
    """They are stored once nothing else is about to free memory, such as the new length."""
    root = make(tmp_path / "long", shape=(64, 5))
    fs = opened(WriteStore.of_directory(root), resize=True)
    budget = fs.write_back.budget
    budget.total = budget.most = 3 * fs.array().largest_change
    file = fs.edit("array.bin")
    expected = values(64, 5)
    for row in range(0, 64, 2):
        file.write(row * ROW, bytes(ROW))
        expected[row] = 0
    file.close()
    assert np.array_equal(stored(fs.store, tmp_path), expected)


def test_it_is_stored_when_nobody_asks_and_who_looks_hears_why_it_cannot_be_yet(root, opened):
    store = WriteStore.of_directory(root)
    fs = opened(store, resize=True, flush_delay=0.02)

    store.before = refusing(StoreUnavailable, "put", key="zarr.json")
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(ROW))
    wait_until(fs.errors)
    assert {(key, "by this test" in why and "tried again" in why) for key, why in fs.errors()} == {
        ("/", True)
    }
    store.before = lambda _request: None
    wait_until(lambda: rows_of(fs) == 7)
    file.close()


@pytest.mark.parametrize("refused", ["", "zarr.json"], ids=["all", "metadata"])
def test_what_cannot_be_stored_comes_with_the_next_mount(root, loop, tmp_path, refused):
    """The elements of new rows may be in the store before the metadata say that there are any."""
    store = WriteStore.of_directory(root)
    journal = str(tmp_path / "journal")
    fs = Writable(loop, store, resize=True, flush_delay=3600, journal=journal)
    new = values(3, 5) + 50
    fs.edit("array.bin").write(6 * ROW, new.tobytes())

    def before(request):
        if request.operation == "put" and refused in request.key:
            raise StoreUnavailable(request.key, "not now")

    store.before = before
    assert fs.fs.drain()
    fs.close()
    store.before = lambda _request: None
    assert rows_of(fs) == 6
    again = Writable(loop, store, journal=journal)
    assert again.stats()["journal"] == journal
    expected = np.concatenate([values(6, 5), new])
    assert again.read("array.bin") == expected.tobytes()
    assert np.array_equal(stored(store, tmp_path), expected)
    again.close()
    assert not (tmp_path / "journal").exists()


def test_an_attempt_that_failed_after_all_was_stored_does_no_harm(root, opened):
    """The metadata say more rows than this mount believes, and it makes the array longer still."""
    store = WriteStore.of_directory(root)
    fs = opened(store, resize=True)
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(ROW))

    store.after = refusing(StoreUnavailable, "put", key="zarr.json")
    with pytest.raises(StoreUnavailable):
        file.fsync()
    store.after = lambda _request: None
    file.write(7 * ROW, bytes(ROW))
    file.fsync()
    assert rows_of(fs) == 8


def test_bytes_that_are_no_elements_do_not_make_it_longer(tmp_path, opened):
    zarr.create_array(tmp_path / "a", shape=(3, 4), chunks=(2, 4), dtype=bool)[...] = True
    fs = opened(WriteStore.of_directory(tmp_path / "a"), resize=True)
    file = fs.edit("array.bin")
    with pytest.raises(InvalidElement):
        file.write(12, b"\0\1\2\3")
    assert fs.stat("array.bin").size == 12
    file.close()
    assert rows_of(fs) == 3


@pytest.mark.parametrize("case", ["fixed", "F", "scalar", "thin"])
def test_what_cannot_be_resized(tmp_path, opened, case):
    shape = {"scalar": (), "thin": (3, 0)}.get(case, (6, 5))
    array = zarr.create_array(tmp_path / "a", shape=shape, dtype="<i2")
    if array.size:
        array[...] = 1
    config = {"resize": case != "fixed", "order": "F" if case == "F" else "C"}
    fs = opened(WriteStore.of_directory(tmp_path / "a"), **config)
    size = int(np.prod(shape)) * 2
    assert truncate(fs, "array.bin", size).size == size
    with pytest.raises(NotPermitted):
        truncate(fs, "array.bin", size + 2)
    file = fs.edit("array.bin")
    with pytest.raises(FileTooLarge):
        file.write(size, b"ab")
    file.close()
    assert truncate(fs, "array.bin", 0).size == size


def eight_rows_at_most(path):
    make(path, shape=(6, 5))
    store = WriteStore.of_directory(path)
    document = json.loads(store.objects["zarr.json"])
    document["chunk_grid"] = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[4, 4], 2]},
    }
    store.replace("zarr.json", json.dumps(document).encode())
    return store


def test_a_grid_that_ends_somewhere(tmp_path, opened):
    fs = opened(eight_rows_at_most(tmp_path / "a"), resize=True)
    file = fs.edit("array.bin")
    assert file.write(6 * ROW, bytes(5 * ROW)) == 2 * ROW
    with pytest.raises(FileTooLarge):
        file.write(8 * ROW, b"a")
    file.close()
    with pytest.raises(FileTooLarge):
        truncate(fs, "array.bin", 9 * ROW)
    assert fs.stat("array.bin").size == 8 * ROW


def test_whoever_reads_metadata_again_has_all_pages_dropped(fs):
    """Of files that were read, and of those that the kernel may know by name only."""
    fs.read("chunks/0/0")
    inodes = {fs.stat(name).inode for name in ("array.bin", "array.npy", "chunks/0/0")}
    fs.loop.run(fs.fs.reload)
    assert inodes <= set(fs.dropped.inodes)
    fs.dropped.inodes.clear()
    fs.read("chunks/0/0")
    fs.loop.run(fs.fs.drop_caches)
    assert inodes <= set(fs.dropped.inodes)


def test_metadata_that_are_read_again_are_those_that_were_written_here(fs):
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(ROW))
    fs.loop.run(fs.fs.reload)
    file.fsync()
    fs.loop.run(fs.fs.reload)
    file.write(7 * ROW, bytes(ROW))
    file.close()
    assert fs.read("array.bin") == values(6, 5).tobytes() + bytes(2 * ROW)
    assert rows_of(fs) == 8


# --- at the ends of files -------------------------------------------------------------


def test_a_file_that_ends_within_a_row_may_be_truncated_there_or_behind(fs):
    file = fs.edit("array.bin")
    file.write(6 * ROW, b"\1\0\2")
    truncate(fs, "array.bin", 6 * ROW + 3)
    assert fs.stat("array.bin").size == 6 * ROW + 3
    assert file.write(6 * ROW + 3, b"\0") == 1
    # As far behind the end of the row as the file ends before it.
    truncate(fs, "array.bin", 7 * ROW + 6)
    assert fs.stat("array.bin").size == 8 * ROW
    file.close()
    row = np.array([[1, 2, *3 * [FILL]], 5 * [FILL]], "<i2").tobytes()
    assert fs.read("array.bin") == values(6, 5).tobytes() + row


def test_appended_rows_are_told_of_to_files_that_nobody_has_open(fs):
    """The kernel remembers the size of a file that somebody looked at."""
    flat, npy = (fs.stat(name).inode for name in ("array.bin", "array.npy"))
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(ROW))
    file.fsync()
    assert npy in fs.dropped.inodes
    assert flat not in fs.dropped.inodes
    file.close()


def test_the_header_of_a_new_npy_file_may_come_before_the_elements(fs, tmp_path):
    data = values(9, 5) * 3
    np.save(tmp_path / "new.npy", data)
    content = (tmp_path / "new.npy").read_bytes()
    truncate(fs, "array.npy", 0)
    file = fs.edit("array.npy")
    file.write(0, content[:128])
    assert fs.stat("array.npy").size == 128 + 9 * ROW
    file.write(128, content[128:])
    file.close()
    assert fs.read("array.bin") == data.tobytes()


def test_what_is_no_header_does_not_replace_one(fs):
    before = fs.read("array.npy")
    file = fs.edit("array.npy", read=False)
    with pytest.raises(NotPermitted):
        file.write(0, bytes(200))
    file.close()
    assert fs.read("array.npy") == before


@pytest.mark.parametrize("rows", [7, 8, 9])
def test_a_header_tells_of_as_many_rows_as_there_can_be(tmp_path, opened, rows):
    """Of more, it tells nothing."""
    fs = opened(eight_rows_at_most(tmp_path / "a"), resize=True)
    np.save(tmp_path / "new.npy", values(rows, 5))
    content = (tmp_path / "new.npy").read_bytes()
    truncate(fs, "array.npy", 0)
    file = fs.edit("array.npy", read=False)
    if rows > 8:
        with pytest.raises(NotPermitted):
            file.write(0, content[:128])
    else:
        file.write(0, content[:128])
    assert fs.stat("array.npy").size == 128 + (rows * ROW if rows <= 8 else 0)
    file.close()


@pytest.mark.parametrize("path", ["array.bin", "array.npy"])
def test_appended_rows_do_not_make_the_files_anew(fs, monkeypatch, path):
    """Only where new chunks begin, and at the first row, for which others may have left data."""
    made = []
    plan = FlatView.__init__
    monkeypatch.setattr(FlatView, "__init__", lambda *args: (made.append(1), plan(*args))[1])
    file = fs.edit(path)
    other = fs.open("array.bin")
    expected = fs.read("array.bin")
    start = fs.stat(path).size
    for number in range(40):
        row = values(1, 5).tobytes()[:-1] + bytes([number])
        assert file.write(start + ROW * number, row) == ROW
        expected += row
        assert other.read_all() == expected
    # 40 rows in chunks of four.
    assert len(made) <= 12
    file.close()
    other.close()
    assert fs.read("array.bin") == expected
    assert rows_of(fs) == 46
