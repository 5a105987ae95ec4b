"""Hostile data, each of which once took gigabytes, minutes, or the process.

Each line of the input has a name of `ATTACKS`, bytes and seconds. Reads it in a fork that may take
so many bytes more than it has and so much processor time, and prints what became of it, in a line;
then how the fork ended, in another.
"""

import bz2
import gzip
import json
import lzma
import os
import resource
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fs.documents import LITTLE, array_document
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.errors import ZarrfsError
from zarrfs.format.codec import ChunkSpec, SizeBound
from zarrfs.format.codecs.objects import ObjectCodec
from zarrfs.format.extension_types.variable import JSON
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.registry import find_numcodecs_codec
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, open_store

Attack = Callable[[], object]
ATTACKS: dict[str, Callable[[Path], Attack]] = {}


def attack(make: Callable[[Path], Attack]) -> Callable[[Path], Attack]:
    ATTACKS[make.__name__.replace("_", "-")] = make
    return make


# Streams


def zarray(**members: Any) -> bytes:
    document = {
        "zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "<f8", "compressor": None,
        "fill_value": 0, "filters": None, "order": "C", **members,
    }  # fmt: skip
    return json.dumps(document).encode()


def decoding(document: bytes, data: bytes) -> Attack:
    """Decodes ``data`` as a chunk of a v2 array."""
    layout = parse_array_v2(document, None).layout
    codec = layout.chunk_codec(layout.read.largest_chunk)
    return lambda: codec.decode(data)


def zfp_stream(**mode: Any) -> bytes:
    import zfpy

    return bytes(zfpy.compress_numpy(np.arange(8, dtype="<f8"), **mode))


def zfpy_array(**members: Any) -> bytes:
    return zarray(compressor={"id": "zfpy", "mode": 4, "tolerance": 0.01, **members})


@attack
def zfp_expert_mode(_: Path) -> Attack:
    # The long form of a mode: minbits 32768 for each block, far beyond the data.
    header = int.from_bytes(zfp_stream(tolerance=0.01)[:24], "little")
    before = header & ((1 << 84) - 1)
    long_mode = 0xFFF | (32768 - 1) << 12 | (32768 - 1) << 27 | 63 << 42 | (16495 - 1074) << 49
    data = (before | long_mode << 84).to_bytes(24, "little") + bytes(8)
    return decoding(zfpy_array(), data)


def zfp_metadata(mode: str, **parameters: Any) -> Attack:
    codec = {"name": "zfp", "configuration": {"mode": mode, **parameters}}
    document = array_document((64, 64), (64, 64), data_type="float64", fill_value=0, codecs=[codec])
    return chunk((64, 64), document, b"\xff" * 64)


def chunk(shape: tuple[int, ...], document: bytes, data: bytes) -> Attack:
    """Parses ``document``, of v3, and decodes ``data``."""

    def read() -> object:
        layout = parse_node(load_json(document, "zarr.json")).layout
        return layout.chunk_codec(shape).decode(data)

    return read


def objects(codec_id: str, data: bytes, **members: Any) -> Attack:
    codec = ObjectCodec(json.dumps({"id": codec_id, **members}, sort_keys=True))
    bound = codec.bind(ChunkSpec((4,), JSON, b"0"))
    return lambda: bound.decode(data)


@attack
def json_with_a_shape_of_many_digits(_: Path) -> Attack:
    lengths = ",".join(["9" * 4000] * 3000)
    return objects("json2", f'["|O", [{lengths}]]'.encode())


@attack
def json_in_punycode(_: Path) -> Attack:
    codec = {"id": "json2", "encoding": "punycode"}
    document = zarray(dtype="|O", fill_value=None, filters=[codec])

    def read() -> object:
        layout = parse_array_v2(document, None).layout
        return layout.chunk_codec((8,)).decode(b"a" * 2000 + b"-" + b"9a" * 1_000_000)

    return read


@attack
def msgpack_with_a_list_in_its_shape(_: Path) -> Attack:
    import msgpack

    return objects("msgpack2", msgpack.packb(["|O", [[0], 1000000000]]))


@attack
def msgpack_of_empty_lists(_: Path) -> Attack:
    count = 40_000_000
    return objects("msgpack2", b"\xdd" + struct.pack(">I", count) + b"\x90" * count)


def members_of(codec_id: str, member: bytes, count: int) -> Attack:
    found = find_numcodecs_codec(codec_id)
    assert found is not None
    bound = found[1]().bind(SizeBound(1 << 25, exact=True))
    data = member * count
    return lambda: bound.decode(data, None)


@attack
def snappy_in_blosc_of_small_blocks(_: Path) -> Attack:
    from zarrfs.format.codecs.blosc import BloscCodec

    size, block = 64 << 20, 5
    blocks = -(-size // block)
    flags = 2 << 5 | 0x10
    header = struct.pack("<4B3I", 2, 1, flags, 1, size, block, 16 + 4 * blocks + 9)
    offsets = np.full(blocks, 16 + 4 * blocks, "<u4").tobytes()
    data = header + offsets + struct.pack("<I", block) + bytes(block)
    bound = BloscCodec("snappy", 5, "noshuffle").bind(SizeBound(size, exact=True))
    return lambda: bound.decode(data, None)


# Archives


def zipped(place: Path, method: int, dictionary: int | None = None) -> Attack:
    path = place / "array.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("zarr.json", array_document((8,), (8,)), zipfile.ZIP_DEFLATED)
        with archive.open("c/0", "w") as member:
            for _ in range(40):
                member.write(bytes(1 << 20))
    # What it claims to hold is a chunk of the right size.
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        start = raw.find(mark, raw.find(mark) + 4)
        raw[start + at : start + at + 4] = struct.pack("<I", 16)
    if dictionary is not None:
        start = raw.find(b"PK\3\4", 4)
        name, extra = struct.unpack_from("<HH", raw, start + 26)
        # Behind the local header: version, size of the properties, and a byte of them.
        struct.pack_into("<I", raw, start + 30 + name + extra + 5, dictionary)
    path.write_bytes(raw)
    store = open_store(str(path), StoreConfig())
    return lambda: store.get("c/0", limit=16)


# Documents


def v2(document: bytes) -> Attack:
    return lambda: parse_array_v2(document, None).fingerprint


def v3(document: bytes) -> Attack:
    return lambda: parse_node(load_json(document, "zarr.json")).fingerprint  # type: ignore[union-attr]


@attack
def text_of_giant_size_in_v3(_: Path) -> Attack:
    data_type = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2_000_000_000}}
    return v3(array_document((1,), (1,), data_type=data_type, fill_value="", codecs=[LITTLE]))


@attack
def fields_filled_again_and_again(_: Path) -> Attack:
    dtype = [["a", "<i8", [1000, 2000]]]
    return v2(zarray(dtype=dtype, fill_value={"a": [0] * 60_000}))


@attack
def attributes_of_empty_lists(place: Path) -> Attack:
    text = b'{"a":[' + b"[]," * 8_000_000 + b"0]}"
    document = array_document((8,), (8,))[:-1] + b',"attributes":' + text + b"}"
    path = place / "group.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zarr.json", '{"zarr_format": 3, "node_type": "group"}')
        for name in "abc":
            archive.writestr(f"{name}/zarr.json", document)
    return nodes(Hierarchy(open_store(str(path), StoreConfig())), [*"abc"], 3, 3)


def nodes(hierarchy: Hierarchy, names: list[str], fewest: int, most: int) -> Attack:
    """Reads them; so many of them have a problem."""

    def read() -> object:
        found = [hierarchy.node(name) for name in names]
        problems = [node.problem for node in found if node is not None and node.problem]
        assert fewest <= len(problems) <= most
        return Refused(problems[0])

    return read


@attack
def attributes_of_many_arrays(place: Path) -> Attack:
    """Each is allowed, and all of them do not fit."""
    store = place / "group"
    for number in range(12):
        (store / f"a{number}").mkdir(parents=True)
        noise = np.random.default_rng(number).bytes(1 << 20).hex()
        document = json.loads(array_document((8,), (8,))) | {"attributes": {"a": noise}}
        (store / f"a{number}/zarr.json").write_text(json.dumps(document))
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    hierarchy = Hierarchy(LocalStore(store), memory=32 << 20)
    return nodes(hierarchy, [f"a{number}" for number in range(12)], 1, 11)


@attack
def attributes_nested_deeply(_: Path) -> Attack:
    text = b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"
    return v3(array_document((8,), (8,))[:-1] + b',"attributes":' + text + b"}")


@attack
def rectilinear_grid_of_a_million_chunks(_: Path) -> Attack:
    grid = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[1, 2] * 800_000]},
    }
    return v3(array_document((2_400_000,), (1,), chunk_grid=grid))


def mapping(count: int, shape: tuple[int, ...]) -> bytes:
    """The document of an array whose codec has so many pairs."""
    pairs = {"decode": [[i, i % 1000] for i in range(count)]}
    configuration = {"data_type": "float64", "scalar_map": pairs}
    codecs = [{"name": "cast_value", "configuration": configuration}, LITTLE]
    return array_document(shape, shape, codecs=codecs)


@attack
def scalar_map_of_many_pairs(_: Path) -> Attack:
    return v3(mapping(110_000, (8,)))


@attack
def scalar_map_that_is_long_to_decode(_: Path) -> Attack:
    return chunk((1 << 20,), mapping(10_000, (1 << 20,)), bytes(8 << 20))


@attack
def twenty_thousand_codecs(_: Path) -> Attack:
    gzip_codec = {"name": "gzip", "configuration": {"level": 1}}
    return v3(array_document((8,), (8,), codecs=[LITTLE] + [gzip_codec] * 20_000))


@attack
def checksum_that_names_zlib(_: Path) -> Attack:
    codec = {"name": "numcodecs.adler32", "configuration": {"id": "zlib"}}
    document = array_document((1 << 20,), (1 << 20,), codecs=[LITTLE, codec])

    def read() -> object:
        layout = parse_node(load_json(document, "zarr.json")).layout
        return layout.chunk_codec((1 << 20,)).decode(zlib.compress(bytes(1 << 30)))

    return read


def referenced(place: Path, url: str, simple: bool | None = None, **templates: str) -> Attack:
    path = place / "references.json"
    document = {"version": 1, "templates": templates, "refs": {"c/0": [url, 0, 1]}}
    path.write_text(json.dumps(document))
    config = StoreConfig(storage_options={} if simple is None else {"simple_templates": simple})
    return lambda: open_store(f"reference::file://{path}", config)


def generating(
    place: Path, dimensions: object, url: str = "{{u}}", u: str = "file:///x", **options: Any
) -> Attack:
    path = place / "references.json"
    gen = {"key": "c/{{i}}", "url": url, "offset": "{{i * 2}}", "length": "2",
           "dimensions": dimensions}  # fmt: skip
    document = {"version": 1, "templates": {"u": u}, "refs": {}, "gen": [gen]}
    path.write_text(json.dumps(document))
    return lambda: open_store(f"reference::file://{path}", StoreConfig(**options))


@attack
def references_with_a_template_of_jinja(place: Path) -> Attack:
    return referenced(place, "{{ 'x' * 3000000000 }}", simple=False, u="file:///x")


def parquet(place: Path, columns: dict[str, Any], **members: Any) -> Attack:
    """Reads a chunk whose reference is in a Parquet file of these columns."""
    import pandas

    root = place / "a.parq"
    (root / "a").mkdir(parents=True)
    metadata = {".zgroup": {"zarr_format": 2}, "a/.zarray": json.loads(zarray(dtype="|u1"))}
    document = {"metadata": metadata, "record_size": 10**18, **members}
    (root / ".zmetadata").write_text(json.dumps(document))
    frame = pandas.DataFrame(columns)
    name = str(root / "a/refs.0.parq")
    frame.to_parquet(name, engine="fastparquet", compression="zstd", stats=False, index=False)
    assert (root / "a/refs.0.parq").stat().st_size < 1 << 20
    del frame
    return lambda: open_store(f"reference::file://{root}", StoreConfig()).get("a/0", limit=8)


@attack
def parquet_of_large_inlined_data(place: Path) -> Attack:
    import pandas

    large = [bytes(4 << 20)]
    columns = {"raw": pandas.Categorical.from_codes(np.zeros(1000, "i1"), large)}
    return parquet(place, columns)


@attack
def parquet_with_metadata_of_empty_lists(place: Path) -> Attack:
    read = parquet(place, {"offset": np.zeros(10, "i8")})
    text = '{"metadata": {"a": [' + "[]," * 40_000_000 + '0]}, "record_size": 1}'
    (place / "a.parq/.zmetadata").write_text(text)
    return read


# In one line

ATTACKS |= {
    "zfp-another-mode": lambda _: decoding(zfpy_array(), zfp_stream(rate=64)),
    "zfp-rate-of-100000": lambda _: zfp_metadata("fixed_rate", rate=100000),
    "zfp-rate-of-128": lambda _: zfp_metadata("fixed_rate", rate=128),
    "zfp-rate-below-its-header": lambda _: zfp_metadata("fixed_rate", rate=0.25),
    "json-with-a-list-in-its-shape": lambda _: objects("json2", b'["|O", [[0], 1000000000]]'),
    "json-of-empty-lists": lambda _: objects("json2", b"[" + b"[]," * 8_000_000 + b'"|O",[4]]'),
    "empty-gzip-members": lambda _: members_of("gzip", gzip.compress(b"", mtime=0), 600_000),
    "empty-zlib-members": lambda _: members_of("zlib", zlib.compress(b""), 1_000_000),
    "empty-bz2-members": lambda _: members_of("bz2", bz2.compress(b""), 1_000_000),
    "empty-xz-members": lambda _: members_of("lzma", lzma.compress(b""), 500_000),
    "gzip-members-of-one-byte": lambda _: members_of("gzip", gzip.compress(b"a", mtime=0), 600_000),
    "zip-member-in-bzip2": lambda place: zipped(place, zipfile.ZIP_BZIP2),
    "zip-member-in-lzma": lambda place: zipped(place, zipfile.ZIP_LZMA),
    "zip-member-in-lzma-with-a-giant-dictionary": lambda place: zipped(
        place, zipfile.ZIP_LZMA, dictionary=0xFFFFFFFF
    ),
    "bytes-of-giant-size": lambda _: v2(zarray(dtype="|S500000000", fill_value="a")),
    "text-of-giant-size": lambda _: v2(zarray(dtype="<U500000000", fill_value="a")),
    "raw-bits-of-giant-size": lambda _: v3(
        array_document((1,), (1,), data_type="r8000000000", fill_value="")
    ),
    "twenty-thousand-filters": lambda _: v2(zarray(filters=[{"id": "zlib"}] * 20_000)),
    "checksum-with-a-prefix-of-many-zeros": lambda _: v2(
        zarray(filters=[{"id": "jenkins_lookup3", "prefix": 3_000_000_000}])
    ),
    "raw-bits-filled-beyond-ascii": lambda _: v3(
        array_document((8,), (8,), data_type="r16", fill_value="ü")
    ),
    "a-chunk-of-400-digits": lambda _: v3(array_document((8,), (10**400,))),
    "a-chunk-of-400-digits-in-v2": lambda _: v2(zarray(chunks=[10**400])),
    "references-with-a-width": lambda place: referenced(place, "{{u:>3000000000}}", u="file:///x"),
    "references-with-a-long-template": lambda place: referenced(
        place, "{{u}}" * 100_000, u="x" * 100_000
    ),
    "references-generated-without-end": lambda place: generating(place, {"i": {"stop": 10**12}}),
    "references-generated-in-many-dimensions": lambda place: generating(
        place, {name: {"stop": 1000} for name in "ijkl"}
    ),
    "references-generated-from-a-long-template": lambda place: generating(
        place, {"i": {"stop": 1}}, "{{u}}" * 30, "x" * 30_000_000
    ),
    "references-generated-by-many-expressions": lambda place: generating(
        place, {"i": {"stop": 1 << 20}}, "{{u}}" * 100_000, ""
    ),
    "parquet-of-many-rows": lambda place: parquet(place, {"offset": np.zeros(20_000_000)}),
}


class Refused:
    """What a reader says in place of raising."""

    def __init__(self, problem: str | None) -> None:
        self.problem = problem


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        name, room, seconds = line.split()
        if not (child := os.fork()):
            read_within(name, int(room), int(seconds))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def read_within(name: str, room: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        read = ATTACKS[name](Path(place))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        try:
            found = read()
        except ZarrfsError as error:
            found = Refused(f"{type(error).__name__}: {error}")
        print(found.problem if isinstance(found, Refused) else "served")


if __name__ == "__main__":
    main()
