"""Reads the objects of one snapshot, which never change."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

from fsspec.asyn import get_loop

from zarrfs.errors import is_panic
from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.ranges import Span, resolve
from zarrfs.store.remote.icechunk.repository import Snapshot, failure, first_line
from zarrfs.store.remote.quiet import quiet
from zarrfs.store.remote.ranges.on_loop import OnLoop
from zarrfs.store.remote.ranges.ranged_reader import RangeNotSatisfiable, Reply, Service
from zarrfs.store.remote.requests import BadReply, RequestConfig

_T = TypeVar("_T")

_METADATA = "zarr.json"
# Keys that are neither metadata nor those of chunks.
_NO_KEY = "invalid zarr key format"
# Has icechunk return plain bytes instead of a buffer of zarr-python.
_BYTES = SimpleNamespace(buffer=SimpleNamespace(from_bytes=lambda data: data))


class SnapshotService(Service):
    """A `Service` on a snapshot; paths are keys of Zarr.

    ``icechunk`` keeps the lists of chunks that it has fetched, so ``head`` of a further chunk sends
    no request.
    """

    def __init__(self, snapshot: Snapshot, config: RequestConfig) -> None:
        # A class of zarr-python, which zarrfs does not import by itself.
        self._range: Any = vars(importlib.import_module("icechunk.store"))["RangeByteRequest"]
        self._store: Any = snapshot.session.store
        self._on_loop = OnLoop(get_loop, config.timeout_s)
        self._id = snapshot.session.snapshot_id
        self._metadata = snapshot.metadata

    def head(self, path: str) -> ObjectInfo:
        return self._on_loop.run(partial(self._head, path))

    def get(self, path: str, wanted: ByteRange) -> Reply:
        info = self.head(path)
        span = resolve(wanted, info.size)
        if span.stop == span.start and info.size:
            raise RangeNotSatisfiable
        body = self._body(path, span)
        return Reply(span.start, span.stop, info.size, lambda _size: info, body)

    def _body(self, path: str, span: Span) -> Iterator[Any]:
        if span.stop > span.start:
            yield self._on_loop.run(partial(self._part, path, span))

    def list_dir(self, path: str) -> Iterator[str]:
        yield from self._on_loop.run(partial(self._list_dir, path))

    async def _head(self, path: str) -> ObjectInfo:
        if path.rpartition("/")[2] != _METADATA:
            await self._admit(path)
        size = await self._ask(path, partial(self._store.getsize, path))
        # The size of a missing object is 0, too.
        if not size and not await self._ask(path, partial(self._store.exists, path)):
            raise FileNotFoundError(path)
        return ObjectInfo(size, None, (self._id, size))

    async def _part(self, path: str, span: Span) -> Any:
        part = self._range(span.start, span.stop)
        try:
            data = await self._ask(path, partial(self._store.get, path, _BYTES, part))
        except FileNotFoundError:
            data = None
        if data is None:
            # It must not seem to be missing, which reads as the fill value.
            raise BadReply("the snapshot has it, but the repository does not")
        return data

    async def _list_dir(self, path: str) -> list[str]:
        names: list[str] = []
        await self._admit(path)
        try:
            names.extend([str(name) async for name in self._store.list_dir(path)])
        except BaseException as error:  # noqa: BLE001 - as below
            raise self._converted(path, error) from None
        if _METADATA in names:
            # The chunk of an array without axes is an object, any other "c" a directory.
            objects = {_METADATA}
            if "c" in names and await self._holds(f"{path}/c"):
                objects.add("c")
        else:
            # In a tree of chunks all names of a level are objects, or all are directories.
            whole = bool(names) and await self._holds(f"{path}/{names[0]}")
            objects = set(names) if whole else set()
        return [name if name in objects else f"{name}/" for name in names]

    async def _admit(self, path: str) -> None:
        """Let ``icechunk`` read the manifests that it needs for a path. Raises `BadReply`."""
        if self._metadata.needs_manifests(path):
            # The files are read on this very event loop.
            await asyncio.to_thread(self._metadata.count_manifests, path)

    async def _holds(self, path: str) -> bool:
        try:
            return bool(await self._ask(path, partial(self._store.exists, path.lstrip("/"))))
        except FileNotFoundError:
            return False

    async def _ask(self, path: str, ask: Callable[[], Awaitable[_T]]) -> _T:
        try:
            with quiet:
                return await ask()
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception; all are raised
            raise self._converted(path, error) from None

    def _converted(self, path: str, error: BaseException) -> BaseException:
        if isinstance(error, KeyError):
            return FileNotFoundError(path)
        if type(error).__module__.partition(".")[0] != "icechunk" and not is_panic(error):
            return error
        if first_line(error).startswith(_NO_KEY):
            return FileNotFoundError(path)
        return failure(error)
