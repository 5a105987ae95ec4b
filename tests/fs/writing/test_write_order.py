"""What has to happen before what, so that nobody loses data whenever a daemon is killed."""

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document
from tests.fs.writable import Writable
from tests.fs.write_store import WriteStore
from zarrfs.array.making.resize import Resize
from zarrfs.errors import StoreConflict

ROW = 10


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "array"
    zarr.create_array(
        path, data=np.arange(30, dtype="<i2").reshape(6, 5), chunks=(4, 2), fill_value=9
    )
    return path


@pytest.fixture
def fs(root, loop):
    mounted = Writable(loop, WriteStore.of_directory(root), resize=True, flush_delay=3600.0)
    yield mounted
    mounted.close()


def changes(store: WriteStore) -> list[str]:
    """Keys of objects that were changed, in order."""
    return [request.key for request in store.requests if request.operation in ("put", "delete")]


def test_elements_are_stored_before_the_shape_that_shows_them(fs):
    """Or a daemon killed in between leaves rows of fill value where a sync had begun."""
    file = fs.edit("array.bin")
    file.write(6 * ROW, bytes(range(40)))
    file.close()
    keys = changes(fs.store)
    assert keys.index("zarr.json") == len(keys) - 1
    assert len(keys) > 3


def test_leftovers_are_cleared_before_the_array_reaches_them(root):
    store = WriteStore.of_directory(root)
    store.replace("c/2/0", store.objects["c/0/0"])
    Resize(store, "", (12, 5)).run()
    keys = changes(store)
    assert keys.index("c/2/0") < keys.index("zarr.json")
    assert "c/2/0" not in store.objects


def test_rows_that_are_given_up_are_cleared_after_the_array_has_lost_them(root):
    store = WriteStore.of_directory(root)
    Resize(store, "", (2, 5)).run()
    keys = changes(store)
    assert keys[0] == "zarr.json"
    assert "c/1/0" in keys
    assert "c/1/0" not in store.objects


def test_who_has_a_file_open_of_an_array_that_is_another_one_now_writes_nothing(opened):
    """Its elements would come to other places of the new one."""
    store = WriteStore({"zarr.json": array_document((8,), (4,))})
    mount = opened(store)
    file = mount.edit("array.bin")
    file.write(0, b"\1\0")
    file.fsync()
    store.replace("zarr.json", array_document((4, 4), (2, 2)))
    mount.loop.run(mount.fs.reload)
    with pytest.raises(StoreConflict, match="open the file again"):
        file.write(0, b"\2\0")
    with pytest.raises(StoreConflict, match="open the file again"):
        file.read(0, 2)
    file.close()
    assert store.counted("put") == {"c/0": 1}
    mount.write("array.bin", 0, b"\3\0")
    assert mount.read("array.bin")[:2] == b"\3\0"


def test_changes_are_stored_as_the_array_was_before_it_is_opened_anew(opened):
    store = WriteStore({"zarr.json": array_document((8,), (4,))})
    mount = opened(store)
    mount.edit("array.bin").write(0, b"\1\0")
    store.replace("zarr.json", array_document((4,), (4,)))
    mount.loop.run(mount.fs.reload)
    assert store.objects["c/0"][:2] == b"\1\0"
