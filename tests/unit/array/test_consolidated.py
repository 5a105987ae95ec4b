"""Consolidated metadata and large attributes, as they are kept."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.format.metadata.kept import Consolidated, KeptAttributes

NAMES = st.text("a!/0", min_size=1, max_size=6)


def names_below(paths, path):
    prefix = f"{path}/" if path else ""
    return {p[len(prefix) :].partition("/")[0] for p in paths if p.startswith(prefix)}


@given(st.sets(NAMES, max_size=20), NAMES | st.just(""))
def test_names_are_found_as_by_looking_at_all(paths, path):
    paths = {path for path in paths if all(path.split("/"))}
    documents = Consolidated({path: {} for path in paths})
    assert documents.names_below(path) == names_below(paths, path)
    assert documents.has_below(path) == any(p.startswith(f"{path}/") for p in paths)


@pytest.mark.parametrize(
    "path", ["x/./y", "x/../b", "x//y", "/x", "x/", "./x", "x/" + "n" * 256, "x/nul\0"]
)
def test_paths_that_no_program_can_reach_leave_nothing_behind(path):
    documents = Consolidated({path: {}, "": {}, "own": {}})
    assert set(documents) == {"", "own"}
    assert not documents.has_below("x")


def test_documents_come_back_as_they_were():
    value = {"fill_value": math.inf, "attributes": {"a": [1, "ü", None]}}
    documents = Consolidated({"a/b": value})
    assert documents["a/b"] == value
    assert documents == {"a/b": value}


def test_attributes_come_back_as_they_were():
    value = {"a": [1, {"ü": "\ud800"}], "b": -math.inf}
    assert KeptAttributes(value) == value
    assert dict(KeptAttributes(value).items()) == value


def test_all_attributes_are_parsed_once(monkeypatch):
    attributes = KeptAttributes({str(i): i for i in range(1000)})
    parsed = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    for read in (dict, lambda value: dict(value.items()), lambda value: list(value.values())):
        parsed.clear()
        read(attributes)
        assert len(parsed) == 1000


class Counted(str):
    """A path that counts how often it is compared."""

    __slots__ = ()
    looked = 0

    def startswith(self, *arguments):
        Counted.looked += 1
        return super().startswith(*arguments)


def test_finding_a_group_looks_at_few_of_all_paths():
    documents = Consolidated({Counted(f"g{i:05}/a"): {} for i in range(10_000)})
    Counted.looked = 0
    assert documents.has_below("g07777")
    assert documents.names_below("g07777") == {"a"}
    assert 0 < Counted.looked < 10


@pytest.mark.parametrize("size", [10, 100_000])
def test_large_attributes_are_served_like_small_ones(size):
    attributes = {"a": "x" * size, "b": 1}
    document = json.loads(array_document((1,), (1,))) | {"attributes": attributes}
    store = MemoryStore({"zarr.json": json.dumps(document).encode()})
    node = Hierarchy(store).root()
    assert node.metadata.attributes == attributes
    assert isinstance(node.metadata.attributes, KeptAttributes) == (size > 10_000)
