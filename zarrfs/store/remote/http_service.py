"""HTTP(S) servers: ranged GETs through ``obstore``, or the session of fsspec's HTTP file system.

``obstore`` follows redirects by itself and would send headers to the new host. So ``obstore`` sends
the requests only if the user gave nothing that is for one host alone. The session sends all others,
and those to servers that do not honour ranges, answer HEAD or report sizes.

Follows RFC 9110: sections 14 (ranges), 8.8 (ETag, Last-Modified) and 15 (status).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import getproxies

from fsspec.asyn import get_loop

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.remote.obstore_objects import NotServed, ObstoreObjects
from zarrfs.store.remote.ranges.on_loop import OnLoop
from zarrfs.store.remote.ranges.ranged_reader import RangeNotSatisfiable, Reply
from zarrfs.store.remote.requests import BadReply, ListingUnsupported, RequestConfig, ServiceError

_GONE = (404, 410)
_NO_HEAD = (405, 501)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10
# Options of a request that concern this side's network, and not one host.
_FOR_ALL_HOSTS = ("timeout", "ssl", "proxy", "proxy_auth", "proxy_headers")
_CLOSE_S = 2.0
# All clients write such paths in the same way; clients differ in what they escape in others.
_NAME = r"\.?[A-Za-z0-9_-][A-Za-z0-9._~-]*"
_PLAIN = re.compile(rf"{_NAME}(?:/{_NAME})*")


class HttpService:
    """A `Service` on an ``fsspec`` HTTP file system; paths are URLs.

    Plain HTTP has no listing: the links of an index page are none.

    Shared state: ``_servers``, by origin; ``_serves``, whether ``obstore`` is still asked.
    """

    def __init__(self, filesystem: Any, config: RequestConfig) -> None:
        # Installed with every such file system.
        import aiohttp  # noqa: PLC0415

        self._filesystem = filesystem
        # The session limits the whole request; zarrfs limits only silence.
        self._no_limit = aiohttp.ClientTimeout(total=None)
        self._stranger: Any = None
        self._config = config
        self._servers: dict[str, ObstoreObjects] = {}
        self._serves = _understood(filesystem)
        self._on_loop = OnLoop(lambda: self.loop, config.timeout_s)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        filesystem = self._filesystem
        if filesystem.loop is None:
            # fsspec would have started it with the file system, and then closes the session.
            filesystem._loop, filesystem.asynchronous = get_loop(), False
        loop: asyncio.AbstractEventLoop = filesystem.loop
        return loop

    def head(self, path: str) -> ObjectInfo:
        if (found := self._reached(path)) is not None:
            objects, key = found
            try:
                return objects.head(key)
            except (NotServed, RangeNotSatisfiable):
                self._serves = False
            except ServiceError as error:
                if error.status not in _NO_HEAD:
                    raise
                self._serves = False
        return self._on_loop.run(partial(self._head, path))

    async def _head(self, path: str) -> ObjectInfo:
        async with self._request("HEAD", path, {}) as response:
            if response.status not in _NO_HEAD:
                _raise_for_status(response, path)
                size = _length(response.headers)
                if size is not None:
                    return _describe(response.headers, size)
        # Without HEAD, or without the size in its reply, the reply to a GET gives the size.
        try:
            async with self._get(path, ByteRange(0, 1)) as reply:
                if reply.size is None:
                    raise BadReply("the server does not report the object's size")
                return reply.describe(reply.size)
        except RangeNotSatisfiable as error:
            if error.args:
                info: ObjectInfo = error.args[0]
                return info
            raise BadReply("the server does not report the object's size") from error

    def get(self, path: str, wanted: ByteRange) -> Reply:
        if (found := self._reached(path)) is not None:
            objects, key = found
            try:
                return objects.get(key, wanted)
            except NotServed:
                self._serves = False
        return self._on_loop.reply(self._get(path, wanted))

    def abandoned(self) -> None:
        for objects in list(self._servers.values()):
            objects.slow_down()

    def _reached(self, url: str) -> tuple[ObstoreObjects, str] | None:
        """The reader of the object at ``url`` and its key there; None if the session reads it."""
        if not self._serves:
            return None
        parts = urlsplit(url)
        key = parts.path[1:]
        if parts.query or parts.fragment or "@" in parts.netloc or not _PLAIN.fullmatch(key):
            return None
        origin = f"{parts.scheme}://{parts.netloc}"
        if (objects := self._servers.get(origin)) is None:
            from obstore.store import HTTPStore  # noqa: PLC0415 - it may not be installed

            made = ObstoreObjects(partial(HTTPStore, origin), _known, self._config, as_stored=True)
            objects = self._servers.setdefault(origin, made)
        return objects, key

    @asynccontextmanager
    async def _get(self, path: str, wanted: ByteRange) -> AsyncIterator[Reply]:
        async with self._request("GET", path, {"Range": range_header(wanted)}) as response:
            headers = response.headers
            if response.status == 416:
                total = headers.get("Content-Range", "").removeprefix("bytes */")
                if total == "0":
                    raise RangeNotSatisfiable(_describe(headers, 0))
                raise RangeNotSatisfiable
            _raise_for_status(response, path)
            describe = partial(_describe, headers)
            body = response.content.iter_any()
            if response.status == 206:
                start, stop, size = parse_content_range(headers.get("Content-Range", ""))
                yield Reply(start, stop, size, describe, body)
            elif response.status == 200:
                length = _length(headers)
                yield Reply(0, length, length, describe, body)
            else:
                raise BadReply(f"the server answered with status {response.status}")

    def close(self) -> None:
        filesystem = self._filesystem
        sessions = (getattr(filesystem, "_session", None), self._stranger)
        filesystem._session = self._stranger = None
        for session in sessions:
            if session is None:
                continue
            closing = asyncio.run_coroutine_threadsafe(session.close(), self.loop)
            with contextlib.suppress(TimeoutError):
                closing.result(_CLOSE_S)

    def list_dir(self, path: str) -> Iterator[str]:
        raise ListingUnsupported

    @asynccontextmanager
    async def _request(self, method: str, url: str, extra: Mapping[str, str]) -> AsyncIterator[Any]:
        filesystem = self._filesystem
        session = await filesystem.set_session()
        options = dict(filesystem.kwargs)
        # With compression in transit, ranges would count compressed bytes, not the object's.
        extra = {"Accept-Encoding": "identity", **extra}
        headers = {**options.pop("headers", {}), **extra}
        follow = options.pop("allow_redirects", True)
        options.setdefault("timeout", self._no_limit)
        target = _as_typed(filesystem.encode_url, url)
        first = _origin(target)
        for _ in range(_MOST_REDIRECTS):
            async with session.request(
                method, target, headers=headers, allow_redirects=False, **options
            ) as response:
                place = response.headers.get("Location")
                if not follow or response.status not in _REDIRECTS or place is None:
                    yield response
                    return
            target = response.url.join(type(response.url)(place, encoded=True))
            if _origin(target) != first:
                # Headers, credentials and cookies are for the host that the user named.
                headers = extra
                options = {name: options[name] for name in _FOR_ALL_HOSTS if name in options}
                session = await self._session_for_others()
        raise BadReply("the server redirects again and again")

    async def _session_for_others(self) -> Any:
        """A session without the headers and credentials that the user gave for the first host."""
        if self._stranger is None:
            import aiohttp  # noqa: PLC0415 (see `__init__`)

            given = getattr(self._filesystem, "client_kwargs", None) or {}
            self._stranger = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=bool(given.get("trust_env"))
            )
        return self._stranger


def _as_typed(encode: Callable[[str], Any], url: str) -> Any:
    """``url`` with its path encoded, but its query as it is: a signature may be of that form."""
    bare, mark, query = url.partition("?")
    target = encode(bare)
    if not mark:
        return target
    query = re.sub(r"[^!-~]", lambda found: quote(found[0]), query.partition("#")[0])
    return type(target)(f"{target}?{query}", encoded=True)


def _origin(url: Any) -> tuple[str, str | None, int | None]:
    """Scheme, host and port, which together identify a server."""
    parts = urlsplit(str(url))
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port


def object_url(root: str, key: str) -> str:
    """``key`` below the URL ``root``, with the query of ``root`` (a signature, a token) kept."""
    parts = urlsplit(root)
    path = parts.path.rstrip("/") + "/" + quote(key, safe="/!$&'()*+,;=:@~")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def range_header(wanted: ByteRange) -> str:
    """The value of a ``Range`` header; a negative offset requests all bytes from there on."""
    if wanted.offset < 0:
        return f"bytes={wanted.offset}"
    return f"bytes={wanted.offset}-{wanted.offset + wanted.length - 1}"


def parse_content_range(value: str) -> tuple[int, int, int]:
    """``(start, stop, size)`` of ``bytes 0-4/10``; raises `BadReply`."""
    try:
        unit, _, rest = value.partition(" ")
        part, _, size = rest.partition("/")
        first, _, last = part.partition("-")
        if unit != "bytes":
            raise ValueError(unit)
        return int(first), int(last) + 1, int(size)
    except ValueError as error:
        raise BadReply("the server does not say which part it sent") from error


def _length(headers: Mapping[str, str]) -> int | None:
    if headers.get("Content-Encoding", "identity") not in ("identity", ""):
        return None  # the size would be that of the compressed body
    length = headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def _describe(headers: Mapping[str, str], size: int) -> ObjectInfo:
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    mtime_ns = None
    if modified is not None:
        with contextlib.suppress(ValueError):
            mtime_ns = int(parsedate_to_datetime(modified).timestamp()) * 1_000_000_000
    return ObjectInfo(size, mtime_ns, (etag, mtime_ns, size))


def _known(size: int, mtime_ns: int, etag: str | None, _version: str | None) -> ObjectInfo:
    """The same for the values of ``obstore``, which reports a missing time as the epoch."""
    reported_mtime = mtime_ns or None
    return ObjectInfo(size, reported_mtime, (etag, reported_mtime, size))


def _raise_for_status(response: Any, url: str) -> None:
    if response.status in _GONE:
        raise FileNotFoundError(url)
    response.raise_for_status()


def _understood(filesystem: Any) -> bool:
    """Whether ``obstore`` is installed and reaches servers as the session would."""
    try:
        import obstore.store  # noqa: F401, PLC0415
    except ImportError:
        return False
    if type(filesystem).__name__ != "HTTPFileSystem":
        return False
    client = dict(getattr(filesystem, "client_kwargs", None) or {})
    trust_env = client.pop("trust_env", False)
    if client or filesystem.kwargs:
        return False
    # The session takes proxies from the environment only with this setting.
    return bool(trust_env) or not getproxies()
