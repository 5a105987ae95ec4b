"""Arrays and groups in other processes, and what libraries ask of an array."""

import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import zarr

import zarrfs
from tests.conftest import run_python
from zarrfs.errors import AlreadyExists, NodeNotFound, ReadOnly, UsageError

pytestmark = pytest.mark.timeout(180)

NUMBERS = np.arange(20 * 30, dtype="u2").reshape(20, 30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    root = zarr.create_group(tmp_path / "g", attributes={"title": "all"})
    root.create_array("a", data=NUMBERS, chunks=(4, 10))
    root.create_group("more").create_array("b", data=NUMBERS, chunks=(20, 30))
    return tmp_path / "g"


def test_a_path_is_a_source(path):
    with zarrfs.open_array(path / "a") as array:
        assert np.array_equal(array[...], NUMBERS)


def test_it_has_a_length(path, tmp_path):
    with zarrfs.open_array(path / "a") as array:
        assert len(array) == 20
        assert np.array_equal(list(array)[3], NUMBERS[3])
    with zarrfs.create_array(tmp_path / "0", (), "f4") as array, pytest.raises(TypeError):
        len(array)


def test_few_elements_far_apart_do_not_take_the_memory_of_all(tmp_path):
    """A GiB of fill values; of each 1024 rows one is wanted."""
    shape = (1 << 15, 1 << 15)
    options = zarrfs.SourceOptions(memory=32 << 20)
    with zarrfs.create_array(
        tmp_path / "a", shape, "u1", chunks=(64, 64), fill_value=3, options=options
    ) as array:
        found = array[::1024, ::-4096]
        assert found.shape == (32, 8)
        assert (found == 3).all()


class TestPickles:
    def test_of_an_array(self, path):
        options = zarrfs.SourceOptions(memory=32 << 20, loaders=2)
        with zarrfs.open_array(path, path="a", options=options) as array:
            again = pickle.loads(pickle.dumps(array))
            with again:
                assert repr(again) == repr(array)
                assert not again.writable
                assert np.array_equal(again[::2, ::-3], NUMBERS[::2, ::-3])

    def test_from_another_directory(self, path, tmp_path, monkeypatch):
        monkeypatch.chdir(path)
        with zarrfs.open_array("a") as array:
            pickled = pickle.dumps(array)
        monkeypatch.chdir(tmp_path)
        with pickle.loads(pickled) as again:
            assert np.array_equal(again[2], NUMBERS[2])

    def test_have_what_was_written_and_store_what_is_written(self, path):
        with zarrfs.open_array(path / "a", writable=True) as array:
            array[0] = 1
            with pickle.loads(pickle.dumps(array)) as again:
                assert (again[0] == 1).all()
                again[1, ::2] = 2
                assert (zarr.open_array(path / "a", mode="r")[1, ::2] == 2).all()

    def test_of_a_closed_array_are_none(self, path):
        with zarrfs.open_array(path / "a") as array:
            pass
        with pytest.raises(ValueError, match="is closed"):
            pickle.dumps(array)

    def test_of_a_group(self, path):
        group = pickle.loads(pickle.dumps(zarrfs.open_group(path)))
        assert list(group) == ["a", "more"]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_read_and_write(path, tmp_path, start):
    """As a DataLoader or a pool of processes does it."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import multiprocessing, sys, zarrfs

def work(row):
    array[row] = int(array[row].sum()) % 100
    return int(array[row, 0])

def begin(given):
    global array
    array = given

if __name__ == "__main__":
    array = zarrfs.open_array({str(path / "a")!r}, writable=True)
    array[19]
    context = multiprocessing.get_context({start!r})
    arguments = {{}} if {start!r} == "fork" else {{"initializer": begin, "initargs": (array,)}}
    with context.Pool(2, **arguments) as pool:
        print(pool.map_async(work, range(0, 20, 4)).get(60))
    array.close()
""")
    done = run_python("-W", "ignore", script, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = [int(NUMBERS[row].sum()) % 100 for row in range(0, 20, 4)]
    assert done.stdout.strip() == str(expected)
    stored = zarr.open_array(path / "a", mode="r")[...]
    assert [int(stored[row, 5]) for row in range(0, 20, 4)] == expected


class TestGroups:
    def test_are_mappings(self, path):
        group = zarrfs.open_group(path)
        assert (list(group), len(group)) == (["a", "more"], 2)
        assert group.attributes == {"title": "all"}
        assert "a" in group
        assert "more/b" in group
        assert "c" not in group
        with group["a"] as array, group["more"]["b"] as other, group["more/b"] as same:
            assert np.array_equal(array[...], NUMBERS)
            assert other.shape == same.shape == (20, 30)
            with pytest.raises(ReadOnly):
                array[0] = 1
        with pytest.raises(KeyError):
            group["c"]
        assert str(path) in repr(group)

    def test_open_arrays_for_writing(self, path):
        with zarrfs.open_group(path, path="more", writable=True)["b"] as array:
            array[::5] = 9
        assert (zarr.open_array(path / "more/b", mode="r")[::5] == 9).all()

    def test_are_no_arrays(self, path):
        with pytest.raises(UsageError, match="is an array, not a group"):
            zarrfs.open_group(path / "a")
        with pytest.raises(NodeNotFound):
            zarrfs.open_group(path, path="c")


class TestNewArrays:
    @pytest.mark.parametrize(
        "dtype", ["uint16", np.float32, ">i4", "bfloat16", ml_dtypes.bfloat16, "complex64", bool]
    )
    def test_of_many_types(self, tmp_path, dtype):
        with zarrfs.create_array(tmp_path / "a", (10, 20), dtype, fill_value=1) as array:
            assert array.shape == (10, 20)
            array[0] = 0
            assert array[1, 2] == 1
            assert array[0, 0] == 0

    def test_as_they_are_asked_for(self, tmp_path):
        with zarrfs.create_array(
            str(tmp_path / "a"), (100, 100), "f8", chunks=(10, 20), shards=(50, 100),
            codecs="zstd:3", fill_value=np.nan, attributes={"units": "K"},
            dimension_names=["y", None],
        ) as array:  # fmt: skip
            assert (array.chunks, array.shards) == ((10, 20), (50, 100))
            assert np.isnan(array.fill_value)
            assert np.isnan(array[0, 0])
            assert array.attributes == {"units": "K"}
            array[...] = 2
        assert (zarr.open_array(tmp_path / "a", mode="r")[...] == 2).all()

    def test_of_version_2(self, tmp_path):
        with zarrfs.create_array(tmp_path / "a", (4,), "i2", zarr_format=2):
            assert (tmp_path / "a/.zarray").exists()

    def test_replace_nothing_unasked(self, path):
        with pytest.raises(AlreadyExists):
            zarrfs.create_array(path / "a", (4,), "i2")
        with zarrfs.create_array(path / "a", (4,), "i2", overwrite=True) as array:
            assert array.shape == (4,)

    @pytest.mark.parametrize(
        "wrong", [{"dtype": "nothing"}, {"shape": (-1,)}, {"codecs": "nothing"}, {"chunks": (1, 2)}]
    )
    def test_that_cannot_be(self, tmp_path, wrong):
        asked = {"shape": (4,), "dtype": "i2", **wrong}
        with pytest.raises(UsageError):
            zarrfs.create_array(tmp_path / "a", **asked)


def test_dask_finds_what_it_asks_for(path):
    """``dask.array.from_array`` has these attributes, and slices along multiples of ``chunks``."""
    with zarrfs.open_array(path / "a") as array:
        assert (array.chunks, array.shape, array.ndim) == ((4, 10), (20, 30), 2)
        assert isinstance(array.dtype, np.dtype)
        assert not hasattr(array, "__array_function__")
        parts = [np.asarray(array[i : i + 4, 10:20]) for i in range(0, 20, 4)]
        assert np.array_equal(np.concatenate(parts), NUMBERS[:, 10:20])
