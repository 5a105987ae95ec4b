"""Files of a store that somebody swaps for other things while they are read and written."""

import os
import random
import shutil
import threading
from pathlib import Path

import pytest

from tests.fs.documents import array_document, sharding
from tests.fs.shards import shard
from tests.store.swapper import swapping
from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import StoreError, ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import ANY, ByteRange
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(100)

SIDE = 64
SECRET = b"very-secret" * 1000
SCRATCH = f".zarrfs-tmp-{os.geteuid()}"
ROUNDS = 150

FILES = ("zarr.json", "c/0", "s/zarr.json", "s/c/0")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "c").mkdir(parents=True)
    (root / "s/c").mkdir(parents=True)
    (root / "zarr.json").write_bytes(array_document((SIDE,), (SIDE,)))
    (root / "c/0").write_bytes(bytes(2 * SIDE))
    codecs = [sharding((SIDE // 2,))]
    (root / "s/zarr.json").write_bytes(array_document((SIDE,), (SIDE,), codecs=codecs))
    (root / "s/c/0").write_bytes(shard([bytes(SIDE), b"\1\2" * (SIDE // 2)]))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(SECRET)
    return root


def read_array(store: LocalStore, path: str) -> bytes:
    node = Hierarchy(store).node(path)
    if node is None or not isinstance(node.metadata, ArrayMetadata):
        return b""
    config = ArrayConfig(64 << 20, True)
    array = Array(store, path, node.metadata, PartCache(1 << 20), config)
    counts = node.metadata.layout.read.counts
    found = b""
    for result in array.read_chunks([(i,) for i in range(*counts)]):
        found += b"" if result.chunk is None else result.chunk.tobytes()
    return found


@pytest.mark.parametrize("name", FILES)
def test_what_is_swapped_while_it_is_used(root, name):
    store = LocalStore(root)
    path = root / name
    allowed = {path.read_bytes(), bytes(reversed(path.read_bytes())), b"new" * 100}
    allowed |= {data[: len(data) // 2] for data in set(allowed)}
    array = "s" if name.startswith("s/") else ""
    outcomes = []
    with swapping(path) as swapper:
        while swapper.rounds < 20 * ROUNDS or len(outcomes) < ROUNDS:
            try:
                if (blob := store.get(name, limit=1 << 20)) is not None:
                    # Written in place, it may be seen before all of it is there.
                    data = bytes(blob.data)
                    assert any(whole.startswith(data) for whole in allowed)
                for part in store.get_ranges(name, [ByteRange(1, 3)]) or ():
                    assert b"very" not in bytes(part.data)
                store.info(name)
                outcomes.append("read")
            except StoreError:
                outcomes.append("error")
            try:
                assert b"very" not in read_array(store, array)
                list(store.list_dir(os.path.dirname(name)))
            except ZarrfsError:
                outcomes.append("error")
            try:
                if len(outcomes) % 2:
                    store.put(name, [b"new" * 100], expected=ANY)
                else:
                    store.delete(name, expected=ANY)
            except StoreError:
                outcomes.append("error")
    assert {"read", "error"} <= set(outcomes)
    assert (root.parent / "outside/secret").read_bytes() == SECRET
    assert os.listdir(root.parent / "outside") == ["secret"]
    store.close()


def test_a_scratch_directory_swapped_while_it_is_used(root):
    store = LocalStore(root)
    path = root / SCRATCH
    outside = root.parent / "outside"
    ended = threading.Event()

    def swap() -> None:
        kinds = (
            lambda: os.mkfifo(path),
            lambda: path.symlink_to(outside),
            path.mkdir,
            lambda: path.write_bytes(b""),
        )
        chosen = random.Random(2)
        while not ended.is_set():
            try:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                chosen.choice(kinds)()
            except OSError:
                continue

    thread = threading.Thread(target=swap)
    thread.start()
    stored = []
    try:
        for number in range(3 * ROUNDS):
            other = LocalStore(root)
            try:
                other.put(f"c/{number}", [b"new"], expected=ANY)
                stored.append(f"c/{number}")
            except StoreError:
                pass
            try:
                store.leftovers(remove=False)
                store.leftovers(remove=True)
            except StoreError:
                pass
            other.close()
    finally:
        ended.set()
        thread.join()
    assert all((root / key).read_bytes() == b"new" for key in stored)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    store.put("c/after", [b"new"], expected=ANY)
    assert (root / "c/after").read_bytes() == b"new"
    assert (outside / "secret").read_bytes() == SECRET
    assert os.listdir(outside) == ["secret"]
    for number in range(3 * ROUNDS):
        if (root / f"c/{number}").exists():
            assert (root / f"c/{number}").read_bytes() in (b"new", bytes(2 * SIDE))
    store.close()
