"""``image.ome.tif`` and ``image.tif``: all levels of an image in one file, without a kernel."""

import io
import struct
import tracemalloc

import numpy as np
import pytest
import tifffile
import zarr

from tests.fs.documents import array_document, group_document
from tests.fs.memory_store import MemoryStore
from tests.images import make_image, make_map
from zarrfs.errors import ChunkError, EntryNotFound, NotPermitted
from zarrfs.store.local.local import LocalStore

OME = "image.ome.tif"
GEO = "image.tif"
VIEWS = (OME, GEO)


@pytest.mark.parametrize(
    ("axes", "shape", "chunks", "dtype", "version"),
    [
        ("yx", (300, 420), (256, 256), "u1", "0.5"),
        ("yx", (70, 50), (100, 100), "f8", "0.5"),
        ("yx", (1100, 90), (1024, 1024), "u2", "0.4"),
        ("cyx", (3, 300, 420), (2, 128, 256), "u2", "0.5"),
        ("zcyx", (3, 2, 90, 70), (1, 2, 48, 32), "i2", "0.5"),
        ("tczyx", (2, 2, 5, 60, 50), (1, 1, 3, 50, 40), "u2", "0.5"),
        ("tczyx", (2, 1, 3, 300, 100), (1, 1, 2, 192, 96), "f4", "0.4"),
        ("yxc", (300, 200, 3), (128, 128, 3), "u1", "0.5"),
        ("zyxc", (3, 90, 80, 4), (2, 48, 32, 1), "u1", "0.5"),
    ],
)
def test_levels_and_planes_are_those_of_the_arrays(
    tmp_path, mount, axes, shape, chunks, dtype, version
):
    levels = make_image(tmp_path / "i", axes, shape, chunks, dtype, version=version)
    m = mount(tmp_path / "i", views=VIEWS)
    assert OME in m.ls()
    assert GEO not in m.ls()
    data = m.read(OME)
    assert len(data) == m.stat(OME).size
    assert m.read(OME, 12288) == data
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        series = file.series[0]
        assert series.kind == "ome"
        assert len(series.levels) == len(levels)
        letters = axes.upper() if axes[-1] != "c" else f"{axes[:-1].upper()}S"
        # tifffile leaves out axes of one element.
        assert series.axes == "".join(a for a, n in zip(letters, shape, strict=True) if n > 1)
        for level, expected in zip(series.levels, levels, strict=True):
            np.testing.assert_array_equal(level.asarray(), expected.squeeze())
            # openslide shows no others; it shows several levels of one plane only.
            assert all(n % 1024 == 0 for n in level.pages[0].databytecounts)
            assert len(series.shape) > 2 or level.pages[0].tile == series.keyframe.tile
        if "c" in axes and axes[-1] != "c":
            names = [c["Name"] for c in _channels(file)]
            assert names == [f"<dye {i}> µ" for i in range(shape[axes.index("c")])]


def _channels(file):
    found = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]["Channel"]
    return found if isinstance(found, list) else [found]


def test_sizes_and_units(tmp_path, mount):
    make_image(tmp_path / "i", "tzyx", (2, 3, 40, 50), (1, 1, 40, 50))
    with tifffile.TiffFile(io.BytesIO(mount(tmp_path / "i", views=VIEWS).read(OME))) as file:
        said = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
    assert (said["PhysicalSizeX"], said["PhysicalSizeXUnit"]) == (0.5, "µm")
    assert (said["PhysicalSizeZ"], said["TimeIncrement"], said["TimeIncrementUnit"]) == (1, 1, "s")
    assert said["DimensionOrder"] == "XYZTC"


def test_a_level_of_fewer_planes_has_each_of_them_several_times(tmp_path, mount):
    levels = make_image(tmp_path / "i", "zyx", (7, 90, 80), (3, 64, 64), halved="zyx")
    data = mount(tmp_path / "i", views=VIEWS).read(OME)
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        for level, expected in zip(file.series[0].levels, levels, strict=True):
            planes = np.arange(7) * len(expected) // 7
            np.testing.assert_array_equal(level.asarray(), expected[planes])


def test_levels_that_do_not_fit_are_left_out(tmp_path, mount):
    levels = make_image(tmp_path / "i", "yx", (300, 420), (64, 64), levels=4)
    group = zarr.open_group(tmp_path / "i")
    del group["1"]
    group.create_array("1", shape=(150, 210), chunks=(64, 64), dtype="u1")
    del group["2"]
    with tifffile.TiffFile(io.BytesIO(mount(tmp_path / "i", views=VIEWS).read(OME))) as file:
        found = [level.asarray() for level in file.series[0].levels]
    assert len(found) == 2
    np.testing.assert_array_equal(found[1], levels[3])


@pytest.mark.parametrize("dtype", ["i8", "u8", "f2"])
def test_a_type_that_ome_lacks_has_no_file(tmp_path, mount, dtype):
    make_image(tmp_path / "i", "yx", (30, 42), (64, 64), dtype)
    m = mount(tmp_path / "i", views=VIEWS)
    assert OME not in m.ls()
    with pytest.raises(EntryNotFound):
        m.stat(OME)


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype", "variable"),
    [
        ((300, 410), (128, 128), "f4", ""),
        ((5, 300, 410), (2, 128, 128), "u2", ""),
        ((3, 300, 410), (1, 100, 100), "i2", "data"),
    ],
)
def test_a_map_is_a_cloud_optimised_geotiff(tmp_path, mount, shape, chunks, dtype, variable):
    levels = make_map(tmp_path / "i", shape, chunks, dtype, variable=variable, missing=9)
    m = mount(tmp_path / "i", views=VIEWS)
    assert OME not in m.ls()
    with tifffile.TiffFile(io.BytesIO(m.read(GEO))) as file:
        pages = list(file.pages)
        assert [page.tags["NewSubfileType"].value for page in pages] == [0, 1, 1]
        for page, expected in zip(pages, levels, strict=True):
            np.testing.assert_array_equal(page.asarray(), expected)
            assert "SubIFDs" not in page.tags
            assert float(page.tags["GDAL_NODATA"].value) == 9
        assert pages[0].geotiff_tags["ProjectedCSTypeGeoKey"] == 32633
        assert pages[0].tags["ModelPixelScaleTag"].value == (10, 10, 0)
        # Directories first, then the elements of the smallest level.
        assert pages[0].offset == 16
        starts = [page.dataoffsets[0] for page in pages]
        assert max(page.offset for page in pages) < min(starts)
        assert starts == sorted(starts, reverse=True)


def test_an_ome_image_with_a_place_has_both(tmp_path, mount):
    place = {"proj:code": "EPSG:4326", "spatial:transform": [0.1, 0, 5, 0, -0.1, 50]}
    (level, *_) = make_image(tmp_path / "i", "yx", (70, 90), (32, 32), attributes=place)
    m = mount(tmp_path / "i", views=VIEWS)
    for name in (OME, GEO):
        np.testing.assert_array_equal(tifffile.imread(io.BytesIO(m.read(name))), level)


def test_a_million_tiles_take_no_memory(mount):
    metadata = {"dimension_names": ["y", "x"]}
    store = MemoryStore({
        "zarr.json": group_document(attributes={"ome": {"multiscales": [{
            "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
            "datasets": [{"path": "0"}],
        }]}}),
        "0/zarr.json": array_document((256_000, 256_000), (256, 256), **metadata),
    })  # fmt: skip
    m = mount(store, views=VIEWS)
    tracemalloc.start()
    size = m.stat(OME).size
    file = m.open(OME)
    head = file.read(0, 4096)
    (count,) = struct.unpack_from("<Q", head, 16)
    entries = {}
    for n in range(count):
        tag, _, length, value = struct.unpack_from("<HHQQ", head, 24 + 20 * n)
        entries[tag] = length, value
    length, table = entries[324]
    assert length == 10**6
    last = struct.unpack("<2Q", file.read(table + 8 * (length - 2), 16))
    # A page of zeros, so that the kernel does not take the next tile for what follows.
    assert last[1] - last[0] == 2 * 256 * 256 + 4096
    assert last[1] + 2 * 256 * 256 + 4096 == size
    assert file.read(entries[325][1] + 4 * 999_999, 4) == struct.pack("<I", 2 * 256 * 256)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def _offsets(data):
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        return [level.pages[0].dataoffsets for level in file.series[0].levels]


def test_writing_through_the_file(tmp_path, opened):
    levels = make_image(tmp_path / "i", "yx", (300, 420), (64, 64), levels=2)
    m = opened(LocalStore(tmp_path / "i"), views=VIEWS)
    tiles = _offsets(m.read(OME))
    reader, flat = m.open(OME), m.open("0/array.bin")
    file = m.edit(OME)
    assert file.opened.direct
    new = np.arange(32, dtype="<u2").tobytes()
    assert file.write(tiles[0][0], new) == len(new)
    assert file.write(tiles[1][0] + 64, new) == len(new)
    levels[0][0, :32] = levels[1][0, 32:64] = np.arange(32)
    # The first row of the only tile has 448 columns, of which the array has 420.
    assert file.write(tiles[0][0] + 2 * 410, b"\x05\0" * 38) == 76
    levels[0][0, 410:] = 5
    file.close()
    for name, expected in (("0", levels[0]), ("1", levels[1])):
        assert m.read(f"{name}/array.bin") == expected.tobytes()
        np.testing.assert_array_equal(zarr.open_array(tmp_path / "i" / name)[...], expected)
    with tifffile.TiffFile(io.BytesIO(m.read(OME))) as found:
        for level, expected in zip(found.series[0].levels, levels, strict=True):
            np.testing.assert_array_equal(level.asarray(), expected)
    assert m.stat("0/array.bin").inode in m.dropped.inodes
    assert m.stat(OME).inode in m.dropped.inodes
    reader.close()
    flat.close()


def test_the_header_stays(tmp_path, opened):
    make_image(tmp_path / "i", "yx", (300, 420), (64, 64), levels=2)
    m = opened(LocalStore(tmp_path / "i"), views=VIEWS)
    data = m.read(OME)
    file = m.edit(OME)
    assert file.write(0, data[:4096]) == 4096
    with pytest.raises(NotPermitted):
        file.write(8, b"\xff" * 8)
    file.release()


def test_what_is_written_elsewhere_is_seen(tmp_path, opened):
    make_image(tmp_path / "i", "yx", (300, 420), (64, 64), levels=2)
    m = opened(LocalStore(tmp_path / "i"), views=VIEWS)
    (tiles, _) = _offsets(m.read(OME))
    first, again = m.open(OME), m.open(OME)
    assert first.keep_cache
    assert again.keep_cache
    dropped = m.dropped.inodes
    dropped.clear()
    m.write("0/array.bin", 0, b"\x01\x02")
    assert first.read(tiles[0], 2) == b"\x01\x02"
    # An open file's pages are dropped, and later opens do not rely on older ones.
    assert m.stat(OME).inode in dropped
    assert not m.open(OME).keep_cache


def test_a_damaged_chunk_is_an_error_where_it_is_read(tmp_path, mount):
    (level, *_) = make_image(tmp_path / "i", "yx", (600, 600), (256, 256), levels=1)
    (tiles,) = _offsets(mount(tmp_path / "i", views=VIEWS).read(OME))
    (tmp_path / "i" / "0" / "c" / "0" / "1").write_bytes(b"xyz")
    file = mount(tmp_path / "i", views=VIEWS).open(OME)
    assert file.read(tiles[0], 512) == level[0, :256].tobytes()
    with pytest.raises(ChunkError):
        file.read(tiles[1], 512)
