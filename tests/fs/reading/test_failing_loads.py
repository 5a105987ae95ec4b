"""An exception anywhere in a load is an error for all that wait for it."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.fs.documents import LITTLE, ZSTD, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from tests.soak import EXHAUSTIVE
from zarrfs.errors import ChunkError
from zarrfs.threads import ThreadPool
from zarrfs.views import flat
from zarrfs.views.slabs import slab_grid, slabs

pytestmark = pytest.mark.timeout(600)

FOLDERS = tuple(str(Path(zarrfs.__file__).parent / name) for name in ("array", "cache", "views"))
# What is charged and what is in the cache changes in steps that belong together.
BOOKS = ("block_cache.py", "array_chunks.py")
# What ends a load: to fail there is to fail in the answer itself.
LAST = {
    "_hand_over",
    "ChunkLoads.request.<locals>.<listcomp>",  # of what is given back
    "Flights.end",
    "Slabs._end",
    "Slabs._over",
    "StagedRows._end",
    "Ticket._answer",
    "Ticket.finish",
    "Ticket.part.<locals>.done",
    "_Wait.__call__",
}
# Of the calls, one of so many fails in each run, and all with `make soak`.
EACH = 3
BLOCK = 64 << 10
PLACE = 5 << 19


class Fault:
    """Has the next call of one function fail in a loader thread; notes which ones are called."""

    def __init__(self) -> None:
        self.seen: dict[CodeType, None] = {}
        self.next: CodeType | None = None
        self.hit = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        name = code.co_filename
        if not name.startswith(FOLDERS) or name.endswith(BOOKS) or code.co_qualname in LAST:
            return
        if threading.current_thread().name.startswith("loader-"):
            self.seen.setdefault(code)
            if code is self.next:
                self.next, self.hit = None, True
                raise ZeroDivisionError(f"in {code.co_qualname}")


@pytest.fixture
def fault(monkeypatch):
    # What failed is tried again at once.
    monkeypatch.setattr(slabs, "_FAILED", 0.0)
    fault = Fault()
    threading.settrace(fault)
    yield fault
    threading.settrace(None)


def chunk() -> tuple[MemoryStore, str, bytes]:
    values = np.arange(64, dtype="<u2").reshape(8, 8)
    document = array_document((8, 8), (8, 4), data_type="uint16", codecs=[LITTLE])
    parts = [part.tobytes() for part in np.split(values, 2, axis=1)]
    objects = {f"c/0/{number}": part for number, part in enumerate(parts)}
    return MemoryStore({"zarr.json": document, **objects}), "array.bin", values.tobytes()


def inner_chunks() -> tuple[MemoryStore, str, bytes]:
    values = np.arange(64, dtype="<u2").reshape(8, 8)
    codecs = [sharding((8, 4), codecs=[LITTLE])]
    document = array_document((8, 8), (8, 8), data_type="uint16", codecs=codecs)
    parts = [part.tobytes() for part in np.split(values, 2, axis=1)]
    return (
        MemoryStore({"zarr.json": document, "c/0/0": shard(parts)}),
        "array.bin",
        values.tobytes(),
    )


def part() -> tuple[MemoryStore, str, bytes]:
    values = np.arange(4 << 20, dtype="<u4").astype("<u2")
    document = array_document((4 << 20,), (1 << 19,), data_type="uint16", codecs=[LITTLE])
    objects = {f"c/{n}": part.tobytes() for n, part in enumerate(np.split(values, 8))}
    return (
        MemoryStore({"zarr.json": document, **objects}),
        "array.bin",
        values.tobytes()[PLACE : PLACE + 4096],
    )


def lines() -> tuple[MemoryStore, str, bytes]:
    codecs = [{"name": "vlen-utf8", "configuration": {}}]
    document = array_document((4,), (2,), data_type="string", fill_value="", codecs=codecs)
    words = np.array(["one", "two", "three", "four"], dtype=object)
    vlen = numcodecs.VLenUTF8()
    objects = {f"c/{n}": bytes(vlen.encode(words[2 * n : 2 * n + 2])) for n in range(2)}
    expected = "".join(json.dumps(word) + "\n" for word in words).encode()
    return MemoryStore({"zarr.json": document, **objects}), "array.jsonl", expected


def slab() -> tuple[MemoryStore, str, bytes]:
    shape = (64, 32, 64)
    values = np.arange(np.prod(shape), dtype="<u4").astype("<u2").reshape(shape)
    document = array_document(shape, (32, 16, 64), data_type="uint16", codecs=[LITTLE])
    objects = {
        f"c/{i}/{j}/0": values[i * 32 : (i + 1) * 32, j * 16 : (j + 1) * 16].tobytes()
        for i in range(2)
        for j in range(2)
    }
    return MemoryStore({"zarr.json": document, **objects}), "array.bin", values.tobytes()[:BLOCK]


def stripe(count: int) -> tuple[MemoryStore, str, bytes]:
    shape = (40, 50, 480)
    values = np.arange(np.prod(shape), dtype="<u4").astype("<u2").reshape(shape)
    zstd = numcodecs.Zstd(1)
    chunks = (40, 50, 480 // count)
    document = array_document(shape, chunks, data_type="uint16", codecs=[LITTLE, ZSTD])
    parts = [bytes(zstd.encode(each.tobytes())) for each in np.split(values, count, axis=2)]
    objects = {f"c/0/0/{number}": each for number, each in enumerate(parts)}
    return MemoryStore({"zarr.json": document, **objects}), "array.bin", values.tobytes()[:BLOCK]


KINDS: dict[str, tuple[Callable[[], tuple[MemoryStore, str, bytes]], int, str]] = {
    "chunk": (chunk, 64, "ChunkLoads._load"),
    "inner chunk": (inner_chunks, 64, "ChunkLoads._load"),
    "part": (part, 4, "PartReads._work"),
    "lines": (lines, 64, "Elements.fetch"),
    "slab": (slab, 64, "Slabs._fill"),
    "stripe": (lambda: stripe(40), 1, "StagedRows._decode"),
    "stripe of one chunk": (lambda: stripe(2), 3, "StagedRows._decode_alone"),
}


def test_a_scan_for_which_there_is_no_thread_tells_the_reason(mount, monkeypatch):
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
    monkeypatch.setattr(flat, "_BELIEVED", 1)
    store, path, expected = slab()
    m = mount(store, memory=64 << 20, recheck=3600.0)
    file = m.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(ThreadPool, "_start", lambda _: False)
        with pytest.raises(ChunkError, match="ulimit -u"):
            file.read(0, len(expected))
    ((_, reason),) = m.errors()
    assert "ulimit -u" in reason
    assert file.read(0, len(expected)) == expected
    file.close()


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_at_any_call_of_a_load_is_an_error(mount, fault, monkeypatch, tmp_path, kind):
    make, memory, load = KINDS[kind]
    if "s" in kind[:1]:
        # Each row of chunks is a slab, and the first request begins a scan.
        monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
        monkeypatch.setattr(flat, "_BELIEVED", 1)
    store, path, expected = make()

    place = PLACE if kind == "part" else 0

    def read(code: CodeType | None) -> None:
        m = mount(store, memory=memory << 20, spill=str(tmp_path), recheck=3600.0)
        readers = [m.open(path) for _ in range(2)]
        fault.next, fault.hit = code, False
        try:
            for file in readers:
                try:
                    assert file.read(place, len(expected)) == expected
                except (ChunkError, ZeroDivisionError):
                    assert fault.hit
            fault.next = None
            for file in readers:
                assert file.read(place, len(expected)) == expected
        finally:
            for file in readers:
                file.close()
            m.close()

    read(None)
    assert load in [code.co_qualname for code in fault.seen]
    # Of each kind others.
    seen = list(fault.seen)
    for code in seen if EXHAUSTIVE else seen[list(KINDS).index(kind) % EACH :: EACH]:
        read(code)
