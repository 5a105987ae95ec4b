"""An array that is opened anew leaves nothing behind once its changes are stored."""

import gc
import weakref

import pytest

from tests.fs.documents import array_document
from tests.fs.write_store import WriteStore

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("resize", [False, True], ids=["fixed", "growing"])
def test_an_array_with_other_metadata_is_forgotten(opened, resize):
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    mount = opened(store, resize=resize)
    mount.write("array.bin", 32 if resize else 0, b"\1\1")
    old = weakref.ref(mount.array())
    registered = len(mount.write_back._changes)
    store.replace("zarr.json", array_document((17 if resize else 16,), (8,)))
    mount.loop.run(mount.fs.reload)
    assert mount.array() is not old()
    assert len(mount.write_back._changes) == registered
    gc.collect()
    assert old() is None


def test_its_changes_are_stored_first(opened):
    store = WriteStore({"zarr.json": array_document((16,), (4,))})
    mount = opened(store, flush_delay=0.05)
    file = mount.edit("array.bin")
    file.write(0, b"\1\1")
    old = weakref.ref(mount.array())
    store.replace("zarr.json", array_document((17,), (4,)))
    mount.loop.run(mount.fs.reload)
    assert old() is not None
    assert mount.fs.drain() == []
    assert store.objects["c/0"][:2] == b"\1\1"
