"""Metadata documents with another shape: nothing else of them changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.errors import MetadataError
from zarrfs.format.metadata.resized import JsonText, shapes_below, with_shape, with_shape_below

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=4), values, max_size=4),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_the_rest_stays_letter_by_letter(members, indent, escape, encoding):
    def text(rows):
        document = {"before": members, "shape": [rows, 7], **members, "behind": 1}
        document["shape"] = [rows, 7]
        return json.dumps(document, indent=indent, ensure_ascii=escape).encode(
            encoding, "surrogatepass"
        )

    assert with_shape(text(5), (123456, 7), "zarr.json") == text(123456)
    assert with_shape(text(5), (5, 7), "zarr.json") == text(5)


def test_the_last_of_two_members_counts():
    data = b'{ "shape" : [1, 2],"a":{"shape":[1]},"shape" : [3 , 4] ,"x":[NaN,-Infinity]}'
    changed = with_shape(data, (9, 8), "zarr.json")
    assert changed == data.replace(b"[3 , 4]", b"[9 , 8]")


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"{}", b'{"shape": 5}', b'{"shape": [1]}', b"\xff", b"[" * 100_000,
])  # fmt: skip
def test_no_document_of_such_an_array(data):
    with pytest.raises(MetadataError, match="doc"):
        with_shape(data, (1, 2), "doc")


def test_a_place_that_is_not_there():
    with pytest.raises(KeyError):
        JsonText(b'{"a": [1]}').replaced({("a", 1): 2})


def test_consolidated_documents_at_every_depth():
    array = {"shape": [4], "node_type": "array"}
    inner = {"consolidated_metadata": {"metadata": {"a": array, "b/a": array}}}
    group = {
        "consolidated_metadata": {"metadata": {"g/a": array, "g": inner, "a": array, "x": 5}},
        "metadata": {"g/a": array},
    }
    data = json.dumps(group, indent=1).encode()
    assert shapes_below(data, "g/a", "doc") == [(4,), (4,)]
    changed = json.loads(with_shape_below(data, "g/a", (6,), "doc"))
    documents = changed["consolidated_metadata"]["metadata"]
    assert documents["g/a"]["shape"] == [6]
    assert documents["g"]["consolidated_metadata"]["metadata"]["a"]["shape"] == [6]
    assert documents["g"]["consolidated_metadata"]["metadata"]["b/a"]["shape"] == [4]
    assert documents["a"]["shape"] == [4]
    assert with_shape_below(data, "other", (6,), "doc") is data
    for nothing in (b"{}", b"[]", b'{"consolidated_metadata": null}'):
        assert with_shape_below(nothing, "a", (6,), "doc") is nothing
