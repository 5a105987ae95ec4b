"""``zarrfs copy`` as a command: what it prints, and its exit status."""

import json

import numpy as np
import pytest
import zarr

from zarrfs.library.copying.record import RECORD

VALUES = np.arange(40 * 60, dtype="u2").reshape(40, 60)


@pytest.fixture
def source(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(40, 60), chunks=(10, 10), dtype="u2")[...] = VALUES
    return tmp_path / "a"


def test_it_copies_without_a_word(source, tmp_path, done):
    done(
        "copy", source, tmp_path / "b", "--zarr-format", "2", "--chunks", "20,-1",
        "--codecs", "zstd:1", "--attributes", '{"a": 1}', "--memory", "16M", "--verify",
    )  # fmt: skip
    copy = zarr.open_array(tmp_path / "b", mode="r")
    assert (copy.metadata.zarr_format, copy.chunks, copy.attrs["a"]) == (2, (20, 60), 1)
    assert np.array_equal(copy[...], VALUES)


def test_a_dry_run_says_how_much_it_would_be(source, tmp_path, run):
    said = run("copy", "-n", source, tmp_path / "b", "--chunks", "20,30")
    assert said.stdout == (
        "/: 40x60 uint16, chunks 20x30, Zarr 3: 4.69 KiB, 24 objects to 4 objects, "
        "each chunk decoded 1 times\n"
        "1 array, 0 groups: 4.69 KiB decoded, at most 4 objects, 1 document and 29 requests\n"
    )
    assert not (tmp_path / "b").exists()
    said = json.loads(run("copy", "-n", source, tmp_path / "b", "--json").stdout)
    assert said["arrays"][0]["decoded"] == 0
    assert (said["objects"], said["bytes"]) == (24, 4800)


def test_json_says_what_was_done(source, tmp_path, run):
    said = json.loads(run("copy", source, tmp_path / "b", "--json", "--shards", "none").stdout)
    assert said["copied"]["objects"] == said["copied"]["stored"] == 24
    assert (said["resumed"], said["copied"]["bytes"]) == (False, 4800)


@pytest.mark.parametrize(
    ("status", "options", "reason"),
    [
        (2, ["--chunks", "a,b"], "--chunks 'a,b' is not a list of whole numbers"),
        (2, ["--shards", "7,7", "--chunks", "5,5"], "do not consist of whole chunks"),
        (2, ["--zarr-format", "2", "--shards", "20,20"], "no shards"),
        (2, ["--attributes", "[]"], "not a JSON object"),
        (2, ["--scheduler", "nonsense"], "--scheduler is 'nonsense'"),
        (2, ["--region", "0:99,:"], "0:99"),
        (1, ["--like", "nowhere"], "nowhere"),
        (1, ["--path", "nowhere"], "nowhere"),
        (1, ["--dtype", "uint8"], "256 of uint16 has no equal in uint8"),
        (2, ["--memory", "1M"], "memory"),
    ],
)
def test_one_line_says_what_is_wrong(source, tmp_path, failed, status, options, reason):
    assert reason in failed(status, "copy", source, tmp_path / "b", *options)


def test_it_refuses_to_replace(source, tmp_path, done, failed):
    done("copy", source, tmp_path / "b")
    assert "--overwrite replaces it" in failed(1, "copy", source, tmp_path / "b")
    done("copy", source, tmp_path / "b", "--overwrite")


def test_a_second_copy_to_the_same_place_is_refused(source, tmp_path, failed, done):
    from zarrfs.library.copying.record import CopyRecord
    from zarrfs.store.open import StoreConfig, create_store

    store = create_store(str(tmp_path / "b"), StoreConfig())
    record = CopyRecord(store, {}, overwrite=False, removing=False)
    for more in ([], ["--overwrite"]):
        said = failed(1, "copy", source, tmp_path / "b", *more)
        assert "another copy to it is running" in said
    record.let_go()
    assert "unfinished copy" in failed(1, "copy", source, tmp_path / "b")
    done("copy", source, tmp_path / "b", "--overwrite")
    assert not (tmp_path / "b" / RECORD).exists()
    store.close()
