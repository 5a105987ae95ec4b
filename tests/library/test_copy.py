"""Copies of arrays and hierarchies, which zarr-python wrote and reads."""

import errno
import json
import os
import shutil
from pathlib import Path

import h5py
import numcodecs
import numpy as np
import pytest
import xarray
import zarr
from zarr.codecs import BytesCodec, ShardingCodec, TransposeCodec

import zarrfs
from zarrfs.errors import AlreadyExists, UsageError, ZarrfsError
from zarrfs.library.copying.copy import CopyFailed
from zarrfs.library.copying.record import RECORD

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(59)
SMALL = zarrfs.SourceOptions(memory=16 << 20)


def numbers(shape, dtype="u2"):
    values = RNG.integers(0, 200, shape)
    return (values + 1j * values if np.dtype(dtype).kind == "c" else values).astype(dtype)


def records():
    values = np.zeros(6, [("a", "<i4"), ("b", ">f8")])
    values["a"], values["b"] = range(6), 3.5
    return values


def words():
    return np.array([[f"é{i}{j}" * i for j in range(3)] for i in range(5)], dtype=object)


NAMES = {"name": "v2", "separator": "/"}
SOURCES = {
    "v2": (numbers((37, 53)), {"chunks": (10, 11), "zarr_format": 2}),
    "fortran": (
        numbers((37, 13, 5), ">f4"),
        {"chunks": (10, 11, 2), "zarr_format": 2, "order": "F", "compressors": numcodecs.Zstd(3)},
    ),
    "nested": (
        numbers((37, 53), "i8"),
        {"chunks": (10, 11), "zarr_format": 2, "chunk_key_encoding": NAMES,
         "compressors": numcodecs.GZip(2)},
    ),
    "filters": (
        numbers((37, 53), "i4"),
        {"chunks": (10, 11), "zarr_format": 2, "filters": [numcodecs.Delta("<i4")],
         "compressors": numcodecs.LZ4()},
    ),
    "fortran filters": (
        numbers((37, 53), "i4"),
        {"chunks": (10, 11), "zarr_format": 2, "order": "F", "filters": [numcodecs.Delta("<i4")]},
    ),
    "packed": (
        numbers((37, 53)) > 500,
        {"chunks": (10, 11), "zarr_format": 2, "filters": [numcodecs.PackBits()]},
    ),
    "big-endian filters": (
        numbers((37, 53), ">f8"),
        {"chunks": (10, 11), "zarr_format": 2,
         "filters": [numcodecs.FixedScaleOffset(0, 1, ">f8", "<i4")]},
    ),
    "F order and big-endian filters": (
        numbers((37, 53), ">f8"),
        {"chunks": (10, 11), "zarr_format": 2, "order": "F",
         "filters": [numcodecs.FixedScaleOffset(0, 1, ">f8", "<i4")]},
    ),
    "empty": (numbers((0, 5)), {"chunks": (2, 2)}),
    "scalar": (np.array(5.5), {"chunks": ()}),
    "named": (
        numbers((37, 53), "f8"),
        {"chunks": (10, 11), "fill_value": np.nan, "dimension_names": ["y", "x"],
         "attributes": {"a": [1, {"b": None}]}},
    ),
    "sharded": (numbers((37, 53)), {"chunks": (5, 6), "shards": (20, 30)}),
    "shards in shards": (
        numbers((37, 53)),
        {"chunks": (20, 30), "compressors": None, "serializer": ShardingCodec(
            chunk_shape=(10, 15), codecs=[ShardingCodec(chunk_shape=(5, 5), codecs=[BytesCodec()])]
        )},
    ),
    "transposed": (
        numbers((7, 9, 5)), {"chunks": (3, 3, 2), "filters": [TransposeCodec(order=(1, 2, 0))]},
    ),
    "complex": (numbers((7, 9), "c8"), {"chunks": (3, 3)}),
    "bool": (numbers((7, 9), "?"), {"chunks": (3, 3), "fill_value": True}),
    "time": (numbers((7,), "M8[s]"), {"chunks": (3,), "zarr_format": 2}),
    "bytes": (np.array([b"ab", b"c", b""]), {"chunks": (2,), "zarr_format": 2}),
    "texts": (np.array(["äb", "c", ""]), {"chunks": (2,), "zarr_format": 2}),
    "records": (records(), {"chunks": (4,), "zarr_format": 2}),
    "strings2": (words(), {"chunks": (2, 2), "zarr_format": 2, "dtype": str}),
    "strings3": (words(), {"chunks": (2, 2), "dtype": str}),
}  # fmt: skip


def write(path: Path, values, **options) -> zarr.Array:
    options.setdefault("dtype", values.dtype)
    array = zarr.create_array(path, shape=values.shape, **options)
    array[...] = values
    return array


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, (values, options) in SOURCES.items():
        write(folder / name, values, **options)
    return folder


def forms(rank: int):
    yield {}
    yield {"zarr_format": 3}
    yield {"zarr_format": 2, "shards": []}
    yield {"zarr_format": 3, "shards": []}
    yield {"chunks": [7] * rank}
    yield {"zarr_format": 3, "chunks": [4] * rank, "shards": [12] * rank}
    yield {"zarr_format": 2, "chunks": [6] * rank, "codecs": "crc32c"}


@pytest.mark.parametrize("name", SOURCES)
def test_zarr_python_reads_the_same_from_a_copy(sources, tmp_path, name):
    values, _ = SOURCES[name]
    source = zarr.open_array(sources / name, mode="r")
    for number, form in enumerate(forms(values.ndim)):
        if name == "records" and "shards" in form and form["shards"]:
            continue  # zarr-python does not read shards of records
        target = tmp_path / str(number)
        result = zarrfs.copy(sources / name, target, verify=True, options=SMALL, **form)
        copy = zarr.open_array(target, mode="r")
        assert np.array_equal(copy[...], values, equal_nan=values.dtype.kind in "fc"), form
        if values.dtype.kind != "O":
            assert copy.dtype.newbyteorder("<") == source.dtype.newbyteorder("<")
        assert str(copy.fill_value) == str(source.fill_value), form
        assert {**copy.attrs, **source.attrs} == dict(copy.attrs)
        assert not (target / RECORD).exists()
        assert result.copied.objects == sum(plan.objects for plan in result.arrays)
        if name == "named" and copy.metadata.zarr_format == 3:
            assert copy.metadata.dimension_names == ("y", "x")


def test_filters_of_big_endian_elements_keep_their_values_in_zarr_2(tmp_path):
    filters = [
        {"name": "numcodecs.fixedscaleoffset",
         "configuration": {"offset": 0, "scale": 2, "dtype": "<f8", "astype": "<i4"}},
        {"name": "bytes", "configuration": {"endian": "big"}},
    ]  # fmt: skip
    values = np.arange(12.0).reshape(3, 4) / 2
    source, copy = tmp_path / "source", tmp_path / "copy"
    with zarrfs.create_array(source, (3, 4), "float64", chunks=(2, 3), codecs=filters) as created:
        created[...] = values
    zarrfs.copy(source, copy, zarr_format=2)
    assert np.array_equal(zarr.open_array(copy, mode="r")[...], values)


def test_the_bits_of_a_fill_value_stay(tmp_path):
    zarrfs.create_array(
        tmp_path / "a", (8,), "f4", chunks=(4,), fill_value="0x7fc00001", codecs="none"
    ).close()
    zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[3])
    with zarrfs.open_array(tmp_path / "b") as copy:
        assert copy[...].view("u4").tolist() == [0x7FC00001] * 8
    assert not (tmp_path / "b" / "c").exists()
    with pytest.raises(UsageError, match="Zarr 2 has no fill value 0x7fc00001"):
        zarrfs.copy(tmp_path / "a", tmp_path / "c", zarr_format=2)


def test_an_array_without_a_fill_value_gets_none_in_zarr_2(tmp_path):
    """GDAL writes null in Zarr 3, where other programs demand a number."""
    write(tmp_path / "a.zarr", numbers((4, 6)))
    document = tmp_path / "a.zarr/zarr.json"
    document.write_text(json.dumps(json.loads(document.read_text()) | {"fill_value": None}))
    for version, fill in ((2, None), (3, 0)):
        zarrfs.copy(tmp_path / "a.zarr", tmp_path / f"{version}.zarr", zarr_format=version)
        name = ".zarray" if version == 2 else "zarr.json"
        made = json.loads((tmp_path / f"{version}.zarr" / name).read_text())
        assert made["fill_value"] == fill


def test_zeros_of_a_single_array_are_not_missing_in_zarr_2(tmp_path):
    """As those of an array in a group: the fill value of Zarr 3 masks nothing."""
    group = zarr.create_group(tmp_path / "g.zarr")
    data = numbers((4, 6))
    data[0] = 0
    group.create_array("a", data=data, dimension_names=("y", "x"), fill_value=0)
    for source in ("g.zarr", "g.zarr/a"):
        target = tmp_path / f"{source.replace('/', '_')}.2"
        zarrfs.copy(tmp_path / source, target, zarr_format=2)
        document = target / (".zarray" if source.endswith("a") else "a/.zarray")
        assert json.loads(document.read_text())["fill_value"] is None


@pytest.mark.filterwarnings("ignore:.*(consolidated|NaN)")
@pytest.mark.parametrize(("zarr_format", "other"), [(2, 3), (3, 2)])
def test_xarray_reads_of_a_copy_of_a_scalar_what_it_reads_of_its_source(
    zarr_format, other, tmp_path
):
    """Such as a grid mapping, of which Zarr 2 says that it has no axes."""
    zeros = {"_FillValue": np.float32(0)} if zarr_format == 2 else {}
    source = xarray.Dataset({"s": ((), np.float32(0)), "crs": ((), 0, {"epsg": 4326})})
    source.to_zarr(
        tmp_path / "a", zarr_format=zarr_format, consolidated=False, encoding={"s": zeros}
    )
    zarrfs.copy(tmp_path / "a", tmp_path / "b", zarr_format=other)
    found, expected = (
        xarray.open_zarr(tmp_path / name, consolidated=False).load() for name in "ba"
    )
    xarray.testing.assert_identical(found, expected)
    assert bool(np.isnan(found["s"])) == (zarr_format == 2)


@pytest.mark.filterwarnings("ignore:.*(consolidated|V3 specification|Zarr format 3)")
@pytest.mark.parametrize("old", [2, 3])
def test_elements_that_are_no_real_numbers_are_not_missing_in_zarr_2(tmp_path, old):
    """xarray masks what equals the fill value of Zarr 2, also booleans and texts."""
    values = {
        "b": [True, False], "c": [1 + 1j, 0j], "u": ["a", ""], "s": [b"a", b""],
        "o": np.array(["a", ""], object),
    }  # fmt: skip
    data = xarray.Dataset({name: ("x", np.array(value)) for name, value in values.items()})
    data.to_zarr(tmp_path / "a", zarr_format=old, consolidated=False)
    if old == 3:
        array = zarr.open_group(tmp_path / "a").create_array(
            "t", shape=(2,), chunks=(1,), dtype="bool", fill_value=True, dimension_names=["x"]
        )
        array[1] = False
    zarrfs.copy(tmp_path / "a", tmp_path / "b", zarr_format=2, verify=True)
    found, expected = (
        xarray.open_zarr(tmp_path / name, consolidated=False).load() for name in "ba"
    )
    for name in expected.variables:
        assert found[name].values.tolist() == expected[name].values.tolist(), name
    assert found["b"].dtype == bool


def test_fill_values_are_not_stored(tmp_path):
    values = np.zeros((64, 64), "u1")
    values[3, 3] = 1
    write(tmp_path / "a", values, chunks=(8, 8), config={"write_empty_chunks": True})
    zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[16, 16])
    assert sum(p.is_file() for p in (tmp_path / "b" / "c").rglob("*")) == 1


def test_chunks_are_passed_on_as_they_are(sources, tmp_path):
    result = zarrfs.copy(sources / "v2", tmp_path / "same", verify=True)
    assert result.arrays[0].decoded == 0
    for path in (sources / "v2").glob("[0-9]*"):
        assert (tmp_path / "same" / path.name).read_bytes() == path.read_bytes()
    # Into shards of the same chunks, and out of them.
    result = zarrfs.copy(
        sources / "v2", tmp_path / "shards", chunks=[10, 11], shards=[20, 33], verify=True
    )
    assert result.arrays[0].decoded == 0
    result = zarrfs.copy(tmp_path / "shards", tmp_path / "out", shards=[], verify=True)
    assert result.arrays[0].decoded == 0
    assert (tmp_path / "out/c/0/0").read_bytes() == (sources / "v2/0.0").read_bytes()
    assert np.array_equal(zarr.open_array(tmp_path / "out")[...], SOURCES["v2"][0])


@pytest.mark.parametrize("kernel", ["copies", "copies half", "cannot"])
def test_files_are_passed_on_within_the_kernel(tmp_path, monkeypatch, kernel):
    """Or in pieces through memory, where the kernel cannot or stops."""
    copied = []
    real = os.copy_file_range

    def copy_file_range(source, target, length, offset):
        if kernel == "cannot" or (kernel == "copies half" and copied):
            raise OSError(errno.EXDEV, "two file systems")
        count = real(source, target, min(length, 1 << 20), offset)
        copied.append(count)
        return count

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    values = RNG.integers(0, 1 << 16, (3, 5 << 20)).astype("u2")
    write(tmp_path / "a", values, chunks=(1, 5 << 20), compressors=None)
    zarrfs.copy(tmp_path / "a", tmp_path / "b", verify=True)
    assert np.array_equal(zarr.open_array(tmp_path / "b")[...], values)
    wanted = {"copies": values.nbytes, "copies half": 1 << 20, "cannot": 0}
    assert sum(copied) == wanted[kernel]


def test_a_file_that_changes_while_it_is_passed_on_is_not_mixed(sources, tmp_path, monkeypatch):
    real = os.copy_file_range
    source = shutil.copytree(sources / "v2", tmp_path / "a")
    other = (source / "0.0").read_bytes()

    def copy_file_range(fd, target, length, offset):
        count = real(fd, target, length, offset)
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/2.3"):
            (source / "2.3").write_bytes(other + b"longer")
        return count

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    with pytest.raises(ZarrfsError, match=r"2\.3: changed while it was rewritten"):
        zarrfs.copy(source, tmp_path / "b")
    assert not (tmp_path / "b/2.3").exists()
    assert not (tmp_path / "b/.zarray").exists()


@pytest.mark.parametrize("region", ["3:33,7", "10:33,11:50", "10:37,11:53", ":,0:1"])
def test_a_region(sources, tmp_path, region):
    values, _ = SOURCES["named"]
    index = tuple(
        slice(*(int(n) if n else None for n in part.split(":")))
        if ":" in part
        else slice(int(part), int(part) + 1)
        for part in region.split(",")
    )
    zarrfs.copy(sources / "named", tmp_path / "b", region=region, verify=True)
    assert np.array_equal(zarr.open_array(tmp_path / "b")[...], values[index])


@pytest.mark.parametrize("name", ["strings2", "strings3"])
def test_a_region_of_texts_in_other_chunks(sources, tmp_path, name):
    values = np.asarray(SOURCES[name][0], object)
    last = [n - 1 for n in values.shape]
    zarrfs.copy(sources / name, tmp_path / "b", region="1:,1:", chunks=last, verify=True)
    copy = zarr.open_array(tmp_path / "b")[...]
    assert copy.astype(object).tolist() == values[1:, 1:].tolist()


@pytest.mark.parametrize("dtype", ["<U3", ">U3", "S5"])
@pytest.mark.parametrize("codecs", ["none", "zstd"])
def test_a_text_without_axes(tmp_path, dtype, codecs):
    value = np.array("a", dtype)
    old, new = tmp_path / "old.zarr", tmp_path / "new.zarr"
    with zarrfs.create_array(old, (), value.dtype, codecs=codecs, zarr_format=2) as array:
        array[...] = value
    zarrfs.copy(old, new, codecs="gzip")
    assert zarr.open_array(new, mode="r")[()] == value[()]


def test_another_data_type_loses_nothing(sources, tmp_path):
    zarrfs.copy(sources / "named", tmp_path / "f4", dtype="float32", verify=True)
    copy = zarr.open_array(tmp_path / "f4")
    assert copy.dtype == "f4"
    assert np.isnan(copy.fill_value)
    assert np.array_equal(copy[...], SOURCES["named"][0])
    write(tmp_path / "a", np.array([[1, 3, 2], [1, 300, 2]], "u2"), chunks=(1, 2))
    for region in ("", "1:,:"):
        target = tmp_path / f"b{region[:1]}"
        with pytest.raises(ZarrfsError, match=r"at \[1, 1\]: 300 of uint16 has no equal in uint8"):
            zarrfs.copy(tmp_path / "a", target, dtype="u1", region=region)
    write(tmp_path / "nan", np.array([1.0]), chunks=(1,), fill_value=np.nan)
    with pytest.raises(ZarrfsError, match="the fill value: nan of float64 has no equal in int16"):
        zarrfs.copy(tmp_path / "nan", tmp_path / "b", dtype="i2")


def test_like_another_array(sources, tmp_path):
    zarrfs.copy(sources / "v2", tmp_path / "b", like=sources / "sharded")
    copy = zarr.open_array(tmp_path / "b")
    assert (copy.chunks, copy.shards, copy.metadata.zarr_format) == ((5, 6), (20, 30), 3)


def test_chunks_of_several_lengths(tmp_path):
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[3, 5, 2]]}}
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "int32",
        "chunk_grid": grid, "fill_value": 0, "codecs": ["bytes"],
        "chunk_key_encoding": {"name": "default"},
    }  # fmt: skip
    (tmp_path / "a").mkdir()
    (tmp_path / "a/zarr.json").write_text(json.dumps(document))
    with zarrfs.open_array(tmp_path / "a", writable=True) as array:
        array[...] = np.arange(10)
    assert zarrfs.copy(tmp_path / "a", tmp_path / "b").arrays[0].decoded == 0
    zarrfs.copy(tmp_path / "b", tmp_path / "c", zarr_format=2, chunks=[4], verify=True)
    assert zarr.open_array(tmp_path / "c")[...].tolist() == list(range(10))


def test_a_chunk_is_decoded_once_if_the_memory_allows(tmp_path):
    write(tmp_path / "a", numbers((64, 256, 256)), chunks=(64, 32, 32))
    plan = zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[1, 256, 256], dry_run=True)
    assert (plan.arrays[0].decoded, plan.arrays[0].objects) == (1, 64)
    # The boxes of 8 MiB are a quarter of the memory.
    enough = zarrfs.SourceOptions(memory=32 << 20)
    plan = zarrfs.copy(
        tmp_path / "a", tmp_path / "b", chunks=[1, 256, 256], dry_run=True, options=enough
    )
    assert plan.arrays[0].decoded == 1
    tight = zarrfs.copy(
        tmp_path / "a", tmp_path / "b", chunks=[1, 256, 256], dry_run=True, options=SMALL
    )
    assert tight.arrays[0].decoded > 1
    assert not (tmp_path / "b").exists()


def test_a_shard_larger_than_the_memory_for_a_box(tmp_path):
    values = numbers((256, 128, 128), "u4")
    write(tmp_path / "a", values, chunks=(32, 64, 64), compressors=None)
    zarrfs.copy(
        tmp_path / "a", tmp_path / "b", chunks=[16, 64, 64], shards=[128, 128, 128],
        codecs="zstd:1", verify=True, options=SMALL,
    )  # fmt: skip
    assert np.array_equal(zarr.open_array(tmp_path / "b")[...], values)
    with pytest.raises(ZarrfsError, match="raise --memory"):
        zarrfs.copy(tmp_path / "a", tmp_path / "c", chunks=[256, 128, 128], options=SMALL)


# --- hierarchies --------------------------------------------------------------


def ome(path: Path) -> zarr.Group:
    group = zarr.open_group(path, mode="w", zarr_format=2)
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    levels = [
        {"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": [n, n]}]}
        for n in (1, 2)
    ]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": levels}]
    group.attrs["mine"] = {"multiscales": 1}
    for n in (1, 2):
        group.create_array(str(n), data=numbers((64 // n, 64 // n)), chunks=(16, 16))
    group.create_group("labels").attrs["labels"] = ["a"]
    zarr.consolidate_metadata(path, zarr_format=2)
    return group


def test_an_image_becomes_ome_zarr_0_5_and_0_4_again(tmp_path):
    group = ome(tmp_path / "a")
    zarrfs.copy(tmp_path / "a", tmp_path / "b", zarr_format=3, chunks=[8, 8], shards=[32, 32])
    new = zarr.open_group(tmp_path / "b", mode="r")
    (image,) = new.attrs["ome"]["multiscales"]
    assert new.attrs["ome"]["version"] == "0.5"
    assert "version" not in image
    assert new.attrs["mine"] == {"multiscales": 1}
    assert new["labels"].attrs["ome"] == {"version": "0.5", "labels": ["a"]}
    assert new["1"].metadata.dimension_names == ("y", "x")
    assert new["2"].shards == (32, 32)
    assert sorted(new.metadata.consolidated_metadata.metadata) == ["1", "2", "labels"]
    zarrfs.copy(tmp_path / "b", tmp_path / "c", zarr_format=2)
    old = zarr.open_consolidated(tmp_path / "c", zarr_format=2)
    assert dict(old.attrs) == dict(group.attrs)
    assert np.array_equal(old["1"][...], group["1"][...])
    assert old["1"].fill_value == 0
    assert old["2"].metadata.dimension_separator == "/"


@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2), (3, 3)])
def test_xarray_sees_the_same_dataset(tmp_path, old, new):
    missing = np.where(RNG.random((20, 30)) > 0.5, np.nan, 1.5).astype("f4")
    data = xarray.Dataset(
        {"t": (("y", "x"), missing, {"units": "K"}), "n": (("y",), np.arange(20, dtype="i4"))},
        {"x": np.arange(30.0)},
        {"Conventions": "CF-1.8"},
    )
    data["t"].encoding["_FillValue"] = -9.0
    data.to_zarr(tmp_path / "a", zarr_format=old, consolidated=True)
    zarrfs.copy(tmp_path / "a", tmp_path / "b", zarr_format=new, verify=True)
    with xarray.open_zarr(tmp_path / "a") as one, xarray.open_zarr(tmp_path / "b") as other:
        xarray.testing.assert_identical(one.load(), other.load())
        assert other["t"].encoding["_FillValue"] == -9


def test_netcdf_a_zip_and_a_store_in_memory(tmp_path):
    values = numbers((30, 20), "f4")
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.create_dataset("v", data=values, chunks=(10, 20), compression="gzip")
        file["v"].attrs["units"] = "K"
    zarrfs.copy(tmp_path / "a.nc", tmp_path / "b", verify=True)
    group = zarr.open_group(tmp_path / "b", mode="r")
    assert np.array_equal(group["v"][...], values)
    assert group["v"].attrs["units"] == "K"
    shutil.make_archive(str(tmp_path / "c"), "zip", tmp_path / "b")
    zarrfs.copy(tmp_path / "c.zip", "memory://test_copy", path="v")
    zarrfs.copy("memory://test_copy", tmp_path / "d", attributes={"more": 1})
    array = zarr.open_array(tmp_path / "d", mode="r")
    assert np.array_equal(array[...], values)
    assert array.attrs["more"] == 1


def test_nodes_that_cannot_be_copied_are_named(tmp_path):
    group = zarr.create_group(tmp_path / "a")
    write(tmp_path / "a/good", numbers((4,)), chunks=(2,))
    group.create_group("bad")
    (tmp_path / "a/bad/zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    with pytest.raises(CopyFailed, match="all else was copied, but not /bad: "):
        zarrfs.copy(tmp_path / "a", tmp_path / "b")
    assert sorted(zarr.open_group(tmp_path / "b", mode="r")) == ["good"]


# --- what is there, and what went wrong -----------------------------------------


def test_nothing_is_replaced_unless_asked(sources, tmp_path):
    zarrfs.copy(sources / "sharded", tmp_path / "b")
    with pytest.raises(AlreadyExists, match="--overwrite"):
        zarrfs.copy(sources / "v2", tmp_path / "b")
    zarrfs.copy(sources / "v2", tmp_path / "b", overwrite=True)
    assert np.array_equal(zarr.open_array(tmp_path / "b")[...], SOURCES["v2"][0])
    assert not (tmp_path / "b/zarr.json").exists()
    assert not list((tmp_path / "b").glob("c/*/*"))
    (tmp_path / "c").mkdir()
    (tmp_path / "c/mine.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(AlreadyExists, match="is not empty"):
            zarrfs.copy(sources / "v2", tmp_path / "c", overwrite=overwrite)


def test_what_cannot_be(sources, tmp_path):
    for form, reason in (
        ({"path": "x"}, "no Zarr array or group at x"),
        ({"region": "0:99999,0"}, "99999"),
        ({"chunks": [5, 5], "shards": [7, 7]}, "do not consist of whole chunks"),
        ({"dtype": "nonsense"}, "nonsense"),
        ({"codecs": "nonsense"}, "nonsense"),
        ({"chunks": [5]}, "--chunks is for arrays of 1 axis, and there is none"),
        ({"shards": [5, 5, 5]}, "--shards is for arrays of 3 axes, and there is none"),
        ({"like": sources / "scalar"}, "--like is for arrays of 0 axes, and there is none"),
    ):
        with pytest.raises(ZarrfsError, match=reason):
            zarrfs.copy(sources / "v2", tmp_path / "b", **form)
        assert not (tmp_path / "b").exists(), form
    with pytest.raises(UsageError, match="archive"):
        zarrfs.copy(sources / "v2", tmp_path / "b.zip")
    for target in (sources / "v2", sources / "v2/below", sources):
        with pytest.raises(UsageError, match="lies in the other"):
            zarrfs.copy(sources / "v2", target)


def test_a_damaged_chunk_is_named_and_a_second_run_completes_the_copy(tmp_path):
    values = numbers((64, 64))
    write(tmp_path / "a", values, chunks=(8, 8))
    chunk = tmp_path / "a/c/3/3"
    good = chunk.read_bytes()
    chunk.write_bytes(b"nonsense")
    with pytest.raises(CopyFailed, match=r"1 part could not be copied: c/3/3: .*goes on"):
        zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[16, 16])
    assert (tmp_path / "b" / RECORD).exists()
    assert not (tmp_path / "b/zarr.json").exists()
    with pytest.raises(AlreadyExists, match="unfinished copy with another form"):
        zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[32, 32])
    chunk.write_bytes(good)
    assert zarrfs.copy(tmp_path / "a", tmp_path / "b", chunks=[16, 16]).resumed
    assert np.array_equal(zarr.open_array(tmp_path / "b")[...], values)
    assert not (tmp_path / "b" / RECORD).exists()
