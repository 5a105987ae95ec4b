"""The server: HTTP/1.1 over asyncio, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from tests.remote_server.link import Counts, Fault, Link, Pace, every, send
from tests.remote_server.objects import Objects
from tests.remote_server.service import Reply, Request, answer

_CONTROL = "/.control/"
_READ = 1 << 18
TOGETHER_S = 20.0


class RemoteServer:
    """Objects behind one port of the loopback interface; see the package.

    plan : told of each request by method and target, what goes wrong with it. Default nothing.
    together : no request for an object is answered before so many requests were in flight at once,
        or `TOGETHER_S` passed.
    ranges : whether parts of objects are sent. Default True.
    keys : access keys that may ask; None: everybody may.
    """

    def __init__(self, link: Link = Link(), *, port: int = 0) -> None:  # noqa: B008 - frozen
        self.link = link
        self.plan: Callable[[str, str], Fault | None] = lambda _method, _target: None
        self.together = 0
        self.ranges = True
        self.keys: frozenset[str] | None = None
        self.objects = Objects()
        self.counts = Counts()
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="remote-server", daemon=True)

    def start(self) -> RemoteServer:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __enter__(self) -> RemoteServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def make_bucket(self, name: str, objects: Mapping[str, bytes] | None = None) -> None:
        """In one step."""

        def make() -> None:
            self.objects.buckets.setdefault(name, {})
            for key, data in (objects or {}).items():
                self.objects.put(name, key, data)

        self._call(make)

    def upload(self, root: Path, bucket: str) -> None:
        """The files of a directory, below its name."""
        files = [path for path in root.rglob("*") if path.is_file()]
        start = root.parent
        self.make_bucket(bucket, {str(p.relative_to(start)): p.read_bytes() for p in files})

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._call(lambda: self.objects.put(bucket, key, data))

    def delete(self, bucket: str, key: str) -> None:
        self._call(lambda: self.objects.delete(bucket, key))

    def drop_connections(self) -> None:
        """Break all that are open."""
        self._call(self._cancel_all)

    def s3_options(self, key: str = "someone", secret: str = "hunter2") -> dict[str, object]:
        """Storage options for a bucket here."""
        return {
            "key": key,
            "secret": secret,
            "endpoint_url": self.url,
            "client_kwargs": {"region_name": "us-east-1"},
        }

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def join(self) -> None:
        """Until it is closed."""
        self._thread.join()

    def _call(self, work: Callable[[], object]) -> None:
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(run)
        if not done.wait(30):
            raise TimeoutError("the server does not answer")

    def _cancel_all(self) -> None:
        for task in self._connections:
            task.cancel()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        # A small backlog would make a hundred new connections wait for a second each.
        serving = asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=1 << 20, backlog=1024
        )
        server = loop.run_until_complete(serving)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        loop.run_forever()
        server.close()
        self._cancel_all()
        loop.run_until_complete(asyncio.gather(*self._connections, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.counts.connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_new = True
        up, down = Pace(self.link.bandwidth), Pace(self.link.bandwidth)
        while (request := await _head(reader)) is not None:
            if request.target.startswith(_CONTROL):
                request = await _with_body(request, reader, writer, Pace(0))
                await _reply(writer, request, self._control(request), Pace(0))
                continue
            range_wanted = request.headers.get("range", "")
            self.counts.begin(request.kind, (request.method, request.target, range_wanted))
            try:
                request = await _with_body(request, reader, writer, up)
                if not self.ranges:
                    request.headers.pop("range", None)
                self.counts.received += len(request.body)
                await asyncio.sleep(self.link.latency_s * (2 if is_new else 1))
                is_new = False
                if request.kind.endswith(" object"):
                    await self._gathered()
                if not await self._respond(writer, request, down):
                    return
            finally:
                self.counts.end()

    async def _gathered(self) -> None:
        give_up = self._loop.time() + TOGETHER_S
        while self.counts.most_in_flight < self.together and self._loop.time() < give_up:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def _respond(self, writer: asyncio.StreamWriter, request: Request, down: Pace) -> bool:
        """Whether the connection goes on."""
        fault = self.plan(request.method, request.target)
        if fault is Fault.HANG:
            await asyncio.sleep(3600)
        if fault is Fault.DROP:
            return False
        if fault is Fault.BUSY:
            body = b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>"
            await _reply(writer, request, Reply(503, {}, body), down)
            return True
        reply = answer(self.objects, request, self.keys)
        if fault is Fault.LOST:
            return False
        if fault in (Fault.TORN, Fault.DRIP):
            await _reply_badly(writer, reply, slowly=fault is Fault.DRIP)
            return False
        if request.method != "HEAD":
            self.counts.sent += len(reply.body)
        await _reply(writer, request, reply, down)
        return True

    def _control(self, request: Request) -> Reply:
        """For who runs it in another process: counts, and another link."""
        name = urlsplit(request.target).path.removeprefix(_CONTROL)
        if name == "link":
            self.link = Link(**json.loads(request.body))
        if name == "busy":
            self.plan = every(json.loads(request.body)["every"])
        if name == "reset":
            self.counts.reset()
        return Reply(200, {}, json.dumps(self.counts.snapshot()).encode())


async def _head(reader: asyncio.StreamReader) -> Request | None:
    """A request without its body; None where the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Request(method, target, headers)


async def _with_body(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pace: Pace
) -> Request:
    headers = request.headers
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunked(reader, pace)
    else:
        body = await _read_exactly(reader, int(headers.get("content-length", "0")), pace)
    if "aws-chunked" in headers.get("content-encoding", "") or headers.get(
        "x-amz-content-sha256", ""
    ).startswith("STREAMING-"):
        body = _unframed(body)
    return Request(request.method, request.target, headers, body)


async def _read_exactly(reader: asyncio.StreamReader, length: int, pace: Pace) -> bytes:
    body = bytearray()
    while len(body) < length:
        part = await reader.read(min(_READ, length - len(body)))
        if not part:
            raise asyncio.IncompleteReadError(bytes(body), length)
        body += part
        await pace.passed(len(part))
    return bytes(body)


async def _read_chunked(reader: asyncio.StreamReader, pace: Pace) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await _read_exactly(reader, size, pace)
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return bytes(body)


def _unframed(body: bytes) -> bytes:
    """Without the frames in which S3's clients send what they sign piece by piece."""
    found, at = bytearray(), 0
    while at < len(body):
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        if not size:
            break
        found += body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
    return bytes(found)


async def _reply(writer: asyncio.StreamWriter, request: Request, reply: Reply, pace: Pace) -> None:
    writer.write(_head_of(reply))
    if request.method != "HEAD":
        await send(writer, memoryview(reply.body), pace)
    await writer.drain()


async def _reply_badly(writer: asyncio.StreamWriter, reply: Reply, *, slowly: bool) -> None:
    writer.write(_head_of(reply))
    body = bytes(reply.body)
    if not slowly:
        writer.write(body[: len(body) // 2])
        await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.write_eof()
        await asyncio.sleep(0.01)
        return
    for byte in body:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)


def _head_of(reply: Reply) -> bytes:
    headers = {"Content-Length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
