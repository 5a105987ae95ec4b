"""Each limit of `zarrfs.bounds`: what reaches it is served, and one more is refused."""

import json
from typing import Any

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document
from tests.fs.memory_store import MemoryStore
from zarrfs import bounds
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.bounds import OutOfBoundsError
from zarrfs.errors import DecodeError, MetadataError, StoreTooLarge, UnsupportedError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs.gzip import DeflateCodec
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.v3 import parse_node

CRC32C = {"name": "crc32c"}


def parse(shape: tuple[int, ...] = (4,), chunks: tuple[int, ...] = (4,), **members: Any) -> Any:
    return parse_node(load_json(array_document(shape, chunks, **members), "zarr.json"))


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


def cast(pairs: int) -> list[Any]:
    scalars = {"encode": [[number, number] for number in range(pairs)]}
    configuration = {"data_type": "int32", "scalar_map": scalars}
    return [{"name": "cast_value", "configuration": configuration}, LITTLE]


def fields(count: int) -> dict[str, Any]:
    named = [{"name": f"f{number}", "data_type": "int8"} for number in range(count)]
    return {
        "data_type": {"name": "struct", "configuration": {"fields": named}},
        "fill_value": {field["name"]: 0 for field in named},
    }


def raw(size: int) -> dict[str, Any]:
    """Elements of raw bytes; the fill value of zeros is short."""
    kind = {"name": "null_terminated_bytes", "configuration": {"length_bytes": size}}
    return {"data_type": kind, "fill_value": ""}


CASES = {
    "codecs": lambda more: parse(codecs=[LITTLE, *[CRC32C] * (bounds.MOST_CODECS - 1 + more)]),
    "axes": lambda more: parse(*[(1,) * (bounds.MOST_AXES + more)] * 2),
    "fields": lambda more: parse(**fields(bounds.MOST_FIELDS + more)),
    "scalars": lambda more: parse(codecs=cast(bounds.MOST_SCALARS + more)),
    "length": lambda more: parse(
        (bounds.LARGEST_LENGTH + more,), (1 << 20,), data_type="uint8"
    ),
    "element": lambda more: parse((1,), (1,), **raw(bounds.LARGEST_ELEMENT + more)),
    "depth": lambda more: parse(attributes=nested(bounds.DEEPEST + more)),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_metadata_reach_the_limit_and_not_beyond(what):
    CASES[what](0)
    with pytest.raises((UnsupportedError, MetadataError)):
        CASES[what](1)


def test_values_of_a_document():
    bounds.check_values([0] * bounds.MOST_VALUES)
    with pytest.raises(OutOfBoundsError):
        bounds.check_values([0] * (bounds.MOST_VALUES + 1))
    with pytest.raises((UnsupportedError, MetadataError)):
        parse(codecs=[LITTLE, {"name": "crc32c", "configuration": {"a": [0] * 200_000}}])


def test_members_of_a_stream():
    size = 2048
    bound = DeflateCodec("gzip").bind(SizeBound(size, exact=True))
    stream = bytes(bound.encode(b"x" * size))
    empty = bytes(DeflateCodec("gzip").bind(SizeBound(0, exact=True)).encode(b""))
    most = bounds.most_members(size)
    assert bytes(bound.decode(stream + empty * (most - 1), None)) == b"x" * size
    with pytest.raises(DecodeError):
        bound.decode(stream + empty * most, None)


def test_the_parsed_size_of_a_document():
    text = json.dumps([[]] * 1000).encode()
    size = bounds.parsed_size(text)
    assert bounds.load_json(text, size) == [[]] * 1000
    with pytest.raises(OutOfBoundsError):
        bounds.load_json(text, size - 1)


def test_the_parsed_size_is_never_too_small():
    import tracemalloc

    for value in ([[]] * 5000, [{}] * 5000, ["ä" * 9] * 5000, {str(n): n for n in range(5000)}):
        text = json.dumps(value).encode()
        tracemalloc.start()
        kept = json.loads(text)
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken <= bounds.parsed_size(text)
        assert kept == value


@pytest.mark.parametrize("shape", [[4], [2, 2], [1] * bounds.MOST_AXES])
def test_a_shape_in_a_stream(shape):
    count = int(np.prod(shape))
    assert bounds.check_claimed_shape(shape, count) == tuple(shape)
    for wrong in ([*shape, 2], [True], [-1], [[4]], "4", None, [1] * (bounds.MOST_AXES + 1)):
        with pytest.raises(ValueError, match=r"shape|elements"):
            bounds.check_claimed_shape(wrong, count)


def test_names_in_an_archive():
    bounds.check_member_name("x" * bounds.LONGEST_NAME)
    bounds.check_member_name("/".join("x" * (bounds.DEEPEST + 1)))
    for name in ("x" * (bounds.LONGEST_NAME + 1), "/".join("x" * (bounds.DEEPEST + 2))):
        with pytest.raises(OutOfBoundsError):
            bounds.check_member_name(name)


def test_errors_quote_little():
    assert bounds.shown("x" * bounds.LONGEST_REASON) == "x" * bounds.LONGEST_REASON
    assert len(bounds.shown("x" * 10**6)) == bounds.LONGEST_REASON + 1


def test_names_of_a_listing():
    bounds.check_names(bounds.MOST_NAMES, 0)
    for count, length in ((bounds.MOST_NAMES + 1, 0), (1, 256 * bounds.MOST_NAMES + 1)):
        with pytest.raises(OutOfBoundsError):
            bounds.check_names(count, length)


def test_the_bytes_of_a_document():
    document = array_document((4,), (4,))
    text = document + b" " * (bounds.LARGEST_DOCUMENT - len(document))
    hierarchy = Hierarchy(MemoryStore({"zarr.json": text}), memory=4 << 30)
    assert hierarchy.root().problem is None
    hierarchy = Hierarchy(MemoryStore({"zarr.json": text + b" "}), memory=4 << 30)
    with pytest.raises(StoreTooLarge):
        hierarchy.root()
