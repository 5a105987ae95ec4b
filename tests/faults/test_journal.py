"""Nothing dropped: what cannot be stored at the end is kept, and stored by the next mount."""

from pathlib import Path

import numpy as np
import pytest
import trio
import zarr

from zarrfs.errors import JournalError, StoreFull
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.filesystem import FileSystem
from zarrfs.store.base import put_one_by_one
from zarrfs.store.open import StoreConfig, open_store

SHAPE = (20, 30)


class FullStore:
    """A store that reads as ``inner`` does and has room for nothing."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def put(self, key, parts, *, expected):
        raise StoreFull(key, "there is no room")

    def put_many(self, puts):
        return put_one_by_one(self, puts)


@pytest.fixture(params=[None, (10, 10)], ids=["chunks", "shards"])
def source(request, tmp_path: Path) -> Path:
    path = tmp_path / "source.zarr"
    array = zarr.create_array(
        path, shape=SHAPE, chunks=(5, 5), shards=request.param, dtype="<i4", fill_value=9
    )
    array[:] = np.arange(600).reshape(SHAPE)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def _mount(source: Path, journal: Path, *, full: bool) -> FileSystem:
    store = open_store(str(source), StoreConfig())
    config = FileSystemConfig(memory=32 << 20, writable=True, journal=str(journal))
    return FileSystem.open(FullStore(store) if full else store, config, {})


def _write(filesystem: FileSystem, offset: int, data: bytes) -> None:
    async def write() -> None:
        attributes = await filesystem.lookup(filesystem.root_inode, "array.bin")
        opened = await filesystem.open_file(attributes.inode, write=True)
        await filesystem.write(opened.handle, offset, data)

    trio.run(write)


def _leave_in_journal(source: Path, journal: Path, offset: int, data: bytes) -> None:
    filesystem = _mount(source, journal, full=True)
    _write(filesystem, offset, data)
    errors = filesystem.drain()
    filesystem.close()
    assert any(isinstance(error, StoreFull) for error in errors)
    assert any(isinstance(error, JournalError) and str(journal) in str(error) for error in errors)


def test_nothing_dropped(source: Path, journal: Path) -> None:
    expected = np.arange(600, dtype="<i4").reshape(SHAPE)
    new = np.arange(1000, 1100, dtype="<i4")
    _leave_in_journal(source, journal, 4 * 250, new.tobytes())
    assert zarr.open_array(source)[:].tobytes() == expected.tobytes()
    assert {file.stat().st_mode & 0o777 for file in journal.iterdir()} == {0o600}
    assert journal.stat().st_mode & 0o777 == 0o700

    filesystem = _mount(source, journal, full=False)
    assert filesystem.drain() == []
    filesystem.close()
    expected.reshape(-1)[250:350] = new
    assert zarr.open_array(source)[:].tobytes() == expected.tobytes()
    assert not journal.exists()


def test_a_store_that_is_still_full_refuses_the_mount(source: Path, journal: Path) -> None:
    _leave_in_journal(source, journal, 0, b"\1\2\3\4")
    with pytest.raises(StoreFull):
        _mount(source, journal, full=True)
    filesystem = _mount(source, journal, full=False)
    filesystem.close()
    assert zarr.open_array(source)[0, 0] == 0x04030201
