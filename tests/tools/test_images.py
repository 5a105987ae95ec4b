"""Programs open all levels of an image by one file: every level, plane and channel is equal."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.images import make_image, make_map
from tests.tools import image_readers
from tests.tools.programs import need_module, need_program, run

OME = "image.ome.tif"
# The axes, shapes and chunks of images that are read.
IMAGES = {
    "plane": ("yx", (300, 420), (128, 128), "u1"),
    "stack": ("tczyx", (2, 2, 3, 200, 150), (1, 1, 2, 256, 256), "u2"),
    "order": ("zcyx", (3, 2, 200, 150), (1, 2, 64, 64), "i2"),
    "floats": ("zyx", (5, 200, 150), (3, 100, 50), "f4"),
    "colours": ("yxc", (300, 420, 3), (128, 128, 3), "u1"),
}
PLANES = Path(__file__).with_name("Planes.java")
READERS = Path(image_readers.__file__)


@pytest.fixture(scope="module")
def images(tmp_path_factory, shared_mounter):
    """The mount, and for each image its axes and its levels."""
    place = tmp_path_factory.mktemp("images")
    zarr.create_group(place)
    found = {}
    for name, (axes, *rest) in IMAGES.items():
        found[name] = axes, make_image(place / name, axes, *rest)
    return shared_mounter(place).path, found


def _planes(axes, level):
    """The planes of a level, each with its numbers along z, c and t."""
    if axes[-1] == "c":
        # Bio-Formats has the samples of a plane one after another.
        yield (0, 0, 0), np.moveaxis(level, -1, 0)
        return
    for index in np.ndindex(level.shape[:-2]):
        places = dict(zip(axes, index, strict=False))
        yield tuple(places.get(axis, 0) for axis in "zct"), level[index]


def test_bio_formats(images):
    """Fiji, QuPath and OMERO read images by it."""
    need_program("javac")
    jar = Path(sys.prefix) / "bioformats" / "bioformats_package.jar"
    if not jar.exists():
        pytest.skip("Bio-Formats is not there: make test-tools fetches it")
    mount, found = images
    said = run("java", "-cp", jar, PLANES, *(mount / name / OME for name in found)).decode()
    heads = [line for line in said.splitlines() if line.startswith("file")]
    parts = [part.splitlines()[1:] for part in said.split("file ")[1:]]
    assert len(heads) == len(parts) == len(found)
    for (axes, levels), head, lines in zip(found.values(), heads, parts, strict=True):
        assert head.endswith(f" {len(levels)}")
        expected = {
            f"{number} {z} {c} {t} {hashlib.md5(np.ascontiguousarray(plane).data).hexdigest()}"
            for number, level in enumerate(levels)
            for (z, c, t), plane in _planes(axes, level)
        }
        assert set(lines) == expected


# The levels that a library shows of one plane, and of several.
LIBRARIES = {
    "tifffile": (3, 3),
    "rasterio": (3, 3),
    "pyvips": (3, 3),
    "openslide": (3, 1),
    "large_image": (1, 1),
    "napari": (1, 1),
    "qgis": (2, 2),
}
# Those that show reduced levels of the first plane alone.
FIRST = {"rasterio", "qgis"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries(images, library):
    python = sys.executable
    if library == "qgis":
        python = need_program("/usr/bin/python3")
        if not Path("/usr/lib/python3/dist-packages/qgis").exists():
            pytest.skip("QGIS is not installed: Debian's python3-qgis has it")
    elif library == "napari":
        # In an environment of its own: its plugin for pytest warns.
        python = Path(need_program("napari")).with_name("python")
    else:
        need_module(library)
    mount, found = images
    if library == "openslide":
        # It shows 8 of 16 bits, and no others.
        found = {name: each for name, each in found.items() if each[1][0].dtype == "u1"}
    said = run(python, "-W", "ignore", READERS, library, *(mount / name / OME for name in found))
    shown = json.loads(said.splitlines()[-1])
    for (name, (axes, levels)), read in zip(found.items(), shown, strict=True):
        planes = [
            [hashlib.md5(np.ascontiguousarray(plane)).hexdigest() for plane in _pages(axes, level)]
            for level in levels
        ]
        if library in FIRST:
            planes[1:] = [level[:1] for level in planes[1:]]
        count = LIBRARIES[library][len(planes[0]) > 1]
        assert read == {str(n): level for n, level in enumerate(planes[:count])}, name


def _pages(axes, level):
    """The planes of a level in the order of the pages, with colours last."""
    for _, plane in _planes(axes, level):
        yield np.moveaxis(plane, 0, -1) if axes[-1] == "c" else plane


def test_gdal(images, tmp_path):
    need_program("gdal_translate")
    mount, found = images
    for name, (axes, levels) in found.items():
        planes = [plane for _, plane in _planes(axes, levels[0])]
        for number, plane in enumerate(planes, 1):
            source = f"GTIFF_DIR:{number}:{mount / name / OME}"
            assert _gdal(source, tmp_path) == plane.tobytes(), source
        # Overviews of the first plane.
        for level, expected in enumerate(levels[1:]):
            read = _gdal(mount / name / OME, tmp_path, "-oo", f"OVERVIEW_LEVEL={level}")
            assert read == next(_planes(axes, expected))[1].tobytes(), (name, level)


def _gdal(source, tmp_path, *words):
    target = tmp_path / "raw"
    run("gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BSQ", *words, source, target)
    return target.read_bytes()


def test_vips(images, tmp_path):
    need_program("vips")
    mount, found = images
    for name, (axes, levels) in found.items():
        for number, (_, plane) in enumerate(_planes(axes, levels[0])):
            read = _vips(f"{mount / name / OME}[page={number}]", tmp_path)
            expected = np.moveaxis(plane, 0, -1) if axes[-1] == "c" else plane
            assert read == expected.tobytes(), (name, number)
        for level, expected in enumerate(levels[1:]):
            read = _vips(f"{mount / name / OME}[subifd={level}]", tmp_path)
            first = next(_planes(axes, expected))[1]
            assert read == (np.moveaxis(first, 0, -1) if axes[-1] == "c" else first).tobytes()


def _vips(source, tmp_path):
    target = tmp_path / "v.raw"
    run("vips", "rawsave", source, target)
    return target.read_bytes()


def test_gdal_reads_a_map(tmp_path, mounted):
    need_program("gdalinfo")
    zarr.create_group(tmp_path / "maps")
    levels = make_map(tmp_path / "maps" / "m", (3, 600, 700), (2, 256, 256), "i2", missing=9)
    file = mounted(tmp_path / "maps") / "m" / "image.tif"
    said = json.loads(run("gdalinfo", "-json", file))
    assert said["geoTransform"] == [5e5, 10, 0, 5e6, 0, -10]
    assert "32633" in said["coordinateSystem"]["wkt"]
    assert [band["noDataValue"] for band in said["bands"]] == [9] * 3
    sizes = [overview["size"] for overview in said["bands"][0]["overviews"]]
    assert sizes == [[350, 300], [175, 150]]
    for level, expected in enumerate(levels):
        words = ("-oo", f"OVERVIEW_LEVEL={level - 1}") if level else ()
        assert _gdal(file, tmp_path, *words) == expected.tobytes()
    if (rio := shutil.which("rio")) is not None:
        assert b"is a valid" in run(rio, "cogeo", "validate", "--strict", file)


# The shapes, chunks and types of maps without levels, and columns and rows of their tiles.
MAPS = {
    "plane": ((700, 900), (256, 256), "u2", (256, 256)),
    "bands": ((3, 300, 500), (2, 100, 250), "f4", (256, 256)),
    "one": ((50, 40), (50, 40), "i2", (64, 64)),
}


def test_gdal_reads_an_array_without_levels(tmp_path, mounted):
    need_program("gdalinfo")
    zarr.create_group(tmp_path / "maps")
    found = {
        name: make_map(tmp_path / "maps" / name, *how, levels=1, missing=9)[0]
        for name, (*how, _) in MAPS.items()
    }
    mount = mounted(tmp_path / "maps", "rw")
    for name, expected in found.items():
        file = mount / name / "r10m" / "array.cog.tif"
        said = json.loads(run("gdalinfo", "-json", file))
        assert said["geoTransform"] == [5e5, 10, 0, 5e6, 0, -10]
        assert "32633" in said["coordinateSystem"]["wkt"]
        assert {tuple(band["block"]) for band in said["bands"]} == {MAPS[name][-1]}
        assert _gdal(file, tmp_path) == expected.tobytes()
        if (rio := shutil.which("rio")) is not None:
            # It wants overviews of larger ones.
            strict = ["--strict"] if name != "plane" else []
            assert b"is a valid" in run(rio, "cogeo", "validate", *strict, file)


def test_gdal_writes_a_map(tmp_path, mounted):
    need_program("gdal_rasterize")
    zarr.create_group(tmp_path / "maps")
    (level, *_) = make_map(tmp_path / "maps" / "m", (600, 700), (256, 256), "u2", levels=2)
    mount = mounted(tmp_path / "maps", "rw")
    shape = tmp_path / "shape.json"
    ring = [[500000, 5000000], [500100, 5000000], [500100, 4999900], [500000, 4999900],
            [500000, 5000000]]  # fmt: skip
    polygon = {"type": "Polygon", "coordinates": [ring]}
    shape.write_text(json.dumps({
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32633"}},
        "features": [{"type": "Feature", "properties": {}, "geometry": polygon}],
    }))  # fmt: skip
    run("gdal_rasterize", "-q", "-burn", "7", shape, mount / "m" / "image.tif")
    level[:10, :10] = 7
    read = np.fromfile(mount / "m" / "r10m" / "array.bin", "<u2").reshape(level.shape)
    np.testing.assert_array_equal(read, level)
