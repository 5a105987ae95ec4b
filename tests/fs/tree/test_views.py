"""Files of an array in other formats, without a kernel."""

import math

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document, group_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import EntryNotFound, NotPermitted
from zarrfs.store.local.local import LocalStore
from zarrfs.views.headers import registry
from zarrfs.views.headers.form import Form, Inexpressible

DATA = np.arange(3 * 5 * 7, dtype="u2").reshape(3, 5, 7) * 500
HEADERS = ("array.nhdr", "array.mhd", "array.bin.hdr", "array.vrt", "array.xmf")
FILES = ("array.npy", "array.h5", "array.nc", "array.tif", "array.nii", "array.nrrd", "array.mha",
         "array.fits", "array.mrc", "array.safetensors")  # fmt: skip
CHUNKED = "array.chunked.h5"
BIG = ("array.fits",)
STEPS = [{"type": "scale", "scale": [3, 4]}]


@pytest.fixture
def path(tmp_path):
    group = zarr.create_group(tmp_path / "g")
    group.create_array("a", data=DATA, chunks=(2, 2, 4), dimension_names=("z", "y", "x"))
    group.create_array("s", shape=(3,), dtype="string", chunks=(3,))
    return tmp_path / "g"


def test_which_files_there_are(path, mount):
    others = ["chunks", "zarr.json"]
    assert mount(path).ls("a") == ["array.bin", "array.npy", *others]
    assert mount(path, views=()).ls("a") == ["array.bin", *others]
    assert mount(path, views=("h5", "nhdr")).ls("a") == [
        "array.bin",
        "array.nhdr",
        "array.h5",
        *others,
    ]
    shown = mount(path, views=("all",)).ls("a")
    assert sorted(shown) == sorted(["array.bin", *HEADERS, *FILES, CHUNKED, *others])
    with pytest.raises(EntryNotFound):
        mount(path, views=()).stat("a/array.npy")


@pytest.mark.parametrize("name", FILES)
def test_the_elements_are_in_the_file_once(name, path, mount):
    m = mount(path, views=("all",))
    found = m.read(f"a/{name}")
    assert len(found) == m.stat(f"a/{name}").size
    stored = ((DATA ^ 0x8000).astype(">u2") if name in BIG else DATA.astype("<u2")).tobytes()
    assert found.count(stored) == 1
    # The same in requests of other sizes, which fall on the borders of header and elements.
    for request in (61, len(found) - 5):
        assert m.read(f"a/{name}", request) == found
    file, start = m.open(f"a/{name}"), found.index(stored)
    for place in (0, start, start + len(stored), len(found)):
        for at in range(max(0, place - 9), place + 9):
            assert file.read(at, 1) == found[at : at + 1]
            assert file.read(at, 13) == found[at : at + 13]


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_names_the_file_beside_it(name, path, mount):
    m = mount(path, views=("all",))
    found = m.read(f"a/{name}")
    assert len(found) == m.stat(f"a/{name}").size == m.stat(f"a/{name}").stored
    assert b"array.bin" in found or name == "array.bin.hdr"


def test_what_is_larger_than_a_file_can_be_has_no_file(mount):
    """But for the elements alone, if those fit."""
    most = 2**63 - 1
    place = {"attributes": {"GeoTransform": "0 1 0 0 0 -1", "spatial_ref": "EPSG:4326"}}
    shapes = {"a": (most,), "b": (most - 5000,), "c": (3 << 60,), "n": (1 << 20, 1 << 35)}
    kinds = {"data_type": "uint8", "fill_value": 0}
    m = mount(MemoryStore({
        "zarr.json": group_document(),
        **{f"{name}/zarr.json": array_document(shape, (1 << 10,) * len(shape), **kinds)
           for name, shape in shapes.items()},
        "m/zarr.json": array_document((1 << 20, 1 << 30), (1, 1), **kinds, **place,
                                      dimension_names=["y", "x"]),
    }), views=("all",))  # fmt: skip
    for name, shape in shapes.items():
        shown = [file for file in m.ls(name) if file.startswith("array.")]
        sizes = {file: m.stat(f"{name}/{file}").size for file in shown}
        assert sizes["array.bin"] == math.prod(shape)
        assert max(sizes.values()) <= most
        assert ("array.npy" in sizes) == (name != "a")
        assert ("array.h5" in sizes) == (name in "cn")
        assert (CHUNKED in sizes) == (name == "n")
    # A page for each chunk of one byte, and a tile of 64 KiB for some.
    assert CHUNKED not in m.ls("m")
    for name in ("group.h5", "group.nc", "tree.h5"):
        assert m.stat(name).size <= most
        assert b"zarrfs_left_out" in m.open(name).read(0, 1 << 16)


@pytest.mark.parametrize("shape", [(2**62,), (2**63 - 4096,), (0, 2**62)])
def test_longest_named_axes(mount, shape):
    """A dimension scale of HDF5 has four bytes for each element."""
    chunks = (1 << 10,) * len(shape)
    names = ["y", "x"][: len(shape)]
    array = array_document(shape, chunks, data_type="uint8", fill_value=0, dimension_names=names)
    m = mount(MemoryStore({"zarr.json": group_document(), "a/zarr.json": array}), views=("all",))
    shown = m.ls("a")
    assert "array.bin" in shown
    assert "array.h5" not in shown
    assert all(m.stat(f"a/{name}").size < 2**63 for name in shown)
    for name in ("group.h5", "group.nc", "tree.h5"):
        assert b"zarrfs_left_out" in m.open(name).read(0, 1 << 16)


def test_listing_makes_no_header(path, mount, monkeypatch):
    made = []

    def plan(array):
        return lambda: made.append(array) or Form(b"header!", array.layout)

    known = registry.find_format
    monkeypatch.setattr(
        "zarrfs.fs.nodes.array_views.find_format",
        lambda name: known(name) if name == "npy" else plan,
    )
    m = mount(path, views=("all",))
    entries = {entry.name: entry.attributes for entry in m.entries("a")}
    assert made == []
    # What was listed without its size is asked for again.
    assert entries["array.h5"].fresh_seconds == 0
    assert m.stat("a/array.h5").size == 7 + DATA.nbytes
    assert len(made) == 1
    assert m.stat("a/array.h5").size == 7 + DATA.nbytes
    assert len(made) == 1
    assert m.read("a/array.h5").startswith(b"header!")


def test_one_bad_format_hides_no_other_file(path, mount, monkeypatch, caplog):
    def broken(array):
        raise ZeroDivisionError("a bug")

    def refuses(array):
        raise Inexpressible("no")

    known = registry.find_format
    others = {"h5": broken, "mhd": refuses}
    monkeypatch.setattr(
        "zarrfs.fs.nodes.array_views.find_format", lambda name: others.get(name) or known(name)
    )
    shown = mount(path, views=("all",)).ls("a")
    assert "array.h5" not in shown
    assert "array.mhd" not in shown
    assert "array.nhdr" in shown
    assert "/a is not shown as h5: a bug" in caplog.text


def test_formats_of_other_packages(path, mount, monkeypatch):
    class EntryPoint:
        name = "other.ext"

        @staticmethod
        def load():
            return lambda array: lambda: Form(f"{array.shape}".encode(), array.layout, b"!")

    registry._entry_points.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [EntryPoint])
    try:
        m = mount(path, views=("other.ext",))
        assert m.ls("a")[:2] == ["array.bin", "array.other.ext"]
        assert m.read("a/array.other.ext") == b"(3, 5, 7)" + DATA.tobytes() + b"!"
        assert "array.other.ext" not in mount(path, views=("default",)).ls("a")
    finally:
        registry._entry_points.cache_clear()


def test_scales_of_the_group_above(mount):
    scales = {"multiscales": [{
        "axes": [{"name": n, "unit": "micrometer"} for n in "yx"],
        "datasets": [{"path": "0", "coordinateTransformations": STEPS}],
    }]}  # fmt: skip
    store = MemoryStore({
        "zarr.json": group_document(attributes={"ome": scales}),
        "0/zarr.json": array_document((4, 6), (4, 6)),
    })  # fmt: skip
    m = mount(store, views=("default",))
    assert b"spacings: 4 3\n" in m.read("0/array.nhdr")
    assert "array.tif" in m.ls("0")


@pytest.mark.parametrize("consolidated", [False, True])
def test_the_grid_mapping_beside_an_array(consolidated, tmp_path, mount):
    """As rioxarray has it: a variable without axes has the georeference."""
    group = zarr.create_group(tmp_path / "g", zarr_format=2 if consolidated else 3)
    array = group.create_array("t", shape=(4, 6), chunks=(4, 6), dtype="i2")
    array.attrs["grid_mapping"] = "spatial_ref"
    reference = group.create_array("spatial_ref", shape=(), dtype="i8")
    reference.attrs.update(crs_wkt='GEOGCS["x"]', GeoTransform="100 0.5 0 200 0 -0.25")
    lost = group.create_array("u", shape=(4, 6), chunks=(4, 6), dtype="i2")
    lost.attrs["grid_mapping"] = "../../etc"
    if consolidated:
        zarr.consolidate_metadata(tmp_path / "g")
    m = mount(tmp_path / "g", views=("vrt",))
    assert b"<GeoTransform>100.0, 0.5, 0.0, 200.0, 0.0, -0.25</GeoTransform>" in m.read(
        "t/array.vrt"
    )
    assert b"GEOGCS[" in m.read("t/array.vrt")
    assert b"GeoTransform" not in m.read("u/array.vrt")


def test_every_file_can_be_written_through(path, opened):
    store_path = path
    m = opened(LocalStore(store_path), views=("all",))
    new = DATA ^ 0x5555
    for i, name in enumerate(FILES):
        file = m.edit(f"a/{name}")
        size = m.stat(f"a/{name}").size
        content = m.read(f"a/{name}")
        big = name in BIG
        old = (DATA.astype(">u2") ^ 0x8000 if big else DATA).astype(">u2" if big else "<u2")
        at = content.index(old.tobytes()) if not i else None
        if at is None:
            current = zarr.open_array(store_path / "a", mode="r")[...]
            shown = (current ^ 0x8000).astype(">u2") if big else current
            at = content.index(shown.tobytes())
        want = new + i
        stored = (want ^ 0x8000).astype(">u2") if big else want.astype("<u2")
        file.write(at, stored.tobytes())
        file.flush()
        np.testing.assert_array_equal(zarr.open_array(store_path / "a", mode="r")[...], want)
        with pytest.raises(NotPermitted):
            file.write(0, b"\xff" * 16)
        assert m.stat(f"a/{name}").size == size
        file.close()


def test_a_video_has_a_mark_before_each_image(tmp_path, opened):
    data = np.arange(3 * 5 * 7, dtype="u2").reshape(3, 5, 7) * 500
    zarr.create_array(tmp_path / "a", data=data, chunks=(2, 2, 4), attributes={"frame_rate": 12.5})
    m = opened(LocalStore(tmp_path / "a"), views=("y4m",))
    header = b"YUV4MPEG2 W7 H5 F25:2 Ip A1:1 Cmono16 XCOLORRANGE=FULL\n"
    expected = header + b"".join(b"FRAME\n" + image.tobytes() for image in data)
    assert m.stat("array.y4m").size == len(expected)
    for request in (1, 13, 76, len(expected)):
        assert m.read("array.y4m", request) == expected
    file = m.edit("array.y4m")
    new = header + b"".join(b"FRAME\n" + image.tobytes() for image in ~data)
    file.write(0, new)
    file.flush()
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a", mode="r")[...], ~data)
    with pytest.raises(NotPermitted):
        file.write(len(header) + 2, b"xx")
    file.close()


def test_headers_follow_an_array_that_grows(tmp_path, opened):
    zarr.create_array(tmp_path / "a", data=np.ones((3, 4), "i2"), chunks=(2, 4))
    m = opened(LocalStore(tmp_path / "a"), views=("all",), resize=True)
    # A header before the elements would change its size while they are mapped.
    names = m.ls()
    assert "array.npy" in names
    assert "array.h5" not in names
    assert b"sizes: 4 3\n" in m.read("array.nhdr")
    file = m.edit("array.bin")
    file.write(24, b"\1" * 8 * 97)
    file.flush()
    assert b"sizes: 4 100\n" in m.read("array.nhdr")
    assert m.stat("array.nhdr").size == len(m.read("array.nhdr"))


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize(("near", "consolidated"), [(True, False), (False, False), (False, True)])
def test_coordinates_in_the_group_above(near, consolidated, tmp_path, mount):
    """A remote store is not asked for them: each axis would take several requests."""
    root = zarr.create_group(tmp_path / "g")
    root.create_array("x", data=np.arange(3) * 2.5, dimension_names=["x"])
    root.create_array("a/d", data=np.zeros((4, 3)), dimension_names=["y", "x"])
    if consolidated:
        zarr.consolidate_metadata(tmp_path / "g")
    store = FaultStore(LocalStore(tmp_path / "g"), near=near)
    known = b"2.5" in mount(store, views=("nhdr",)).read("a/d/array.nhdr")
    asked = [call.key for call in store.calls if call.key.startswith(("x", "y"))]
    assert known == bool(asked) == (near or consolidated)
