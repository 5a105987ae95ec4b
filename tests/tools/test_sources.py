"""What each writer says about an array is what programs find in each view of it.

The expected facts are those that the writer's own library reads from the store. Stores of packages
that are not among the test dependencies are made here as these versions write them: rioxarray 0.19,
ome-zarr-py 0.18, ngff-zarr 0.50, anndata 0.12.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorstore
import zarr

from tests.tools import facts_read
from tests.tools.programs import need_library, need_module, need_program, run

UM = "micrometer"
SCALE, ORIGIN = {"z": 2.0, "y": 0.5, "x": 0.25}, {"z": 10.0, "y": 20.0, "x": 30.0}


class Source(NamedTuple):
    """
    array : its path in the store.
    roles : of its axes, each a letter.
    index, hole : of an element, and of one without a value.
    place : of the element, by role.
    frame : the same in ITK's frame, if that is another.
    transform, missing : GDAL's; None: none.
    """

    make: Callable[[Path], object]
    array: str
    roles: str
    index: list[int]
    raw: float
    value: float
    place: Mapping[str, float]
    hole: list[int] | None = None
    frame: Mapping[str, float] | None = None
    transform: list[float] | None = None
    missing: float | None = None
    crs: str = ""


def xarray_dataset(zarr_format: int):
    def make(path: Path) -> None:
        import xarray

        data = np.arange(20.0).reshape(4, 5)
        data[0, 0] = np.nan
        packed = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -9}
        unsigned = {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}
        xarray.Dataset(
            {
                "t": (("lat", "lon"), data, {"units": "K"}, packed),
                "b": (("lat", "lon"), data + 190, {}, unsigned),
            },
            {
                "lat": ("lat", [60.0, 58.0, 56.0, 54.0], {"units": "degrees_north"}),
                "lon": ("lon", np.arange(5) * 3.0 - 7, {"units": "degrees_east"}),
            },
        ).to_zarr(path, zarr_format=zarr_format, consolidated=False)

    return make


def data_tree(path: Path) -> None:
    """Coordinates and grid mapping of a group are those of the groups in it."""
    import xarray

    system = {"grid_mapping_name": "latitude_longitude", "earth_radius": 6371229.0}
    places = {"lat": [60.0, 58.0, 56.0, 54.0], "lon": np.arange(5) * 3.0 - 7}
    above = xarray.Dataset(coords={**places, "crs": ((), 0, system)})
    below = xarray.Dataset({"t": (("lat", "lon"), np.arange(20.0).reshape(4, 5))})
    below["t"].attrs["grid_mapping"] = "crs"
    tree = xarray.DataTree.from_dict({"/": above, "/model": below})
    tree.to_zarr(path, consolidated=False)


def rioxarray_raster(zarr_format: int):
    def make(path: Path) -> None:
        """``write_crs``, ``write_transform`` and ``write_nodata`` of bands, stored with xarray."""
        import xarray

        wkt = (
            'PROJCS["WGS 84 / UTM zone 33N",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",'
            '6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
            'PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
            'PARAMETER["central_meridian",15],PARAMETER["scale_factor",0.9996],'
            'PARAMETER["false_easting",500000],PARAMETER["false_northing",0],UNIT["metre",1],'
            'AUTHORITY["EPSG","32633"]]'
        )
        said = {
            "crs_wkt": wkt, "spatial_ref": wkt, "grid_mapping_name": "transverse_mercator",
            "GeoTransform": "500000.0 10.0 0.0 4600000.0 0.0 -10.0",
        }  # fmt: skip
        data = np.arange(24.0).reshape(4, 6)
        data[0, 0] = np.nan
        xarray.Dataset(
            {"r": (("y", "x"), data, {"grid_mapping": "spatial_ref"}, {"_FillValue": -1.0})},
            {
                "x": 500005 + 10.0 * np.arange(6),
                "y": 4599995 - 10.0 * np.arange(4),
                "spatial_ref": ((), 0, said),
            },
        ).to_zarr(path, zarr_format=zarr_format, consolidated=False)

    return make


def image(version: str, path_of_level: str = "0", orientations: Mapping[str, str] | None = None):
    """An OME-Zarr image: ome-zarr-py calls its levels ``0``, ngff-zarr ``scale0/image``."""

    def make(path: Path) -> None:
        axes = [{"name": axis, "type": "space", "unit": UM} for axis in "zyx"]
        for axis in axes if orientations else []:
            axis["orientation"] = {"type": "anatomical", "value": orientations[axis["name"]]}
        steps = [
            {"type": "scale", "scale": list(SCALE.values())},
            {"type": "translation", "translation": list(ORIGIN.values())},
        ]
        scales: dict[str, Any] = {"axes": axes}
        if version == "0.6":
            output = {"name": "intrinsic"}
            steps = [{"type": "sequence", "output": output, "transformations": steps}]
            scales = {"coordinateSystems": [{"name": "intrinsic", "axes": axes}]}
        scales["datasets"] = [{"path": path_of_level, "coordinateTransformations": steps}]
        old = version == "0.4"
        said = {"multiscales": [{"version": version, **scales}]}
        group = zarr.create_group(
            path, zarr_format=2 if old else 3, attributes=said if old else {"ome": said}
        )
        names = {} if old else {"dimension_names": list("zyx")}
        group.create_array(
            path_of_level, shape=(4, 6, 8), chunks=(4, 6, 8), dtype="u2", fill_value=0, **names
        )[...] = np.arange(192).reshape(4, 6, 8)

    return make


def anndata_matrix(path: Path) -> None:
    """Counts, of which most are 0, which is the fill value of Zarr 2."""
    said = {"encoding-type": "anndata", "encoding-version": "0.1.0"}
    group = zarr.create_group(path, zarr_format=2, attributes=said)
    array = group.create_array("X", shape=(4, 5), chunks=(4, 5), dtype="f4", fill_value=0.0)
    array.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    array[...] = np.eye(4, 5)


def tensorstore_volume(path: Path) -> None:
    made = tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/a/"}},
        create=True, dtype="uint16", shape=[4, 6, 8],
        dimension_units=["2 um", "0.5 um", "0.25 um"],
        domain=tensorstore.IndexDomain(labels=["z", "y", "x"], shape=[4, 6, 8]),
    ).result()  # fmt: skip
    made[...] = np.arange(192, dtype="u2").reshape(4, 6, 8)


GEOGRAPHIC = {
    "array": "t", "roles": "yx", "index": [1, 2], "place": {"y": 58, "x": -1},
    "transform": [-8.5, 3, 0, 61, 0, -2],
}  # fmt: skip
INDEX = [1, 2, 3]
PLACE = {axis: ORIGIN[axis] + SCALE[axis] * i for axis, i in zip("zyx", INDEX, strict=True)}
VOLUME = {"roles": "zyx", "index": INDEX, "raw": 67, "value": 67, "place": PLACE}
RAS = {"z": "inferior-to-superior", "y": "posterior-to-anterior", "x": "left-to-right"}
TURNED = {"z": PLACE["z"], "y": -PLACE["y"], "x": -PLACE["x"]}
UTM = {
    "array": "r", "roles": "yx", "index": [1, 2], "raw": 8, "value": 8, "hole": [0, 0],
    "place": {"y": 4599985, "x": 500025}, "missing": -1, "crs": "UTM zone 33N",
    "transform": [500000, 10, 0, 4600000, 0, -10],
}  # fmt: skip
PACKED = {**GEOGRAPHIC, "raw": -6, "value": 7, "hole": [0, 0], "missing": -9}
UNSIGNED = {**GEOGRAPHIC, "array": "b", "raw": 197, "value": 197, "hole": [0, 0], "missing": 255}
SOURCES: dict[str, Source] = {
    "xarray2": Source(xarray_dataset(2), **PACKED),
    "xarray3": Source(xarray_dataset(3), **PACKED),
    "xarray2 unsigned": Source(xarray_dataset(2), **UNSIGNED),
    "xarray3 unsigned": Source(xarray_dataset(3), **UNSIGNED),
    "xarray tree": Source(
        data_tree, **GEOGRAPHIC | {"array": "model/t", "raw": 7, "value": 7, "crs": "unknown"}
    ),
    "rioxarray2": Source(rioxarray_raster(2), **UTM),
    "rioxarray3": Source(rioxarray_raster(3), **UTM),
    "ome-zarr-py 0.4": Source(image("0.4"), "0", **VOLUME),
    "ome-zarr-py 0.5": Source(image("0.5"), "0", **VOLUME),
    "ngff-zarr 0.4": Source(image("0.4", "scale0/image"), "scale0/image", **VOLUME),
    "ngff-zarr 0.5": Source(image("0.5", "scale0/image"), "scale0/image", **VOLUME),
    "ngff-zarr 0.6": Source(image("0.6", "scale0/image"), "scale0/image", **VOLUME),
    "ngff-zarr RAS": Source(image("0.5", "s", RAS), "s", **VOLUME, frame=TURNED),
    "anndata": Source(anndata_matrix, "X", "oo", [1, 0], 0, 0, {}),
    "TensorStore": Source(
        tensorstore_volume, "a", **VOLUME | {"place": {"z": 2, "y": 1, "x": 0.75}}
    ),
}
IN_ITKS_FRAME = ("nhdr", "mhd", "nii")


@pytest.fixture(scope="module")
def files(tmp_path_factory, shared_mounter):
    """``files[name]``: the directory with the views of the array of a source."""
    need_module("xarray")
    root = tmp_path_factory.mktemp("sources")
    # Xdmf 3 finds no elements in a directory with a space in its name.
    names = {name: name.replace(" ", "-") for name in SOURCES}
    for name, source in SOURCES.items():
        source.make(root / names[name])
    mount = shared_mounter(root, "views=all").path
    return {name: mount / names[name] / source.array for name, source in SOURCES.items()}


@pytest.fixture(scope="module")
def found(files):
    """For each source, what the readers of each view find, by one process for all."""
    for module in ("SimpleITK", "nibabel", "nrrd", "astropy", "mrcfile", "vtk"):
        need_module(module)
    for module in ("fitsio", "rasterio"):
        need_module(module)
    need_library("libXdmf.so.3")
    asked = [
        (name, view)
        for name, folder in files.items()
        for view in facts_read.READERS
        if (folder / f"array.{view}").exists()
    ]
    wanted = [
        [str(files[name] / f"array.{view}"), source.index, source.hole, source.roles]
        for name, view in asked
        for source in [SOURCES[name]]
    ]
    text = json.dumps(wanted).encode()
    answers = json.loads(run(sys.executable, "-W", "ignore", facts_read.__file__, data=text))
    by_source: dict[str, dict[str, dict]] = {name: {} for name in files}
    for (name, view), answer in zip(asked, answers, strict=True):
        by_source[name][view] = answer
    return by_source


@pytest.mark.parametrize("name", SOURCES)
def test_packages_of_python_find_what_the_writer_said(name, found):
    source = SOURCES[name]
    assert found[name].keys() >= {"nc", "h5", "nhdr", "nii", "fits", "tif", "vrt", "bin"}
    spatial = {role: place for role, place in source.place.items() if role in "xyz"}
    for view, answer in found[name].items():
        turned = source.frame is not None and view in IN_ITKS_FRAME
        expected = source.frame if turned else spatial
        for reader, facts in answer.items():
            cell = f"{view} {reader}: {facts}"
            assert "error" not in facts, cell
            if "place" in facts:
                said = {k: v for k, v in facts["place"].items() if k in expected}
                # XDMF has no place where places fall.
                wanted = {k: v for k, v in expected.items() if view != "xmf" or k in said}
                assert said == pytest.approx(wanted, rel=1e-4), cell
            if view != "h5":
                # netCDF has the sign as an attribute.
                assert facts.get("raw", source.raw) == source.raw, cell
            assert facts.get("value", source.value) == source.value, cell
            assert facts.get("hole", True), cell


@pytest.mark.parametrize("name", SOURCES)
def test_gdal_finds_what_the_writer_said(name, files):
    need_program("gdalinfo")
    source, folder = SOURCES[name], files[name]
    for file in ("array.vrt", "array.tif", "array.bin", "array.nc"):
        said = json.loads(run("gdalinfo", "-json", folder / file))
        band = said["bands"][0]
        if source.transform is not None and "map info" in (folder / "array.bin.hdr").read_text():
            assert said["geoTransform"] == pytest.approx(source.transform), file
        elif file in ("array.vrt", "array.tif"):
            assert said.get("geoTransform") == source.transform, file
        missing = band.get("noDataValue")
        assert missing == source.missing or missing == "NaN", file  # noqa: PLR1714
        wkt = said.get("coordinateSystem", {}).get("wkt", "")
        assert "ENGCRS" not in wkt, file
        # GeoTIFF has codes alone, and ENVI no system without a place.
        if file == "array.vrt" or "UTM" in source.crs:
            assert source.crs in wkt, file
