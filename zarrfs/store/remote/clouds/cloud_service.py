"""Objects of Google's and Azure's stores, through ``obstore``.

``gcsfs`` and ``adlfs`` follow the conventions of the ecosystem: options, environment, endpoints,
files of credentials. So they find the endpoint and the credentials, and ``obstore`` sends the
requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zarrfs.store.base import ByteRange, Data, Generation, ObjectInfo
from zarrfs.store.ranges import resolve
from zarrfs.store.remote.obstore_objects import NotServed, ObstoreObjects, failure
from zarrfs.store.remote.ranges.ranged_reader import RangeNotSatisfiable, Reply
from zarrfs.store.remote.requests import BadReply, ObjectChanged, RequestConfig, ServiceError

if TYPE_CHECKING:
    from obstore.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or container, and the properties of its service.

    store : of ``obstore``; its keys are relative to the bucket.
    condition : maps the state of an object to the argument of ``obstore`` for a put on the
        condition that the object is in that state; None if the state does not suffice.
    delete : deletes the object at a key if it is in the given state (None: in any state), with the
        client that supports conditions. Blocks. Raises
        `zarrfs.store.remote.requests.NotAsExpected`, FileNotFoundError, and the errors of that
        client.
    suffixes : whether the service supports ranges counted from an object's end.
    """

    name: str
    store: ObjectStore
    condition: Callable[[Generation], dict[str, str] | None]
    delete: Callable[[str, Generation | None], None]
    suffixes: bool


class CloudService:
    """A `Service` on a bucket; paths are ``bucket/key``.

    loop : the event loop on which requests are sent.
    """

    def __init__(
        self, bucket: Bucket, loop: asyncio.AbstractEventLoop, config: RequestConfig
    ) -> None:
        self._bucket = bucket
        self._loop = loop
        self._objects = ObstoreObjects(bucket.store, _known, smallest_part=config.smallest_part)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def head(self, path: str) -> ObjectInfo:
        try:
            return await self._objects.head(self.key(path))
        except NotServed as error:
            raise _unusable(error) from error

    @asynccontextmanager
    async def get(self, path: str, wanted: ByteRange) -> AsyncIterator[Reply]:
        etag = None
        if wanted.offset < 0 and not self._bucket.suffixes:
            info = await self.head(path)
            wanted, etag = _counted(wanted, info.size), str(info.generation[0])
        try:
            reply = await self._objects.get(self.key(path), wanted, etag)
        except NotServed as error:
            # If the object has no byte of the range, services answer differently.
            span = resolve(wanted, (await self.head(path)).size)
            if span.stop > span.start:
                raise _unusable(error) from error
            raise RangeNotSatisfiable from error
        except ServiceError as error:
            if etag is not None and error.status == 412:
                raise ObjectChanged from error
            raise
        yield reply

    async def list_pages(self, path: str) -> AsyncIterator[list[str]]:
        """One page: ``obstore`` returns a level of a listing only once it is complete."""
        import obstore  # noqa: PLC0415 - a slow import that few stores need

        prefix = self.key(path, "").rstrip("/")
        try:
            found = await obstore.list_with_delimiter_async(self._bucket.store, prefix or None)
        except Exception as error:
            raise failure(error) from error
        names = [f"{name.rstrip('/')}/" for name in found["common_prefixes"]]
        names += [str(entry["path"]) for entry in found["objects"]]
        yield [name[len(prefix) :].lstrip("/") for name in names if name.rstrip("/") != prefix]

    async def put(
        self, path: str, parts: Sequence[Data], expected: Mapping[str, str] | None, *, new: bool
    ) -> tuple[str | None, str | None]:
        """See `ObstoreObjects.put`."""
        try:
            return await self._objects.put(self.key(path), parts, expected, new=new)
        except NotServed as error:
            raise _unusable(error) from error

    def key(self, path: str, none: str | None = None) -> str:
        """The key in the bucket; ``none`` if the path names only the bucket."""
        key = path.partition("/")[2]
        if key:
            return key
        if none is None:
            raise FileNotFoundError(path)
        return none

    def close(self) -> None:
        pass


def _counted(wanted: ByteRange, size: int) -> ByteRange:
    """A range counted from the end of an object of ``size`` bytes, converted to its beginning."""
    span = resolve(wanted, size)
    if span.stop == span.start:
        raise RangeNotSatisfiable
    return ByteRange(span.start, span.stop - span.start)


def _unusable(error: NotServed) -> BadReply:
    cause = str(error.__cause__).partition("\n")[0]
    return BadReply(f"the service answers with what cannot be used: {cause}")


def _known(size: int, mtime_ns: int, etag: str | None, version: str | None) -> ObjectInfo:
    return ObjectInfo(size, mtime_ns, generation(etag, version, size))


def generation(etag: str | None, version: str | None, size: int) -> Generation:
    """The generation of an object with this ETag, version and size."""
    return (etag, version, size)
