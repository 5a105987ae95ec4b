"""Arrays as objects: what they tell, what they refuse, and when their changes are stored."""

import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import zarr

import zarrfs
import zarrfs.errors
from tests.fs.documents import CRC32C, LITTLE, array_document, group_document, sharding
from zarrfs import threads
from zarrfs.errors import (
    ChunkError,
    InvalidElement,
    NodeNotFound,
    ReadOnly,
    StoreReadOnly,
    UnsupportedError,
    UsageError,
)
from zarrfs.store.local.local import LocalStore


def put(root: Path, **files: bytes) -> str:
    """Writes documents; ``__`` in a name stands for a slash."""
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.mkdir(parents=True, exist_ok=True)
        (path / "zarr.json").write_bytes(content)
    return str(root)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four by six int16 in chunks of two by three, filled with 7."""
    return put(tmp_path, a=array_document((4, 6), (2, 3))) + "/a"


def test_it_tells_what_the_metadata_say(tmp_path):
    source = put(
        tmp_path,
        a=array_document(
            (4, 6),
            (4, 6),
            codecs=[sharding((2, 3))],
            attributes={"units": "K"},
            dimension_names=["y", None],
        ),
    )
    with zarrfs.open_array(source + "/a") as array:
        assert (array.shape, array.ndim, array.size, array.nbytes) == ((4, 6), 2, 24, 48)
        assert (array.dtype, array.data_type) == (np.dtype("<i2"), "int16")
        assert (array.chunks, array.shards, array.chunk_counts) == ((2, 3), (4, 6), (2, 2))
        assert (array.fill_value, type(array.fill_value)) == (7, np.int16)
        assert array.dimension_names == ("y", None)
        assert array.attributes == {"units": "K"}
        assert array.codecs[0]["name"] == "sharding_indexed"
        assert array.metadata.zarr_format == 3
        assert not array.writable
        assert "(4, 6) int16" in repr(array)
        assert np.array_equal(np.asarray(array), np.full((4, 6), 7))
        assert np.asarray(array, "f4").dtype == "f4"


def test_an_array_below_the_source(tmp_path):
    source = put(
        tmp_path, h=group_document(), h__g=group_document(), h__g__a=array_document((2,), (2,))
    )
    for arguments in ({"source": source + "/h", "path": "g/a"}, {"source": source + "/h/g/a"}):
        with zarrfs.open_array(**arguments) as array:
            assert array.shape == (2,)
    with pytest.raises(UsageError, match="g is a group, not an array; it has a"):
        zarrfs.open_array(source + "/h", path="g")
    with pytest.raises(NodeNotFound, match="no Zarr array or group at g/b"):
        zarrfs.open_array(source + "/h", path="g/b")
    with pytest.raises(UsageError, match="not a valid path of a Zarr node"):
        zarrfs.open_array(source + "/h", path="g/../g/a")
    with pytest.raises(NodeNotFound):
        zarrfs.open_array(source + "/nothing")


def test_what_cannot_be_served_says_why(tmp_path):
    source = put(tmp_path, a=array_document((4,), (4,), data_type="int17"))
    with pytest.raises(UnsupportedError, match="int17"):
        zarrfs.open_array(source + "/a")


def test_a_zip_file_is_read_only(tmp_path):
    numbers = np.arange(30, dtype="f8").reshape(5, 6)
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, name="x", data=numbers, chunks=(2, 2))
    with zarrfs.open_array(str(tmp_path / "a.zip"), path="x") as array:
        assert np.array_equal(array[1:4], numbers[1:4])
    with pytest.raises(StoreReadOnly):
        zarrfs.open_array(str(tmp_path / "a.zip"), path="x", writable=True)


def test_chunk_by_chunk(path):
    with zarrfs.open_array(path, writable=True) as array:
        array.write_chunk((1, 1), np.arange(6).reshape(2, 3).astype("i2"))
        assert array.chunk_region((1, 1)) == (slice(2, 4), slice(3, 6))
        assert np.array_equal(array[2:, 3:], np.arange(6).reshape(2, 3))
        assert np.array_equal(array.read_chunk((0, 1)), np.full((2, 3), 7))
        for index in ((2, 0), (0, -1), (0,)):
            with pytest.raises(IndexError):
                array.read_chunk(index)


def test_a_chunk_at_the_edge_is_cut(tmp_path):
    source = put(tmp_path, a=array_document((3, 4), (2, 3))) + "/a"
    with zarrfs.open_array(source, writable=True) as array:
        assert array.read_chunk((1, 1)).shape == (1, 1)
        array.write_chunk((1, 1), [[5]])
        assert array[2, 3] == 5


def test_only_a_writable_one_is_written(path):
    with zarrfs.open_array(path) as array, pytest.raises(ReadOnly):
        array[0] = 1


def test_changes_are_stored_by_flush_and_by_the_end(path):
    with zarrfs.open_array(path, writable=True) as array:
        array[0, 0] = 1
        array.flush()
        assert zarr.open_array(path, mode="r")[0, 0] == 1
        array[0, 1] = 2
    assert zarr.open_array(path, mode="r")[0, :2].tolist() == [1, 2]
    assert array.closed
    array.close()
    for use in (array.flush, array.read, lambda: array.write(0, 1)):
        with pytest.raises(ValueError, match="is closed"):
            use()


def test_changes_are_stored_where_no_thread_can_be_started(path, monkeypatch):
    """As at the end of a program, in Python 3.12."""

    def start(_thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with zarrfs.open_array(path, writable=True) as array:
        array[1:3, 1:5] = 5
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            array.flush()
        assert (zarr.open_array(path, mode="r")[1:3, 1:5] == 5).all()


def test_an_array_is_read_and_written_when_threads_can_be_started_no_more(path, monkeypatch):
    """As below a limit of processes that others have used up."""

    def start(_thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "IDLE_S", 0.01)
    zarr.open_array(path)[...] = expected = np.arange(24).reshape(4, 6)
    with zarrfs.open_array(path, writable=True) as array:
        assert array[0, 0] == 0
        array[0, 0] = expected[0, 0] = 5
        array.flush()
        time.sleep(0.2)
        monkeypatch.setattr(threading.Thread, "start", start)
        assert (array[...] == expected).all()
        array[3, 5] = 6
        array.flush()
        assert zarr.open_array(path, mode="r")[3, 5] == 6


def test_changes_of_an_array_that_nobody_closes_are_stored(path):
    array = zarrfs.open_array(path, writable=True)
    array[1, 1] = 5
    del array
    gc.collect()
    assert zarr.open_array(path, mode="r")[1, 1] == 5
    script = f"import zarrfs; a = zarrfs.open_array({path!r}, writable=True); a[1, 2] = 6"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert zarr.open_array(path, mode="r")[1, 2] == 6


def test_discarded_changes_are_not(path):
    array = zarrfs.open_array(path, writable=True)
    array[0, 0] = 1
    array.close(discard=True)
    assert zarr.open_array(path, mode="r")[0, 0] == 7


def test_what_cannot_be_stored_stays_a_change(path, monkeypatch):
    array = zarrfs.open_array(path, writable=True)
    array[0, 0] = 1
    blocked = Path(path) / "c"
    blocked.write_bytes(b"")
    for attempt in (array.flush, array.close):
        with pytest.raises(zarrfs.errors.ZarrfsError, match="c"):
            attempt()
    assert array[0, 0] == 1
    blocked.unlink()
    array.close()
    assert zarr.open_array(path, mode="r")[0, 0] == 1


def test_leaving_with_changes_that_cannot_be_stored_says_so(path):
    (Path(path) / "c").write_bytes(b"")
    with (
        pytest.raises(zarrfs.errors.ZarrfsError, match="c"),
        zarrfs.open_array(path, writable=True) as array,
    ):
        array[0, 0] = 1
    assert array.closed


@pytest.mark.parametrize("value", [np.array("é", "<U3"), np.array(b"a", "S5")])
def test_a_text_without_axes_is_written(tmp_path, value):
    with zarrfs.create_array(tmp_path / "a.zarr", (), value.dtype) as array:
        array[...] = value
    assert zarr.open_array(tmp_path / "a.zarr", mode="r")[()] == value[()]


def test_values_that_do_not_fit_are_refused_and_change_nothing(path):
    with zarrfs.open_array(path, writable=True) as array:
        for values, error in (
            (np.zeros((5, 6), "i2"), ValueError),
            (70_000, ValueError),
            (np.zeros(6, "f4"), TypeError),
            ("word", ValueError),
        ):
            with pytest.raises(error):
                array[...] = values
        assert np.array_equal(array.read(), np.full((4, 6), 7))
        array[...] = np.arange(6, dtype=np.int32)
        assert np.array_equal(array[3], np.arange(6))


def test_elements_that_are_none_are_refused(tmp_path):
    one = {"codecs": [{"name": "bytes"}], "fill_value": 0}
    source = put(
        tmp_path,
        i=array_document((4,), (2,), **{**one, "data_type": "int4"}),
        b=array_document((4,), (2,), **{**one, "data_type": "bool", "fill_value": False}),
        f=array_document((4,), (2,), **{**one, "data_type": "bfloat16", "codecs": [LITTLE]}),
    )
    with zarrfs.open_array(source + "/i", writable=True) as array:
        with pytest.raises(InvalidElement):
            array[0] = 9
        array[0] = -8
        assert array[0] == -8
    with zarrfs.open_array(source + "/b", writable=True) as array:
        array[1:3] = True
        assert array.read().tolist() == [False, True, True, False]
    with zarrfs.open_array(source + "/f", writable=True) as array:
        array[:] = np.array([1.5, 2, 3, 4], ml_dtypes.bfloat16)
        assert array.dtype == ml_dtypes.bfloat16
        assert array[0] == ml_dtypes.bfloat16(1.5)


def test_a_bad_chunk_names_its_key(tmp_path):
    source = put(tmp_path, a=array_document((4,), (2,), codecs=[LITTLE, CRC32C])) + "/a"
    chunks = Path(source) / "c"
    chunks.mkdir()
    (chunks / "1").write_bytes(bytes(8))
    with zarrfs.open_array(source) as array:
        assert array[:2].tolist() == [7, 7]
        with pytest.raises(ChunkError, match=r"c/1: CRC-32C"):
            array.read()
    options = zarrfs.SourceOptions(fill_missing=False)
    with (
        zarrfs.open_array(source, options=options) as array,
        pytest.raises(ChunkError, match="not stored"),
    ):
        array.read(slice(2))


def test_changes_of_others_are_seen_as_recheck_says(path):
    always = zarrfs.SourceOptions(recheck=0)
    never = zarrfs.SourceOptions(recheck=float("inf"))
    with (
        zarrfs.open_array(path, options=always) as watching,
        zarrfs.open_array(path, options=never) as trusting,
    ):
        assert watching[0, 0] == trusting[0, 0] == 7
        with zarrfs.open_array(path, writable=True) as array:
            array[0, 0] = 8
        assert watching[0, 0] == 8
        assert trusting[0, 0] == 7


@pytest.mark.parametrize(
    "options", [{"memory": 1000}, {"loaders": 0}, {"recheck": -1.0}, {"timeout": 0.0}]
)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(UsageError):
        zarrfs.SourceOptions(**options)


def test_many_threads_share_an_array(path):
    """Each writes its own elements of shared chunks, and reads what all others have written."""
    with zarrfs.open_array(path, writable=True) as array, ThreadPoolExecutor(8) as pool:

        def work(number):
            row, column = divmod(number, 6)
            for value in range(30):
                array[row, column] = value
                assert array[row, column] == value
                if value % 10 == number % 10:
                    array.flush()
                array.read()

        list(pool.map(work, range(24)))
    assert (zarr.open_array(path, mode="r")[...] == 29).all()


def test_importing_the_package_imports_none_of_this():
    script = (
        "import sys, zarrfs; assert 'numpy' not in sys.modules;"
        "assert 'open_array' in dir(zarrfs); zarrfs.open_array;"
        "import zarrfs.library.info;"
        "assert not {'trio', 'pyfuse3', 'fsspec', 'click', 'numcodecs'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    with pytest.raises(AttributeError):
        zarrfs.nothing  # noqa: B018


def test_a_read_looks_at_the_metadata_only_when_a_check_is_due(path, monkeypatch):
    looked: list[str] = []
    info = LocalStore.info

    def note(store, key):
        looked.append(key)
        return info(store, key)

    zarr.open_array(path, mode="r+")[...] = 5
    with zarrfs.open_array(path, options=zarrfs.SourceOptions(recheck=3600)) as array:
        monkeypatch.setattr(LocalStore, "info", note)
        assert (array[...] == 5).all()
    assert not [key for key in looked if key.endswith("zarr.json")]
