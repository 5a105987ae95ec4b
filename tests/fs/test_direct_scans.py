"""What is read once, and fits into memory, leaves nothing of what is stored in the page cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.shards import shard
from tests.store.page_cache import cached_pages, forget_pages
from zarrfs.fs.nodes import tree
from zarrfs.store.local import direct_reads
from zarrfs.store.local.local import LocalStore
from zarrfs.views import stream
from zarrfs.views.slabs import slab_grid

SHAPE, STORED, INNER = (8, 512, 512), (4, 512, 128), (2, 128, 128)
VALUES = np.random.default_rng(0).integers(0, 1 << 16, SHAPE, "<u2")
STORED_PAGES = 4 * 512 * 128 * 2 // 4096


def box(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape, strict=True))


def encoded(chunk: np.ndarray, *, sharded: bool) -> bytes:
    if not sharded:
        return chunk.tobytes()
    return shard([chunk[box(inner, INNER)].tobytes() for inner in np.ndindex(2, 4, 1)])


@pytest.fixture(params=[False, True], ids=["chunks", "shards"])
def sharded(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharded: bool) -> Path:
    """An array of which the kernel has nothing, and whose first request begins a scan."""
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
    monkeypatch.setattr(stream, "_BELIEVED", 1)
    codecs = [sharding(INNER)] if sharded else [LITTLE]
    root = tmp_path / "a.zarr"
    root.mkdir()
    (root / "zarr.json").write_bytes(
        array_document(SHAPE, STORED, data_type="uint16", codecs=codecs)
    )
    for index in np.ndindex(2, 1, 4):
        path = root.joinpath("c", *map(str, index))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(VALUES[box(index, STORED)], sharded=sharded))
        forget_pages(path)
    fd = os.open(root / "c/0/0/0", os.O_RDONLY)
    try:
        if not (direct_reads._is_possible(fd) and direct_reads._is_cold(fd, 0, 1 << 20)):
            pytest.skip("the file system of the tests, or this kernel, has no direct reads")
    finally:
        os.close(fd)
    return root


def scan(m) -> bytes:
    file = m.open("array.bin")
    data = file.read_all(1 << 20)
    file.close()
    return data


def pages(root: Path) -> list[int]:
    """Of each stored object, how many the kernel has."""
    return [cached_pages(path) for path in root.glob("c/*/*/*")]


def test_what_is_stored_is_read_past_the_page_cache(mount, root, sharded):
    assert scan(mount(LocalStore(root))) == VALUES.tobytes()
    # The index of a shard is small, and the kernel reads around it.
    assert max(pages(root)) <= (STORED_PAGES // 2 if sharded else 0)


def test_what_is_larger_than_memory_is_left_to_the_page_cache(mount, root, monkeypatch):
    monkeypatch.setattr(tree, "all_memory", lambda: 2 * VALUES.nbytes - 2)
    assert scan(mount(LocalStore(root))) == VALUES.tobytes()
    assert min(pages(root)) >= STORED_PAGES


def test_a_read_here_and_there_is_left_to_the_page_cache(mount, root, monkeypatch):
    monkeypatch.setattr(stream, "_BELIEVED", 1 << 30)
    file = mount(LocalStore(root)).open("array.bin")
    assert file.read(4096, 4096) == VALUES.tobytes()[4096:8192]
    file.close()
    assert max(pages(root)) > 0


@pytest.mark.parametrize("sharded", [False], ids=["chunks"], indirect=True)
@pytest.mark.parametrize("order", ["F", "C"])
def test_a_chunk_that_is_read_whole_is_read_past_the_page_cache(mount, root, order):
    file = mount(LocalStore(root), order=order).open("chunks/1/0/2")
    assert file.read_all(1 << 20) == VALUES[box((1, 0, 2), STORED)].tobytes()
    file.close()
    assert max(pages(root)) == 0


def test_a_change_is_seen_by_the_next_scan(mount, root, sharded):
    m = mount(LocalStore(root), recheck=0.0)
    assert scan(m) == VALUES.tobytes()
    changed = VALUES.copy()
    changed[box((1, 0, 2), STORED)] += 1
    path = root / "c/1/0/2"
    temporary = root.with_name("new")
    temporary.write_bytes(encoded(changed[box((1, 0, 2), STORED)], sharded=sharded))
    forget_pages(temporary)
    temporary.rename(path)
    assert scan(m) == changed.tobytes()
