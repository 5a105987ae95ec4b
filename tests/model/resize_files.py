"""Files of an array that may be resized: in a file system without a kernel, and in a mount."""

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zarr

from tests.conftest import Daemon, Mounter
from tests.fs.loop import Loop
from tests.fs.writable import Writable, WritableFile
from tests.fs.write_store import WriteStore

WIDTH = 5
ROW = 2 * WIDTH
FILL = 9
HEADER = 128
GRIDS = {"plain": {"chunks": (4, 2)}, "sharded": {"chunks": (2, 2), "shards": (4, 4)}}


def make(root: Path, kind: str, rows: int) -> np.ndarray:
    array = zarr.create_array(
        root, shape=(rows, WIDTH), dtype="<u2", fill_value=FILL, **GRIDS[kind]
    )
    data = np.arange(rows * WIDTH, dtype="<u2").reshape(rows, WIDTH) + 1000
    if rows:
        array[...] = data
    return data


class DirectFiles:
    """Without a kernel. Every change is seen by every reader at once.

    map_closes : whether `map` closes a descriptor of the file, which completes its last row.
    """

    map_closes = False

    def __init__(self, loop: Loop, root: Path) -> None:
        self._loop = loop
        self._store = WriteStore.of_directory(root)
        self._copies = root.parent / "copies"
        self._files: dict[int, WritableFile] = {}
        self._mount()

    def _mount(self) -> None:
        self._mounted = Writable(self._loop, self._store, resize=True, flush_delay=3600.0)

    def open(self, path: str) -> int:
        file = self._mounted.edit(path)
        self._files[file.opened.handle] = file
        return file.opened.handle

    def write(self, handle: int, offset: int, data: bytes) -> None:
        assert self._files[handle].write(offset, data) == len(data)

    def map(self, handle: int, offset: int, data: bytes) -> None:
        self.write(handle, offset, data)

    def read(self, handle: int, offset: int, size: int) -> bytes:
        return self._files[handle].read(offset, size)

    def fsync(self, handle: int) -> None:
        self._files[handle].fsync()

    def close(self, handle: int) -> None:
        self._files.pop(handle).close()

    def truncate(self, path: str, size: int, handle: int | None) -> None:
        self._loop.run(self._mounted.fs.set_size, self._mounted.stat(path).inode, size)

    def unlink(self, path: str) -> None:
        self._mounted.unlink(path)

    def names(self, path: str) -> list[str]:
        return self._mounted.ls(path)

    def size(self, path: str) -> int:
        return self._mounted.stat(path).size

    def drop_caches(self) -> None:
        self._mounted.drop_caches()

    def remount(self) -> None:
        for handle in list(self._files):
            self._files.pop(handle).release()
        assert self._mounted.fs.drain() == []
        self._mounted.close()
        self._mount()

    def stored(self) -> bytes:
        other = Writable(self._loop, WriteStore(self._store.objects))
        try:
            return other.read("array.bin")
        finally:
            other.close()

    def end(self) -> None:
        self.remount()
        self._mounted.close()


_OPTIONS = "rw,resize,allow_remove,flush_delay=3600"


class MountedFiles:
    """In a mount. What is written is synced, so that every reader must see it."""

    map_closes = True  # Python's own copy of the descriptor

    def __init__(self, mount: Mounter, root: Path) -> None:
        self._mount = mount
        self._root = root
        self._daemon: Daemon = mount(root, _OPTIONS)
        self._opened: set[int] = set()

    def open(self, path: str) -> int:
        handle = os.open(self._daemon.path / path, os.O_RDWR)
        self._opened.add(handle)
        return handle

    def write(self, handle: int, offset: int, data: bytes) -> None:
        assert os.pwrite(handle, data, offset) == len(data)
        # Whoever has written sees it at once.
        assert os.pread(handle, len(data), offset) == data or not data
        os.fsync(handle)

    def map(self, handle: int, offset: int, data: bytes) -> None:
        try:
            mapped = mmap.mmap(handle, 0)
        except OSError as error:
            # One file of an array can be mapped for writing at a time.
            if error.errno != errno.ENODEV or len(self._opened) == 1:
                raise
            self.write(handle, offset, data)
            return
        with mapped:
            mapped[offset : offset + len(data)] = data
            mapped.flush()

    def read(self, handle: int, offset: int, size: int) -> bytes:
        try:
            return os.pread(handle, size, offset)
        except FileNotFoundError:
            # The kernel asks for the size of a chunk file first, and the array is shorter now.
            return b""

    def fsync(self, handle: int) -> None:
        os.fsync(handle)

    def close(self, handle: int) -> None:
        self._opened.discard(handle)
        os.close(handle)

    def truncate(self, path: str, size: int, handle: int | None) -> None:
        if handle is None:
            os.truncate(self._daemon.path / path, size)
        else:
            os.ftruncate(handle, size)

    def unlink(self, path: str) -> None:
        (self._daemon.path / path).unlink()

    def names(self, path: str) -> list[str]:
        return os.listdir(self._daemon.path / path)

    def size(self, path: str) -> int:
        return (self._daemon.path / path).stat().st_size

    def drop_caches(self) -> None:
        for handle in self._opened:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)

    def remount(self) -> None:
        while self._opened:
            os.close(self._opened.pop())
        path = self._daemon.path
        self._daemon.umount()
        self._daemon.wait()
        self._daemon = self._mount(self._root, _OPTIONS, at=path)

    def stored(self) -> bytes:
        return zarr.open_array(self._root, mode="r")[...].tobytes()

    def end(self) -> None:
        while self._opened:
            os.close(self._opened.pop())
        self._daemon.umount()


Files = DirectFiles | MountedFiles
MakeFiles = Callable[[Path], Files]
