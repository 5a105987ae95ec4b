"""What threads share is touched only by who holds its lock."""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import pytest

from tests.fs.documents import array_document, sharding
from tests.fs.write_store import Request, WriteStore
from tests.waiting import wait_until
from zarrfs.array.shards.parts import PartCache
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.errors import StoreUnavailable

SHAPE = (64, 64)


def held(lock: Lock) -> bool:
    """Whether somebody holds it. If the caller does, the answer is always right."""
    if lock.acquire(False):
        lock.release()
        return False
    return True


def checked(
    method: Callable[..., Any], lock_of: Callable[[Any], Lock], missed: list[str]
) -> Callable[..., Any]:
    """The same method, which notes each call without the lock."""

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        if not held(lock_of(self)):
            missed.append(method.__name__)
        return method(self, *arguments, **keywords)

    return call


def guarded(plain: Any, lock: Lock, free: set[str], missed: list[str]) -> Any:
    """A copy of a container that notes each use without the lock.

    free : methods that may be called without it.
    """
    kind = type(plain)
    names = {"__getitem__", "__setitem__", "__delitem__", "__iter__", "__contains__", "__len__"}
    names |= {name for name in dir(kind) if not name.startswith("_")}
    methods = {n: checked(getattr(kind, n), lambda _: lock, missed) for n in names - free}
    made = type("Guarded", (kind,), methods)
    result = made.__new__(made)
    kind.__init__(result)
    return result


@pytest.fixture(params=[None, (32, 32)], ids=["chunks", "shards"])
def mount(opened, request):
    """One whose threads store what is changed while more is changed."""
    codecs = {} if request.param is None else {"codecs": [sharding((8, 8))]}
    document = array_document(SHAPE, request.param or (8, 8), data_type="uint16", **codecs)
    return opened(WriteStore({"zarr.json": document}))


def work(mount) -> None:
    """Threads that write, whole chunks and parts, that store, and of which some fail to."""
    failing = iter(range(10**9))

    def sometimes(request: Request) -> None:
        if request.operation == "put" and next(failing) % 3 == 0:
            raise StoreUnavailable(request.key, "by this test")

    mount.store.before = sometimes
    file = mount.edit("array.bin")
    data = np.arange(SHAPE[0] * SHAPE[1], dtype="<u2").reshape(SHAPE)

    def write(number: int) -> None:
        for row in range(number, SHAPE[0], 4):
            offset = row * data[0].nbytes
            file.write(offset, data[row, :20].tobytes())
            mount.write_back.drain()
            file.write(offset + 40, data[row, 20:].tobytes())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    mount.store.before = lambda _request: None
    file.fsync()
    file.close()
    assert mount.read("array.bin") == data.tobytes()


def keep(mount) -> None:
    """Changes as the journal takes them."""
    mount.edit("array.bin").write(0, bytes(100))
    assert list(mount.array()._dirty.snapshot())


@pytest.mark.parametrize("use", [work, keep])
def test_changed_objects(mount, use):
    dirty = mount.array()._dirty
    missed: list[str] = []
    # Whether there are any may be asked by anybody.
    dirty._objects = guarded(OrderedDict(), dirty.changed, {"__len__"}, missed)
    use(mount)
    assert missed == []


def test_objects_that_are_due(mount):
    flusher = mount.array()._flusher
    dirty = mount.array()._dirty

    def in_thread(number: int) -> None:
        mount.edit("array.bin").write(number * 2048, bytes(2048))
        flusher.flush_older(float("inf"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(in_thread, range(4)))
    mount.write_back.drain()
    assert not dirty
    # Jobs that find no changes left may come after the drain.
    wait_until(lambda: not flusher.due._due)


def test_changes_of_a_tile(mount, monkeypatch):
    missed: list[str] = []
    for name in ("write", "begin_store", "end_store", "stored", "copy"):
        method = getattr(TileChanges, name)
        monkeypatch.setattr(TileChanges, name, checked(method, lambda tile: tile.lock, missed))
    keep(mount)
    work(mount)
    assert missed == []


def test_indexes_of_shards():
    cache = PartCache(100)
    missed: list[str] = []
    cache._items = guarded(OrderedDict(), cache._lock, set(), missed)
    for number in range(3):
        cache.put((number,), memoryview(bytes(50)))
    assert [cache.get((number,)) is None for number in range(3)] == [True, False, False]
    cache.resize(50)
    cache.clear()
    assert missed == []


def test_how_often_was_written(mount):
    """A reader that found the same number twice would keep what it read in between."""
    array = mount.array()
    missed: list[int] = []

    class Counted(type(array)):  # type: ignore[misc]
        @property
        def writes(self) -> int:
            return self.__dict__["writes"]

        @writes.setter
        def writes(self, number: int) -> None:
            if not held(self._count_lock):
                missed.append(number)
            self.__dict__["writes"] = number

    array.__class__ = Counted
    before = array.writes
    work(mount)
    assert array.writes > before
    assert missed == []
