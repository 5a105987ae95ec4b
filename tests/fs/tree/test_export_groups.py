"""``zarrfs export`` of a group writes what the mount shows."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from tests.cli.in_process import in_process
from tests.images import make_image, make_map


@pytest.mark.filterwarnings("ignore:The data type .FixedLengthUTF32")
def test_every_file_of_a_group_is_that_of_the_mount(mount, tmp_path: Path) -> None:
    levels = make_image(tmp_path / "i", "cyx", (3, 300, 420), (2, 100, 250))
    make_map(tmp_path / "m", (3, 300, 410), (2, 128, 128), variable="data")
    for name, dtype in (("names", "string"), ("codes", "U4")):
        names = zarr.open_group(tmp_path / "m").create_array(name, shape=(2,), dtype=dtype)
        names[...] = np.array(["Köln", "x"])
    for source, name, words in (
        ("i", "image.ome.tif", ()),
        ("i", "group.h5", ("--format", "group.h5")),
        ("i", "tree.h5", ("--format", "tree.h5")),
        ("m", "tree.h5", ("--format", "tree.h5")),
        ("m", "image.tif", ("--format", "image.tif")),
    ):
        target = tmp_path / f"{source}.{name}"
        found = in_process("export", tmp_path / source, target, *words)
        assert found.status == 0, found.stderr
        shown = mount(tmp_path / source, views=("all",))
        assert target.read_bytes() == shown.read(name), name
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "i.image.ome.tif"), levels[0])
    with h5py.File(tmp_path / "i.group.h5") as file:
        np.testing.assert_array_equal(file["1"][...], levels[1])


def test_a_map_without_levels(mount, tmp_path: Path) -> None:
    (level,) = make_map(tmp_path / "m", (3, 300, 410), (2, 128, 100), levels=1)
    found = in_process("export", tmp_path / "m" / "r10m", tmp_path / "m.cog.tif")
    assert found.status == 0, found.stderr
    data = (tmp_path / "m.cog.tif").read_bytes()
    assert mount(tmp_path / "m", views=("default",)).read("r10m/array.cog.tif") == data
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "m.cog.tif"), level)
    shown = mount(tmp_path / "m", views=("default",), order="F")
    assert "array.cog.tif" not in shown.ls("r10m")


@pytest.mark.parametrize(
    ("source", "words", "said"),
    [
        ("i/0", (), "not a group"),
        ("i", ("--region", "0:1"), "takes no --region"),
        ("m", (), "does not describe an image"),
        ("i", ("--format", "image.tif"), "not known"),
    ],
)
def test_refused(tmp_path: Path, source: str, words: tuple[str, ...], said: str) -> None:
    make_image(tmp_path / "i", "yx", (30, 42), (10, 20), levels=1)
    make_map(tmp_path / "m", (30, 41), (12, 12), levels=1)
    found = in_process("export", tmp_path / source, tmp_path / "x.ome.tif", *words)
    assert found.status
    assert said in found.stderr
    assert not (tmp_path / "x.ome.tif").exists()
