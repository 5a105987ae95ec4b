"""Headers of other formats: what they say of an array, and what they refuse."""

import io
import os
import struct
from contextlib import nullcontext

import h5py
import numpy as np
import pytest
import tifffile

from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.facts.facts import Around
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.form import LARGEST_HEADER, Inexpressible
from zarrfs.views.headers.registry import FORMATS, find_format

C_ORDER = FlatConfig()
UNITS = {"dimension_units": ["4 nm", [0.5, "um"], None]}
MULTISCALES = {
    "multiscales": [
        {
            "axes": [
                {"name": "z", "type": "space", "unit": "micrometer"},
                {"name": "y", "type": "space", "unit": "micrometer"},
                {"name": "x", "type": "space", "unit": "micrometer"},
            ],
            "datasets": [
                {
                    "path": "0",
                    "coordinateTransformations": [
                        {"type": "scale", "scale": [2, 0.5, 0.25]},
                        {"type": "translation", "translation": [10, 20, 30]},
                    ],
                }
            ],
            "coordinateTransformations": [{"type": "scale", "scale": [2, 1, 1]}],
        }
    ]
}


@pytest.fixture
def array(parse):
    """``array(shape, data_type, layout, above, **members)``: what headers can say of it."""

    def of(shape=(3, 5, 7), data_type="int16", layout=C_ORDER, above=None, **members):
        grid = {"name": "regular", "configuration": {"chunk_shape": [max(1, n) for n in shape]}}
        fill = [0, 0] if "complex" in data_type else False if data_type == "bool" else 0
        given = {"fill_value": fill, **members}
        metadata = parse(shape=list(shape), data_type=data_type, chunk_grid=grid, **given)
        around = Around(() if above is None else (("0", above),))
        return describe(metadata, layout, "group/0", around)

    return of


def text(name, described):
    return find_format(name)(described)().header.decode()


def test_spacing_and_units_of_tensorstore(array):
    found = array(attributes=UNITS, dimension_names=["z", "y", "x"])
    assert [axis.unit for axis in found.axes] == ["nm", "um", ""]
    header = text("nhdr", found)
    assert 'sizes: 7 5 3\nspacings: nan 0.5 4\nunits: "" "um" "nm"\n' in header
    assert 'labels: "x" "y" "z"\n' in header
    assert "ElementSpacing = 1 0.5 4\n" in text("mhd", found)


def test_scales_and_translations_of_ome_zarr(array):
    for above in (MULTISCALES, {"ome": MULTISCALES}):
        found = array(above=above)
        assert [(a.name, a.unit, a.spacing, a.origin) for a in found.axes] == [
            ("z", "micrometer", 4.0, 20.0),
            ("y", "micrometer", 0.5, 20.0),
            ("x", "micrometer", 0.25, 30.0),
        ]
        assert found.is_volume
        header = text("nrrd", found)
        assert "space directions: (0.25,0,0) (0,0.5,0) (0,0,4)\n" in header
        assert "space origin: (30,20,20)\n" in header
        assert "Offset = 30 20 20\n" in text("mha", found)
        assert '<DataItem Dimensions="3"' in text("xmf", found)
        assert ">4 0.5 0.25</DataItem>" in text("xmf", found)
        nifti = find_format("nii")(found)().header
        assert struct.unpack_from("<4f", nifti, 76) == (1, 0.25, 0.5, 4)
        # Its x grows to the right and its y to anterior, where ITK's axes grow the other way.
        assert struct.unpack_from("<12f", nifti, 280) == (
            *(-0.25, 0, 0, -30),
            *(0, -0.5, 0, -20),
            *(0, 0, 4, 20),
        )
        assert struct.unpack_from("<hh", nifti, 252) == (0, 2)
        assert nifti[123] == 3  # micrometers


def test_the_first_axis_is_the_fastest_in_f_order(array):
    found = array(layout=FlatConfig("big", "F"), dimension_names=["z", "y", "x"], attributes=UNITS)
    assert found.shape == (7, 5, 3)
    header = text("nhdr", found)
    assert "sizes: 3 5 7\n" in header
    assert 'labels: "z" "y" "x"\n' in header
    assert "endian: big\n" in header
    assert not found.is_image


def test_georeference(array):
    wkt = 'GEOGCS["WGS 84",DATUM["x"]]'
    for attributes in (
        {"_CRS": {"wkt": wkt}, "GeoTransform": "100 0.5 0 200 0 -0.25"},
        {"crs_wkt": wkt, "spatial:transform": [0.5, 0, 100, 0, -0.25, 200]},
    ):
        found = array((5, 7), attributes=attributes)
        assert "<GeoTransform>100.0, 0.5, 0.0, 200.0, 0.0, -0.25</GeoTransform>" in text(
            "vrt", found
        )
        assert "<SRS>GEOGCS[" in text("vrt", found)
        assert "map info = {Arbitrary, 1, 1, 100, 200, 0.5, 0.25, 0, North}\n" in text(
            "bin.hdr", found
        )


UTM = (
    'PROJCS["WGS 84 / UTM zone 33N",GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]],'
    'UNIT["metre",1,AUTHORITY["EPSG","9001"]],AUTHORITY["EPSG","32633"]]'
)


@pytest.mark.parametrize(
    ("crs", "key", "code"),
    [
        ("EPSG:4326", "GeographicTypeGeoKey", 4326),
        ("epsg:32633", "ProjectedCSTypeGeoKey", 32633),
        (UTM, "ProjectedCSTypeGeoKey", 32633),
        ('GEOGCRS["WGS 84",DATUM["x"],ID["EPSG",4326]]', "GeographicTypeGeoKey", 4326),
        ('GEOGCS["no code",UNIT["degree",1,AUTHORITY["EPSG","9122"]]]', None, 0),
        ("EPSG:1", None, 0),
        ("OGC:CRS84", "GeographicTypeGeoKey", 4326),
        ("EPSG:4647", "ProjectedCSTypeGeoKey", 4647),
        ("EPSG:5070", "ProjectedCSTypeGeoKey", 5070),
        ("EPSG:7844", "GeographicTypeGeoKey", 7844),
        ("EPSG:4979", None, 0),
    ],
)
def test_georeference_of_a_tiff(crs, key, code, array, tmp_path):
    attributes = {"proj:code": crs, "spatial:transform": [0.5, 0, 100, 0, -0.25, 200]}
    found = array((5, 7), attributes=attributes)
    path = tmp_path / "a.tif"
    path.write_bytes(whole("tif", found))
    with tifffile.TiffFile(path) as file:
        tags = file.geotiff_metadata or {}
    assert tags["ModelPixelScale"] == [0.5, 0.25, 0.0]
    assert tags["ModelTiepoint"] == [0, 0, 0, 100, 200, 0]
    assert tags.get(key, 0) == code if key else "GTModelTypeGeoKey" not in tags


def test_a_grid_that_is_turned(array, tmp_path):
    found = array((5, 7), attributes={"GeoTransform": "100 0.5 0.1 200 0.2 -0.25"})
    path = tmp_path / "a.tif"
    path.write_bytes(whole("tif", found))
    with tifffile.TiffFile(path) as file:
        tags = file.geotiff_metadata
    matrix = [[0.5, 0.1, 0, 100], [0.2, -0.25, 0, 200], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert np.asarray(tags["ModelTransformation"]).tolist() == matrix


def test_the_georeference_of_a_file_in_f_order(array):
    """Its columns are the array's rows."""
    attributes = {"GeoTransform": "100 0.5 0 200 0 -0.25"}
    found = array((5, 7), layout=FlatConfig(order="F"), attributes=attributes)
    assert "<GeoTransform>100.0, 0.0, 0.5, 200.0, -0.25, 0.0</GeoTransform>" in text("vrt", found)
    found = array((3, 5, 7), layout=FlatConfig(order="F"), attributes=attributes)
    assert "GeoTransform" not in text("vrt", found)


@pytest.mark.parametrize("missing", [-9999, 0])
def test_a_missing_value_is_in_each_file(missing, array):
    found = array((5, 7), fill_value=7, attributes={"_FillValue": missing})
    assert f"data ignore value = {missing}\n" in text("bin.hdr", found)
    assert f"<NoDataValue>{missing}</NoDataValue>" in text("vrt", found)
    assert f"BLANK   = {missing:>20}" in text("fits", found)
    with tifffile.TiffFile(io.BytesIO(whole("tif", found))) as file:
        assert file.pages[0].tags[42113].value == str(missing)
    for name in ("h5", "nc"):
        with h5py.File(io.BytesIO(whole(name, found))) as file:
            assert file["0"].fillvalue == file["0"].attrs["_FillValue"] == missing
            assert file["0"].attrs["_FillValue"].dtype == "i2"


def test_a_fill_value_of_zarr_3_alone_marks_nothing(array):
    """It is only the value of chunks that are not stored."""
    found = array((5, 7), fill_value=-9999)
    assert "ignore" not in text("bin.hdr", found)
    assert "NoData" not in text("vrt", found)
    assert "BLANK" not in text("fits", found)
    with tifffile.TiffFile(io.BytesIO(whole("tif", found))) as file:
        assert 42113 not in file.pages[0].tags
    with h5py.File(io.BytesIO(whole("h5", found))) as file:
        assert "_FillValue" not in file["0"].attrs
        assert file["0"].fillvalue == 0


def whole(name, described) -> bytes:
    form = find_format(name)(described)()
    return form.header + bytes(form.gap + described.nbytes) + form.trailer


def test_names_coordinates_and_attributes_in_hdf5(array):
    attributes = {"title": "Zürich", "n": [1, 2.5], "k": 7, "deep": {"a": [None]}, **UNITS}
    names = {"dimension_names": ["z", "y", "x"]}
    with h5py.File(io.BytesIO(whole("h5", array(attributes=attributes, **names)))) as file:
        data = file["0"]
        assert data.attrs["title"].decode() == "Zürich"
        assert data.attrs["n"].tolist() == [1, 2.5]
        assert data.attrs["k"] == 7
        assert data.attrs["deep"].decode() == '{"a": [null]}'
        assert [list(dimension) for dimension in data.dims][:2] == [["z"], ["y"]]
        assert file["z"][...].tolist() == [0, 4, 8]
        assert file["y"].attrs["units"] == b"um"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-1, -1), ("NaN", None), ("/////w==", -1), ("AAAAAAAA8L8=", None), ("?", None), ([], None)],
)
def test_fill_value_of_netcdf(value, expected, array):
    found = array((4,), "int32", attributes={"_FillValue": value})
    with h5py.File(io.BytesIO(whole("h5", found))) as file:
        told = file["0"].attrs.get("_FillValue")
    assert told == expected


def test_images_a_second(array):
    names = ["t", "y", "x"]
    for attributes, expected in (
        ({"frame_rate": 29.97}, "F2997:100 "),
        ({"fps": 24, "dimension_units": ["1 s", None, None]}, "F24:1 "),
        ({"dimension_units": ["40 ms", None, None]}, "F25:1 "),
        ({"dimension_units": ["40 nm", None, None], "frame_rate": -1}, "F25:1 "),
        ({}, "F25:1 "),
    ):
        found = array(data_type="uint8", dimension_names=names, attributes=attributes)
        header = text("y4m", found)
        assert header.startswith("YUV4MPEG2 W7 H5 ")
        assert expected in header
        assert header.endswith(" Cmono XCOLORRANGE=FULL\n")
    for kind in ("MONOCHROME1", "RGB", "PALETTE COLOR"):
        found = array(
            data_type="uint8",
            dimension_names=names,
            attributes={"PhotometricInterpretation": kind},
        )
        with pytest.raises(Inexpressible, match="0 is black"):
            find_format("y4m")(found)


REFUSED = {
    ("nhdr", "complex64", (3, 4)): "NRRD has no complex64",
    ("mhd", "int64", (3, 4)): "MetaImage has no int64",
    ("mhd", "int8", (3,)): "MetaImage takes 2 to 10 axes, the array has 1",
    ("nhdr", "int8", ()): "NRRD takes 1 to 16 axes, the array has 0",
    ("nhdr", "int8", (0, 3)): "NRRD takes no array without elements",
    ("bin.hdr", "int8", (3, 4)): "ENVI has no int8",
    ("nii", "float16", (3, 4)): "NIfTI has no float16",
    ("mrc", "int16", (2, 3, 4, 5)): "MRC takes 2 to 3 axes, the array has 4",
    ("wav", "int16", (9,)): "a sound has an attribute sample_rate",
    ("y4m", "uint8", (3, 4, 5)): "a video has an attribute frame_rate, or a first axis named t",
    ("y4m", "int16", (3, 4, 5)): "YUV4MPEG2 has no int16",
    ("tif", "int16", (10**6, 3, 4)): "a TIFF header of 1000000 planes would be too large",
    ("vrt", "int16", (10**6, 3, 4)): "a VRT of 1000000 bands would be too large",
    ("safetensors", "complex64", (3,)): "safetensors has no complex64",
    ("h5", "r24", (3,)): "HDF5 has no r24",
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[1]} {case[2]}")
def test_what_a_format_cannot_express(case, array):
    name, data_type, shape = case
    members = {"fill_value": [0, 0, 0]} if data_type == "r24" else {}
    with pytest.raises(Inexpressible) as error:
        find_format(name)(array(shape, data_type, **members))
    assert str(error.value) == REFUSED[case]


HOSTILE = [
    "a\nsizes: 1\n\n", "x" * 10**6, "\0", "\ud800", "ü}{\"'<&>", "", 10**400, -(10**400), 1e308,
    1e-308, float("nan"), True, None, [[]], {"a": {"b": [1] * 1000}}, ["x"] * 10**5, [10**400] * 3,
    {"multiscales": 5}, [{"path": "0", "datasets": "x"}],
]  # fmt: skip
PLACES = ("dimension_units", "multiscales", "ome", "_CRS", "crs_wkt", "GeoTransform", "_FillValue",
          "spatial:transform", "units", "sample_rate", "CLASS", "PhotometricInterpretation",
          "ColorMap", "ExtraSamples")  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_metadata_of_any_kind_make_no_other_header(value, array):
    """Text of others is on its line, numbers are finite, and a header has its bounds."""
    attributes = dict.fromkeys(PLACES, value) | {str(value)[:1000]: value}
    name = value if isinstance(value, str) else "x"
    for unit in (value, [value] * 3, [[value, value]] * 3):
        found = array(
            attributes=attributes | {"dimension_units": unit},
            dimension_names=[name, name, "x"],
            above=attributes | {"multiscales": [{"datasets": [{"path": "0"}], "axes": unit}]},
        )
        for format_name in FORMATS:
            try:
                form = find_format(format_name)(found)()
            except Inexpressible:
                continue
            assert len(form.header) <= LARGEST_HEADER
            if format_name in ("nhdr", "mhd", "bin.hdr"):
                assert form.header.decode("ascii").count("\nsizes: ") == (format_name == "nhdr")
            if format_name == "h5":
                with h5py.File(io.BytesIO(whole("h5", found))) as file:
                    assert file["0"].shape == (3, 5, 7)


def test_headers_of_many_planes_with_long_texts_are_bounded(array):
    """Each plane has the name of its channel, a unit and a scale."""
    channels = [{"label": "<&>" * 21, "color": "FFFFFF", "window": {"start": 0, "end": 1}}] * 60
    image = {
        "multiscales": [{"datasets": [{"path": "0"}], "axes": list("tcyx")}],
        "omero": {"channels": channels},
    }
    said = {"units": "<&>" * 100, "scale_factor": 0.123456789012345, "long_name": "<&>" * 100}
    for planes in (10, 130, 1000):
        names = ["t", "c", "y", "x"]
        found = array(
            (planes, 60, 70_000, 70_000), above=image, attributes=said, dimension_names=names
        )
        for name in FORMATS:
            try:
                form = find_format(name)(found)()
            except Inexpressible:
                continue
            assert len(form.header) <= LARGEST_HEADER, name


@pytest.mark.parametrize("big", [False, True], ids=["classic", "BigTIFF"])
def test_directories_of_a_tiff(big, array, tmp_path):
    """Of one with 6 GiB of elements, none of which is there."""
    shape = (3, 5000, 70_000, 3) if big else (3, 5, 7, 3)
    found = array(shape, "uint16", dimension_names=["t", "y", "x", "c"])
    form = find_format("tif")(found)()
    path = tmp_path / "a.tif"
    path.write_bytes(form.header)
    os.truncate(path, len(form.header) + found.nbytes)
    with tifffile.TiffFile(path) as file:
        assert file.is_bigtiff == big
        plane = found.nbytes // 3
        assert [page.dataoffsets[0] - len(form.header) for page in file.pages] == [
            0, plane, 2 * plane
        ]  # fmt: skip
        assert file.series[0].shape == shape
        assert file.pages[1].photometric.name == "RGB"


@pytest.mark.parametrize(
    ("said", "channels", "shown"),
    [
        ("MONOCHROME1", 0, "MINISWHITE"),
        ("MONOCHROME2", 3, "MINISBLACK"),
        *((said, 0, "MINISBLACK") for said in ("RGB", "YBR_FULL", "CIELAB", "CFA", "LOGL", "MASK")),
        *((said, 4, said) for said in ("RGB", "CIELAB", "SEPARATED")),
        *((said, 3, None) for said in ("SEPARATED", "YBR_FULL", "PALETTE", "CFA", "MASK")),
        *((said, 2, None) for said in ("RGB", "CIELAB")),
        *((said, 0, None) for said in ("PALETTE", "PALETTE COLOR")),
    ],
)
@pytest.mark.parametrize("use", [1, 2, 9])
def test_colours_by_attributes(said, channels, use, shown, array):
    attributes = {"PhotometricInterpretation": said, "ExtraSamples": [use]}
    axes = ["t", "y", "x", *["c"] * bool(channels)]
    shape = (3, 5, 7, channels)[: len(axes)]
    found = array(shape, "uint8", dimension_names=axes, attributes=attributes)
    if shown is None:
        with pytest.raises(Inexpressible, match="palette" if "PALETTE" in said else said):
            find_format("tif")(found)
        return
    with tifffile.TiffFile(io.BytesIO(whole("tif", found))) as file:
        assert file.pages[0].photometric.name == shown
        if channels == 4 and shown != "SEPARATED":
            assert file.pages[0].extrasamples == (use % 9,)


def test_palettes_are_for_single_planes(array):
    palette = list(range(768))
    attributes = {"PhotometricInterpretation": "PALETTE COLOR", "ColorMap": palette}
    attributes |= {"proj:code": "EPSG:4326", "spatial:transform": [0.5, 0, 100, 0, -0.25, 200]}
    for length in (1, 2):
        axes = ["band", "y", "x"]
        found = array((length, 5, 7), "uint8", dimension_names=axes, attributes=attributes)
        with nullcontext() if length == 1 else pytest.raises(Inexpressible, match="palette"):
            find_format("cog.tif")(found)


@pytest.mark.parametrize("axes", ["tzcyx", "zcyx", "tzyx", "cyx", "tczyx", "czyx", "ctyx", "ztyx"])
def test_stacks_are_imagejs_where_they_lie_in_its_order(axes, array, tmp_path):
    """ImageJ has time, then depth, then channels, and reads all planes in a row."""
    shape = tuple({"t": 2, "z": 4, "c": 3, "y": 5, "x": 7}[axis] for axis in axes)
    found = array(shape, "uint16", dimension_names=list(axes))
    data = np.arange(found.count, dtype="u2").reshape(shape)
    path = tmp_path / "a.tif"
    path.write_bytes(find_format("tif")(found)().header + data.tobytes())
    with tifffile.TiffFile(path) as file:
        assert file.is_imagej == ([axis for axis in "tzc" if axis in axes] == list(axes[:-2]))
        assert file.series[0].axes == axes.upper()
        np.testing.assert_array_equal(file.asarray(), data)
        offsets = [page.dataoffsets[0] for page in file.pages]
        assert offsets == sorted(offsets)


def test_axes_in_another_order_than_x_y_z_are_turned(array):
    # As MetaImage says it, also where no origin is known.
    turned = array(dimension_names=["x", "y", "z"], above={"multiscales": []})
    assert "space directions: (0,0,1) (0,1,0) (1,0,0)\n" in text("nhdr", turned)
    assert "TransformMatrix = 0 0 1 0 1 0 1 0 0\n" in text("mhd", turned)


@pytest.mark.parametrize(
    ("data_type", "attributes", "cards"),
    [
        ("int16", {"_FillValue": -9}, ["BLANK   =                   -9"]),
        # astropy opens no such file with BLANK.
        ("int8", {"_FillValue": -9, "scale_factor": 1.0}, ["BSCALE  =                    1"]),
        ("uint64", {"scale_factor": 0.5, "units": "K"}, ["BSCALE  =                    1"]),
        ("uint8", {"scale_factor": 0.5, "units": "K"}, ["BSCALE  =                  0.5", "BUNIT"]),
    ],
)
def test_values_in_fits(data_type, attributes, cards, array):
    found = text("fits", array(data_type=data_type, attributes=attributes))
    kinds = [card for card in ("BSCALE", "BUNIT", "BLANK") if card in found]
    assert all(card in found for card in cards)
    assert kinds == [card[:6].split()[0] for card in cards]


@pytest.mark.parametrize(
    ("crs", "line"),
    [
        ('PROJCRS["a",ID["EPSG",32633]]', "map info = {UTM, 1, 1, 0, 8, 2, 2, 33, North, WGS-84}"),
        (
            'GEOGCRS["a",ID["EPSG",4326]]',
            "map info = {Geographic Lat/Lon, 1, 1, 0, 8, 2, 2, WGS-84}",
        ),
    ],
)
def test_envi_names_systems_that_it_knows(crs, line, array):
    attributes = {"GeoTransform": "0 2 0 8 0 -2", "crs_wkt": crs}
    names = ["t", "y", "x"]
    assert line in text("bin.hdr", array(dimension_names=names, attributes=attributes))
