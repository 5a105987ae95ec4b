"""One node that cannot be opened does not concern the others."""

import logging

import pytest

from tests.fs.documents import array_document, group_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.write_store import refusing
from zarrfs.errors import StoreError, StoreTimeout, StoreUnavailable, ZarrfsError
from zarrfs.fs.nodes import flat_array

pytestmark = pytest.mark.timeout(60)

BAD_SHAPE = (5,)
BAD = array_document(BAD_SHAPE, (2,), data_type="int8")
GOOD = array_document((4,), (2,))
GROUP = {
    "zarr.json": group_document(),
    "a/zarr.json": GOOD,
    "b/zarr.json": BAD,
    "c/zarr.json": GOOD,
}
ALL = ["zarr.json", ".zarrfs", "a", "b", "c"]


class Surprise(Exception):
    """What no code here expects."""


@pytest.fixture
def surprising(monkeypatch):
    """Views of int8 arrays fail in a way that nobody foresaw."""
    real = flat_array.Window.whole

    def whole(grid):
        if grid.shape == BAD_SHAPE:
            raise Surprise("not\nforeseen")
        return real(grid)

    monkeypatch.setattr(flat_array.Window, "whole", whole)


def check_others(m):
    assert m.ls() == ALL
    for name in "ac":
        assert m.read(f"{name}/array.bin") == b"\7\0" * 4


@pytest.mark.usefixtures("surprising")
def test_isolated_errors_are_shown_in_a_note_and_counted(mount, caplog):
    m = mount(MemoryStore(GROUP))
    check_others(m)
    assert m.ls("b") == ["zarr.json", "zarrfs-note.txt"]
    assert m.read("b/zarr.json") == BAD
    note = m.read("b/zarrfs-note.txt").decode()
    assert note == "cannot be opened: not foreseen\n"
    assert m.errors() == [("b", note.rstrip())]
    assert any(record.exc_info for record in caplog.records if record.levelno == logging.ERROR)


@pytest.mark.usefixtures("surprising")
def test_alone_it_is_refused_in_one_line(mount):
    with pytest.raises(ZarrfsError, match="cannot be opened: not foreseen") as caught:
        mount(MemoryStore({"zarr.json": BAD}))
    assert "\n" not in str(caught.value)


def test_a_document_too_deep_to_parse(mount):
    deep = b'{"zarr_format": 3, "node_type": "array", "shape": ' + b"[" * 10**5
    m = mount(MemoryStore({**GROUP, "b/zarr.json": deep}))
    check_others(m)
    assert m.ls("b") == ["zarr.json", "zarrfs-note.txt"]
    assert len(m.errors()) == 1


def test_what_is_refused_is_counted_once(mount):
    refused = array_document((4,), (2,), data_type="novelty")
    m = mount(MemoryStore({**GROUP, "b/zarr.json": refused}))
    for _ in range(3):
        check_others(m)
        assert m.ls("b") == ["zarr.json", "zarrfs-note.txt"]
    ((key, reason),) = m.errors()
    assert key == "b"
    assert reason == m.read("b/zarrfs-note.txt").decode().rstrip()


@pytest.mark.parametrize("error", [StoreUnavailable("b/zarr.json", "not now"), Surprise("oh")])
def test_a_node_that_cannot_be_asked_about_is_listed(mount, error):
    store = FaultStore(MemoryStore(GROUP))
    m = mount(store)

    def before(call):
        if call.key == "b/zarr.json":
            raise error

    store.before = before
    check_others(m)
    (entry,) = [entry for entry in m.entries() if entry.name == "b"]
    assert entry.attributes.fresh_seconds == 0  # the kernel asks again
    with pytest.raises(type(error)):
        m.stat("b")
    assert {key.partition("/")[0] for key, _ in m.errors()} == {"b"}
    store.before = lambda _call: None
    assert m.read("b/array.bin") == b"\7" * 5
    assert m.ls() == ALL


def test_a_document_that_cannot_be_asked_about_is_listed(mount):
    store = FaultStore(MemoryStore(GROUP))
    m = mount(store)
    names = m.ls("b")

    store.before = refusing(StoreError, key="b/zarr.json")
    assert m.ls("b") == names
    with pytest.raises(StoreError):
        m.read("b/zarr.json")


def test_a_store_that_does_not_answer_ends_the_listing(mount):
    """Each of the others would take as long."""
    store = FaultStore(MemoryStore(GROUP))
    m = mount(store)

    def before(call):
        if call.key.endswith("zarr.json"):
            raise StoreTimeout(call.key, "no answer")

    store.before = before
    with pytest.raises(StoreTimeout):
        m.ls()
