"""Open options under TensorStore's names: the table, and what they do."""

import math

import numpy as np
import pytest
import zarr

import zarrfs
from tests.conftest import run_zarrfs
from zarrfs.cli.main import cli
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.options.options import OPTIONS
from zarrfs.daemon.options.tensorstore_names import COUNTERPARTS
from zarrfs.errors import UsageError
from zarrfs.library.source import SourceOptions


def test_the_table_names_what_there_is():
    options = {option.name for option in OPTIONS}
    for row in COUNTERPARTS:
        assert not row.option or row.option in options, row
        assert row.option or row.command.split()[1] in cli.list_commands(None), row


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("recheck_cached_data=true", "recheck", 0.0),
        ("recheck_cached_data=open", "recheck", 0.0),
        ("recheck_cached_data=false", "recheck", math.inf),
        ("recheck_cached_data=2.5", "recheck", 2.5),
        ("recheck_cached_metadata=true", "recheck_metadata", 0.0),
        ("recheck_cached_metadata=open", "recheck_metadata", math.inf),
        ("recheck_cached_metadata=false", "recheck_metadata", math.inf),
        ("recheck_cached_metadata=60", "recheck_metadata", 60.0),
        ("fill_missing_data_reads=false", "fill_missing", False),
        ("fill_missing_data_reads=true", "fill_missing", True),
        ("store_data_equal_to_fill_value", "store_fill", True),
        ("store_data_equal_to_fill_value=false", "store_fill", False),
        ("cache_pool=32M", "memory", 32 << 20),
        ("data_copy_concurrency=3", "loaders", 3),
        ("assume_metadata=/a/b", "assume_metadata", "/a/b"),
        ("assume_cached_metadata=/a/b", "assume_metadata", "/a/b"),
    ],
)
def test_names_of_tensorstore(text, name, value):
    assert getattr(parse_options([text]), name) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("recheck_cached_data=maybe", "option recheck_cached_data: 'maybe' is neither true"),
        ("fill_missing_data_reads=2", "neither true nor false"),
        ("assume_metadata", "needs a value"),
        ("cache_pool=1", "less than"),
        ("immutable,recheck_metadata=1", "exclude each other"),
    ],
)
def test_wrong_values(text, reason):
    with pytest.raises(UsageError, match=reason):
        parse_options([text])


def test_metadata_kept_apart_from_the_data(tmp_path, mounted):
    """Chunks without any document, or with one that says something else."""
    values = np.arange(12, dtype="<i4").reshape(3, 4)
    zarr.create_array(tmp_path / "a", shape=(3, 4), chunks=(2, 2), dtype="i4")[:] = values
    document = tmp_path / "m.json"
    (tmp_path / "a" / "zarr.json").rename(document)
    assert run_zarrfs("mount", tmp_path / "a", tmp_path).returncode == 1
    mount = mounted(tmp_path / "a", f"assume_metadata={document}", "rw")
    assert (np.load(mount / "array.npy") == values).all()
    assert (mount / "zarr.json").read_bytes() == document.read_bytes()
    with open(mount / "array.bin", "r+b") as file:
        file.write(b"\7\0\0\0")
    document.write_text(document.read_text().replace('"int32"', '"uint32"'))
    options = SourceOptions(assume_metadata=str(document))
    with zarrfs.open_array(str(tmp_path / "a"), options=options) as array:
        assert array.dtype == np.uint32
        assert array[0, 0] == 7
    assert not (tmp_path / "a" / "zarr.json").exists()


def test_assumed_metadata_count_whatever_is_there(tmp_path, mounted):
    zarr.create_array(tmp_path / "a", shape=(4,), dtype="i4")[:] = 1
    zarr.create_array(tmp_path / "b", shape=(4,), dtype="i4", zarr_format=2, fill_value=9)
    mount = mounted(tmp_path / "a", f"assume_metadata={tmp_path / 'b' / '.zarray'}")
    assert (np.load(mount / "array.npy") == 9).all()
    assert not (mount / "zarr.json").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), ("{", "is not JSON"), ("[]", "neither a zarr.json nor a .zarray")],
)
def test_metadata_that_cannot_be_assumed(tmp_path, content, reason):
    zarr.create_array(tmp_path / "a", shape=(4,), dtype="i4")
    document, mount = tmp_path / "m.json", tmp_path / "mount"
    mount.mkdir()
    if content is not None:
        document.write_text(content)
    done = run_zarrfs("mount", "-o", f"assume_metadata={document}", tmp_path / "a", mount)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) or done.returncode == 2
    assert reason in done.stderr
    assert str(document) in done.stderr


def test_metadata_are_looked_at_again_when_that_is_asked_for(tmp_path, mounted):
    group = zarr.open_group(tmp_path / "g", mode="w")
    array = group.create_array("a", data=np.ones(4, "u1"), chunks=(2,))
    kept = mounted(tmp_path / "g") / "a" / "array.bin"
    options = ("recheck_cached_metadata=true",)
    again = mounted(tmp_path / "g", *options, quiet=False) / "a" / "array.bin"
    assert (kept.stat().st_size, again.stat().st_size) == (4, 4)
    with open(again, "rb", buffering=0) as opened:
        array.attrs["new"] = 1
        assert b'"new"' in (again.parent / "zarr.json").read_bytes()
        assert opened.read(2) == b"\1\1"
        array.resize(6)
        array[4:] = 2
        assert (kept.stat().st_size, again.stat().st_size) == (4, 6)
        assert again.read_bytes() == b"\1\1\1\1\2\2"


def test_what_is_open_of_an_array_that_is_another_one_now_fails(tmp_path, mounted):
    """The kernel would take the bytes of the one for those of the other."""
    zarr.create_array(tmp_path / "a", shape=(100, 100), chunks=(10, 10), dtype="u1")[:] = 1
    mount = mounted(tmp_path / "a", "recheck_metadata=always", quiet=False)
    with open(mount / "array.bin", "rb", buffering=0) as opened:
        values = np.random.default_rng(0).integers(0, 255, (200, 50), "u2")
        zarr.create_array(tmp_path / "a", data=values, chunks=(10, 10), overwrite=True)
        assert (mount / "array.bin").stat().st_size == 20000
        with pytest.raises(OSError, match="Input/output error"):
            opened.read()
        assert (mount / "array.bin").read_bytes() == values.tobytes()


def test_metadata_that_are_gone(tmp_path, mounted):
    group = zarr.open_group(tmp_path / "g", mode="w")
    group.create_array("a", shape=(4,), dtype="u1")
    mount = mounted(tmp_path / "g", "recheck_metadata=always")
    assert (mount / "a" / "array.bin").exists()
    (tmp_path / "g" / "a" / "zarr.json").unlink()
    assert not (mount / "a" / "array.bin").exists()
