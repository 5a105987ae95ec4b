"""A file system driven by paths, with no kernel and no daemon."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from tests.fs.loop import Loop
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenFile, OpenMode
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.filesystem import FileSystem
from zarrfs.store.base import Store

# A prime, so that requests fall within elements and across the borders of chunks.
_REQUEST = 65_521


class DroppedPages:
    """Stands in for the kernel and remembers what it was told to forget, and what to keep."""

    def __init__(self) -> None:
        self.inodes: list[int] = []
        self.given: list[tuple[int, int, bytes]] = []
        self.waited_for: list[Container[int] | None] = []
        self.while_settling: Callable[[], Awaitable[object]] | None = None

    def drop(self, inode: int) -> None:
        self.inodes.append(inode)

    def store(self, inode: int, offset: int, data: bytes, current: Callable[[], bool]) -> None:
        if current():
            self.given.append((inode, offset, bytes(data)))

    async def settled(self, inodes: Container[int] | None = None) -> None:
        self.waited_for.append(inodes)
        if self.while_settling is not None:
            await self.while_settling()


@dataclass(frozen=True)
class OpenedFile:
    """An open file of a `Mounted`."""

    mounted: Mounted
    inode: int
    opened: OpenFile

    @property
    def keep_cache(self) -> bool:
        return self.opened.keep_cache

    def read(self, offset: int, size: int) -> bytes:
        fs = self.mounted.fs
        return bytes(self.mounted.loop.run(fs.read, self.opened.handle, offset, size))

    def read_all(self, request: int = _REQUEST) -> bytes:
        parts = []
        offset = 0
        while part := self.read(offset, request):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def close(self) -> None:
        self.mounted.loop.run(self.mounted.fs.release, self.opened.handle)


class Mounted:
    """One `FileSystem`; paths are relative to its root."""

    def __init__(
        self,
        loop: Loop,
        store: Store,
        config: FileSystemConfig,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        self.loop = loop
        self.store = store
        self.fs = FileSystem.open(store, config, document or {})
        self.dropped = DroppedPages()
        self.fs.set_kernel_cache(self.dropped)

    @property
    def tree(self):
        return self.fs._tree

    def stat(self, path: str = "") -> Attributes:
        return self.loop.run(self._find, path)

    def entries(self, path: str = "", cookie: int = 0, most: int = 10**6) -> list[DirectoryEntry]:
        return self.loop.run(self._entries, path, cookie, most)

    def ls(self, path: str = "") -> list[str]:
        return [entry.name for entry in self.entries(path)]

    def open(self, path: str, *, write: bool = False) -> OpenedFile:
        return self.open_inode(self.stat(path).inode, write=write)

    def open_inode(self, inode: int, *, write: bool = False) -> OpenedFile:
        async def open_file() -> OpenFile:
            return await self.fs.open_file(inode, OpenMode(write=write))

        return OpenedFile(self, inode, self.loop.run(open_file))

    def read(self, path: str, request: int = _REQUEST) -> bytes:
        """A whole file, opened and closed."""
        file = self.open(path)
        try:
            return file.read_all(request)
        finally:
            file.close()

    def xattrs(self, path: str = "") -> dict[str, bytes]:
        inode = self.stat(path).inode
        names = self.loop.run(self.fs.listxattr, inode)
        return {name: self.loop.run(self.fs.getxattr, inode, name) for name in names}

    def stats(self) -> dict[str, Any]:
        return json.loads(self.read(".zarrfs/stats.json"))

    def errors(self) -> list[tuple[str, str]]:
        """Key and reason of the errors in ``stats.json``, oldest first."""
        return [(error["key"], error["reason"]) for error in self.stats()["errors"]["last"]]

    def close(self) -> None:
        self.fs.close()

    async def _find(self, path: str) -> Attributes:
        attributes = await self.fs.getattr(self.fs.root_inode)
        for name in filter(None, path.split("/")):
            attributes = await self.fs.lookup(attributes.inode, name)
        return attributes

    async def _entries(self, path: str, cookie: int, most: int) -> list[DirectoryEntry]:
        found: list[DirectoryEntry] = []
        inode = (await self._find(path)).inode
        async with aclosing(self.fs.readdir(inode, cookie)) as entries:
            async for entry in entries:
                found.append(entry)
                if len(found) == most:
                    break
        return found
