"""A file system that is written to by paths, with no kernel and no daemon."""

from __future__ import annotations

import time
from typing import Any

from tests.fs.loop import Loop
from tests.fs.mounted import Mounted, OpenedFile
from zarrfs.fs.attributes import OpenFile, OpenMode
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.base import Store

_PLENTY = 64 << 20


class WritableFile(OpenedFile):
    """An open file of a `Writable`."""

    def write(self, offset: int, data: bytes) -> int:
        return self.mounted.loop.run(self.mounted.fs.write, self.opened.handle, offset, data)

    def fsync(self) -> None:
        self.mounted.loop.run(self.mounted.fs.fsync, self.opened.handle)

    def flush(self) -> None:
        self.mounted.loop.run(self.mounted.fs.flush, self.opened.handle)

    def release(self) -> None:
        super().close()

    def close(self) -> None:
        self.flush()
        self.release()


class Writable(Mounted):
    """One writable `FileSystem`; keywords are `FileSystemConfig`'s."""

    def __init__(self, loop: Loop, store: Store, **config: Any) -> None:
        config = {"memory": _PLENTY, "loaders": 2, "writable": True, "allow_remove": True, **config}
        super().__init__(loop, store, FileSystemConfig(**config))

    @property
    def write_back(self):
        assert self.tree.write_back is not None
        return self.tree.write_back

    def array(self, path: str = ""):
        """The writable array of a directory."""
        return self.tree.find(self.stat(path).inode).node.writable

    def edit(self, path: str, *, read: bool = True, append: bool = False) -> WritableFile:
        inode = self.stat(path).inode

        async def open_file() -> OpenFile:
            return await self.fs.open_file(inode, OpenMode(read, write=True, append=append))

        return WritableFile(self, inode, self.loop.run(open_file))

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Open, write and close."""
        file = self.edit(path)
        assert file.write(offset, data) == len(data)
        file.close()

    def wait_for_memory(self) -> None:
        """Until nothing of the memory for changes is in use.

        Whoever stored some of them releases theirs after it has told so.
        """
        budget = self.write_back.budget
        give_up = time.monotonic() + 10
        budget.shrink()
        while budget.used:
            assert time.monotonic() < give_up, budget.used
            time.sleep(0.001)
            budget.shrink()

    def unlink(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        self.loop.run(self.fs.unlink, self.stat(directory).inode, name)

    def drop_caches(self) -> None:
        self.tree.budget.release(self.tree.cache.reclaim(1 << 60))
