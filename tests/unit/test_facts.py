"""Facts about an array, from each convention that may say them."""

from __future__ import annotations

import json

import pytest

from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import parse_region
from zarrfs.views.facts.facts import Around, Channel
from zarrfs.views.facts.gather import gather
from zarrfs.views.headers.describe import describe

UTM = {"proj:code": "EPSG:32633", "spatial:transform": [10, 0, 5e5, 0, -10, 4.6e6]}
NORTH_UP = (5e5, 10, 0, 4.6e6, 0, -10)


@pytest.fixture
def array(parse):
    """``array(names, data_type, **members)``: metadata of an array of axes of 3, 4, … elements."""

    def of(names="yx", data_type="int16", **members):
        shape = list(range(3, 3 + len(names)))
        grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
        given = {"fill_value": 0, "dimension_names": list(names), **members}
        return parse(shape=shape, data_type=data_type, chunk_grid=grid, **given)

    return of


def in_group(attributes, path="0"):
    return Around(((path, attributes),))


@pytest.mark.parametrize(
    ("attributes", "missing"),
    [
        ({}, ()),
        ({"_FillValue": -9}, (-9,)),
        ({"_FillValue": None}, ()),
        ({"missing_value": -7}, (-7,)),
        ({"_FillValue": -9, "missing_value": [-7, -9]}, (-9, -7)),
        ({"_FillValue": "+P8="}, (-8,)),
        ({"_FillValue": 65535, "_Unsigned": "true"}, (-1,)),
        ({"_FillValue": 1.5}, ()),
        ({"_FillValue": 10**30}, ()),
        ({"_FillValue": {}}, ()),
    ],
)
def test_missing_values(attributes, missing, array):
    assert gather(array(attributes=attributes, fill_value=5)).missing == missing


def test_nan_is_a_missing_value(array):
    found = gather(array(data_type="float32", attributes={"_FillValue": "NaN"})).missing
    assert [str(value) for value in found] == ["nan"]


@pytest.mark.parametrize(("fill", "missing"), [(0, (0,)), (-9, (-9,)), (None, ())])
def test_the_fill_value_of_zarr_2_is_missing(fill, missing):
    document = {
        "zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i2", "order": "C",
        "compressor": None, "filters": None, "fill_value": fill,
    }  # fmt: skip
    text = json.dumps(document).encode()
    assert gather(parse_array_v2(text, None)).missing == missing
    assert gather(parse_array_v2(text, b'{"_FillValue": 4}')).missing == (4,)


def test_packed_numbers(array):
    said = {"scale_factor": [2], "add_offset": 0.5, "units": "K", "valid_min": -3}
    found = gather(array(attributes=said | {"_Unsigned": "true"}))
    assert (found.scale, found.offset, found.unit, found.signed) == (2, 0.5, "K", False)
    assert found.valid == (-3, None)
    assert not gather(array(attributes={"scale_factor": 0})).packed


@pytest.mark.parametrize(
    ("names", "y", "x"),
    [("yx", 0, 1), ("xy", 1, 0), ("tyx", 1, 2), ("yxt", 0, 1), ("tb", None, None)],
)
def test_a_place_belongs_to_y_and_x(names, y, x, array):
    found = gather(array(names), in_group(UTM))
    assert (found.y_axis, found.x_axis) == (y, x)
    assert bool(found.georeference.transform) == (y is not None)


def test_places_of_axes_without_names_and_of_named_ones(array):
    nameless = array(attributes=UTM, dimension_names=[None, None])
    assert gather(nameless).georeference.transform == NORTH_UP
    assert gather(array(dimension_names=[None, None]), in_group(UTM)).y_axis is None
    said = UTM | {"spatial:dimensions": ["a", "b"]}
    assert gather(array("ab"), in_group(said)).georeference.transform == NORTH_UP
    assert gather(array("yx"), in_group(said)).y_axis is None


@pytest.mark.parametrize(
    ("attributes", "crs"),
    [
        ({"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/4326"}}, "EPSG:4326"),
        ({"_CRS": {"projjson": {"type": "GeographicCRS"}}}, '{"type": "GeographicCRS"}'),
        ({"proj:projjson": {"type": "GeographicCRS"}}, '{"type": "GeographicCRS"}'),
        ({"proj:epsg": 32633}, "EPSG:32633"),
        ({"crs_wkt": 'PROJCRS["' + "x" * 9000 + '"]', "proj:code": "EPSG:3857"}, "EPSG:3857"),
        ({"proj:code": "nonsense"}, ""),
    ],
)
def test_reference_systems(attributes, crs, array):
    assert gather(array(attributes=attributes)).georeference.crs == crs


@pytest.mark.parametrize(
    "attributes",
    [
        {"GeoTransform": "500000 10 0 4600000 0 -10"},
        {"proj:transform": [10, 0, 5e5, 0, -10, 4.6e6, 0, 0, 1]},
        {"spatial:transform": [10, 0, 500005, 0, -10, 4599995], "spatial:registration": "node"},
    ],
)
def test_transforms(attributes, array):
    assert gather(array(attributes=attributes)).georeference.transform == NORTH_UP


@pytest.mark.parametrize(
    "attributes",
    [
        {"spatial:transform": [0, 0, 5e5, 0, 0, 4.6e6]},
        UTM | {"spatial:transform_type": "rpc"},
        {"spatial:transform": [1, 2, 3]},
    ],
)
def test_what_is_no_transform(attributes, array):
    assert gather(array(attributes=attributes)).georeference.transform is None


def test_levels_of_the_multiscales_convention(array):
    layout = [
        {"asset": "0", "spatial:transform": UTM["spatial:transform"]},
        {"asset": "1", "derived_from": "0", "transform": {"scale": [2.0, 4.0]}},
        {"asset": "2", "derived_from": "2", "transform": {"scale": [2.0, 4.0]}},
    ]
    group = {"proj:code": "EPSG:32633", "multiscales": {"layout": layout}}
    places = [gather(array(), in_group(group, path)).georeference for path in ("0", "1/a", "2")]
    assert [place.transform for place in places] == [
        NORTH_UP, (5e5, 40, 0, 4.6e6, 0, -20), None
    ]  # fmt: skip
    assert {place.crs for place in places} == {"EPSG:32633"}


def test_the_place_of_a_region(array):
    metadata = array("tyx", attributes=UTM)

    def of(region):
        part = parse_region(region, metadata.shape)
        return describe(metadata, FlatConfig(), region=part).georeference.transform

    assert of("0,1:3,2:4") == (500020, 10, 0, 4599990, 0, -10)
    assert of("0:2,1,:") is None


def test_omes_group_may_be_any_above(array):
    steps = [{"type": "scale", "scale": [2, 0.5]}, {"type": "translation", "translation": [1, 3]}]
    datasets = [{"path": "scale0/image", "coordinateTransformations": steps}]
    axes = [{"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space"}]
    group = {"ome": {"multiscales": [{"axes": axes, "datasets": datasets}]}}
    around = Around((("image", {}), ("scale0/image", group)))
    found = gather(array(dimension_names=[None, None]), around).axes
    assert [(a.name, a.unit, a.spacing, a.origin, a.role) for a in found] == [
        ("y", "micrometer", 2, 1, "y"), ("x", "", 0.5, 3, "x")
    ]  # fmt: skip
    assert gather(array(), Around((("image", group),))).axes[0].spacing is None


def test_axes_of_early_versions_of_ome(array):
    nameless = {"dimension_names": [None] * 5}
    group = {"multiscales": [{"datasets": [{"path": "0"}]}]}
    found = gather(array("abcde", **nameless), in_group(group)).axes
    assert "".join(axis.name for axis in found) == "tczyx"
    group = {"multiscales": [{"axes": ["z", "y", "x"], "datasets": [{"path": "0"}]}]}
    found = gather(array("abc", dimension_names=[None] * 3), in_group(group)).axes
    assert "".join(axis.name for axis in found) == "zyx"


def test_channels(array):
    channels = [
        {"label": "DAPI", "color": "0000FF", "window": {"start": 1, "end": 9}},
        {"label": "x\n", "color": "blue"},
        5,
        {},
    ]
    group = {
        "multiscales": [{"datasets": [{"path": "0"}], "axes": ["c", "y", "x"]}],
        "omero": {"channels": channels},
    }
    found = gather(array("cyx"), in_group(group)).channels
    assert found == (Channel("DAPI", (0, 0, 255), (1, 9)), Channel("x"), Channel())
    group["omero"]["channels"] = channels[:2]
    assert gather(array("cyx"), in_group(group)).channels == ()
    names = {"long_name": ["a", "b", "c"]}
    found = gather(array("cyx", attributes=names)).channels
    assert [channel.name for channel in found] == ["a", "b", "c"]
