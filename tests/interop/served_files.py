"""Reads whole files of a mounted source, with FUSE or without, in one way."""

import atexit
import os
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from tests.fs.loop import Loop
from zarrfs.errors import EntryNotFound
from zarrfs.fs.attributes import Attributes, OpenMode
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.filesystem import FileSystem
from zarrfs.store.open import StoreConfig, open_store

# A prime, so that requests fall within elements and across the borders of chunks.
_REQUEST = 65_521
_MEMORY = 64 << 20
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


@cache
def _loop() -> Loop:
    """For all of this process: to start one takes longer than most reads."""
    loop = Loop()
    atexit.register(loop.close)
    return loop


class ServedFiles(Protocol):
    """The files of one source."""

    def read(self, path: str) -> bytes:
        """A whole file. Raises FileNotFoundError."""
        ...

    def names(self, path: str) -> list[str]:
        """Entries of a directory, in the order they are listed."""
        ...


class DirectFiles:
    """Through the file system, with no kernel and no daemon."""

    def __init__(
        self,
        source: str,
        *,
        follow_symlinks: bool = False,
        zarr_format: Literal[1, 2, 3] | None = None,
        storage_options: Mapping[str, object] = _NO_OPTIONS,
    ) -> None:
        config = StoreConfig(storage_options=storage_options, follow_symlinks=follow_symlinks)
        store = open_store(source, config)
        settings = FileSystemConfig(memory=_MEMORY, zarr_format=zarr_format)
        try:
            self._filesystem = FileSystem.open(store, settings, {})
        except BaseException:
            store.close()
            raise

    def read(self, path: str) -> bytes:
        return _loop().run(self._read, path)

    def names(self, path: str) -> list[str]:
        return _loop().run(self._names, path)

    def close(self) -> None:
        self._filesystem.close()

    async def _find(self, path: str) -> Attributes:
        attributes = await self._filesystem.getattr(self._filesystem.root_inode)
        for name in filter(None, path.split("/")):
            try:
                attributes = await self._filesystem.lookup(attributes.inode, name)
            except EntryNotFound:
                raise FileNotFoundError(path) from None
        return attributes

    async def _names(self, path: str) -> list[str]:
        directory = await self._find(path)
        return [entry.name async for entry in self._filesystem.readdir(directory.inode, 0)]

    async def _read(self, path: str) -> bytes:
        attributes = await self._find(path)
        handle = (await self._filesystem.open_file(attributes.inode, OpenMode())).handle
        whole = bytearray()
        try:
            while part := bytes(await self._filesystem.read(handle, len(whole), _REQUEST)):
                whole += part
        finally:
            await self._filesystem.release(handle)
        assert len(whole) == attributes.size, f"{path}: stat says {attributes.size} bytes"
        return bytes(whole)


class MountedFiles:
    """Through system calls on a mount point."""

    def __init__(self, mount_point: Path) -> None:
        self._mount_point = mount_point

    def read(self, path: str) -> bytes:
        file = self._mount_point / path
        with file.open("rb", buffering=0) as opened:
            whole = b"".join(iter(partial(opened.read, _REQUEST), b""))
        size = file.stat().st_size
        assert len(whole) == size, f"{path}: stat says {size} bytes"
        return whole

    def names(self, path: str) -> list[str]:
        return os.listdir(self._mount_point / path)
