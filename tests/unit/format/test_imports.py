"""What a mount of a plain v3 array imports, and what it does not."""

import json
import subprocess
import sys

import zstandard

PROGRAM = """
import json, sys
from zarrfs.format.metadata.v3 import parse_node
array = parse_node(json.loads(sys.argv[1]))
codec = array.layout.chunk_codec((2, 3))
if not codec.bytes_bytes:
    codec.decode(bytes(12))
if sys.argv[2:]:
    from zarrfs.format.codec import SizeBound
    from zarrfs.format.codecs.zstd import ZstdCodec
    encoded = bytes.fromhex(sys.argv[2])
    zstd = ZstdCodec().bind(SizeBound(int(sys.argv[3]), exact=True))
    assert bytes(zstd.decode(encoded, None)) == bytes(int(sys.argv[3]))
print(json.dumps(sorted(sys.modules)))
"""


def modules_of(document, *arguments):
    argv = [sys.executable, "-c", PROGRAM, json.dumps(document), *arguments]
    return set(json.loads(subprocess.run(argv, check=True, capture_output=True).stdout))


def test_a_plain_v3_array_imports_only_what_it_needs(document):
    loaded = modules_of(document())
    assert "zarrfs.format.codecs.bytes" in loaded
    forbidden = {
        "zarrfs.format.metadata.older.v2", "zarrfs.format.metadata.older.v1",
        "zarrfs.format.numpy_types",
        "zarrfs.format.entry_points", "numcodecs", "ml_dtypes", "zfpy", "pcodec",
        "zarrfs.format.codecs.gzip", "zarrfs.format.codecs.zstd", "trio", "pyfuse3", "fsspec",
        "pickle5",
    }  # fmt: skip
    assert loaded & forbidden == set()
    assert not {name for name in loaded if name.startswith("zarrfs.format.extension_types.")}


def test_what_decodes_zstandard_comes_when_something_is_decoded(document):
    zstd = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    loaded = modules_of(document(codecs=["bytes", zstd]))
    assert "zarrfs.format.codecs.zstd" in loaded
    assert loaded & {"numcodecs", "zstandard"} == set()


def test_the_systems_libzstd_needs_no_package(document):
    encoded = zstandard.compress(bytes(1 << 20))
    loaded = modules_of(document(), encoded.hex(), str(1 << 20))
    assert loaded & {"numcodecs", "zstandard"} == set()
