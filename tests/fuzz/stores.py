"""Whole arrays: changed shards, zip files and HTTP replies, read as a mount reads them."""

import io
import json
import math
import socket
import struct
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import google_crc32c
import numpy as np

from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore
from tests.fuzz import streams
from tests.fuzz.mutate import mutated_bytes
from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import StoreError, ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import ByteRange, Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.wrappers.retry import RetryConfig

_SHAPE = (6, 10)
_PIPELINES = (
    "shard",
    "shard-start",
    "shard-zstd",
    "shard-of-shards",
    "shard-gzip",
    "gzip",
    "crc32c",
)
RETRY = RetryConfig(attempt_timeout_s=2, deadline_s=3, first_pause_s=0.001, max_pause_s=0.001)


def read_all(store: Store, path: str = "") -> list[str]:
    """Reads every chunk of the array at ``path``; the errors that came in their place."""
    errors: list[str] = []
    hierarchy = Hierarchy(store, memory=64 << 20)
    node = hierarchy.root()
    if path:
        found = hierarchy.node(path)
        if found is None:
            return ["missing"]
        node = found
    if not isinstance(node.metadata, ArrayMetadata):
        return [str(node.problem)]
    array = Array(store, path, node.metadata, PartCache(1 << 20), ArrayConfig(64 << 20, True))
    counts = node.metadata.layout.read.counts
    if node.metadata.layout.read.chunks > 100:
        return errors
    for result in array.read_chunks(list(np.ndindex(*counts))):
        if result.error is not None:
            errors.append(str(result.error))
        else:
            assert result.chunk is not None
            assert result.chunk.shape == node.metadata.layout.read.chunk_shape(result.index)
    return errors


class Shards:
    """A case reads an array whose only object was changed, or has an index made at random."""

    def __init__(self) -> None:
        self._seeds: list[tuple[bytes, Sequence[bytes]]] = []
        for name in _PIPELINES:
            data_type, codecs = streams.V3[name]
            document = array_document(_SHAPE, _SHAPE, data_type=data_type, codecs=codecs,
                                      fill_value=0)  # fmt: skip
            self._seeds.append((document, streams._v3(name, data_type, codecs).seeds))

    def run(self, random: Random) -> str | None:
        if random.random() < 0.3:
            document, seeds = self._seeds[0]
            data = _with_index(random, random.choice(seeds))
        else:
            document, seeds = random.choice(self._seeds)
            data = mutated_bytes(random, random.choice(seeds), seeds)
        store = MemoryStore({"zarr.json": document, "c/0/0": data})
        return "error" if read_all(store) else None


def _with_index(random: Random, shard: bytes) -> bytes:
    """Entries that overlap, share bytes, or lead to the index; the checksum is right."""
    entries = math.prod(_SHAPE) // 15
    size = len(shard)
    whole = (random.choice((0, 1, 60, size - 60, size, 2**63, 2**64 - 1)) for _ in range(entries))
    offsets = [offset if random.random() < 0.3 else 60 * random.randrange(4) for offset in whole]
    lengths = [random.choice((60, 60, 60, 0, 61, 2**64 - 1)) for _ in range(entries)]
    index = struct.pack(f"<{2 * entries}Q", *(n for each in zip(offsets, lengths, strict=True)
                                              for n in each))  # fmt: skip
    return shard[: -len(index) - 4] + index + struct.pack("<I", google_crc32c.value(index))


def _members(random: Random, archive: bytes) -> bytes:
    """A zip file with members of one name, or that overlap, or lead elsewhere."""
    data, place = bytearray(archive), 0
    while (place := data.find(b"PK\1\2", place)) >= 0:
        if random.random() < 0.7:
            at = random.choice((20, 24, 28, 42))  # sizes, the length of the name, the place
            number = random.choice((0, 1, 5, 30, 100, 1 << 31, 0xFFFFFFFF))
            struct.pack_into("<H" if at == 28 else "<I", data, place + at, number & 0xFFFF
                             if at == 28 else number)  # fmt: skip
        if random.random() < 0.3:
            name = random.choice((b"c/0", b"zarr.json", b"../x", b"c/"))
            data[place + 46 : place + 46 + len(name)] = name
        place += 4
    return bytes(data)


class Archives:
    """A case opens a changed zip file, or a changed tar file, which may be compressed."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory()
        members = {"zarr.json": array_document((8,), (8,)), "c/0": bytes(16)}
        zips = [_zip(members, method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]
        self._seeds = [("zip", zips), ("tar", [_tar(members, ""), _tar(members, "pax")]),
                       ("tar.gz", [_tar(members, "", "gz")])]  # fmt: skip

    def run(self, random: Random) -> str | None:
        ending, seeds = random.choice(self._seeds)
        path = Path(self._place.name, f"array.{ending}")
        change = _members if ending == "zip" and random.random() < 0.5 else None
        data = random.choice(seeds)
        path.write_bytes(change(random, data) if change else mutated_bytes(random, data, seeds))
        protocol = ending.partition(".")[0]
        try:
            store = open_store(f"{protocol}://::file://{path}", StoreConfig(retry=RETRY))
        except ZarrfsError:
            return "not opened"
        try:
            return "error" if read_all(store) else None
        except ZarrfsError:
            return "not read"
        finally:
            store.close()


def _zip(members: Mapping[str, bytes], method: int) -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return file.getvalue()


def _tar(members: Mapping[str, bytes], form: str, compression: str = "") -> bytes:
    kind = tarfile.PAX_FORMAT if form == "pax" else tarfile.GNU_FORMAT
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode=f"w:{compression}", format=kind) as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                if form == "pax":
                    info.pax_headers = {"comment": "x" * 200}
                else:
                    archive.addfile(tarfile.TarInfo("long/" * 30), io.BytesIO())
                archive.addfile(info, io.BytesIO(data))
        return file.getvalue()


class Replies:
    """A case asks a server that sends a changed reply to everything."""

    def __init__(self) -> None:
        self._reply = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        self._url = f"http://127.0.0.1:{port}/root"
        self._config = StoreConfig(retry=RETRY)
        self._store = open_store(self._url, self._config)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(1)
                try:
                    asked = connection.recv(65536)
                    reply = self._reply
                    if asked.startswith(b"HEAD"):
                        reply = reply.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                    connection.sendall(reply)
                except OSError:
                    continue

    def run(self, random: Random) -> str | None:
        self._reply = mutated_bytes(random, random.choice(_REPLIES), _REPLIES)
        try:
            if random.random() < 0.5:
                blob = self._store.get("x", limit=1000)
                assert blob is None or len(blob.data) <= 1000
            else:
                found: Any = self._store.get_ranges("x", [ByteRange(2, 3)])
                assert found is None or len(found[0].data) <= 3
        except StoreError:
            return "error"
        return None


def _reply(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


_REPLIES = (
    _reply("200 OK", b"0123456789", 'ETag: "abc"'),
    _reply("206 Partial Content", b"234", 'ETag: "abc"', "Content-Range: bytes 2-4/10"),
    _reply("404 Not Found", b""),
    _reply("416 Range Not Satisfiable", b"", "Content-Range: bytes */10"),
    _reply("302 Found", b"", "Location: /root/x"),
    _reply("503 Service Unavailable", b"later", "Retry-After: 1"),
    _reply("200 OK", b"0123456789", "Content-Encoding: gzip"),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
    json.dumps({"not": "HTTP"}).encode(),
)
