"""Documents that zarrfs reads, and those that the model of the whole specification accepts."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from tests.unit.format.test_metadata_v3 import SHARDED, WHOLE, paths, replaced
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.metadata.lenient import corrected
from zarrfs.format.metadata.strict import deviations
from zarrfs.format.metadata.v3 import parse_node

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
FILLS = {
    "bool": [True, False, 0, "NaN"],
    "int8": [-129, -128, 127, 128, 1.0, True],
    "uint16": [-1, 0, 65535, 65536],
    "int64": [-(2**63), 2**63 - 1, 2**63],
    "uint64": [2**64 - 1, 2**64],
    "float16": [0, 1.5, 1e10, "NaN", "Infinity", "-Infinity", "0x7c00", True, float("nan")],
    "float32": [0.1, -0.0, 2**53, 2**70, "nan", float("inf")],
    "float64": [1e308, -1, "NaN"],
    "complex64": [[0, 0], 0, [0], [0.5, "NaN"], [0, 2**70], [0, 0, 0], [True, 0], ["nan", 0]],
    "complex128": [[1, -1.5], ["Infinity", "-Infinity"], [0, None], "NaN"],
    "r16": [[0, 0]],
    "string": [""],
}
# What is nearly right for one member or another.
NEAR = [
    *range(-2, 11), 22, 23, -131072, -131073, 2**31, 2**61, True, None, 1.0,
    "", "/", ".", "v2", "default", "regular", "little", "big", "start", "end", "bytes", "crc32c",
    "zstd", "lz4", "zlib", "noshuffle", "bitshuffle", "group", "\u00e9",
    [], {}, [0], [1], [0, 1], [0, 0], [1, 1], [2, 3], [4, 6], [4, 0], [1, 1, 1], ["x", None],
    ["x"], ["x", 1], ["\ud800", "\u00e9"],
    LITTLE, {"name": "bytes"}, {"name": "crc32c"}, {"name": "gzip", "configuration": {"level": 9}},
    {"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "crc32c", "configuration": {}}, {"name": "bytes", "must_understand": True},
    {"separator": "."}, {"level": 22}, {"level": 23, "checksum": True}, {"order": [0, 1]},
    SHARDED, [LITTLE], [{"name": "bytes"}], [LITTLE, {"name": "crc32c"}], SHARDED[:1], SHARDED[1:],
    [*SHARDED, LITTLE], [LITTLE, {"name": "transpose", "configuration": {"order": [1, 0]}}],
    [LITTLE, {"name": "zstd", "configuration": {"level": 1}}],
]  # fmt: skip


@st.composite
def documents(draw):
    """Documents of arrays, each of a few changes away from one that is right."""
    document = json.loads(json.dumps(WHOLE))
    if draw(st.booleans()):
        data_type = draw(st.sampled_from(sorted(FILLS)))
        document["data_type"] = data_type
        document["fill_value"] = draw(st.sampled_from(FILLS[data_type]))
    if draw(st.booleans()):
        document["codecs"] = [draw(st.sampled_from([{"name": "bytes"}, LITTLE]))]
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2)))):
        path = draw(st.sampled_from(paths(document)[1:]))
        document = replaced(document, path, draw(st.sampled_from(NEAR)))
    for member in draw(st.sets(st.sampled_from(sorted(document)), max_size=1)):
        del document[member]
    if draw(st.integers(0, 9)) == 0:
        document[draw(st.sampled_from(["novel", "consolidated_metadata"]))] = None
    return document


def compare(document: object) -> bool:
    """Whether a document is read. The model accepts it then, and no other one."""
    if not isinstance(document, dict) or document.get("zarr_format") != 3:
        return False
    if document.get("node_type") != "array":
        return False
    accepted = not deviations(corrected(document))
    try:
        parse_node(document)
    except UnsupportedError:
        return False
    except MetadataError as error:
        assert not accepted or "attributes" in str(error)  # noqa: PT017 - the model reads none
        return False
    assert accepted
    return True


@examples(200)
@given(documents())
def test_it_means_the_same_to_the_model(document):
    compare(document)


@pytest.mark.parametrize("data_type", FILLS)
def test_fill_values(data_type):
    codecs = [LITTLE]
    for fill in (fill for fills in FILLS.values() for fill in fills):
        compare({**WHOLE, "data_type": data_type, "fill_value": fill, "codecs": codecs})


@pytest.mark.parametrize("changes", [
    {},
    {"codecs": [LITTLE]},
    {"data_type": "bool", "fill_value": False, "codecs": [{"name": "bytes"}]},
    {"data_type": "float32", "fill_value": "NaN"},
    {"data_type": "complex64", "fill_value": [0.5, "NaN"]},
    {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
    {"shape": [], "dimension_names": [], "codecs": [LITTLE],
     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": []}}},
])  # fmt: skip
def test_what_writers_write_is_right(changes):
    assert compare({**WHOLE, **changes})
    assert deviations({**WHOLE, **changes}) == []


def test_the_model_is_not_imported_for_it():
    program = (
        "import json, sys; from zarrfs.format.metadata.v3 import parse_node;"
        "parse_node(json.loads(sys.argv[1])); sys.exit('zarr_metadata' in sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", program, json.dumps(WHOLE)],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
