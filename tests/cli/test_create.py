"""``zarrfs create`` as people run it, and what every other implementation makes of the result."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorstore as ts
import tifffile
import zarr

import zarrfs
from tests.cli.in_process import in_process, one_line
from tests.conftest import run_zarrfs

SHAPE = ("--shape", "50,70", "--dtype", "uint16")
create = partial(one_line, "create")


def document(path: Path, name: str = "zarr.json"):
    return json.loads((path / name).read_text())


def write_and_read(path: Path, zarr_format: int) -> None:
    """Each implementation writes a part, and all read the whole; zarrfs is mounted elsewhere."""
    driver = "zarr3" if zarr_format == 3 else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
    theirs = ts.open(spec).result()
    dtype = theirs.dtype.numpy_dtype
    values = np.arange(50 * 70).reshape(50, 70).astype(dtype)
    theirs[:25].write(values[:25]).result()
    zarr.open_array(path, mode="r+")[25:] = values[25:]
    if zarr_format == 3:
        with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
            assert (zarr.open_array(path, mode="r")[:] == values).all()
    assert (zarr.open_array(path, mode="r")[:] == values).all()
    assert (ts.open(spec).result().read().result() == values).all()


@pytest.mark.parametrize(
    ("options", "zarr_format"),
    [
        ((), 3),
        (("--chunks", "7,10", "--codecs", "zstd:3,crc32c"), 3),
        (("--chunks", "5,7", "--shards", "25,35", "--codecs", "blosc:lz4,5,shuffle"), 3),
        (("--chunks", "5,7", "--shards", "25,35", "--order", "F", "--fill", "7"), 3),
        (("--chunk-elements", "100", "--shard-elements", "1000", "--codecs", "gzip"), 3),
        (("--key-encoding", "v2/", "--codecs", "bytes:big,zstd"), 3),
        (("--zarr-format", "2"), 2),
        (("--zarr-format", "2", "--codecs", "zstd:3", "--order", "F", "--key-encoding", "/"), 2),
        (("--zarr-format", "2", "--codecs", "none", "--chunks", "~30,0"), 2),
        (("--dtype", ">f8", "--zarr-format", "2", "--fill", "nan", "--codecs", "zlib:1"), 2),
        (("--dtype", ">f8", "--dimension-names", "y,x", "--dimension-units", "4nm,4nm"), 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
def test_others_write_and_read_it(tmp_path, options, zarr_format):
    create(tmp_path / "a", *SHAPE, *options)
    write_and_read(tmp_path / "a", zarr_format)


def test_what_is_said(tmp_path):
    path = tmp_path / "deep" / "a.zarr"
    done = run_zarrfs("create", path, *SHAPE, "--chunks", "5,7", "--shards", "25,35")
    told = f"created {path}: 50x70 uint16, chunks 5x7, shards 25x35, Zarr 3\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


def test_it_can_be_mounted(tmp_path, mounted):
    create(tmp_path / "a", *SHAPE, "--fill", "258", "--codecs", "zstd")
    mount = mounted(tmp_path / "a", "rw")
    assert (mount / "array.bin").read_bytes() == b"\2\1" * 3500
    with open(mount / "array.bin", "r+b") as file:
        file.write(b"\0\1" * 70)
    assert (zarr.open_array(tmp_path / "a")[0] == 256).all()


def test_a_dry_run_prints_the_document_and_creates_nothing(tmp_path):
    done = in_process("create", tmp_path / "a", *SHAPE, "--dry-run")
    assert (done.status, done.stderr) == (0, "")
    assert json.loads(done.stdout)["shape"] == [50, 70]
    assert not (tmp_path / "a").exists()


def test_nothing_is_replaced_unasked(tmp_path):
    path = tmp_path / "a"
    create(path, *SHAPE)
    before = (path / "zarr.json").read_bytes()
    assert "already exists (--overwrite replaces" in create(path, *SHAPE, fails=1)
    assert (path / "zarr.json").read_bytes() == before


def test_exist_ok_opens_what_matches(tmp_path):
    path = tmp_path / "a"
    assert create(path, *SHAPE, "--exist-ok", "--codecs", "zstd").startswith("created")
    before = (path / "zarr.json").read_bytes()
    assert create(path, *SHAPE, "--exist-ok").startswith("existed")
    assert create(path, *SHAPE, "--exist-ok", "--codecs", "zstd:3").startswith("existed")
    for different, what in (
        (("--codecs", "gzip"), "codecs"),
        (("--chunks", "5,5"), "chunk shape"),
        (("--fill", "1"), "fill value"),
        (("--dtype", "int16"), "data type"),
        (("--shape", "50,71"), "shape"),
        (("--key-encoding", "v2"), "chunk key encoding"),
        (("--dimension-names", "x,y"), "dimension names"),
        (("--attributes", '{"a": 1}'), "attribute 'a'"),
        (("--zarr-format", "2"), "Zarr 3"),
    ):
        assert what in create(path, *SHAPE, "--exist-ok", *different, fails=1)
    assert (path / "zarr.json").read_bytes() == before


@pytest.mark.parametrize("zarr_format", ["2", "3"])
def test_overwrite_replaces_an_array_and_keeps_files_of_others(tmp_path, zarr_format):
    path = tmp_path / "a"
    create(
        path, *SHAPE, "--chunks", "10,10", "--zarr-format", zarr_format, "--attributes", '{"a":1}'
    )
    zarr.open_array(path)[:] = 1
    (path / "README").write_text("mine")
    told = create(path, "--shape", "50,70", "--dtype", "uint16", "--overwrite", "--chunks", "10,10")
    assert told.startswith("replaced")
    assert (path / "README").read_text() == "mine"
    array = zarr.open_array(path)
    assert (array[:] == 0).all()
    assert dict(array.attrs) == {}
    assert array.metadata.zarr_format == 3


def test_overwrite_goes_on_where_it_was_stopped(tmp_path):
    path = tmp_path / "a"
    create(path, *SHAPE, "--chunks", "10,10")
    zarr.open_array(path)[:] = 1
    (path / "zarr.json").unlink()
    assert "chunks of an array without metadata" in create(path, *SHAPE, fails=1)
    create(path, *SHAPE, "--chunks", "10,10", "--overwrite")
    assert (zarr.open_array(path)[:] == 0).all()


def test_neither_a_group_nor_a_directory_of_others_is_replaced(tmp_path):
    zarr.open_group(tmp_path / "group", mode="w").create_array("a", shape=(3,), dtype="i4")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…")
    (tmp_path / "file").write_text("…")
    for flags in ((), ("--overwrite",)):
        assert "a group exists" in create(tmp_path / "group", *SHAPE, *flags, fails=1)
        assert "is not empty" in create(tmp_path / "mine", *SHAPE, *flags, fails=1)
        assert "Not a directory" in create(tmp_path / "file", *SHAPE, *flags, fails=1)
    assert (tmp_path / "group" / "a" / "zarr.json").exists()


# --- templates ------------------------------------------------------------------


def test_from_a_document(tmp_path):
    create(tmp_path / "a", *SHAPE, "--chunks", "5,7", "--shards", "25,35", "--codecs", "zstd:7")
    told = create(tmp_path / "b", "--from", tmp_path / "a" / "zarr.json")
    assert document(tmp_path / "a") == document(tmp_path / "b")
    told = create(tmp_path / "c", "--from", tmp_path / "a" / "zarr.json", "--shape", "9,9")
    assert "9x9 uint16, chunks 5x7, shards 25x35" in told
    create(tmp_path / "v2", "--from", tmp_path / "a" / "zarr.json", fails=0)


def test_from_a_document_of_version_2_with_its_attributes(tmp_path):
    create(tmp_path / "a", *SHAPE, "--zarr-format", "2", "--attributes", '{"a": 1}')
    create(tmp_path / "b", "--from", tmp_path / "a" / ".zarray")
    assert document(tmp_path / "b", ".zarray") == document(tmp_path / "a", ".zarray")
    assert document(tmp_path / "b", ".zattrs") == {"a": 1}


TYPES = {
    "npy": ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?"],
    "nrrd": ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"],
    "mhd": ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"],
    "hdr": ["u1", "i2", "i4", "f4", "f8", "c8", "c16", "u2", "u4", "i8", "u8"],
    "tiff": ["u1", "i2", "u2", "f4"],
}
NRRD = {
    "i1": "signed char", "u1": "uchar", "i2": "short", "u2": "unsigned short int", "i4": "int",
    "u4": "uint32_t", "i8": "long long", "u8": "uint64", "f4": "float", "f8": "double",
}  # fmt: skip
MET = {
    "i1": "CHAR", "u1": "UCHAR", "i2": "SHORT", "u2": "USHORT", "i4": "INT", "u4": "UINT",
    "i8": "LONG_LONG", "u8": "ULONG_LONG", "f4": "FLOAT", "f8": "DOUBLE",
}  # fmt: skip
ENVI = dict(zip(TYPES["hdr"], (1, 2, 3, 4, 5, 6, 9, 12, 13, 14, 15), strict=True))


def foreign_file(directory: Path, kind: str, dtype: str) -> Path:
    path = directory / f"a.{kind}"
    match kind:
        case "npy":
            np.save(path, np.zeros((2, 3, 4), dtype))
        case "nrrd":
            path.write_text(
                f"NRRD0004\n# a comment\ntype: {NRRD[dtype]}\ndimension: 3\nsizes: 4 3 2\n"
                "endian: little\nencoding: raw\n\n\0\0\0"
            )
        case "mhd":
            path.write_text(
                "ObjectType = Image\nNDims = 3\nDimSize = 4 3 2\n"
                f"ElementType = MET_{MET[dtype]}\nElementDataFile = a.raw\n"
            )
        case "hdr":
            path.write_text(
                "ENVI\ndescription = {\n made by\n samples = 9}\nsamples = 4\nlines = 3\n"
                f"bands = 2\nheader offset = 0\ndata type = {ENVI[dtype]}\n"
                "interleave = bsq\nbyte order = 0\n"
            )
        case "tiff":
            tifffile.imwrite(path, np.zeros((2, 3, 4), dtype), photometric="minisblack")
    return path


@pytest.mark.parametrize("kind", TYPES)
def test_like_another_file(tmp_path, kind):
    from zarrfs.library.like import like

    for dtype in TYPES[kind]:
        found = like(str(foreign_file(tmp_path, kind, dtype)), {})
        assert (found.shape, found.data_type) == ((2, 3, 4), np.dtype(dtype).name), dtype
    told = create(tmp_path / "a", "--like", tmp_path / f"a.{kind}", "--chunks", "1,-1,-1")
    assert f"2x3x4 {np.dtype(TYPES[kind][-1]).name}, chunks 1x3x4" in told


def test_like_the_data_file_beside_an_envi_header(tmp_path):
    foreign_file(tmp_path, "hdr", "u2")
    (tmp_path / "a.img").write_bytes(bytes(48))
    assert "2x3x4 uint16" in create(tmp_path / "z", "--like", tmp_path / "a.img")


LIKE = {
    3: (
        *("--chunks", "5,7", "--shards", "25,35", "--codecs", "gzip:2,crc32c", "--fill", "9"),
        *("--dimension-names", "y,x", "--dimension-units", "4nm,4nm", "--key-encoding", "v2"),
        *("--attributes", '{"made": "by me"}'),
    ),
    2: (
        *("--zarr-format", "2", "--chunks", "5,7", "--codecs", "zstd:2", "--fill", "9"),
        *("--order", "F", "--key-encoding", "/", "--attributes", '{"made": "by me"}'),
    ),
}


@pytest.mark.parametrize("zarr_format", LIKE)
def test_like_a_zarr_array_takes_all_of_it_but_the_data(tmp_path, zarr_format):
    create(tmp_path / "a", *SHAPE, *LIKE[zarr_format])
    create(tmp_path / "b", "--like", tmp_path / "a")
    names = ["zarr.json"] if zarr_format == 3 else [".zarray", ".zattrs"]
    for name in names:
        assert document(tmp_path / "b", name) == document(tmp_path / "a", name)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(names)


def test_like_a_zarr_array_but_for_what_is_said(tmp_path):
    create(tmp_path / "a", *SHAPE, *LIKE[3])
    create(
        *(tmp_path / "b", "--like", tmp_path / "a", "--shape", "100,100", "--dtype", "float32"),
        *("--codecs", "zstd", "--attributes", '{"more": 1}'),
    )
    made = document(tmp_path / "b")
    assert (made["shape"], made["data_type"], made["fill_value"]) == ([100, 100], "float32", 0.0)
    assert made["chunk_grid"]["configuration"] == {"chunk_shape": [25, 35]}
    assert made["codecs"][0]["configuration"]["codecs"][1]["name"] == "zstd"
    assert {"made": "by me", "more": 1}.items() <= made["attributes"].items()
    # Another number of axes has other chunks; another version of Zarr has other codecs.
    told = create(tmp_path / "c", "--like", tmp_path / "a", "--shape", "4,5,6")
    assert "4x5x6 uint16, chunks 4x5x6, Zarr 3" in told
    create(tmp_path / "d", "--like", tmp_path / "a", "--zarr-format", "2")
    made = document(tmp_path / "d", ".zarray")
    assert (made["chunks"], made["compressor"]["id"], made["fill_value"]) == ([5, 7], "blosc", 9)


# --- what is left open ----------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dtype", "chunks"),
    [
        ("1000,2000,3000", "uint16", [64, 64, 128]),
        ("1000,2000,3000", "uint8", [64, 128, 128]),
        ("365,721,1440", "float32", [64, 64, 64]),
        ("10000,10000", "float32", [512, 512]),
        ("1000000", "float64", [131072]),
        ("1000000000,3", "uint16", [131072, 3]),
        ("100,5,2000,2000", "uint16", [32, 5, 32, 64]),
        ("50,70", "uint16", [50, 70]),
        ("480,640", "float32", [480, 640]),
        ("0,5", "float64", [1, 5]),
        ("", "float64", []),
        ("1000000", "string", [32768]),
    ],
)
def test_chunks_have_about_a_mebibyte_and_are_compressed(tmp_path, shape, dtype, chunks):
    create(tmp_path / "a", "--shape", shape, "--dtype", dtype)
    made = document(tmp_path / "a")
    assert made["chunk_grid"]["configuration"]["chunk_shape"] == chunks
    zstd = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    assert made["codecs"][1:] == [zstd]


@pytest.mark.parametrize(
    ("options", "chunks", "shards"),
    [
        (("--chunks", "10,0,0"), "10x128x256", None),
        (("--chunks", "10,-1,0"), "10x2000x16", None),
        (("--shards", "512,512,512"), "64x64x128", "512x512x512"),
        (("--shards", "100,200,300"), "50x50x150", "100x200x300"),
        (("--chunks", "tensorstore"), "101x101x101", None),
        (("--chunk-elements", "1000"), "10x10x10", None),
        (("--aspect-ratio", "1,1,8"), "50x50x407", None),
        (
            (
                *("--aspect-ratio", "2,1,1", "--chunk-elements", "2000000"),
                *("--shard-elements", "1000000000", "--shard-aspect-ratio", "1,1,1"),
            ),
            "200x100x100",
            "1000x1000x1000",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_lengths_that_are_left_open(tmp_path, options, chunks, shards):
    told = create(tmp_path / "a", "--shape", "1000,2000,3000", "--dtype", "uint16", *options)
    assert f"chunks {chunks}," in told
    assert (f"shards {shards}," in told) if shards else ("shards" not in told)


def test_what_is_compressed(tmp_path):
    create(tmp_path / "a", *SHAPE, "--codecs", "none")
    assert [codec["name"] for codec in document(tmp_path / "a")["codecs"]] == ["bytes"]
    create(tmp_path / "b", *SHAPE, "--chunks", "tensorstore")
    assert [codec["name"] for codec in document(tmp_path / "b")["codecs"]] == ["bytes"]
    create(tmp_path / "c", *SHAPE, "--zarr-format", "2")
    assert document(tmp_path / "c", ".zarray")["compressor"]["id"] == "blosc"
    create(tmp_path / "d", *SHAPE, "--chunks", "5,7", "--shards", "25,35")
    (sharding,) = document(tmp_path / "d")["codecs"]
    assert sharding["configuration"]["codecs"][1]["name"] == "zstd"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'shape': (", "NPY header"),
        ("a.npy", b"\x93NUMPY\x01\x00\x08\x00__import", "NPY header"),
        ("a.npy", b"\x93NUMPY\x01\x00\x1b\x00{'descr': '<f4', 'shape': (", "NPY header"),
        ("a.nrrd", b"NRRD0004\ntype: block\ndimension: 1\nsizes: 3\n\n", "type 'block'"),
        ("a.nrrd", b"NRRD0004\ntype: char\ndimension: 1\nsizes: 3\n\n", "type 'char'"),
        ("a.nrrd", b"NRRD0004\ntype: signed double\ndimension: 1\nsizes: 3\n\n", "type 'signed"),
        ("a.nrrd", b"NRRD0004\ntype: float\ndimension: 2\nsizes: 3\n\n", "1 sizes for dimension"),
        ("a.nrrd", b"NRRD0004\ntype: float\ndimension: 1\nsizes: -3\n\n", "sizes is '-3'"),
        ("a.mhd", b"NDims = 3\nDimSize = 4 3 2\n", "no ElementDataFile"),
        ("a.hdr", b"ENVI\nlines = 1\nsamples = x\n", "samples is 'x'"),
        ("a.hdr", b"ENVI\nsamples=1\nlines=1\nbands=1\ndata type=7", "data type '7'"),
        ("a.tif", b"II*\0\xff\xff\xff\x7f", "TIFF"),
        ("a.tif", b"MM\0*\0\0\0\x08\0\x01", "TIFF"),
        ("a.txt", b"hello", "is not an NPY, NRRD, MetaImage, ENVI or TIFF file"),
    ],
)
def test_files_that_tell_nothing(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    told = create(tmp_path / "a", "--like", tmp_path / name, fails=2)
    assert told.startswith(f"zarrfs: {tmp_path / name}: ")
    assert reason in told


# --- wrong usage ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (("--shape", "3"), 2, "--dtype is needed"),
        (("--dtype", "uint8"), 2, "--shape is needed"),
        (("--shape", "3,a", "--dtype", "uint8"), 2, "--shape '3,a' is not a list of whole numbers"),
        (("--shape", "3", "--dtype", "flaot32"), 2, "did you mean float32"),
        ((*SHAPE, "--fill", "red"), 2, "'red' is not a value of uint16"),
        ((*SHAPE, "--chunks", "3"), 2, "1 chunk lengths for 2 axes"),
        ((*SHAPE, "--chunks", "3,3", "--shards", "7,9"), 2, "shards of 7"),
        ((*SHAPE, "--codecs", "zstd:99"), 1, "level"),
        ((*SHAPE, "--codecs", "[1"), 2, "not JSON"),
        ((*SHAPE, "--order", "0,0"), 2, "not a permutation"),
        ((*SHAPE, "--attributes", "[]"), 2, "not a JSON object"),
        ((*SHAPE, "--attributes", "@no/such/file"), 2, "no/such/file: No such file"),
        ((*SHAPE, "--key-encoding", "v3"), 2, "unknown chunk key encoding 'v3'"),
        ((*SHAPE, "--overwrite", "--exist-ok"), 2, "exclude each other"),
        ((*SHAPE, "--zarr-format", "1"), 2, "--zarr-format"),
        (("--from", "no/such/file"), 2, "no/such/file: No such file"),
        (("--like", "no/such/file"), 1, "no/such/file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_errors_are_one_line_and_create_nothing(tmp_path, arguments, status, reason):
    told = create(tmp_path / "a", *arguments, fails=status)
    assert told.startswith("zarrfs: ")
    assert reason in told
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_struct_like_a_file(tmp_path, zarr_format):
    """zarr-python reads the same, whatever byte order the file has."""
    dtype = [("a", ">i4"), ("b", ">f8"), ("c", "S3")]
    data = np.array([(1, 2.5, b"x"), (3, -1, b"yz")], dtype)
    if zarr_format == 3:
        # zarr-python reads no such structs of Zarr 2.
        data = np.array([(data[0], 7), (data[1], 258)], [("s", dtype), ("d", ">u2")])
    np.save(tmp_path / "a.npy", data)
    path = tmp_path / "a.zarr"
    create(path, "--like", tmp_path / "a.npy", "--zarr-format", zarr_format)
    assert (zarrfs.open_array(path)[:] == np.zeros_like(data)).all()
    assert run_zarrfs("import", tmp_path / "a.npy", path).returncode == 0
    assert (zarrfs.open_array(path)[:] == data).all()
    assert (zarr.open_array(path, mode="r")[:] == data).all()


def test_the_fill_value_of_a_struct(tmp_path):
    """One that is given is read by zarr-python and TensorStore, too."""
    data_type = {"name": "structured", "configuration": {"fields": [["a", "int32"], ["b", "int8"]]}}
    options = ["--shape", "3", "--dtype", json.dumps(data_type), "--fill", '{"a": 258, "b": 3}']
    create(tmp_path / "a", *options)
    assert zarrfs.open_array(tmp_path / "a")[:].tolist() == [(258, 3)] * 3
    assert zarr.open_array(tmp_path / "a", mode="r")[:].tolist() == [(258, 3)] * 3
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/a/"}}
    assert ts.open(spec | {"field": "a"}).result().read().result().tolist() == [258] * 3
