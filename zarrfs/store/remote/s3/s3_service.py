"""S3 and services with its protocol: GET and PUT through ``obstore``, the rest through ``s3fs``.

``s3fs`` finds credentials and endpoints by the conventions of the ecosystem. Its client lists,
deletes and uploads in parts, because ``obstore`` takes no condition for these. If ``s3fs`` has
settings that ``obstore`` lacks, its client sends all requests.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from zarrfs.store.base import ByteRange, Data, Generation, ObjectInfo
from zarrfs.store.remote.foreign_errors import s3_code
from zarrfs.store.remote.http_service import parse_content_range, range_header
from zarrfs.store.remote.obstore_objects import NotServed, ObstoreObjects
from zarrfs.store.remote.ranges.on_loop import OnLoop
from zarrfs.store.remote.ranges.ranged_reader import RangeNotSatisfiable, Reply
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.remote.s3.s3_obstore import opener_for

_PART = 1 << 18


class S3Service:
    """A `Service` on an ``s3fs`` file system; paths are ``bucket/key``.

    Shared state: ``_objects`` by bucket, made under ``_connecting``; None if ``s3fs`` sends all.
    """

    def __init__(self, filesystem: Any, config: RequestConfig) -> None:
        self._config = config
        self._filesystem = filesystem
        self.on_loop = OnLoop(lambda: self._filesystem.loop, config.timeout_s)
        self._connecting = threading.Lock()
        self._objects: dict[str, ObstoreObjects | None] = {}
        # Installed with every such file system.
        self._translate = importlib.import_module("s3fs.errors").translate_boto_error

    def head(self, path: str) -> ObjectInfo:
        bucket, objects, key = self._reached(path)
        if objects is not None:
            try:
                return objects.head(key)
            except NotServed:
                self._objects[bucket] = None
        reply = self.on_loop.run(partial(self._call, "head_object", path))
        return _describe(reply, int(reply["ContentLength"]))

    def get(self, path: str, wanted: ByteRange) -> Reply:
        bucket, objects, key = self._reached(path)
        if objects is not None:
            try:
                return objects.get(key, wanted)
            except NotServed:
                self._objects[bucket] = None
        return self.on_loop.reply(self._get(path, wanted))

    def abandoned(self) -> None:
        for objects in list(self._objects.values()):
            if objects is not None:
                objects.slow_down()

    @asynccontextmanager
    async def _get(self, path: str, wanted: ByteRange) -> AsyncIterator[Reply]:
        try:
            reply = await self._call("get_object", path, Range=range_header(wanted))
        except OSError as error:
            if s3_code(error) == "InvalidRange":
                raise RangeNotSatisfiable from error
            raise
        body = reply["Body"]
        try:
            if "ContentRange" in reply:
                start, stop, size = parse_content_range(reply["ContentRange"])
            else:
                start, stop = 0, int(reply["ContentLength"])
                size = stop
            yield Reply(
                start, stop, size, lambda size: _describe(reply, size), body.iter_chunks(_PART)
            )
        finally:
            body.close()

    def put(
        self, path: str, parts: Sequence[Data], conditions: Mapping[str, str]
    ) -> Mapping[str, str | None] | None:
        """PutObject through ``obstore``; None if only ``s3fs`` can do it.

        conditions : as `call` takes them, ``IfMatch`` or ``IfNoneMatch``.

        Returns the ``ETag`` and the ``VersionId``. Raises `ServiceError`, and `TimeoutError`.
        """
        bucket, objects, key = self._reached(path)
        if objects is None:
            return None
        etag = conditions.get("IfMatch")
        expected = None if etag is None else {"e_tag": etag}
        try:
            etag, version = self.on_loop.run(
                partial(objects.put, key, parts, expected, new="IfNoneMatch" in conditions)
            )
        except NotServed:
            self._objects[bucket] = None
            return None
        return {"ETag": etag, "VersionId": version}

    def _reached(self, path: str) -> tuple[str, ObstoreObjects | None, str]:
        """The bucket, the reader of its objects (None: ``s3fs``), and the key in the bucket."""
        bucket, _, key = path.partition("/")
        if not key:
            raise FileNotFoundError(path)
        if bucket not in self._objects:
            with self._connecting:
                if bucket not in self._objects:
                    opener = self.on_loop.run(partial(opener_for, self._filesystem, bucket))
                    self._objects[bucket] = (
                        None if opener is None else ObstoreObjects(opener, _known, self._config)
                    )
        # obstore would take such a key for another one.
        plain = "//" not in f"/{key}/"
        return bucket, self._objects[bucket] if plain else None, key

    async def call(self, method: str, path: str, **arguments: Any) -> Any:
        """A call that ``s3fs`` does not retry, because a retry would not restart the body.

        Raises the exceptions into which ``s3fs`` translates errors.
        """
        bucket, _, key = path.partition("/")
        filesystem = self._filesystem
        await filesystem.set_session()
        client_method = getattr(await filesystem.get_s3(bucket), method)
        wanted = filesystem._get_s3_method_kwargs(
            client_method, Bucket=bucket, Key=key, **arguments
        )
        try:
            return await client_method(**wanted)
        except Exception as error:
            if (translated := self._translate(error)) is error:
                raise
            raise translated from error

    def close(self) -> None:
        # s3fs closes its client when the file system is garbage-collected.
        self._filesystem = None
        self._objects.clear()

    def list_dir(self, path: str) -> Iterator[str]:
        prefix, pages = self._pages(path, Delimiter="/")
        for page in pages:
            names = [common["Prefix"] for common in page.get("CommonPrefixes", ())]
            names += [entry["Key"] for entry in page.get("Contents", ())]
            # An object with the name of the prefix itself marks a directory.
            yield from [name.removeprefix(prefix) for name in names if name != prefix]

    def list_below(self, path: str) -> Iterator[tuple[str, ObjectInfo]]:
        prefix, pages = self._pages(path)
        for page in pages:
            for entry in page.get("Contents", ()):
                if not entry["Key"].endswith("/"):
                    key = entry["Key"].removeprefix(prefix)
                    yield key, _describe(entry, int(entry["Size"]))

    def _pages(self, path: str, **options: str) -> tuple[str, Iterator[Any]]:
        """The prefix of all keys below a path, and the pages of their listing."""
        bucket, _, prefix = path.partition("/")
        prefix = prefix.rstrip("/") + "/" if prefix else ""

        def pages() -> Iterator[Any]:
            wanted = {"Bucket": bucket, "Prefix": prefix, **options}
            while True:
                page = self.on_loop.run(
                    partial(self._filesystem._call_s3, "list_objects_v2", **wanted)
                )
                yield page
                if not page.get("IsTruncated"):
                    return
                wanted["ContinuationToken"] = page["NextContinuationToken"]

        return prefix, pages()

    async def _call(self, method: str, path: str, **arguments: str) -> Any:
        bucket, _, key = path.partition("/")
        if not key:
            raise FileNotFoundError(path)
        return await self._filesystem._call_s3(method, Bucket=bucket, Key=key, **arguments)


def _describe(reply: Any, size: int) -> ObjectInfo:
    modified = reply.get("LastModified")
    mtime_ns = None if modified is None else int(modified.timestamp()) * 1_000_000_000
    return ObjectInfo(size, mtime_ns, generation(reply, mtime_ns, size))


def _known(size: int, mtime_ns: int, etag: str | None, version: str | None) -> ObjectInfo:
    reply = {"ETag": etag, "VersionId": version}
    return ObjectInfo(size, mtime_ns, generation(reply, mtime_ns, size))


def generation(reply: Any, mtime_ns: int | None, size: int) -> Generation:
    """The generation of the object that a reply describes.

    Without the time if there is an ETag, because the reply to a put does not contain the time.
    """
    etag, version = reply.get("ETag"), reply.get("VersionId")
    # For an object without versions, some replies have no version and others "null".
    version = None if version == "null" else version
    return (etag, version, None if etag else mtime_ns, size)
