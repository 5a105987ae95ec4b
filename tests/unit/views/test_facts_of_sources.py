"""What some writers alone say about an array, and what a file with its elements may then say."""

import io
import json
from string import ascii_letters, digits

import h5py
import numpy as np
import pytest
import tifffile

from zarrfs.array.neighbours import Neighbour, read_neighbours
from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.facts.coordinates import coordinates_in
from zarrfs.views.facts.facts import Around
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.place.crs import epsg
from zarrfs.views.facts.place.georeference import grid_mapping
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.registry import find_format


def image(axes, steps, **more):
    """The group of an OME-Zarr image of version 0.5 with these axes."""
    datasets = [{"path": "0", "coordinateTransformations": steps}]
    return Around(
        (("0", {"ome": {"multiscales": [{"axes": axes, "datasets": datasets, **more}]}}),)
    )


def test_spacing_of_ome_0_6(array):
    """As ngff-zarr 0.50 writes it: a sequence that leads to one of the named systems."""
    axes = [{"name": name, "type": "space", "unit": "millimeter"} for name in "zyx"]
    said = {
        "coordinateSystems": [{"name": "other", "axes": axes[::-1]}, {"name": "own", "axes": axes}],
        "coordinateTransformations": [{"type": "scale", "scale": [7, 7, 7], "output": "other"}],
        "datasets": [
            {
                "path": "0",
                "coordinateTransformations": [
                    {
                        "type": "sequence",
                        "output": {"name": "own"},
                        "transformations": [
                            {"type": "scale", "scale": [2, 0.5, 0.25]},
                            {"type": "translation", "translation": [10, 20, 30]},
                        ],
                    }
                ],
            }
        ],
    }
    found = gather(array([None] * 3), Around((("0", {"ome": {"multiscales": [said]}}),)))
    assert [axis.name for axis in found.axes] == ["z", "y", "x"]
    assert [axis.spacing for axis in found.axes] == [2, 0.5, 0.25]
    assert [axis.origin for axis in found.axes] == [10, 20, 30]


SCALE, ROTATION = {"type": "scale", "scale": [2, 4]}, {"type": "rotation", "rotation": [0, 1]}
MOVE = {"type": "translation", "translation": [1, 3]}
AFFINE = {"type": "affine", "affine": [[2, 0, 1], [0, 4, 3]]}
TURNED = {
    "type": "affine", "affine": [[0, 4, 3], [2, 0, 1], [0, 0, 1]],
    "input": {"axes": [{"name": "y"}, {"name": "x"}]},
    "output": {"axes": [{"name": "x"}, {"name": "y"}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "of_image", "spacing", "origin"),
    [
        ([SCALE, MOVE], [SCALE, MOVE], [4, 16], [3, 15]),
        ([{"type": "identity"}], [{"type": "sequence", "transformations": [SCALE, MOVE]}],
         [2, 4], [1, 3]),
        ([{"type": "scale", "scale": [-2, 4]}, MOVE], [], [-2, 4], [1, 3]),
        ([SCALE], [SCALE | {"output": {"name": "a"}}, SCALE | {"output": {"name": "b"}}],
         [4, 16], [0, 0]),
        ([SCALE], [ROTATION | {"output": {"name": "a"}}, MOVE | {"output": {"name": "global"}}],
         [2, 4], [1, 3]),
        ([SCALE, MOVE], [ROTATION], [None, None], [0, 0]),
        ([{"type": "identity"}], [AFFINE], [2, 4], [1, 3]),
        ([{"type": "identity"}], [TURNED], [2, 4], [1, 3]),
        ([SCALE], [AFFINE | {"affine": [[2, 1, 1], [0, 4, 3]]}], [None, None], [0, 0]),
        ([SCALE], [TURNED | {"output": {}}], [None, None], [0, 0]),
        ([SCALE], [AFFINE | {"input": {"axes": [{"name": 1}, {"name": "y"}]},
                             "output": {"axes": [{"name": "1"}, {"name": "y"}]}}],
         [4, 16], [1, 3]),
        ([SCALE], [AFFINE | {"affine": [[2, 0], [0, 4]]}], [None, None], [0, 0]),
        ([SCALE], [AFFINE | {"affine": [5, None]}], [None, None], [0, 0]),
        ([SCALE], [{"type": "affine", "path": "file"}], [None, None], [0, 0]),
        ([SCALE], [{"type": "sequence", "transformations": [MOVE, ROTATION]}],
         [None, None], [0, 0]),
        ([{"type": "scale", "path": "file"}, MOVE], [], [None, None], [0, 0]),
        ([{"type": "scale", "scale": [0, 4]}], [], [None, None], [0, 0]),
        ([], [], [None, None], [0, 0]),
    ],
)  # fmt: skip
def test_transformations_of_an_image_are_all_known_or_none(steps, of_image, spacing, origin, array):
    """SpatialData leads to several systems; a scale alone would be wrong beside a rotation."""
    found = gather(array(), image(["y", "x"], steps, coordinateTransformations=of_image)).axes
    assert [axis.spacing for axis in found] == spacing
    assert [axis.origin for axis in found] == origin


@pytest.mark.parametrize(
    ("directions", "affine"),
    [
        (("inferior-to-superior", "anterior-to-posterior", "right-to-left"), None),
        (("inferior-to-superior", "posterior-to-anterior", "left-to-right"),
         ((-0.25, 0, 0), (0, -0.5, 0), (0, 0, 2), (-30, -20, 10))),
        (("left-to-right", "superior-to-inferior", "posterior-to-anterior"),
         ((0, -0.25, 0), (0, 0, -0.5), (-2, 0, 0), (-10, -30, -20))),
        (("left-to-right", "superior-to-inferior", "left-to-right"), None),
        (("left-to-right", "superior-to-inferior", "nonsense"), None),
    ],
)  # fmt: skip
def test_directions_in_a_body(directions, affine, array):
    axes = [
        {
            "name": name, "type": "space", "unit": "millimeter",
            "orientation": {"type": "anatomical", "value": value},
        }
        for name, value in zip("zyx", directions, strict=True)
    ]  # fmt: skip
    steps = [
        {"type": "scale", "scale": [2, 0.5, 0.25]},
        {"type": "translation", "translation": [10, 20, 30]},
    ]
    found = gather(array("zyx"), image(axes, steps))
    assert found.affine == affine
    assert [axis.spacing for axis in found.axes] == [2, 0.5, 0.25]


def test_the_fill_value_of_images_and_tables_of_zarr_2_is_a_number(array):
    document = {
        "zarr_format": 2, "shape": [3, 4, 5], "chunks": [3, 4, 5], "dtype": "<i2", "order": "C",
        "compressor": None, "filters": None, "fill_value": 0,
    }  # fmt: skip
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    around = image(axes, [{"type": "scale", "scale": [1, 1, 1]}])
    for attributes in (b"{}", b'{"encoding-type": "array"}'):
        metadata = parse_array_v2(json.dumps(document).encode(), attributes)
        assert gather(metadata, around).missing == ()


@pytest.mark.parametrize(
    ("data_type", "said", "code", "missing"),
    [("int8", "true", "u1", 255), ("uint16", "false", "i2", -1), ("int16", None, "i2", -1)],
)
def test_signs_that_are_meant(data_type, said, code, missing, array):
    attributes = {"_FillValue": missing} | ({} if said is None else {"_Unsigned": said})
    described = describe(array(data_type=data_type, attributes=attributes), FlatConfig())
    assert (described.code, described.no_data) == (code, missing)
    data = find_format("nhdr")(described)().header
    assert {"u1": b"uint8", "i2": b"int16"}[code] in data
    assert find_format("npy")(described)().header[10:].startswith(b"{'descr'")


def with_coordinates(array, values, **attributes):
    values = np.array(values)
    beside = array("z", str(values.dtype), [len(values)], attributes=attributes)
    coordinates = coordinates_in({"z": Neighbour("z", beside, values)})
    return array("zyx", shape=[len(values), 4, 5]), Around((), {}, coordinates)


def test_an_axis_of_one_element_has_a_place(array):
    metadata, around = with_coordinates(array, [850.0], units="hPa")
    (z, _, _) = gather(metadata, around).axes
    assert (z.origin, z.spacing, z.unit, z.irregular) == (850, None, "hPa", False)


def test_headers_give_no_unit_to_places_that_they_cannot_say(array):
    metadata, around = with_coordinates(array, [0.0, 5.0, 15.0], units="m")
    assert gather(metadata, around).axes[0].unit == "m"
    described = describe(metadata, FlatConfig(), around=around)
    assert described.axes[0].irregular
    assert b"CTYPE3" not in find_format("fits")(described)().header
    assert b'"m"' not in find_format("nhdr")(described)().header


def test_conventions_speak_to_the_own_arrays_of_a_group(array):
    utm = {"proj:code": "EPSG:32633", "spatial:transform": [10, 0, 5e5, 0, -10, 4.6e6]}
    assert gather(array(), Around((("a", utm),))).georeference.crs
    deep = Around((("a", {}), ("g/a", utm)))
    assert not gather(array(), deep).georeference.crs
    level = {"multiscales": {"layout": [{"asset": "g"}]}}
    assert gather(array(), Around((("a", {}), ("g/a", utm | level)))).georeference.crs


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"spatial:transform": [10, 0, 500, 0, -10, 400]}, (500, 400)),
        ({"GeoTransform": "500 10 0 400 0 -10"}, (530, 380)),
        # What xarray cut has both of them as they were before.
        ({"GeoTransform": "500 10 0 400 0 -10", "spatial:transform": [10, 0, 500, 0, -10, 400]},
         (530, 380)),
    ],
)  # fmt: skip
def test_coordinates_of_a_part_move_a_geo_transform(said, place, array):
    of_axes = {"y": [375.0, 365.0, 355.0, 345.0], "x": [535.0, 545.0, 555.0, 565.0, 575.0]}
    beside = coordinates_in(
        {
            name: Neighbour(name, array(name, "float64", [len(values)]), np.array(values))
            for name, values in of_axes.items()
        }
    )
    metadata = array("zyx", attributes={"proj:code": "EPSG:32633", **said})
    x, _, _, y, _, _ = gather(metadata, Around((), {}, beside)).georeference.transform
    assert (x, y) == place


def test_neighbours_of_groups_above(parse):
    class Node:
        def __init__(self, metadata):
            self.metadata = metadata

    there = {path: Node(parse(shape=[2, 2], data_type="int8")) for path in ("x", "a/y", "a/b/y")}
    names = ["x", "y", "z", "..", ""]
    found = read_neighbours(None, there.get, lambda _: True, "a/b/c", names)
    assert {name: one.path for name, one in found.items()} == {"x": "x", "y": "a/b/y"}


def test_times_and_lengths_of_nifti(array):
    units = ["2 hour", None, "3 km", "3 km"]
    metadata = array("tzyx", attributes={"dimension_units": units})
    described = describe(metadata, FlatConfig(), around=Around())
    header = find_format("nii")(described)().header
    assert header[123] == 1 | 8
    assert np.frombuffer(header, "<f4", 8, 76).tolist() == [1, 3000, 3000, 1, 7200, 1, 1, 1]
    beside = array("t", "int32", [3], attributes={"units": "hours since 2000-01-01"})
    along = {"t": Neighbour("t", beside, np.array([5, 7, 9], "i4"))}
    around = Around((), {}, coordinates_in(along))
    header = find_format("nii")(describe(array("tzyx"), FlatConfig(), around=around))().header
    assert np.frombuffer(header, "<f4", 1, 136) == 5 * 3600


def test_no_key_of_geotiff_without_a_system(array):
    """GDAL makes an engineering system of any other key."""
    for said in ({}, {"spatial:registration": "node"}):
        attributes = {"spatial:transform": [10, 0, 500, 0, -10, 400], **said}
        described = describe(array(attributes=attributes), FlatConfig())
        with tifffile.TiffFile(io.BytesIO(find_format("tif")(described)().header)) as file:
            tags = file.pages.first.tags
            assert tags[34735].value == (1, 1, 0, 0)
            assert tags[33922].value[3:5] == described.georeference.transform[0:4:3]


def test_web_mercator_for_programs_without_a_registry(array):
    said = {"proj:code": "EPSG:3857", "spatial:transform": [10, 0, 500, 0, -10, 400]}
    described = describe(array(attributes=said), FlatConfig())
    header = find_format("bin.hdr")(described)().header
    assert b'coordinate system string = {PROJCS["WGS 84 / Pseudo-Mercator"' in header
    assert b"map info = {Arbitrary, 1, 1, 500, 400, 10, 10, 0, North}" in header
    form = find_format("nc")(described)()
    with h5py.File(io.BytesIO(form.header + bytes(form.gap + described.nbytes))) as file:
        (text,) = (v.attrs["crs_wkt"] for v in file.values() if "crs_wkt" in v.attrs)
    assert text.startswith(b'PROJCS["WGS 84 / Pseudo-Mercator"')
    assert epsg(text.decode()).number == 3857


def test_many_bands_behind_an_image_lie_beside_each_other(array):
    """As spectrometers and GDAL's Zarr driver have them."""
    said = {"proj:code": "EPSG:32633", "spatial:transform": [10, 0, 500, 0, -10, 400]}
    metadata = array(attributes=said, shape=(20, 30, 50), dimension_names=["y", "x", "band"])
    described = describe(metadata, FlatConfig())
    assert described.is_image
    assert described.georeference.transform == (500, 10, 0, 400, 0, -10)
    header = find_format("bin.hdr")(described)().header
    for line in (b"samples = 30", b"lines = 20", b"bands = 50", b"interleave = bip"):
        assert line + b"\n" in header
    assert b"map info = {UTM, 1, 1, 500, 400, 10, 10, 33, North" in header
    header = find_format("vrt")(described)().header
    assert b'rasterXSize="30" rasterYSize="20"' in header
    assert header.count(b"<VRTRasterBand") == 50
    elements = np.arange(20 * 30 * 50, dtype="<i2")
    form = find_format("tif")(described)()
    with tifffile.TiffFile(io.BytesIO(form.header + elements.tobytes())) as file:
        (series,) = file.series
        assert series.axes == "YXS"
        assert series.keyframe.photometric.name == "MINISBLACK"
        assert np.array_equal(series.asarray(), elements.reshape(20, 30, 50))
        assert file.pages.first.tags[33922].value[3:5] == (500, 400)


def test_an_axis_with_a_positive_direction_is_z(array):
    """As CF has it; it tells what no name or unit of the coordinate does."""
    for said, role in (({"positive": "down"}, "z"), ({}, "")):
        beside = array("l", "float32", [3], attributes={"units": "1", **said})
        coordinates = coordinates_in({"l": Neighbour("l", beside, np.arange(3, dtype="f4"))})
        assert gather(array("lyx"), Around((), {}, coordinates)).axes[0].role == role


def test_the_code_in_projjson_is_a_code(array):
    said = {"type": "ProjectedCRS", "id": {"authority": "EPSG", "code": 32633}}
    place = {"spatial:transform": [10, 0, 500, 0, -10, 400]}
    described = describe(array(attributes={"proj:projjson": said, **place}), FlatConfig())
    assert (
        b"map info = {UTM, 1, 1, 500, 400, 10, 10, 33, North"
        in find_format("bin.hdr")(described)().header
    )
    assert epsg(json.dumps(said)) == (32633, "projected")
    for wrong in ({"type": "GeographicCRS"}, {"type": []}, {"id": {"code": 4326}}, {"id": 5}):
        assert epsg(json.dumps(said | wrong)) is None
    for text in ("{", "{" * 8000, '{"id": [7]}'):
        assert epsg(text) is None


def test_the_coordinate_spatial_ref_is_a_grid_mapping(array):
    """rioxarray reads it so; xarray's arithmetic loses the attribute that names it."""
    assert grid_mapping({"coordinates": "spatial_ref lat lon"}) == "spatial_ref"
    assert grid_mapping({"coordinates": "spatial_ref", "grid_mapping": "crs: x y"}) == "crs"
    assert grid_mapping({"coordinates": "lat lon spatial_reference"}) == ""
    assert grid_mapping({"coordinates": ["spatial_ref"]}) == ""


@pytest.mark.parametrize(
    ("units", "steps", "code", "sizes"),
    [
        (["km", "degrees_north", "degrees_east"], [0.5, 1, 2], 0, [2, 1, 0.5]),
        (["km", "m", ""], [0.5, 1, 2], 0, [2, 1, 0.5]),
        (["km", "m", "m"], [0.5, 1, 2], 1, [2, 1, 500]),
        (["km", "degrees_north", "m"], [0.5, None, 2], 0, [2, 1, 0.5]),
    ],
)
def test_places_in_degrees_are_in_no_metres(array, units, steps, code, sizes):
    """Also if there is one place only, where ``steps`` has None."""
    shape = [1 if step is None else 3 for step in steps]
    along = {
        name: Neighbour(name, array(name, "float64", [n], attributes={"units": unit}), places)
        for name, unit, step, n in zip("zyx", units, steps, shape, strict=True)
        for places in [np.arange(n) * (step or 1.0) + 50]
    }
    around = Around((), {}, coordinates_in(along))
    metadata = array("zyx", shape=shape)
    header = find_format("nii")(describe(metadata, FlatConfig(), around=around))().header
    assert header[123] == code
    assert np.frombuffer(header, "<f4", 3, 80).tolist() == sizes


def test_nifti_has_no_times_that_fall(array):
    beside = array("t", "float64", [3], attributes={"units": "hours since 2000-01-01"})
    along = {"t": Neighbour("t", beside, np.array([7.0, 5.0, 3.0]))}
    around = Around((), {}, coordinates_in(along))
    header = find_format("nii")(describe(array("tzyx"), FlatConfig(), around=around))().header
    assert header[123] == 0
    assert np.frombuffer(header, "<f4", 1, 92).tolist() == [1]
    assert np.frombuffer(header, "<f4", 1, 136) == 0
    assert (
        b"finterval"
        not in find_format("tif")(describe(array("tyx"), FlatConfig(), around=around))().header
    )


def times_of(kind, unit, values, parse):
    """Metadata and elements of an array of times of numpy, in Zarr v3."""
    name = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[kind]
    step = int(unit.rstrip(ascii_letters) or 1)
    said = {"unit": unit.lstrip(digits), "scale_factor": step}
    data_type = {"name": name, "configuration": said}
    metadata = parse(
        shape=[len(values)], data_type=data_type, fill_value="NaT", dimension_names=["when"],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [len(values)]}},
    )  # fmt: skip
    return metadata, np.array(values, f"{kind}8[{unit.replace('generic', 's')}]")


@pytest.mark.parametrize("name", ["h5", "nc"])
@pytest.mark.parametrize(("kind", "unit"), [("M", "D"), ("M", "s"), ("M", "ns"), ("m", "h")])
def test_times_of_numpy_are_numbers_with_a_unit(kind, unit, name, parse, tmp_path):
    """As anemoi and zarr-python store them; xarray finds the same times in the file."""
    import xarray

    metadata, values = times_of(kind, unit, [3, 5, "NaT"], parse)
    described = describe(metadata, FlatConfig(), "t")
    form = find_format(name)(described)()
    path = tmp_path / "array.nc"
    path.write_bytes(form.header + bytes(form.gap) + values.tobytes())
    with xarray.open_dataset(path, engine="netcdf4", decode_timedelta=True) as found:
        assert found["t"].dtype.kind == kind
        np.testing.assert_array_equal(found["t"].values, values)
    assert described.facts.missing == (-(2**63),)
    assert b"'descr': '<" + values.dtype.str[1:].encode() in find_format("npy")(described)().header


@pytest.mark.parametrize("unit", ["Y", "M", "10s", "generic"])
def test_times_without_a_unit_of_cf_are_in_no_other_file(unit, parse):
    """CF's years and months have a fixed length."""
    metadata, _ = times_of("M", unit, ["NaT"], parse)
    described = describe(metadata, FlatConfig())
    assert (described.code, described.facts.unit) == ("", "")


def test_coordinates_may_be_times_of_numpy(array, parse):
    beside, values = times_of("M", "D", ["2000-01-01", "2000-01-03", "2000-01-05"], parse)
    along = {"when": Neighbour("when", beside, values.view("i8"))}
    (axis,) = gather(array(["when"]), Around((), {}, coordinates_in(along))).axes
    assert (axis.origin, axis.spacing) == (10957, 2)
    assert (axis.unit, axis.role) == ("days since 1970-01-01", "time")


@pytest.mark.parametrize("unit", ["Y", "10s"])
def test_times_without_a_unit_of_cf_are_no_coordinates(unit, parse):
    beside, values = times_of("M", unit, [10, 20, "NaT"], parse)
    assert not coordinates_in({"when": Neighbour("when", beside, values.view("i8"))})


SERIES = {"conversion": 0.001, "offset": 0.5, "resolution": -1.0, "unit": "V"}


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (SERIES, (0.001, 0.5, "V")),
        (SERIES | {"conversion": 1.0, "offset": 0.0}, (None, None, "V")),
        (SERIES | {"unit": "n.a."}, (0.001, 0.5, "")),
        ({"conversion": 0.001, "unit": "V"}, (None, None, "")),
        (SERIES | {"conversion": "x"}, (None, None, "")),
        (SERIES | {"units": "mV", "scale_factor": 2.0, "add_offset": 1.0}, (2.0, 1.0, "mV")),
    ],
)
def test_series_of_nwb(said, facts, array):
    metadata = array("yx", attributes=said)
    found = gather(metadata)
    assert (found.scale, found.offset, found.unit) == facts
    described = describe(metadata, FlatConfig(), "data")
    form = find_format("nc")(described)()
    with h5py.File(io.BytesIO(form.header + bytes(form.gap + described.nbytes))) as file:
        attributes = dict(file["data"].attrs)
    assert attributes.get("scale_factor") == facts[0]
    assert attributes.get("units", b"").decode() == facts[2]


def test_zeros_of_hdmf_are_numbers():
    """hdmf-zarr names the axes of its arrays of Zarr 2 for xarray."""
    document = {
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i8", "compressor": None,
        "fill_value": 0, "order": "C", "filters": None,
    }  # fmt: skip
    for said, missing in (({}, (0,)), ({"zarr_dtype": "int64"}, ())):
        attributes = json.dumps({"_ARRAY_DIMENSIONS": ["num_times"], **said})
        metadata = parse_array_v2(json.dumps(document).encode(), attributes.encode())
        assert gather(metadata).missing == missing


@pytest.mark.parametrize(
    ("unit", "height", "factor"),
    [("rad", 35786023.0, 35786023.0), ("m", 35786023.0, 1), ("rad", None, 1)],
)
def test_angles_of_a_satellite_view_are_metres_on_its_plane(unit, height, factor, array):
    """As in files of GOES, and as GDAL reads them."""
    said = {"crs_wkt": 'PROJCS["geos"]', "perspective_point_height": height}
    found = {
        name: Neighbour(name, array(name, "float64", [2], attributes={"units": unit}), values)
        for name, values in {"y": np.array([0.1, 0.0]), "x": np.array([-0.1, 0.1])}.items()
    }
    around = Around((), said, coordinates_in(found))
    place = gather(array("yx", shape=[2, 2]), around).georeference
    assert place.transform == pytest.approx([factor * n for n in (-0.2, 0.2, 0, 0.15, 0, -0.1)])
