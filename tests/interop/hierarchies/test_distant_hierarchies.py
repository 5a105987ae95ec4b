"""Groups in a store that is a round trip away: how often it is asked for what is in them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zarr

from tests.remote_server import Fault, Link, RemoteServer
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.fs.reload import same_metadata
from zarrfs.library.info import ArrayInfo, info
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.wrappers.retry import RetryConfig

ARRAYS = 30
NAMES = sorted(f"a{number}" for number in range(ARRAYS))


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with RemoteServer(Link(latency_s=0.05)) as server:
        yield server


@pytest.fixture(scope="module", params=[2, 3])
def root(request, tmp_path_factory) -> Path:
    """A group of arrays, of a group, of a directory with an array in it, and of one without."""
    root: Path = tmp_path_factory.mktemp("group") / "g"
    group = zarr.create_group(root, zarr_format=request.param)
    for name in NAMES:
        group.create_array(name, shape=(4,), chunks=(2,), dtype="i2").attrs["name"] = name
    group.create_group("inner").create_array("below", shape=(1,), dtype="i1")
    zarr.create_array(root / "bare/array", shape=(1,), dtype="i1", zarr_format=request.param)
    (root / "notes").mkdir()
    (root / "notes/read.me").write_text("of nothing that is Zarr")
    return root


@pytest.fixture
def store(server, root: Path) -> Iterator[Store]:
    server.upload(root, "b")
    retry = RetryConfig(deadline_s=15, first_pause_s=0.01)
    store = open_store("s3://b/g", StoreConfig(server.s3_options(), retry=retry))
    yield store
    store.close()


def test_a_group_is_listed_once_and_its_children_are_read_together(server, store):
    hierarchy = Hierarchy(store)
    hierarchy.root()
    server.counts.reset()
    server.together = 16
    assert hierarchy.children("") == [*NAMES, "bare", "inner"]
    # One for the group, and one for each directory that is no node by its documents.
    assert server.counts.requests["GET list"] == 3
    assert server.counts.requests["HEAD object"] == 0
    assert server.counts.most_in_flight >= 16


def test_what_a_listing_has_read_is_not_read_again(server, store):
    hierarchy = Hierarchy(store)
    hierarchy.root()
    names = hierarchy.children("")
    server.counts.reset()
    nodes = {name: hierarchy.listed(name) for name in names}
    assert server.counts.total == 0
    assert all(isinstance(nodes[name].metadata, ArrayMetadata) for name in NAMES)
    assert all(nodes[name].metadata.attributes == {"name": name} for name in NAMES)
    assert isinstance(nodes["inner"].metadata, GroupMetadata)
    assert isinstance(nodes["bare"].metadata, GroupMetadata)
    assert all(same_metadata(nodes[name], hierarchy.node(name)) for name in names)
    assert hierarchy.children("") == names


def test_a_second_listing_asks_for_names_alone(server, store):
    hierarchy = Hierarchy(store)
    hierarchy.root()
    names = hierarchy.children("")
    server.delete("b", "g/notes/read.me")
    server.counts.reset()
    assert hierarchy.children("") == names
    assert server.counts.requests == {"GET list": 1}


def test_a_node_that_is_gone_is_listed_no_more(server, store):
    hierarchy = Hierarchy(store)
    hierarchy.children("")
    for key in [key for key in server.objects.buckets["b"] if key.startswith("g/a3/")]:
        server.delete("b", key)
    assert "a3" not in hierarchy.children("")


def test_what_was_seen_too_long_ago_is_read_again(server, store):
    hierarchy = Hierarchy(store, recheck=0)
    hierarchy.children("")
    server.counts.reset()
    assert hierarchy.listed("a1").metadata.attributes == {"name": "a1"}
    assert server.counts.total >= 1


def test_a_child_that_cannot_be_read_is_shown(server, store):
    server.plan = lambda method, target: (
        Fault.BUSY if "/g/a7/" in target and method == "GET" else None
    )
    assert "a7" in Hierarchy(store).children("")


def test_metadata_that_are_very_large_are_read_when_they_are_wanted(server, store):
    key = next(k for k in server.objects.buckets["b"] if k in ("g/zarr.json", "g/.zattrs"))
    name = key.rpartition("/")[2]
    document = server.objects.get("b", f"g/a5/{name}").data
    server.put("b", f"g/a5/{name}", document + b" " * (1 << 20))
    hierarchy = Hierarchy(store)
    assert "a5" in hierarchy.children("")
    assert hierarchy.listed("a5").metadata.attributes == {"name": "a5"}


def test_info_of_many_chunks_takes_few_requests(server):
    document = json.dumps(
        {
            "zarr_format": 3, "node_type": "array", "shape": [100, 40], "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
            "codecs": [{"name": "bytes"}],
        }
    )  # fmt: skip
    chunks = {f"n/c/{row}/{column}": b"x" for row in range(100) for column in range(40)}
    server.make_bucket("many", {"n/zarr.json": document.encode(), **chunks})
    server.counts.reset()
    found = info("s3://many/n", storage_options=server.s3_options())
    assert isinstance(found, ArrayInfo)
    assert (found.stored.present, found.stored.nbytes, found.stored.complete) == (4000, 4000, True)
    assert server.counts.total <= 4 + 10
