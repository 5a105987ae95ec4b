"""An array has the same facts however it is named: the groups above it say them, too."""

import json
from pathlib import Path

import numpy as np
import pytest
import zarr

from zarrfs.array.groups_above import groups_above
from zarrfs.library.header import header
from zarrfs.library.info import as_json, info
from zarrfs.library.source import SourceOptions
from zarrfs.library.transfer.exporting import export_array
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.library.transfer.transfer import TransferConfig
from zarrfs.store.open import StoreConfig, parent_of

UTM = {"proj:code": "EPSG:32633", "spatial:transform": [10, 0, 5e5, 0, -10, 4.6e6]}


def image(path: Path, inside: str = "0", zarr_format: int = 3) -> None:
    """An image of OME-Zarr, whose level may lie deeper, as ngff-zarr writes it."""
    steps = [
        {"type": "scale", "scale": [2, 0.5, 0.25]},
        {"type": "translation", "translation": [10, 20, 30]},
    ]
    said = {
        "multiscales": [
            {
                "axes": [{"name": a, "type": "space", "unit": "micrometer"} for a in "zyx"],
                "datasets": [{"path": inside, "coordinateTransformations": steps}],
            }
        ]
    }
    attributes = said if zarr_format == 2 else {"ome": said}
    group = zarr.create_group(path, attributes=attributes, zarr_format=zarr_format)
    group.create_array(inside, shape=(3, 4, 5), dtype="u2")[...] = 7


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("inside", ["0", "scale0/image"])
def test_headers_and_exports_are_the_same(inside, zarr_format, tmp_path):
    image(tmp_path / "a.zarr", inside, zarr_format)
    group, array = str(tmp_path / "a.zarr"), str(tmp_path / "a.zarr" / inside)
    for name in ("nhdr", "mhd", "nii", "tif", "h5", "fits", "mrc", "xmf", "bin.hdr"):
        expected = header(group, FlatForm(name), SourceOptions(), path=inside)
        assert header(array, FlatForm(name), SourceOptions()) == expected, name
    assert b"space origin: (30,20,10)" in header(array, FlatForm("nhdr"), SourceOptions())
    one, two = tmp_path / "one.nii", tmp_path / "two.nii"
    form = FlatForm("nii", "little", "C")
    export_array(array, str(one), form, TransferConfig())
    export_array(group, str(two), form, TransferConfig(path=inside))
    assert one.read_bytes() == two.read_bytes()


def test_a_mount_of_an_array_has_the_files_of_a_mount_of_its_group(tmp_path, mounted):
    image(tmp_path / "a.zarr", "scale0/image")
    below, group, array = (
        mounted(tmp_path / "a.zarr" / path, "views=all") for path in ("scale0", "", "scale0/image")
    )
    for name in ("array.nhdr", "array.tif", "array.h5", "array.nii"):
        expected = (group / "scale0" / "image" / name).read_bytes()
        assert (array / name).read_bytes() == expected, name
        assert (below / "image" / name).read_bytes() == expected, name


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_has_the_coordinates_beside_it(zarr_format, tmp_path, mounted):
    xarray = pytest.importorskip("xarray")
    data = np.arange(30, dtype="i2").reshape(5, 6)
    places = {
        "lat": ("lat", np.linspace(50, 48, 5).astype("f4"), {"units": "degrees_north"}),
        "lon": ("lon", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
    }
    source = tmp_path / "g.zarr"
    dataset = xarray.Dataset({"r": (("lat", "lon"), data)}, places)
    dataset.to_zarr(source, zarr_format=zarr_format, consolidated=False)
    group, array = mounted(source, "views=all"), mounted(source / "r", "views=all")
    for name in ("nhdr", "vrt", "nc", "fits"):
        found = header(str(source / "r"), FlatForm(name), SourceOptions())
        assert found == header(str(source), FlatForm(name), SourceOptions(), path="r"), name
        assert (group / "r" / f"array.{name}").read_bytes().startswith(found), name
        assert (array / f"array.{name}").read_bytes().startswith(found), name
    assert b"spacings: 1 -0.5" in (array / "array.nhdr").read_bytes()
    for path in (array / "array.nc", group / "group.h5"):
        with xarray.open_dataset(path, engine="netcdf4") as opened:
            xarray.testing.assert_identical(opened, dataset)


def test_coordinates_grow_with_their_array(tmp_path, mounted):
    xarray = pytest.importorskip("xarray")
    source = tmp_path / "g.zarr"
    for start in (0, 3):
        times = xarray.DataArray(np.arange(start, start + 3), dims="t", attrs={"units": "s"})
        part = xarray.Dataset({"r": ("t", np.zeros(3))}, {"t": times})
        part.to_zarr(source, consolidated=False, append_dim="t" if start else None)
        if not start:
            mount = mounted(source, "views=nc", "recheck_metadata=0")
            assert (mount / "t" / "array.nc").exists()
        with xarray.open_dataset(mount / "r" / "array.nc", engine="netcdf4") as found:
            assert found["t"].values.tolist() == list(range(start + 3))


def test_a_group_has_the_coordinates_and_grid_mapping_of_groups_above(tmp_path, mounted):
    """However it is named, and however many groups lie between."""
    group = zarr.create_group(tmp_path / "g.zarr", attributes={"Conventions": "CF-1.8"})
    for name, places in {"y": [50.0, 48.0, 46.0, 44.0], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}.items():
        group.create_array(name, data=np.array(places), dimension_names=(name,))
    group.create_array("crs", shape=(), dtype="i4", attributes={"proj:code": "EPSG:32633"})
    group.create_array(
        "a/b/c/d/e/r", shape=(4, 5), dtype="u1", dimension_names=("y", "x"),
        attributes={"grid_mapping": "crs"},
    )  # fmt: skip
    named = [("g.zarr", "a/b/c/d/e/r"), ("g.zarr/a/b", "c/d/e/r"), ("g.zarr/a/b/c/d/e/r", "")]
    wanted = header(str(tmp_path / "g.zarr"), FlatForm("vrt"), SourceOptions(), path="a/b/c/d/e/r")
    assert b"<GeoTransform>0.5, 1.0, 0.0, 51.0, 0.0, -2.0</GeoTransform>" in wanted
    assert b"EPSG:32633" in wanted
    for source, path in named:
        of = str(tmp_path / source)
        assert header(of, FlatForm("vrt"), SourceOptions(), path=path) == wanted, source
        assert (mounted(of, "views=all") / path / "array.vrt").read_bytes() == wanted, source
        said = as_json(info(of, path))["facts"]
        assert said["transform"] == [0.5, 1, 0, 51, 0, -2], source


def test_coordinates_beside_a_level_give_way_to_its_image(tmp_path):
    """Also if the group of the image is further away."""
    image(tmp_path / "a.zarr", "scale0/image")
    beside = zarr.open_group(tmp_path / "a.zarr" / "scale0")
    beside.create_array("z", shape=(3,), dtype="f8", dimension_names=("z",))[...] = [1, 2, 4]
    zarr.create_array(
        tmp_path / "a.zarr/scale0/image", shape=(3, 4, 5), dtype="u2", overwrite=True,
        dimension_names=("z", "y", "x"),
    )  # fmt: skip
    named = [("a.zarr", "scale0/image"), ("a.zarr/scale0", "image"), ("a.zarr/scale0/image", "")]
    for source, path in named:
        of = str(tmp_path / source)
        found = header(of, FlatForm("nhdr"), SourceOptions(), path=path)
        assert b"space origin: (30,20,10)" in found, source


def test_an_array_has_the_grid_mapping_beside_it(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("crs", shape=(), dtype="i4", attributes=UTM)
    group.create_array(
        "r", shape=(4, 5), dtype="u1", dimension_names=("y", "x"),
        attributes={"grid_mapping": "crs"},
    )  # fmt: skip
    found = header(str(tmp_path / "g.zarr" / "r"), FlatForm("vrt"), SourceOptions())
    assert b"<GeoTransform>500000.0, 10.0, 0.0, 4600000.0, 0.0, -10.0</GeoTransform>" in found
    assert b"EPSG:32633" in found


def test_a_directory_that_is_no_group_ends_the_search(tmp_path):
    zarr.create_group(tmp_path / "outer.zarr", attributes={"outer": True})
    inner = tmp_path / "outer.zarr" / "plain" / "inner.zarr"
    zarr.create_group(inner, attributes={"inner": True})
    zarr.create_array(inner / "a", shape=(2,), dtype="u1")

    def found(source: Path) -> list[tuple[str, dict]]:
        above = groups_above(str(source), StoreConfig(), None, lambda groups: ())
        return [(path, dict(attributes)) for path, attributes in above.groups]

    assert found(inner / "a") == [("a", {"inner": True})]
    assert found(inner) == []


def test_a_group_that_cannot_be_read_says_nothing(tmp_path):
    zarr.create_array(tmp_path / "g" / "a", shape=(2,), dtype="u1")
    for text in ("{", "[]", json.dumps({"zarr_format": 3, "node_type": "array"})):
        (tmp_path / "g" / "zarr.json").write_text(text)
        assert (
            groups_above(str(tmp_path / "g" / "a"), StoreConfig(), None, lambda groups: ()).groups
            == ()
        )


@pytest.mark.parametrize(
    ("source", "parent"),
    [
        ("s3://bucket/image.zarr/0", ("s3://bucket/image.zarr", "0")),
        ("https://h.org:80/a/image.zarr/0/", ("https://h.org:80/a/image.zarr", "0")),
        ("s3://bucket/image.zarr", None),
        ("https://h.org/a/0?token=x", None),
        ("zip://0::file:///a.zip", None),
        ("icechunk://@main/group/array::s3://bucket/repository", None),
        ("icechunk:///data/repository", None),
        ("s3://bucket/repository|icechunk:@tag.v1/group/array", None),
        ("no-such-file", None),
    ],
)
def test_parents_of_urls(source, parent):
    assert parent_of(source) == parent


def test_info_says_the_facts(tmp_path):
    image(tmp_path / "a.zarr")
    for source, path in (("a.zarr", "0"), ("a.zarr/0", "")):
        said = as_json(info(str(tmp_path / source), path))["facts"]
        assert said["axes"][0] == {
            "length": 3, "name": "z", "unit": "micrometer", "spacing": 2.0, "origin": 10.0,
            "role": "z",
        }  # fmt: skip
    zarr.create_array(
        tmp_path / "p", shape=(4, 5), dtype="i2", dimension_names=("y", "x"),
        attributes=UTM | {"scale_factor": 0.5, "units": "K", "_FillValue": -9},
    )  # fmt: skip
    said = as_json(info(str(tmp_path / "p")))["facts"]
    assert said["missing_values"] == [-9]
    assert (said["scale"], said["unit"], said["crs"]) == (0.5, "K", "EPSG:32633")
    assert said["transform"] == [500000, 10, 0, 4600000, 0, -10]
