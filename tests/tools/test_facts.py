"""Programs find the facts of an array in each of its files: place, units, missing values."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_module, need_program, run

UM = "micrometer"
UTM = {
    "proj:code": "EPSG:32633",
    "spatial:dimensions": ["y", "x"],
    "spatial:transform": [10.0, 0.0, 500000.0, 0.0, -10.0, 4600000.0],
}


def python(text: str, *paths: object) -> object:
    """What a program of Python prints as JSON."""
    return json.loads(run(sys.executable, "-W", "ignore", "-c", text, *paths))


def add(group, name, shape, dtype, dims, attributes=None, **members):
    array = group.create_array(
        name, shape=shape, chunks=shape, dtype=dtype, dimension_names=dims, attributes=attributes,
        **members,
    )  # fmt: skip
    array[...] = np.arange(np.prod(shape)).reshape(shape) % 100
    return array


@pytest.fixture
def raster(mounted, tmp_path):
    """``raster(said)``: a mount of 5 x 7 elements that has these attributes beside `UTM`."""

    need_program("gdalinfo")

    def mount(said):
        path, data = tmp_path / "a.zarr", np.ones((5, 7), "u1")
        zarr.create_array(path, data=data, dimension_names=("y", "x"), attributes=UTM | said)
        return mounted(path, "views=all")

    return mount


def ome(path: Path, axes: str, shape, scale, origin, units, dtype="u2", **more):
    kinds = {"t": "time", "c": "channel"}
    said = [
        {"name": axis, "type": kinds.get(axis, "space"), **({"unit": unit} if unit else {})}
        for axis, unit in zip(axes, units, strict=True)
    ]
    steps = [
        {"type": "scale", "scale": scale},
        {"type": "translation", "translation": origin},
    ]
    datasets = [{"path": "0", "coordinateTransformations": steps}]
    image = {"version": "0.5", "multiscales": [{"axes": said, "datasets": datasets}], **more}
    group = zarr.create_group(path, attributes={"ome": image})
    return add(group, "0", shape, dtype, list(axes))


# --- place ------------------------------------------------------------------------


def gdal(path: Path) -> dict:
    need_program("gdalinfo")
    return json.loads(run("gdalinfo", "-json", path))


def test_a_georeference_belongs_to_the_axes_y_and_x(mounted, tmp_path):
    need_program("gdalinfo")
    group = zarr.create_group(tmp_path / "g.zarr", attributes=UTM)
    add(group, "ok", (5, 7), "f4", ["y", "x"])
    add(group, "yxt", (5, 7, 9), "f4", ["y", "x", "t"])
    add(group, "bounds", (4, 2), "f8", ["time", "bnds"])
    add(group, "xy", (7, 5), "f4", ["x", "y"])
    mount = mounted(tmp_path / "g.zarr", "views=all")
    for file in ("array.vrt", "array.tif", "array.bin", "array.nc"):
        said = gdal(mount / "ok" / file)
        assert said["geoTransform"] == [500000, 10, 0, 4600000, 0, -10], file
        assert "UTM zone 33N" in said["coordinateSystem"]["wkt"], file
        for name in ("yxt", "bounds"):
            if file != "array.nc":
                assert "geoTransform" not in gdal(mount / name / file), (name, file)
    assert gdal(mount / "xy" / "array.vrt")["geoTransform"] == [500000, 0, 10, 4600000, -10, 0]
    assert gdal(f'NETCDF:"{mount / "group.h5"}":ok')["geoTransform"][0] == 500000


@pytest.mark.parametrize("code", [4647, 5070, 7844, 8857, 4326])
def test_a_reference_system_is_the_same_in_tiff_and_vrt(code, raster):
    mount = raster({"proj:code": f"EPSG:{code}"})
    systems = [
        gdal(mount / file)["coordinateSystem"]["wkt"].splitlines()[0]
        for file in ("array.vrt", "array.tif")
    ]
    assert systems[0] == systems[1]
    assert systems[0].startswith(("PROJCRS[", "GEOGCRS["))


def test_nodes_are_the_middles_of_pixels(raster):
    mount = raster({"spatial:registration": "node"})
    for file in ("array.vrt", "array.tif"):
        said = gdal(mount / file)
        assert said["geoTransform"] == [499995, 10, 0, 4600005, 0, -10], file
        assert said["metadata"][""]["AREA_OR_POINT"] == "Point", file


def test_a_rotated_raster_has_no_place_where_it_would_lose_the_rotation(raster):
    mount = raster({"spatial:transform": [10.0, 2.0, 500000.0, 3.0, -10.0, 4600000.0]})
    for file in ("array.vrt", "array.tif"):
        assert gdal(mount / file)["geoTransform"] == [500000, 10, 2, 4600000, 3, -10], file
    assert "geoTransform" not in gdal(mount / "array.bin")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("step", [10, -10])
def test_gdal_finds_rows_where_the_names_of_coordinates_say_them(
    step, zarr_format, mounted, tmp_path
):
    need_module("xarray")
    need_program("gdal_translate")
    import xarray

    rows = 100.0 + step * np.arange(4)
    data = np.arange(20.0).reshape(4, 5)
    xarray.Dataset(
        {"v": (("y", "x"), data)}, {"y": rows, "x": ("x", 10 * np.arange(5), {"units": "m"})}
    ).to_zarr(tmp_path / "g.zarr", zarr_format=zarr_format, consolidated=False)
    mount = mounted(tmp_path / "g.zarr", "views=all")
    for path in ("v/array.vrt", "v/array.nc", "group.h5"):
        lines = run("gdal_translate", "-q", "-of", "XYZ", _of_v(mount / path), "/vsistdout/")
        found = sorted(map(tuple, np.loadtxt(lines.decode().splitlines())))
        places = [(x, y) for y in rows for x in 10 * np.arange(5)]
        assert found == sorted((x, y, v) for (x, y), v in zip(places, data.flat, strict=True)), path


def _of_v(path: Path) -> object:
    return path if path.suffix == ".vrt" else f'NETCDF:"{path}":v'


# --- missing values and packed numbers --------------------------------------------


@pytest.fixture(params=[2, 3])
def missing(request, tmp_path, mounted):
    """Arrays as xarray writes them; and the element that means that there is no value."""
    need_module("xarray")
    import xarray

    data = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])
    packed = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -9}
    xarray.Dataset(
        {
            "packed": (("y", "x"), data, {"units": "K"}, packed),
            "zero": (("y", "x"), data, {}, {"dtype": "u1", "_FillValue": 0}),
            "other": (("y", "x"), data, {}, {"dtype": "i2", "missing_value": -7}),
            "floats": (("y", "x"), data),
        }
    ).to_zarr(tmp_path / "g.zarr", zarr_format=request.param, consolidated=False)
    expected = {"packed": -9, "zero": 0, "other": -7, "floats": "NaN"}
    return mounted(tmp_path / "g.zarr", "views=all"), expected


def test_gdal_finds_missing_values(missing):
    mount, expected = missing
    for name, value in expected.items():
        for file in ("array.vrt", "array.tif", "array.bin", "array.nc"):
            said = gdal(mount / name / file)["bands"][0].get("noDataValue")
            # netCDF marks NaN for itself.
            assert said == value or (value == "NaN" and said is None), (name, file)
    for file in ("array.vrt", "array.tif", "array.bin"):
        band = gdal(mount / "packed" / file)["bands"][0]
        assert (band["scale"], band["offset"]) == (0.5, 10), file
        assert band.get("unit", "K") == "K"


def test_xarray_masks_what_it_masks_in_the_source(missing, tmp_path):
    need_module("netCDF4")
    import xarray

    mount, expected = missing
    with xarray.open_zarr(tmp_path / "g.zarr", consolidated=False) as source:
        for path in (mount / "group.h5", *(mount / name / "array.nc" for name in expected)):
            with xarray.open_dataset(path, engine="netcdf4") as found:
                for name in expected.keys() & found.variables.keys():
                    np.testing.assert_array_equal(
                        found[name].values, source[name].values, err_msg=f"{path} {name}"
                    )


def test_cdo_counts_missing_values(missing):
    need_program("cdo")
    mount, expected = missing
    said = run("cdo", "-s", "infon", mount / "group.h5").decode()
    counts = dict(re.findall(r"\s(\d+) :\s+-?[\d.]+[\d. -]* : (\w+)", said))
    found = {row.split()[-1]: row for row in said.splitlines()}
    assert found.keys() >= expected.keys(), said
    for name in expected:
        assert re.search(r"\s6\s+1 :", found[name]), (found[name], counts)


def test_r_counts_missing_values(missing):
    need_program("Rscript")
    mount, expected = missing
    text = (
        "library(ncdf4); p <- commandArgs(TRUE); f <- nc_open(p[1])\n"
        "for (n in p[-1]) { v <- ncvar_get(f, n); cat(sum(is.na(v)), v[3, 1], '') }"
    )
    said = run("Rscript", "-e", text, mount / "group.h5", *expected).decode().split()
    assert said == ["1", "3"] * len(expected)


def test_astropy_unpacks_and_masks(missing):
    need_module("astropy")
    mount, _ = missing
    text = (
        "import sys, json; from astropy.io import fits\n"
        "h = fits.open(sys.argv[1])[0]\n"
        "print(json.dumps([float(h.data[1, 0]), str(h.data[0, 1]), h.header['BUNIT']]))"
    )
    assert python(text, mount / "packed" / "array.fits") == [4.0, "nan", "K"]


# --- space ------------------------------------------------------------------------

STACKS = {
    "zyx": ((4, 6, 8), [2.0, 0.5, 0.25], [10.0, 20.0, 30.0], [UM] * 3),
    "xyz": ((8, 6, 4), [0.25, 0.5, 2.0], [30.0, 20.0, 10.0], [UM] * 3),
    "zyxc": ((4, 6, 8, 3), [2.0, 0.5, 0.25, 1.0], [10.0, 20.0, 30.0, 0.0], [UM, UM, UM, ""]),
    "czyx": ((2, 4, 6, 8), [1.0, 2.0, 0.5, 0.25], [0.0, 10.0, 20.0, 30.0], ["", UM, UM, UM]),
}


@pytest.fixture(scope="module")
def stacks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks")
    for axes, (shape, scale, origin, units) in STACKS.items():
        ome(folder / axes, axes, shape, scale, origin, units, "u1")
    return folder


@pytest.mark.parametrize("options", [(), ("order=F",)], ids=["C", "F"])
@pytest.mark.parametrize("axes", STACKS)
def test_a_voxel_has_one_place_for_itk_and_nibabel(axes, options, stacks, mounted):
    need_module("SimpleITK")
    need_module("nibabel")
    if options and "c" in axes:
        pytest.skip("NIfTI has no axes of space behind channels")
    mount = mounted(stacks / axes, "views=all", *options) / "0"
    text = (
        "import sys, json, SimpleITK as sitk, nibabel\n"
        "places = []\n"
        "for path in sys.argv[1:]:\n"
        "    image = sitk.ReadImage(path)\n"
        "    index = [1, 2, 3] + [0] * (image.GetDimension() - 3)\n"
        "    places.append(image.TransformIndexToPhysicalPoint(index)[:3])\n"
        "affine = nibabel.load(sys.argv[1]).affine\n"
        "places.append((affine @ [1, 2, 3, 1])[:3].tolist())\n"
        "print(json.dumps(places))"
    )
    names = ("array.nii", "array.nhdr", "array.mhd")
    nii, nhdr, mhd, nibabel = python(text, *(mount / name for name in names))
    fast = axes if options else axes.replace("c", "")[::-1]
    step = {"x": 0.25, "y": 0.5, "z": 2.0}
    start = {"x": 30.0, "y": 20.0, "z": 10.0}
    index = {axis: number for number, axis in enumerate(fast, 1)}
    expected = [start[axis] + step[axis] * index[axis] for axis in "xyz"]
    assert nhdr == pytest.approx(expected)
    assert mhd == pytest.approx(expected)
    # ITK has millimetres of NIfTI; nibabel's x and y grow the other way.
    assert [1000 * n for n in nii] == pytest.approx(expected)
    assert nibabel == pytest.approx([-expected[0], -expected[1], expected[2]])


# A rotation times the spacings 2, 1.5 and 3: ITK opens no NIfTI file that is sheared.
OBLIQUE = [[1.6, -0.54, 1.44, -90.0], [1.2, 0.72, -1.92, -126.0], [0.0, 1.2, 1.8, -72.0]]
STRAIGHT = [[-2.0, 0.0, 0.0, 90.0], [0.0, 2.0, 0.0, -126.0], [0.0, 0.0, 3.0, -72.0]]


@pytest.mark.parametrize("rows", [OBLIQUE, STRAIGHT], ids=["oblique", "straight"])
@pytest.mark.parametrize("axes", ["zyx", "xyz", "tzyx", ""])
def test_an_affine_is_that_of_nibabel_in_every_program(axes, rows, mounted, tmp_path):
    need_module("SimpleITK")
    need_module("nibabel")
    lengths = {"t": 2, "z": 4, "y": 6, "x": 8}
    shape = [lengths[axis] for axis in axes or "xyz"]
    group = zarr.create_group(tmp_path / "g.zarr")
    affine = [*rows, [0, 0, 0, 1]]
    add(group, "a", shape, "i2", list(axes) or None, {"affine": affine})
    index = {"x": 3, "y": 2, "z": 1}
    at = [index.get(axis, 0) for axis in (axes or "xyz")[::-1]]
    text = (
        "import sys, json, SimpleITK as sitk, nibabel, numpy as np\n"
        "at = json.loads(sys.argv[1]); places = []\n"
        "for path in sys.argv[2:]:\n"
        "    places.append(sitk.ReadImage(path).TransformIndexToPhysicalPoint(at)[:3])\n"
        "image = nibabel.load(sys.argv[2])\n"
        "places.append((image.affine @ [*at[:3], 1])[:3].tolist())\n"
        "print(json.dumps([*places, image.header.get_xyzt_units()[0]]))"
    )
    mount = mounted(tmp_path / "g.zarr", "views=all") / "a"
    names = ["array.nii", "array.mhd"] + (["array.nhdr"] if "t" not in axes else [])
    *itk, nibabel, unit = python(text, json.dumps(at), *(mount / name for name in names))
    expected = [sum(row[i] * index["xyz"[i]] for i in range(3)) + row[3] for row in rows]
    assert nibabel == pytest.approx(expected, abs=1e-4)
    assert unit == "mm"
    for place in itk:
        assert [-place[0], -place[1], place[2]] == pytest.approx(expected, abs=1e-4)


def test_a_part_lies_where_it_lies_in_the_whole(mounted, tmp_path):
    need_module("nibabel")
    group = zarr.create_group(tmp_path / "g.zarr")
    add(group, "a", [4, 6, 8], "i2", list("zyx"), {"affine": [*OBLIQUE, [0, 0, 0, 1]]})
    mount = mounted(tmp_path / "g.zarr/a", "region=1:4,2:6,3:8")
    text = "import sys, json, nibabel\nprint(json.dumps(nibabel.load(sys.argv[1]).affine.tolist()))"
    affine = np.array(python(text, mount / "array.nii"))
    expected = np.array(OBLIQUE) @ [3, 2, 1, 1]
    assert affine[:3, 3] == pytest.approx(expected, abs=1e-4)
    assert affine[:3, :3] == pytest.approx(np.array(OBLIQUE)[:, :3], abs=1e-4)


WCS = {
    "WCSAXES": 3,
    "CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CTYPE3": "FREQ",
    "CUNIT1": "deg", "CUNIT2": "deg", "CUNIT3": "Hz",
    "CRPIX1": 4.0, "CRPIX2": 3.0, "CRPIX3": 1.0,
    "CRVAL1": 202.47, "CRVAL2": 47.2, "CRVAL3": 1.42e9,
    "CDELT1": -0.0002, "CDELT2": 0.0003, "CDELT3": 1e6,
    "PC1_1": 0.8, "PC1_2": -0.6, "PC2_1": 0.6, "PC2_2": 0.8,
    "RADESYS": "ICRS", "BUNIT": "Jy/beam", "OBJECT": "M51", "EXPTIME": 30, "SIMPLE": "no",
    "NAXIS": 7, "BSCALE": 5.0, "units_of_nothing": "x",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "index"),
    [((), [1, 2, 3]), (("order=F",), [1, 2, 3]), (("region=1:4,1:6,2:8",), [0, 1, 1])],
    ids=["C", "F", "region"],
)
def test_astropy_finds_the_wcs_of_the_attributes(options, index, mounted, tmp_path):
    """``index`` of one element, in the order of the axes of the array."""
    need_module("astropy")
    group = zarr.create_group(tmp_path / "g.zarr")
    add(group, "a", [4, 6, 8], "i2", ["freq", "dec", "ra"], WCS)
    mount = mounted(tmp_path / "g.zarr/a", "views=fits,h5", *options)
    text = (
        "import sys, json, astropy.wcs; from astropy.io import fits\n"
        "attributes, index, turned = map(json.loads, sys.argv[1:4])\n"
        "hdus = fits.open(sys.argv[4]); hdus.verify('exception'); h = hdus[0]\n"
        "found = astropy.wcs.WCS(h.header)\n"
        "kept = {k: v for k, v in attributes.items() if k[:2] in ('CT', 'CU', 'CR', 'CD', 'PC')}\n"
        "source = astropy.wcs.WCS(fits.Header({'NAXIS': 3, **kept, 'RADESYS': 'ICRS'}))\n"
        "at = index if turned else index[::-1]\n"
        "places = dict(zip(found.wcs.ctype, map(float, found.wcs_pix2world([at], 0)[0])))\n"
        "right = source.wcs_pix2world([[3, 2, 1]], 0)[0]\n"
        "right = dict(zip(source.wcs.ctype, map(float, right)))\n"
        "print(json.dumps([places, right, *(h.header[k] for k in ('BUNIT', 'OBJECT', 'EXPTIME')),"
        " h.header['NAXIS'], 'BSCALE' in h.header]))"
    )
    turned = json.dumps("order=F" in options)
    said = python(text, json.dumps(WCS), json.dumps(index), turned, mount / "array.fits")
    places, right, *rest = said
    assert places == pytest.approx(right)
    assert rest == ["Jy/beam", "M51", 30, 3, False]


def test_mrtrix_finds_the_affine_of_nibabel(stacks, mounted):
    need_program("mrinfo")
    # MRtrix turns the axes x and y, whose last elements come first, and takes no unit into account.
    path = mounted(stacks / "zyx") / "0" / "array.nii"
    said = run("mrinfo", "-spacing", "-transform", path).decode().split()
    numbers = [float(word) for word in said]
    assert numbers[:3] == pytest.approx([0.25, 0.5, 2])
    rows = [numbers[3 + 4 * row :][:4] for row in range(3)]
    assert rows[0] == pytest.approx([1, 0, 0, -30 - 7 * 0.25])
    assert rows[1] == pytest.approx([0, 1, 0, -20 - 5 * 0.5])
    assert rows[2] == pytest.approx([0, 0, 1, 10])


def test_axes_of_nifti_are_those_of_space_time_and_others(mounted, tmp_path):
    need_module("nibabel")
    axes = {
        "tyx": ((5, 6, 8), [40.0, 0.5, 0.25], ["millisecond", UM, UM]),
        "tczyx": ((3, 2, 4, 6, 8), [2.5, 1, 2, 0.5, 0.25], ["second", "", UM, UM, UM]),
        "zyx": ((4, 6, 8), [1.0, 4.0, 4.0], [UM, "nanometer", "nanometer"]),
    }
    for name, (shape, scale, units) in axes.items():
        ome(tmp_path / "g" / name, name, shape, scale, [0.0] * len(shape), units)
    mount = mounted(tmp_path / "g", "views=all")
    text = (
        "import sys, json, nibabel\n"
        "i = nibabel.load(sys.argv[1])\n"
        "zooms = [round(float(z), 6) for z in i.header.get_zooms()]\n"
        "print(json.dumps([i.shape, zooms, i.header.get_xyzt_units()]))"
    )
    assert python(text, mount / "tyx" / "0" / "array.nii") == [
        [8, 6, 1, 5], [0.25, 0.5, 1, 40], ["micron", "msec"]
    ]  # fmt: skip
    assert python(text, mount / "tczyx" / "0" / "array.nii")[0] == [8, 6, 4, 1, 2, 3]
    assert python(text, mount / "zyx" / "0" / "array.nii")[1:] == [
        [0.004, 0.004, 1], ["micron", "unknown"]
    ]  # fmt: skip


def test_mrc_has_origin_and_tells_stacks_from_volumes(stacks, mounted, tmp_path):
    need_module("mrcfile")
    ome(tmp_path / "t", "tyx", (5, 6, 8), [40.0, 0.5, 0.25], [0.0, 20.0, 30.0],
        ["millisecond", UM, UM], "u2")  # fmt: skip
    zarr.create_array(tmp_path / "n", shape=(4, 6, 8), dtype="i1")[...] = -3
    ome(tmp_path / "v", "zyx", *STACKS["zyx"], "u2")
    text = (
        "import sys, json, mrcfile\n"
        "f = mrcfile.open(sys.argv[1])\n"
        "print(json.dumps([f.voxel_size.tolist(), f.header.origin.tolist(), bool(f.is_volume())]))"
    )
    found = [
        python(text, mounted(tmp_path / name, "views=all") / path)
        for name, path in (("v", "0/array.mrc"), ("t", "0/array.mrc"), ("n", "array.mrc"))
    ]
    assert found == [
        [[2500, 5000, 20000], [300000, 200000, 100000], True],
        [[2500, 5000, 0], [300000, 200000, 0], False],
        [[0, 0, 0], [0, 0, 0], True],
    ]


# --- HDF5 and netCDF --------------------------------------------------------------


def test_a_group_file_has_the_coordinates_of_each_array(stacks, mounted):
    need_program("ncdump")
    said = run("ncdump", "-v", "z,y", mounted(stacks / "zyx") / "group.h5").decode()
    assert "z = 10, 12, 14, 16 ;" in said
    assert 'z:units = "micrometer"' in said


def test_attributes_of_the_type_of_their_variable(mounted, tmp_path):
    need_program("ncdump")
    attributes = {
        "missing_value": -9, "flag_values": [1, 2], "scale_factor": 2, "history": "é" * 30000,
        "list": ["a", "bc"], "empty": "", "huge": "x" * 70000,
    }  # fmt: skip
    group = zarr.create_group(tmp_path / "g.zarr")
    add(group, "a", (2, 3), "i2", ["y", "x"], attributes)
    add(group, "mask", (2, 3), "bool", ["y", "x"])
    mount = mounted(tmp_path / "g.zarr", "views=all")
    for path in (mount / "group.h5", mount / "a" / "array.nc"):
        said = run("ncdump", "-h", path).decode()
        assert "a:missing_value = -9s ;" in said
        assert "a:flag_values = 1s, 2s ;" in said
        assert "a:scale_factor = 2. ;" in said
        assert 'string a:list = "a", "bc" ;' in said
        assert 'a:empty = "" ;' in said
        assert "é" * 30000 in said
        assert 'a:zarrfs_left_out = "huge" ;' in said
    for path in (mount / "group.h5", mount / "mask" / "array.nc"):
        said = run("ncdump", "-h", path).decode()
        assert "byte mask(y, x) ;" in said
        assert 'mask:dtype = "bool" ;' in said


def test_vtk_shows_an_image_of_vectors(mounted, tmp_path):
    need_module("vtk")
    ome(tmp_path / "g", "yxc", (6, 8, 3), [0.5, 0.25, 1.0], [20.0, 30.0, 0.0], [UM, UM, ""], "u1")
    text = (
        "import sys, json, vtk\n"
        "r = vtk.vtkXdmfReader(); r.SetFileName(sys.argv[1]); r.Update()\n"
        "i = r.GetOutputDataObject(0)\n"
        "a = i.GetPointData().GetArray(0)\n"
        "print(json.dumps([i.GetDimensions(), i.GetSpacing()[:2], a.GetTuple(9)]))"
    )
    assert python(text, mounted(tmp_path / "g", "views=xmf") / "0" / "array.xmf") == [
        [8, 6, 1], [0.25, 0.5], [27, 28, 29]
    ]  # fmt: skip
