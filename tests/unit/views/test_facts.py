"""Facts about an array, from each convention that may say them."""

import json

import numpy as np
import pytest

from zarrfs.array.neighbours import Neighbour
from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import parse_region
from zarrfs.views.facts.around import names_beside
from zarrfs.views.facts.coordinates import coordinates_in
from zarrfs.views.facts.facts import Around, Channel, Georeference
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.wcs import reversed_axes
from zarrfs.views.headers.describe import describe

UTM = {"proj:code": "EPSG:32633", "spatial:transform": [10, 0, 5e5, 0, -10, 4.6e6]}
NORTH_UP = (5e5, 10, 0, 4.6e6, 0, -10)


def test_an_array_that_names_no_others_asks_for_none(array):
    """An empty name is the group itself, which would be read again for each array in it."""
    assert names_beside(array(names=[None, None]), Around()) == []
    assert names_beside(array(attributes={"grid_mapping": "crs"}), Around()) == ["y", "x", "crs"]


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
        ({"_FillValue": 65535, "_Unsigned": "true"}, (65535,)),
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
    named = b'{"_ARRAY_DIMENSIONS": ["x"]}'
    assert gather(parse_array_v2(text, named)).missing == missing
    assert gather(parse_array_v2(text, b'{"_FillValue": 4}')).missing == (4,)
    assert gather(parse_array_v2(text, None)).missing == ()
    scalar = json.dumps(document | {"shape": [], "chunks": []}).encode()
    assert gather(parse_array_v2(scalar, b'{"_ARRAY_DIMENSIONS": []}')).missing == missing
    assert gather(parse_array_v2(scalar, None)).missing == ()


def test_packed_numbers(array):
    said = {"scale_factor": [2], "add_offset": 0.5, "units": "K", "valid_min": -3}
    found = gather(array(attributes=said | {"_Unsigned": "true"}))
    assert (found.scale, found.offset, found.unit, found.signed) == (2, 0.5, "K", False)
    assert found.valid == (65533, None)
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
        ({"crs": "+init=epsg:32633"}, "EPSG:32633"),
        ({"crs": "epsg:4326"}, "EPSG:4326"),
        ({"crs": "a CRS"}, ""),
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
    # bioio names the channel of an image without an axis of channels, too.
    group["multiscales"][0]["axes"] = ["t", "y", "x"]
    assert gather(array("tyx"), in_group(group)).channels == ()
    group["omero"]["channels"] = channels[:1]
    assert gather(array("tyx"), in_group(group)).channels == found[:1]
    group["omero"]["channels"] = channels[:2]
    assert gather(array("cyx"), in_group(group)).channels == ()
    names = {"long_name": ["a", "b", "c"]}
    found = gather(array("cyx", attributes=names)).channels
    assert [channel.name for channel in found] == ["a", "b", "c"]


# --- coordinates ------------------------------------------------------------------


def coordinates(array, **values):
    """The coordinates in arrays of these names and values."""
    found = {}
    for name, (numbers, attributes) in values.items():
        kept = np.asarray(numbers)
        metadata = array(name, kept.dtype.name, attributes=attributes)
        metadata = metadata._replace(layout=metadata.layout.resized(kept.shape))
        found[name] = Neighbour(name, metadata._replace(shape=kept.shape), kept)
    return Around(coordinates=coordinates_in(found))


def test_coordinates_say_spacing_origin_and_place(array):
    around = coordinates(
        array, y=(np.float32([50, 49.5, 49]), {"units": "degrees_north"}), x=([4, 6, 8, 10], {})
    )
    facts = gather(array("yx"), around)
    assert [(axis.origin, axis.spacing, axis.unit) for axis in facts.axes] == [
        (50, -0.5, "degrees_north"), (4, 2, "")
    ]  # fmt: skip
    assert facts.georeference == Georeference("", (3, 2, 0, 50.25, 0, -0.5))
    part = describe(array("yx"), FlatConfig(), "a", around, parse_region("1:,2:", (3, 4)))
    assert [axis.origin for axis in part.axes] == [49.5, 8]
    assert part.georeference.transform == (7, 2, 0, 49.75, 0, -0.5)
    assert part.axes[1].coordinates.values.tolist() == [8, 10]


@pytest.mark.parametrize(
    ("values", "attributes", "regular"),
    [
        ([1, 2, 4], {}, None),
        ([1, 1, 1], {}, None),
        ([1, 2, np.nan], {}, None),
        ([1, 2, -9], {"_FillValue": -9}, None),
        (np.float32([1000.1, 1000.2, 1000.3]), {}, (1000.1, 0.1)),
        (np.int16([0, 1, 2]), {"scale_factor": 0.5, "add_offset": 10}, (10, 0.5)),
        (np.int8([126, 127, -128]), {"_Unsigned": "true"}, (126, 1)),
    ],
)
def test_regular_coordinates(values, attributes, regular, array):
    (axis,) = gather(array("y"), coordinates(array, y=(values, attributes))).axes
    found = None if axis.spacing is None else (axis.origin, axis.spacing)
    assert found == (regular and pytest.approx(regular, rel=1e-3))
    assert axis.coordinates.values.tolist() == pytest.approx(
        np.asarray(values).tolist(), nan_ok=True
    )


def test_coordinates_of_another_length_are_others(array):
    (axis,) = gather(array("y"), coordinates(array, y=([1, 2, 3, 4], {}))).axes
    assert axis.coordinates is None


@pytest.mark.parametrize("along", ["y", "", "x"])
def test_coordinates_of_an_axis_of_another_name_are_others(along, array):
    """CF: a variable of that name gives coordinates if that is its own dimension."""
    beside = array("y")._replace(dimension_names=(along or None,))
    found = {"y": Neighbour("y", beside, np.arange(3))}
    (axis,) = gather(array("y"), Around(coordinates=coordinates_in(found))).axes
    assert (axis.coordinates is None) == (along == "x")


def test_coordinates_name_the_role_of_their_axis(array):
    said = {
        "a": ([0, 1, 2], {"units": "hours since 2000-01-01"}),
        "b": ([0, 1, 2, 3], {"axis": "Y"}),
        "f": (range(5), {"standard_name": "projection_x_coordinate"}),
    }
    facts = gather(array("abf"), coordinates(array, **said))
    assert [axis.role for axis in facts.axes] == ["time", "y", "x"]
    assert facts.georeference.transform == (-0.5, 1, 0, -0.5, 0, 1)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, 5e5), (10, 5e5 + 100)],
    ids=["of all", "of a part whose GeoTransform is that of all"],
)
def test_coordinates_and_a_transform(start, expected, array):
    rows, columns = np.arange(3) * -10 + 4.6e6 - 5, (np.arange(4) + start) * 10 + 5e5 + 5
    around = coordinates(array, y=(rows, {}), x=(columns, {}))
    attributes = {"GeoTransform": "500000 10 0 4600000 0 -10"}
    facts = gather(array("yx", attributes=attributes), around)
    assert facts.georeference.transform == (expected, 10, 0, 4.6e6, 0, -10)
    # A convention that says the transform of this array comes first.
    for said in (UTM, UTM | {"transform": "logarithm"}):
        assert gather(array("yx", attributes=said), around).georeference.transform == NORTH_UP


@pytest.mark.parametrize("middle", [0, 0.5, 3.5, None], ids=["corners", "middles", "part", "none"])
@pytest.mark.parametrize("step", [10, 0.1, 1 / 3600])
def test_rasterios_transform(middle, step, array):
    """xarray's ``open_rasterio`` and rioxarray have it, and stackstac, whose places are corners."""
    around = Around()
    if middle is not None:
        rows, columns = 46 - step * (np.arange(3) + middle), 5 + step * (np.arange(4) + middle)
        around = coordinates(array, y=(rows, {}), x=(columns, {}))
    said = {"crs": "epsg:32633", "transform": [step, 0, 5, 0, -step, 46, 0, 0, 1]}
    place = gather(array("yx", attributes=said), around).georeference
    moved = 3 * step if middle == 3.5 else 0
    assert place.crs == "EPSG:32633"
    assert place.transform == pytest.approx((5 + moved, step, 0, 46 - moved, 0, -step), rel=1e-12)
    assert gather(array("yx", attributes={"transform": said["transform"]})).y_axis is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"grid_mapping_name": "latitude_longitude"}, "GEOGCS["),
        (
            {
                "grid_mapping_name": "lambert_conformal_conic",
                "standard_parallel": [30, 60],
                "latitude_of_projection_origin": 45,
                "longitude_of_central_meridian": 10,
                "earth_radius": 6371229,
            },
            'PARAMETER["standard_parallel_1",30.0],PARAMETER["standard_parallel_2",60.0]',
        ),
        ({"grid_mapping_name": "lambert_conformal_conic", "standard_parallel": "x"}, ""),
        ({"grid_mapping_name": "mercator"}, ""),
        ({"grid_mapping_name": ["mercator"]}, ""),
    ],
)
def test_grid_mappings_of_cf(said, expected, array):
    crs = gather(array("yx"), Around(grid_mapping=said)).georeference.crs
    assert (expected in crs) if expected else crs == ""


OBLIQUE = [[1.6, -0.54, 1.44, -90.0], [1.2, 0.72, -1.92, -126.0], [0.0, 1.2, 1.8, -72.0]]


def test_an_affine_gives_spacing_and_directions(array):
    facts = gather(array("tzyx", attributes={"affine": [*OBLIQUE, [0, 0, 0, 1]]}))
    assert [axis.spacing for axis in facts.axes] == [None, 3.0, pytest.approx(1.5), 2.0]
    assert [axis.unit for axis in facts.axes] == ["", "mm", "mm", "mm"]
    assert facts.affine == ((-1.6, -1.2, 0), (0.54, -0.72, 1.2), (-1.44, 1.92, 1.8), (90, 126, -72))


def test_a_straight_affine_is_spacing_and_origin(array):
    rows = [[-2, 0, 0, 90], [0, 2, 0, -126], [0, 0, 3, -72]]
    facts = gather(array("xyz", attributes={"affine": rows}))
    assert [(axis.spacing, axis.origin) for axis in facts.axes] == [(2, -90), (-2, 126), (3, -72)]
    assert facts.affine is None


@pytest.mark.parametrize(
    ("names", "affine"),
    [
        ("zyx", None),
        ("zyx", "affine"),
        ("zyx", OBLIQUE[:2]),
        ("zyx", [*OBLIQUE, [0, 0, 0, 2]]),
        ("zyx", [*OBLIQUE[:2], [0, 0, 1]]),
        ("zyx", [*OBLIQUE[:2], [0, 0, 1e300, 0]]),
        ("zyx", [*OBLIQUE[:2], [0, 0, float("nan"), 0]]),
        ("zyx", [[0, 1, 0, 0]] * 3),
        ("cyx", OBLIQUE),
        ("yx", OBLIQUE),
    ],
)
def test_what_is_no_affine(names, affine, array):
    facts = gather(array(names, attributes={"affine": affine}))
    assert facts.affine is None
    assert all(axis.spacing is None and not axis.unit for axis in facts.axes)


def test_an_affine_of_a_region(array):
    metadata = array("zyx", attributes={"affine": OBLIQUE})

    def of(region):
        return describe(metadata, FlatConfig(), region=parse_region(region, (3, 4, 5))).facts.affine

    assert of("1:3,:,2:5")[3] == pytest.approx((90 - 3.2 - 1.44, 126 - 2.4 + 1.92, -72 + 1.8))
    assert of("1,:,:") is None


def test_keywords_of_fits(array):
    attributes = {
        "CTYPE1": "RA---TAN", "CRPIX1": 4, "CTYPE2": "DEC--TAN", "PC1_2": 0.5, "OBJECT": "µ Cep",
        "SIMPLE": False, "NAXIS1": 7, "BUNIT": "Jy", "units": "", "OBSERVER": "x" * 69,
        "TOOLONGKEY": 1, "lower": 1, "LIST": [1], "INF": float("inf"), "DONE": True,
    }  # fmt: skip
    metadata = array("zyx", attributes=attributes)
    facts = gather(metadata)
    kept = {"CTYPE1", "CRPIX1", "CTYPE2", "PC1_2", "OBJECT", "DONE"}
    assert set(facts.cards) == kept
    assert facts.unit == "Jy"
    assert facts.cards["OBJECT"] == "u Cep"
    turned = reversed_axes(facts.cards, 3)
    assert turned.keys() - facts.cards.keys() == {"CTYPE3", "CRPIX3", "PC3_2"}
    part = describe(metadata, FlatConfig(), region=parse_region("1:3,:,2:5", (3, 4, 5))).facts.cards
    assert (part["CRPIX1"], part["CRPIX3"], "CRPIX2" in part) == (2, -1, False)
    part = describe(metadata, FlatConfig(), region=parse_region("1,:,:", (3, 4, 5))).facts.cards
    assert set(part) == {"OBJECT", "DONE"}
