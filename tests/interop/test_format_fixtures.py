"""Every array that other people's software wrote, decoded with the format layer alone.

The arrays are looked for in ``$ZARRFS_FIXTURES`` or ``../shared/fixtures`` beside the
repository; ``EXPECTED.json`` there has the hash of what each must decode to.
"""

from __future__ import annotations

import hashlib
import json
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from zarrfs.errors import UnsupportedError
from zarrfs.format.metadata.older.v1 import parse_array_v1
from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.format.metadata.v3 import load_json, parse_node

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("ZARRFS_FIXTURES", HERE.parents[3] / "shared" / "fixtures"))
EXPECTED = (
    json.loads((FOLDER / "EXPECTED.json").read_text())
    if (FOLDER / "EXPECTED.json").is_file()
    else {}
)

REFUSED = {
    "keller-mark__pizzarr/inst/extdata/fixtures/v3/": "draft",
    "zarr-developers__zarr-java/testdata/storage_transformer/exists": "chunk-manifest-json",
    "zarrs__zarrs/zarrs/tests/data/v3/array_optional": "optional",
}
"""Arrays that are not served, and a word of the reason that is given."""


def read(path):
    return path.read_bytes() if path.is_file() else None


def open_array(name):
    """The directory of an array and its metadata."""
    path, _, version = name.partition("#")
    folder = FOLDER / path
    if version != "v2" and (document := read(folder / "zarr.json")) is not None:
        return folder, parse_node(load_json(document, "zarr.json"))
    if (document := read(folder / ".zarray")) is not None:
        return folder, parse_array_v2(document, read(folder / ".zattrs"))
    return folder, parse_array_v1(read(folder / "meta"), read(folder / "attrs"))


def decode_shard(layout, shape, data):
    """Shards decoded level by level, as where nothing is read by range."""
    around = layout.around_codecs(shape)

    def descend(level, shape, data):
        if level == len(layout.levels):
            return layout.chunk_codec(shape).decode(data)
        for codec in reversed(around[level]):
            data = codec.decode(data, None)
        here = layout.levels[level]
        index = here.index_codec(shape)
        view = memoryview(data)
        start = 0 if index.location == "start" else len(view) - index.size
        entries = index.decode(view[start : start + index.size], len(view))
        chunk = layout.spec(shape).filled()
        counts = [n // m for n, m in zip(shape, here.inner_shape, strict=True)]
        for position in product(*map(range, counts)):
            where = entries.locate(here.entry(position), len(view))
            if where is not None:
                inner = descend(level + 1, here.inner_shape, view[where[0] : sum(where)])
                at = zip(position, here.inner_shape, strict=True)
                chunk[tuple(slice(i * n, (i + 1) * n) for i, n in at)] = inner
        return chunk

    return descend(0, shape, data)


def decode_array(folder, array):
    layout = array.layout
    whole = np.empty(array.shape, layout.data_type.dtype)
    for index in product(*map(range, layout.stored.counts)):
        shape = layout.stored.chunk_shape(index)
        data = read(folder / array.chunk_keys.key(index))
        if data is None:
            chunk = layout.spec(shape).filled()
        elif layout.sharded:
            chunk = decode_shard(layout, shape, data)
        else:
            chunk = layout.chunk_codec(shape).decode(data)
        origin, valid = layout.stored.origin(index), layout.stored.valid_shape(index)
        at = tuple(slice(o, o + n) for o, n in zip(origin, valid, strict=True))
        whole[at] = chunk[tuple(map(slice, valid))]
    return whole


def json_hash(whole):
    values = [v.decode("latin-1") if isinstance(v, bytes) else v for v in whole.ravel().tolist()]
    text = json.dumps(values, ensure_ascii=False)
    return "json:" + hashlib.sha256(text.encode()).hexdigest()


def refusal(name):
    return next((word for start, word in REFUSED.items() if name.startswith(start)), None)


@pytest.mark.skipif(not EXPECTED, reason=f"no fixtures in {FOLDER}")
def test_the_fixtures_are_there():
    assert len(EXPECTED) > 400


@pytest.mark.parametrize("name", sorted(n for n in EXPECTED if refusal(n) is None))
def test_decodes_to_what_was_written(name):
    expected = EXPECTED[name]
    whole = decode_array(*open_array(name))
    if (hash_ := expected.get("sha256")) is not None:
        found = (
            json_hash(whole)
            if whole.dtype == object
            else hashlib.sha256(whole.tobytes()).hexdigest()
        )
        assert found == hash_
    elif (values := expected.get("values")) is not None:
        named = [v if isinstance(v, float) and v == v else "NaN" for v in whole.tolist()]  # noqa: PLR0124
        assert named == values


@pytest.mark.parametrize("name", sorted(n for n in EXPECTED if refusal(n) is not None))
def test_refused_with_the_reason(name):
    with pytest.raises(UnsupportedError, match=refusal(name)):
        open_array(name)
