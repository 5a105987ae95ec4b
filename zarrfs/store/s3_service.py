"""S3 and what speaks its protocol: GetObject through the client of ``s3fs``.

The calls are ``s3fs``'s own, with its credentials, endpoints and retries; only what
it does not hand out (the ETag beside the bytes, pages of a listing) is taken here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.foreign_errors import s3_code
from zarrfs.store.http_service import parse_content_range, range_header
from zarrfs.store.ranged_reader import RangeNotSatisfiable, Reply

_PART = 1 << 18


class S3Service:
    """A `Service` on an ``s3fs`` file system; paths are ``bucket/key``."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self._filesystem.loop
        return loop

    async def head(self, path: str) -> ObjectInfo:
        reply = await self._call("head_object", path)
        return _describe(reply, int(reply["ContentLength"]))

    @asynccontextmanager
    async def get(self, path: str, wanted: ByteRange) -> AsyncIterator[Reply]:
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

    def close(self) -> None:
        # s3fs closes its client when the file system is collected.
        self._filesystem = None

    async def list_pages(self, path: str) -> AsyncIterator[list[str]]:
        bucket, _, prefix = path.partition("/")
        prefix = prefix.rstrip("/") + "/" if prefix else ""
        wanted = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
        while True:
            page = await self._filesystem._call_s3("list_objects_v2", **wanted)
            names = [common["Prefix"] for common in page.get("CommonPrefixes", ())]
            names += [entry["Key"] for entry in page.get("Contents", ())]
            # An object named like the prefix itself marks a directory.
            yield [name.removeprefix(prefix) for name in names if name != prefix]
            if not page.get("IsTruncated"):
                return
            wanted["ContinuationToken"] = page["NextContinuationToken"]

    async def _call(self, method: str, path: str, **arguments: str) -> Any:
        bucket, _, key = path.partition("/")
        if not key:
            raise FileNotFoundError(path)
        return await self._filesystem._call_s3(method, Bucket=bucket, Key=key, **arguments)


def _describe(reply: Any, size: int) -> ObjectInfo:
    modified = reply.get("LastModified")
    mtime_ns = None if modified is None else int(modified.timestamp()) * 1_000_000_000
    version = reply.get("VersionId")
    return ObjectInfo(size, mtime_ns, (reply.get("ETag"), version, mtime_ns, size))
