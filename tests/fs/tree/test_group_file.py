"""``group.h5`` and ``tree.h5``: arrays of a group, or of all below, in one file; no kernel."""

import io

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document, group_document
from tests.fs.memory_store import MemoryStore
from zarrfs.errors import NotPermitted
from zarrfs.store.local.local import LocalStore
from zarrfs.views.headers.attributes import typed_attributes

VIEWS = ("h5",)


@pytest.fixture
def weather(tmp_path):
    """As xarray writes it: coordinates, data, a scalar, strings and what HDF5 has no type for."""
    group = zarr.create_group(tmp_path / "w.zarr", attributes={"title": "Wetter", "n": 3})

    def add(name, data, dims, **attributes):
        group.create_array(
            name, data=data, chunks=tuple(max(1, n // 2) for n in data.shape),
            dimension_names=dims, attributes=attributes,
        )  # fmt: skip
        return data

    expected = {
        "lat": add("lat", np.linspace(50, 51, 11), ["lat"], units="degrees_north"),
        "lon": add("lon", np.linspace(5, 7, 13, dtype="f4"), ["lon"], units="degrees_east"),
        "t2m": add("t2m", np.arange(5 * 11 * 13, dtype="i2").reshape(5, 11, 13),
                   ["time", "lat", "lon"], units="K", scale_factor=0.5),
        "rain": add("rain", np.arange(11 * 13, dtype="f8").reshape(11, 13), ["lat", "lon"]),
        "half": add("half", np.arange(7, dtype="u1"), ["lat"]),
        "plain": add("plain", np.arange(6, dtype="u8").reshape(2, 3), None),
    }  # fmt: skip
    names = group.create_array(
        "names", shape=(3,), chunks=(2,), dtype="string", dimension_names=["station"]
    )
    names[...] = np.array(["Köln", "", "x" * 300])
    group.create_array("short", shape=(3,), chunks=(3,), dtype="float16")
    for name, unit in (("when", "s"), ("month", "M")):
        group.create_array(name, shape=(3,), chunks=(3,), dtype=f"datetime64[{unit}]")
    group.create_group("deeper")
    return tmp_path / "w.zarr", expected


@pytest.mark.parametrize("config", [{}, {"order": "F", "byteorder": "big"}], ids=str)
def test_every_array_is_a_dataset(weather, mount, config):
    path, expected = weather
    m = mount(path, views=VIEWS, **config)
    assert m.ls()[0] == "group.h5"
    data = m.read("group.h5")
    assert mount(path, views=("group.nc",), **config).read("group.nc") == data
    assert len(data) == m.stat("group.h5").size
    with h5py.File(io.BytesIO(data)) as file:
        for name, values in expected.items():
            np.testing.assert_array_equal(
                file[name][...], values.T if config else values, err_msg=name
            )
        assert file["names"].asstr()[...].tolist() == ["Köln", "", "x" * 300]
        assert {*file.attrs["zarrfs_left_out"].split(b", ")} == {b"month", b"short"}
        assert file.attrs["title"] == b"Wetter"
        assert set(file) == {
            *expected, "time", "lat_7", "plain_dim_0", "plain_dim_1", "names", "station",
            "when", "when_dim_0",
        }  # fmt: skip
    # Requests that end anywhere.
    for request in (977, 4096):
        assert m.read("group.h5", request) == data


def test_programs_for_netcdf_find_dimensions_and_coordinates(weather, mount, tmp_path):
    path, expected = weather
    (tmp_path / "g.nc").write_bytes(mount(path, views=VIEWS).read("group.h5"))
    with netCDF4.Dataset(tmp_path / "g.nc") as file:
        assert {name: len(d) for name, d in file.dimensions.items() if "phony" not in name} == {
            "lat": 11, "lon": 13, "time": 5, "lat_7": 7, "plain_dim_0": 2, "plain_dim_1": 3,
            "station": 3, "when_dim_0": 3,
        }  # fmt: skip
        assert file["names"][:].tolist() == ["Köln", "", "x" * 300]
        assert file["when"].units == "seconds since 1970-01-01"
        assert file["t2m"].dimensions == ("time", "lat", "lon")
        assert file["rain"].dimensions == ("lat", "lon")
        assert file["lat"].units == "degrees_north"
        np.testing.assert_array_equal(file["t2m"][:], expected["t2m"] * 0.5)


def test_it_shows_what_is_written_to_the_arrays(weather, opened):
    path, expected = weather
    m = opened(LocalStore(path), views=VIEWS)
    before = m.read("group.h5")
    at = before.index(expected["rain"].tobytes())
    m.write("rain/array.bin", 8, np.float64(-1).tobytes())
    assert m.read("group.h5")[at + 8 : at + 16] == np.float64(-1).tobytes()
    file = m.edit("group.h5")
    with pytest.raises(NotPermitted):
        file.write(at, b"12345678")
    file.release()
    # The same of the group's own document.
    file = m.edit("zarr.json")
    with pytest.raises(NotPermitted):
        file.write(0, b"{}")
    file.release()


def test_listing_a_group_opens_no_array(weather, mount):
    path, _ = weather
    m = mount(path, views=VIEWS)
    entries = {entry.name: entry.attributes for entry in m.entries()}
    assert entries["group.h5"].fresh_seconds == 0
    assert entries["group.h5"].inode == m.stat("group.h5").inode


def test_an_array_of_that_name_comes_before_it(mount):
    store = MemoryStore({
        "zarr.json": group_document(),
        "group.h5/zarr.json": array_document((4,), (4,)),
    })  # fmt: skip
    m = mount(store, views=VIEWS)
    assert m.ls().count("group.h5") == 1
    assert m.stat("group.h5").is_directory
    assert "array.bin" in m.ls("group.h5")


@pytest.mark.parametrize("others", [0, 20])
def test_a_group_without_arrays_lists_no_file_of_them(mount, others):
    """Unless it has so many groups that a listing begins before all are known."""
    documents = {f"g{i}/zarr.json": group_document() for i in range(1 + others)}
    documents |= {"zarr.json": group_document(), "g0/a/zarr.json": array_document((2,), (2,))}
    m = mount(MemoryStore(documents), views=("h5", "tree.h5"))
    assert ("group.h5" in m.ls()) == (others > 0)
    assert "tree.h5" in m.ls()
    assert "group.h5" in m.ls("g0")
    assert m.stat("group.h5").size > 0


def test_many_arrays(mount):
    documents = {f"a{i}/zarr.json": array_document((2,), (2,)) for i in range(1003)}
    m = mount(MemoryStore({"zarr.json": group_document(), **documents}), views=VIEWS)
    with h5py.File(io.BytesIO(m.read("group.h5", 1 << 20))) as file:
        assert len(file) == 1000
        assert file["a7"][...].tolist() == [7, 7]
        assert len(file.attrs["zarrfs_left_out"].split(b", ")) == 3


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int8", -5, np.int8(-5)),
        ("int8", 200, np.int64(200)),
        ("int8", True, np.int64(1)),
        ("uint16", -5, np.int64(-5)),
        ("uint8", [1, 256], np.array([1, 256])),
        ("float32", 2, np.float32(2)),
        ("float32", [0.5, float("nan")], np.array([0.5, np.nan], "f4")),
        ("float32", "NaN", np.float32("nan")),
        ("float64", ["-Infinity", 1], np.array([-np.inf, 1])),
        ("int32", "NaN", "NaN"),
        ("float32", 16777217, np.int64(16777217)),
        ("float32", 1e40, np.float64(1e40)),
        ("int32", 1.5, np.float64(1.5)),
        ("int8", "QQ==", "QQ=="),
        ("void8", 5, np.int64(5)),
        (None, 5, np.int64(5)),
    ],
)
def test_stated_types_of_attributes(kind, value, expected):
    """They hold where the value fits exactly: attributes change, and documents may say anything."""
    stated = {"zarrfs_types": 7 if kind is None else f"int16 other\n{kind} of it"}
    (found,) = typed_attributes({"of it": value, **stated})
    assert np.asarray(found.value).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found.value, expected)


@pytest.fixture
def tree(tmp_path):
    """Groups in groups, some with dimensions, names and attributes of others."""
    root = zarr.create_group(tmp_path / "t.zarr", attributes={"title": "Baum"})
    expected = {}
    for path, shape, dims in (
        ("a", (5,), ["x"]),
        ("x/a", (5, 3), ["x", "y"]),  # the group has the name of a dimension
        ("x/y", (3,), ["y"]),
        ("x/deep/er/a", (2, 3), None),
        ("z/b", (4,), ["time"]),
    ):
        data = np.arange(np.prod(shape), dtype="i4").reshape(shape) + len(expected)
        root.create_array(
            path, data=data, chunks=shape, dimension_names=dims, attributes={"path": path}
        )
        expected[path] = data
    root["x/deep"].attrs["n"] = 7
    root.create_group("empty")
    root.create_array("z/names", shape=(3,), chunks=(3,), dtype="string")
    return tmp_path / "t.zarr", expected


@pytest.mark.parametrize("config", [{}, {"order": "F", "byteorder": "big"}], ids=str)
def test_a_hierarchy_is_one_file(tree, mount, config):
    path, expected = tree
    m = mount(path, views=("tree.h5",), **config)
    data = m.read("tree.h5")
    assert len(data) == m.stat("tree.h5").size
    assert m.read("tree.h5", 977) == data
    with h5py.File(io.BytesIO(data)) as file:
        found = []
        file.visit(found.append)
        for name, values in expected.items():
            np.testing.assert_array_equal(file[name][...], values.T if config else values)
            assert file[name].attrs["path"] == name.encode()
        assert file["x/deep"].attrs["n"] == 7
        assert file.attrs["title"] == b"Baum"
        assert file["z/names"].asstr()[...].tolist() == ["", "", ""]
        assert "zarrfs_left_out" not in file.attrs
        scales = {
            "z/names",
            "z/names_dim_0",
            "x_5",
            "x/x",
            "x/deep/er/a_dim_0",
            "x/deep/er/a_dim_1",
            "z/time",
        }
        groups = {"x", "x/deep", "x/deep/er", "z", "empty"}
        assert set(found) - scales == {*expected, *groups}
    # The same of a group in it.
    with h5py.File(io.BytesIO(m.read("x/tree.h5"))) as file:
        assert "deep/er/a" in file


def test_netcdf_reads_a_hierarchy(tree, mount, tmp_path):
    path, expected = tree
    (tmp_path / "t.nc").write_bytes(mount(path, views=("tree.h5",)).read("tree.h5"))
    with netCDF4.Dataset(tmp_path / "t.nc") as file:
        assert file["x/a"].dimensions == ("x", "y")
        for name, values in expected.items():
            np.testing.assert_array_equal(file[name][:], values)


def test_a_hierarchy_of_many_nodes_is_cut(mount):
    long = {"text": "é" * 30_000}
    documents = {f"g{i}/zarr.json": group_document(attributes=long) for i in range(60)}
    documents |= {f"g{i}/a/zarr.json": array_document((2,), (2,)) for i in range(60)}
    deep = "/".join(["d"] * 70)
    documents |= {f"{deep[: 2 * i + 1]}/zarr.json": group_document() for i in range(70)}
    documents[f"{deep}/a/zarr.json"] = array_document((2,), (2,))
    m = mount(MemoryStore({"zarr.json": group_document(), **documents}), views=("tree.h5",))
    data = m.read("tree.h5", 1 << 20)
    assert len(data) < 4 << 20
    with h5py.File(io.BytesIO(data)) as file:
        kept = [name for name in file if name.startswith("g")]
        left_out = file.attrs["zarrfs_left_out"].decode().split(", ")
        assert 5 < len(kept) < 60
        assert {*kept, *left_out} == {*(f"g{i}" for i in range(60)), "/".join(["d"] * 65)}
        assert all(file[f"{name}/a"][...].tolist() == [7, 7] for name in kept)


def test_texts_that_are_no_texts_of_a_file_are_left_out(tmp_path, mount):
    """Many, of several axes, with zeros in them, or in a chunk that cannot be decoded."""
    group = zarr.create_group(tmp_path / "t.zarr")
    for name, shape in (("many", (70_000,)), ("plane", (2, 2)), ("zeros", (2,)), ("bad", (2,))):
        array = group.create_array(name, shape=shape, chunks=shape, dtype="string")
        array[...] = np.full(shape, "a\0b" if name == "zeros" else "ab")
    (tmp_path / "t.zarr" / "bad" / "c" / "0").write_bytes(b"damaged")
    m = mount(tmp_path / "t.zarr", views=VIEWS)
    with h5py.File(io.BytesIO(m.read("group.h5"))) as file:
        assert file.attrs["zarrfs_left_out"] == b"bad, many, zeros, plane"
        assert not len(file)


@pytest.mark.filterwarnings("ignore:The data type .FixedLengthUTF32")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_of_a_fixed_length_are_texts(zarr_format, tmp_path, mount):
    """xarray writes coordinates so; netCDF programs read texts of any length."""
    group = zarr.create_group(tmp_path / "t.zarr", zarr_format=zarr_format)
    texts = np.array(["a", "bb", "cå", ""])
    for name, data in (("name", texts), ("plane", texts.reshape(2, 2))):
        group.create_array(name, data=data)
    data = mount(tmp_path / "t.zarr", views=VIEWS).read("group.h5")
    with h5py.File(io.BytesIO(data)) as file:
        assert file["name"].asstr()[...].tolist() == texts.tolist()
        assert file.attrs["zarrfs_left_out"] == b"plane"


def test_a_chunk_that_is_bad_is_an_error_where_it_is_read(mount):
    store = MemoryStore({
        "zarr.json": group_document(),
        "a/zarr.json": array_document((4,), (4,)),
        "a/c/0": b"xyz",
        "b/zarr.json": array_document((4,), (4,)),
    })  # fmt: skip
    m = mount(store, views=VIEWS)
    size = m.stat("group.h5").size
    file = m.open("group.h5")
    assert file.read(0, 96)[1:4] == b"HDF"
    assert file.read(size - 8, 8) == b"\7\0" * 4
    with pytest.raises(Exception, match="a/c/0"):
        file.read_all()


def test_a_place_that_was_cut_is_the_present_one(mount, tmp_path):
    """xarray cuts coordinates, but no ``GeoTransform``."""
    group = zarr.create_group(tmp_path / "g.zarr")
    said = {"crs_wkt": "", "GeoTransform": "500000 10 0 4600000 0 -10"}

    def add(name, shape, dims, data=0, **attributes):
        array = group.create_array(
            name, shape=shape, chunks=shape, dtype="f8", dimension_names=dims, attributes=attributes
        )
        array[...] = data

    for name in ("cut", "whole", "none"):
        add(name, (), [], **said)
    places = {"x": 500005 + 10 * np.arange(4), "y": 4599995 - 10 * np.arange(3)}
    places |= {"lon": places["x"] + 50, "lat": places["y"] - 30}
    for name, data in places.items():
        role = "x" if name in ("x", "lon") else "y"
        standard = {"standard_name": f"projection_{role}_coordinate"}
        add(name, data.shape, [name], data, **standard)
    add("a", (3, 4), ["lat", "lon"], grid_mapping="cut")
    add("b", (3, 4), ["y", "x"], grid_mapping="whole")
    add("c", (4,), ["x"], grid_mapping="none")
    data = mount(tmp_path / "g.zarr", views=VIEWS).read("group.h5")
    with h5py.File(io.BytesIO(data)) as file:
        names = ("cut", "whole", "none")
        found = {name: file[name].attrs["GeoTransform"].decode() for name in names}
    whole = "500000 10 0 4600000 0 -10"
    assert found == {
        "cut": "500050.0 10.0 0.0 4599970.0 0.0 -10.0", "whole": whole, "none": whole
    }  # fmt: skip
