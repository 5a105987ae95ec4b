"""The groups above a source, of which a mount of a part of a hierarchy asks."""

import pytest
import zarr

from tests.fs.mounted import Mounted
from zarrfs.array.groups_above import groups_above
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig

pytestmark = pytest.mark.timeout(60)


def test_arrays_that_need_nothing_above_open_no_stores_there(loop, tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr", attributes={"said": 1})
    for i in range(5):
        inner = group.create_group(f"inner/{i}")
        for name, axis in (("x", "x"), ("r", "x"), ("s", "other")):
            inner.create_array(name, shape=(3,), dtype="f8", dimension_names=(axis,))
    source = str(tmp_path / "g.zarr" / "inner")
    searches = []

    def search(names):
        searches.append(source)
        return groups_above(source, StoreConfig(), None, names)

    config = FileSystemConfig(memory=32 << 20, views=("h5",), groups_above=search)
    mount = Mounted(loop, LocalStore(source), config)
    for i in range(5):
        assert mount.read(f"{i}/r/array.h5")
    assert len(searches) == 1
    # The coordinates of this one could lie above.
    assert mount.read("0/s/array.h5")
    assert len(searches) == 2
    mount.close()
