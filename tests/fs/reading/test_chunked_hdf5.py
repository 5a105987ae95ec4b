"""``array.chunked.h5``: the chunks of the file are those of the array."""

import io
import json
import subprocess

import h5py
import numpy as np
import pytest
import zarr

from tests.cli.in_process import in_process
from tests.fs.documents import array_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.images import noise
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import NotPermitted
from zarrfs.fs.coherence.array_pages import ArrayPages
from zarrfs.store.local.local import LocalStore

NAME = "array.chunked.h5"
VIEWS = ("chunked.h5",)


def _dataset(file):
    (found,) = (dataset for dataset in file.values() if dataset.chunks)
    return found


class Reader(io.RawIOBase):
    """The file, which is too large to be read whole."""

    def __init__(self, mounted):
        self.file, self.size = mounted.open(NAME), mounted.stat(NAME).size
        self.at = 0

    def seek(self, to, whence=0):
        self.at = to if whence == 0 else self.size + to
        return self.at

    def tell(self):
        return self.at

    def readinto(self, out):
        data = self.file.read(self.at, len(out))
        out[: len(data)] = data
        self.at += len(data)
        return len(data)

    def readable(self):
        return True

    def seekable(self):
        return True


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype"),
    [
        ((100, 130, 70), (64, 64, 64), "u2"),
        ((2000,), (7,), "f8"),
        ((90, 80), (100, 3), "c16"),
        ((35, 26, 5), (1, 2, 5), "?"),
        ((3, 2, 4, 5), (1, 1, 1, 5), "i8"),
    ],
)
def test_elements(tmp_path, mount, shape, chunks, dtype):
    data = noise(shape, dtype)
    array = zarr.create_array(tmp_path / "a", data=data, chunks=chunks)
    m = mount(tmp_path / "a", views=VIEWS)
    found = m.read(NAME)
    assert len(found) == m.stat(NAME).size
    assert m.read(NAME, 4096) == found
    with h5py.File(io.BytesIO(found)) as file:
        dataset = _dataset(file)
        assert dataset.chunks == chunks
        # The kernel reads ahead of programs that read the tree.
        first = dataset.id.get_chunk_info(0).byte_offset
        assert first - found.rindex(b"TREE", 0, first) > 1 << 20
        assert dataset.id.get_num_chunks() == array.nchunks
        np.testing.assert_array_equal(dataset[...], data)
    done = in_process("export", tmp_path / "a", tmp_path / "x.chunked.h5")
    assert done.status == 0, done.stderr
    assert (tmp_path / "x.chunked.h5").read_bytes() == found


def test_zeros_between_boxes_take_no_room_in_an_exported_file(mount, tmp_path):
    """They may be more than the elements. The file ends with those behind the last box."""
    data = noise((3, 3 << 19), "u1")
    zarr.create_array(tmp_path / "a", data=data, chunks=(1, 3 << 19))
    (small := tmp_path / "small").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", small], check=True, timeout=9)
    try:
        path = small / "x.chunked.h5"
        done = in_process("export", tmp_path / "a", path)
        assert done.status == 0, done.stderr
        assert path.stat().st_blocks * 512 < data.nbytes + (1 << 20)
        assert path.read_bytes() == mount(tmp_path / "a", views=VIEWS).read(NAME)
    finally:
        subprocess.run(["umount", small], check=True, timeout=9)


def test_an_export_that_goes_on_keeps_no_bytes_where_zeros_are_now(tmp_path):
    data = noise((12, 1 << 20), "u1")
    path, file = tmp_path / "a", tmp_path / "x.chunked.h5"
    array = zarr.create_array(path, data=data, chunks=(1, 1 << 20), compressors=None)
    (bad := path / "c/11/0").write_bytes(b"torn")
    assert in_process("export", "--resume", path, file).status == 1
    # As it is after a kill some seconds later than the last note.
    state = tmp_path / f"{file.name}.zarrfs-part.json"
    noted = json.loads(state.read_text())
    assert noted["done"] > 2
    state.write_text(json.dumps(noted | {"done": 1}))
    bad.write_bytes(data[11].tobytes())
    array[5] = 0
    assert in_process("export", "--resume", path, file).status == 0
    assert in_process("export", path, tmp_path / "y.chunked.h5").status == 0
    assert file.read_bytes() == (tmp_path / "y.chunked.h5").read_bytes()


def test_a_million_chunks(mount, tmp_path):
    store = MemoryStore({"zarr.json": array_document((1000, 1000, 2), (1, 1, 2))})
    store.put("c/777/333/0", b"\1\0\2\0")
    m = mount(store, views=VIEWS)
    with h5py.File(Reader(m), "r") as found:
        dataset = _dataset(found)
        assert dataset[777, 333].tolist() == [1, 2]
        assert dataset[0, 0].tolist() == [7, 7]
        assert dataset[999, 999].tolist() == [7, 7]


def test_a_plane_is_decoded_ahead(mount, tmp_path, monkeypatch):
    begun = []
    load_ahead = CachedArray.load_ahead

    def note(array, chunks):
        begun.extend(chunks)
        load_ahead(array, chunks)

    monkeypatch.setattr(CachedArray, "load_ahead", note)
    data = noise((64, 8, 16), "u1").repeat(1024, 2)
    zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(8, 1, 8192), dtype="u1")[...] = data
    m = mount(tmp_path / "a", views=VIEWS)
    with h5py.File(Reader(m), "r") as found:
        np.testing.assert_array_equal(_dataset(found)[:, :, 9000], data[:, :, 9000])
    stats = m.tree.stats
    assert stats.loads == 64
    # What the reader comes to is decoded already, or is being decoded.
    assert stats.hits + stats.shared >= 58
    # Each box is begun once, although the reader comes nearer to it with each request.
    assert 58 <= len(begun) <= 64
    # The kernel has what the reader has been given.
    assert m.tree.cache.chunks <= 1


def test_what_a_distant_store_has_sent_stays_in_memory(mount, tmp_path):
    """The kernel drops its pages whenever the store is looked at, and then asks once more."""
    data = noise((8, 1, 65536), "u1")
    zarr.create_array(tmp_path / "a", data=data, chunks=(1, 1, 65536))
    store = FaultStore(LocalStore(tmp_path / "a"), near=False)
    m = mount(store, views=VIEWS, recheck=0)
    for _ in range(2):
        with h5py.File(Reader(m), "r") as found:
            for plane in range(8):
                np.testing.assert_array_equal(_dataset(found)[plane], data[plane])
    assert m.tree.stats.loads == 8


def test_writing(tmp_path, opened, monkeypatch):
    data = noise((100, 90), "u2")
    zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(64, 64), dtype="u2")[...] = data
    m = opened(LocalStore(tmp_path / "a"), views=VIEWS)
    whole = m.read(NAME)
    with h5py.File(io.BytesIO(whole)) as found:
        at = _dataset(found).id.get_chunk_info_by_coord((0, 64)).byte_offset
        start = _dataset(found).id.get_chunk_info_by_coord((0, 0)).byte_offset
    file = m.edit(NAME)
    # What begins in the header goes past the pages of the array, too.
    past, write_past = [], ArrayPages.write_past

    def noted(pages, *given):
        past.append(pages)
        return write_past(pages, *given)

    monkeypatch.setattr(ArrayPages, "write_past", noted)
    file.write(start - 8, whole[start - 8 : start] + np.full(64, 7, "<u2").tobytes())
    assert len(past) == 1
    # The first row of a chunk of 64 columns, of which the array has 26.
    file.write(at, np.full(64, 5, "<u2").tobytes())
    with pytest.raises(NotPermitted):
        file.write(at - 4096 * 8, b"12345678")
    file.close()
    data[0, :64], data[0, 64:] = 7, 5
    assert m.read("array.bin") == data.tobytes()
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a")[...], data)


@pytest.mark.parametrize("config", [{"order": "F"}, {"byteorder": "big"}, {"region": "0:3"}])
def test_not_with_other_layouts(tmp_path, mount, config):
    zarr.create_array(tmp_path / "a", shape=(10, 9), chunks=(4, 4), dtype="u2")
    assert NAME not in mount(tmp_path / "a", views=VIEWS, **config).ls()
