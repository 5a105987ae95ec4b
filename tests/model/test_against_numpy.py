"""Every byte of every file of any array, against numpy."""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from tests.model.arrays import chunk_at, models
from tests.soak import examples
from zarrfs.errors import BudgetExceeded
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(300)

PLENTY = 64 << 20


@pytest.fixture
def opened(loop: Loop):
    """Writes a model, and opens it; one example's are gone when the next comes."""
    directory = Path(tempfile.mkdtemp())

    class Opened:
        def __init__(self, model, **config):
            path = directory / "a"
            shutil.rmtree(path, ignore_errors=True)
            model.write(path)
            config = {"memory": PLENTY, "loaders": 2, **config}
            try:
                self.mounted = Mounted(loop, LocalStore(path), FileSystemConfig(**config))
            except BudgetExceeded:
                config["memory"] = PLENTY
                self.mounted = Mounted(loop, LocalStore(path), FileSystemConfig(**config))
            self.memory = config["memory"]

        def __enter__(self):
            return self.mounted

        def __exit__(self, *_):
            try:
                memory = self.mounted.stats()["memory"]
                assert memory["highest"] <= self.memory
                assert self.mounted.errors() == []
            finally:
                self.mounted.close()

    yield Opened
    shutil.rmtree(directory)


def in_file(numbers, byteorder, order="C"):
    """The bytes that a flat file of an array has."""
    dtype = numbers.dtype.newbyteorder(">" if byteorder == "big" else "<")
    return numbers.astype(dtype).tobytes(order=order)


byteorders = st.sampled_from(("little", "big"))
orders = st.sampled_from("CF")


@examples(20)
@given(model=models(), byteorder=byteorders, order=orders, data=st.data())
def test_any_range_of_any_flat_file(opened, model, byteorder, order, data):
    numbers = model.numbers()
    # Hardly more than one chunk takes, so that chunks come and go.
    memory = data.draw(st.sampled_from((300_000, 1 << 20, PLENTY)))
    with opened(model, byteorder=byteorder, order=order, memory=memory) as mounted:
        whole = in_file(numbers, byteorder, order)
        npy = mounted.read("array.npy")
        loaded = np.load(BytesIO(npy))
        assert loaded.shape == model.shape
        assert np.array_equal(loaded, numbers)
        assert npy.endswith(whole)
        assert mounted.stat("array.bin").size == len(whole)
        assert mounted.stat("array.npy").size == len(npy)

        # Two handles of each, used in turn.
        files = [(mounted.open("array.bin"), whole), (mounted.open("array.npy"), npy)] * 2
        for _ in range(12):
            file, content = data.draw(st.sampled_from(files))
            offset = data.draw(st.integers(0, len(content) + 5))
            size = data.draw(st.sampled_from((0, 1, 3, 17)) | st.integers(0, len(content) + 5))
            assert file.read(offset, size) == content[offset : offset + size]
        assert files[0][0].read_all(data.draw(st.integers(1000, 100_000))) == whole


@examples(20)
@given(model=models(), byteorder=byteorders, order=orders, data=st.data())
def test_any_range_of_any_chunk_and_shard_file(opened, model, byteorder, order, data):
    numbers = model.numbers()
    with opened(model, byteorder=byteorder, order=order) as mounted:
        trees = {"chunks": model.chunks}
        if model.shards is not None:
            trees["shards"] = model.shards
        assert set(mounted.ls()) - {"array.bin", "array.npy", "zarr.json", ".zarrfs"} == set(trees)
        for name, shape in trees.items():
            counts = [-(-n // c) for n, c in zip(model.shape, shape, strict=True)]
            if 0 in counts:
                continue
            for _ in range(3):
                index = tuple(data.draw(st.integers(0, count - 1)) for count in counts)
                path = "/".join([name, *map(str, index or (0,))])
                content = in_file(chunk_at(numbers, model.fill, index, shape), byteorder)
                assert mounted.stat(path).size == len(content)
                offset = data.draw(st.integers(0, len(content) + 3))
                size = data.draw(st.integers(0, len(content) + 3))
                file = mounted.open(path)
                assert file.read(offset, size) == content[offset : offset + size]
                assert file.read_all() == content


@examples(10)
@given(model=models(), data=st.data())
def test_all_names_lead_to_files_and_back(opened, model, data):
    with opened(model) as mounted:
        counts = [-(-n // c) for n, c in zip(model.shape, model.chunks, strict=True)] or [1]
        path, depth, seen = "chunks", 0, set()
        while depth < len(counts):
            entries = mounted.entries(path)
            assert [entry.name for entry in entries] == [str(i) for i in range(counts[depth])]
            inodes = {entry.attributes.inode for entry in entries}
            assert not inodes & seen
            seen |= inodes
            if not entries:
                return
            assert {e.attributes.is_directory for e in entries} == {depth < len(counts) - 1}
            path = f"{path}/{data.draw(st.sampled_from(entries)).name}"
            depth += 1
        assert mounted.stat(path).size == np.dtype(model.dtype).itemsize * int(
            np.prod(model.chunks, dtype=int)
        )
