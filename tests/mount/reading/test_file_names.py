"""`-o names=node`: the files of an array are called after it."""

import os
import subprocess

import numpy as np
import pytest
import zarr

DATA = np.arange(3 * 4 * 5, dtype="u2").reshape(3, 4, 5)
ODD = {
    "raw": "raw",
    "v1.5": "v1.5",
    "chunks": "chunks",
    "zarr": "zarr",
    ".hidden": "_hidden",
    "-rf": "_rf",
    "a b%d.ome.zarr": "a_b_d",
    "Höhe": "H_he",
    "日本": "array",
    "…zarr": "_zarr",
    "n" * 250: "n" * 200,
}


@pytest.fixture
def source(tmp_path):
    group = zarr.create_group(tmp_path / "group.zarr")
    for name in ODD:
        group.create_array(name, data=DATA, chunks=(2, 4, 5), dimension_names=("z", "y", "x"))
    group.create_array("texts", shape=(2,), chunks=(2,), dtype=str)[...] = ["a", "bc"]
    return tmp_path / "group.zarr"


def stems(path):
    names = set(os.listdir(path)) - {"zarr.json", "chunks", ".zarrfs"}
    return {name.partition(".bin")[0] for name in names if name.endswith(".bin")}, names


def test_files_are_called_after_their_array(mounted, source):
    mount = mounted(source, "names=node,views=all")
    for node, stem in ODD.items():
        found, names = stems(mount / node)
        assert found == {stem}
        assert all(name.startswith(f"{stem}.") for name in names)
        assert f"{stem}.tif" in names
        assert (mount / node / f"{stem}.bin").read_bytes() == DATA.tobytes()
        assert np.array_equal(np.load(mount / node / f"{stem}.npy"), DATA)
        assert (mount / node / "zarr.json").read_bytes() == (
            source / node / "zarr.json"
        ).read_bytes()
        assert os.path.isdir(mount / node / "chunks")
        if stem != "array":
            assert not (mount / node / "array.bin").exists()
    assert "group.h5" in os.listdir(mount)
    texts = mount / "texts"
    assert (texts / "texts.jsonl").read_text() == '"a"\n"bc"\n'
    assert (texts / "texts.values").read_bytes() == b"abc"
    assert "texts.jsonl" in (texts / "zarrfs-note.txt").read_text()


def test_headers_name_the_file_beside_them(mounted, source):
    mount = mounted(source, "names=node,views=all")
    plain = mounted(source, "views=all")
    for node, stem in ODD.items():
        for extension in ("nhdr", "mhd", "vrt", "xmf"):
            header = (mount / node / f"{stem}.{extension}").read_text()
            expected = (plain / node / f"array.{extension}").read_text()
            assert header == expected.replace("array.bin", f"{stem}.bin"), (node, extension)
        for extension in ("bin.hdr", "tif", "nii", "h5", "fits"):
            assert (mount / node / f"{stem}.{extension}").read_bytes() == (
                plain / node / f"array.{extension}"
            ).read_bytes()


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("cells.zarr", "cells"),
        ("cells.ome.zarr", "cells"),
        ("run.2024", "run.2024"),
        ("zarr", "zarr"),
        (".zarr", "array"),
    ],
)
def test_an_array_that_is_the_source_has_its_name(name, stem, mounted, tmp_path):
    zarr.create_array(tmp_path / name, data=DATA, chunks=(2, 4, 5))
    mount = mounted(tmp_path / name, "names=node")
    assert stems(mount)[0] == {stem}


def test_a_path_and_a_plain_directory_have_the_names_of_their_arrays(mounted, source, tmp_path):
    assert stems(mounted(source, "names=node,path=raw"))[0] == {"raw"}
    zarr.create_array(tmp_path / "plain/one.zarr", data=DATA, chunks=(2, 4, 5))
    assert stems(mounted(tmp_path / "plain", "names=node") / "one.zarr")[0] == {"one"}


def test_arrays_grow_by_the_files_of_their_name(mounted, source):
    mount = mounted(source, "rw,resize,names=node")
    with open(mount / "raw/raw.bin", "ab") as file:
        file.write(DATA[:1].tobytes())
    assert np.load(mount / "raw/raw.npy").shape == (4, 4, 5)
    subprocess.run(["truncate", "-s", "120", mount / "raw/raw.bin"], check=True, timeout=60)
    assert np.array_equal(zarr.open_array(source / "raw", mode="r")[...], DATA)


def test_the_npy_file_is_hidden_by_any_name(mounted, source):
    mount = mounted(source, "names=node,hide=npy,chunks")
    assert not {"raw.npy", "chunks"} & set(os.listdir(mount / "raw"))
    assert np.array_equal(np.load(mount / "raw/raw.npy"), DATA)
    # This file is not the directory of that name.
    assert "chunks.bin" in os.listdir(mount / "chunks")
