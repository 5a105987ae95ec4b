"""What every store does, whatever is behind it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.waiting import wait_until
from zarrfs.errors import StoreError, StoreListingUnsupported, StoreTooLarge
from zarrfs.store.base import ByteRange, Store

DATA = bytes(range(256)) * 20


def test_get_returns_the_bytes_and_describes_them(harness):
    harness.put("c/0/1", DATA)
    blob = harness.store.get("c/0/1", limit=len(DATA))
    assert bytes(blob.data) == DATA
    assert blob.info.size == len(DATA)
    assert blob.info == harness.store.info("c/0/1")


def test_an_empty_object_is_not_a_missing_one(harness):
    harness.put("empty", b"")
    assert bytes(harness.store.get("empty", limit=0).data) == b""
    assert harness.store.info("empty").size == 0
    blobs = harness.store.get_ranges("empty", [ByteRange(0, 5), ByteRange(-5, 5)])
    assert [bytes(blob.data) for blob in blobs] == [b"", b""]


def test_a_missing_object_is_none(harness):
    harness.put("c/0", DATA)
    for key in ("d", "c/1", "c/0/1", "c"):
        assert harness.store.get(key, limit=10) is None
        assert harness.store.get_ranges(key, [ByteRange(0, 1)]) is None
        assert harness.store.info(key) is None


def test_a_malformed_key_is_refused(harness):
    store = harness.store
    for key in ("", "/", "/c", "c/", "c//d", "..", "c/../d", ".", "a\0b"):
        for ask in (
            lambda key: store.get(key, limit=10),
            lambda key: store.get_ranges(key, [ByteRange(0, 1)]),
            store.info,
            lambda key: list(store.list_dir(key or "/")),
        ):
            with pytest.raises(StoreError, match="not a valid key"):
                ask(key)


def test_a_key_of_odd_characters_names_that_object(harness):
    names = ["ä", "a b", "a%20b", "a?b#c", "a+b", "a&b=c", "[x]*", "~", "日本"]
    for i, name in enumerate(names):
        harness.put(f"dir/{name}", DATA[i:])
    for i, name in enumerate(names):
        assert bytes(harness.store.get(f"dir/{name}", limit=len(DATA)).data) == DATA[i:]
    if harness.lists:
        assert sorted(harness.store.list_dir("dir")) == sorted(names)


def test_ranges_are_cut_at_the_ends_of_the_object(harness):
    harness.put("x", DATA)
    n = len(DATA)
    expected = {
        ByteRange(0, n): DATA,
        ByteRange(0, 1): DATA[:1],
        ByteRange(10, 20): DATA[10:30],
        ByteRange(n - 1, 1): DATA[-1:],
        ByteRange(n - 5, 100): DATA[-5:],
        ByteRange(n, 5): b"",
        ByteRange(n + 100, 5): b"",
        ByteRange(3, 0): b"",
        ByteRange(-7, 7): DATA[-7:],
        ByteRange(-7, 3): DATA[-7:-4],
        ByteRange(-7, 100): DATA[-7:],
        ByteRange(-n - 10, 15): DATA[:5],
    }
    for wanted, data in expected.items():
        (blob,) = harness.store.get_ranges("x", [wanted])
        assert bytes(blob.data) == data, wanted
        assert blob.info.size == n
    everything = harness.store.get_ranges("x", list(expected))
    assert [bytes(blob.data) for blob in everything] == list(expected.values())
    assert {blob.info.generation for blob in everything} == {everything[0].info.generation}


def test_no_ranges_of_an_object_are_no_blobs(harness):
    harness.put("x", DATA)
    assert harness.store.get_ranges("x", []) == []
    assert harness.store.get_ranges("y", []) is None


def test_many_ranges_in_any_order(harness):
    harness.put("x", DATA)
    ranges = [ByteRange((i * 1237) % len(DATA), 1 + i % 40) for i in range(100)]
    blobs = harness.store.get_ranges("x", ranges)
    for wanted, blob in zip(ranges, blobs, strict=True):
        assert bytes(blob.data) == DATA[wanted.offset : wanted.offset + wanted.length]


def test_the_generation_tells_a_change(harness):
    harness.put("x", DATA)
    before = harness.store.info("x")
    assert harness.store.get("x", limit=10**6).info.generation == before.generation
    harness.put("x", DATA[::-1])
    after = harness.store.get("x", limit=10**6)
    assert bytes(after.data) == DATA[::-1]
    assert after.info.generation != before.generation
    assert harness.store.info("x").generation == after.info.generation


def test_an_object_that_comes_and_goes_is_seen_at_once(harness):
    assert harness.store.info("x") is None
    harness.put("x", DATA)
    assert harness.store.info("x").size == len(DATA)
    if harness.lists:
        assert list(harness.store.list_dir("")) == ["x"]
    harness.delete("x")
    assert harness.store.get("x", limit=10**6) is None
    if harness.lists:
        assert list(harness.store.list_dir("")) == []


def test_an_object_above_the_limit_is_refused(harness):
    harness.put("x", DATA)
    with pytest.raises(StoreTooLarge, match=r"more (bytes )?than the 100 allowed"):
        harness.store.get("x", limit=100)
    with pytest.raises(StoreError):
        harness.store.get("x", limit=len(DATA) - 1)
    assert harness.store.get("x", limit=len(DATA)) is not None


def test_many_objects_come_in_order_each_with_what_get_tells_of_it(harness):
    keys = [f"k{i}" for i in range(22)]
    for i, key in enumerate(keys):
        if i % 7:
            harness.put(key, DATA[: i if i % 5 else len(DATA)])
    wanted = [*keys, "k3", "", *keys[:3]]
    found = list(harness.store.get_many(wanted, limit=100))
    assert len(found) == len(wanted)
    for key, blob in zip(wanted, found, strict=True):
        (alone,) = Store.get_many(harness.store, [key], limit=100)
        assert type(blob) is type(alone)
        if isinstance(alone, StoreError):
            assert (blob.key, blob.reason) == (alone.key, alone.reason)
        elif alone is not None:
            assert (bytes(blob.data), blob.info) == (bytes(alone.data), alone.info)


def test_a_listing_names_what_lies_directly_below(harness):
    for key in ("a", "dir/b", "dir/c/d", "dir/c/e", "dir/f/g/h", "dirt/i"):
        harness.put(key, b"x")
    if not harness.lists:
        with pytest.raises(StoreListingUnsupported):
            list(harness.store.list_dir("dir"))
        return
    assert sorted(harness.store.list_dir("")) == ["a", "dir/", "dirt/"]
    assert sorted(harness.store.list_dir("dir")) == ["b", "c/", "f/"]
    assert sorted(harness.store.list_dir("dir/c")) == ["d", "e"]
    assert list(harness.store.list_dir("dir/none")) == []
    assert list(harness.store.list_dir("a")) == []


def test_many_threads_read_at_once(harness):
    for i in range(8):
        harness.put(f"k{i}", DATA[i:])

    def read(i: int) -> bool:
        n = i % 8
        whole = bytes(harness.store.get(f"k{n}", limit=10**6).data)
        parts = harness.store.get_ranges(f"k{n}", [ByteRange(5, 5), ByteRange(-5, 5)])
        return (
            whole == DATA[n:]
            and [bytes(p.data) for p in parts] == [DATA[n:][5:10], DATA[-5:]]
            and harness.store.info(f"none{n}") is None
        )

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(read, range(16)))


def test_nothing_stays_open(harness, open_fds: Callable[[], int]):
    harness.put("dir/x", DATA)

    def use() -> None:
        harness.store.get("dir/x", limit=10**6)
        harness.store.get_ranges("dir/x", [ByteRange(0, 1)])
        harness.store.info("dir/x")
        harness.store.info("dir")
        harness.store.get("dir", limit=1)
        harness.store.get("missing", limit=1)
        next(harness.store.get_many(["dir/x", "missing", "dir", "dir/x"], limit=10**6))
        with pytest.raises(StoreError):
            harness.store.get("dir/x", limit=1)
        if harness.lists:
            next(harness.store.list_dir("dir"))

    for _ in range(2):
        use()
    before = open_fds()
    for _ in range(12):
        use()
    # Pooled connections may come and go, of which some servers have the other end in this process.
    wait_until(lambda: open_fds() <= before + 10)


def test_close_twice(harness):
    harness.put("x", DATA)
    harness.store.close()
    harness.store.close()
    with pytest.raises(StoreError, match="closed"):
        harness.store.get("x", limit=10**6)


def test_no_credentials_in_the_url(harness):
    assert "hunter2" not in harness.store.url
    assert "someone" not in harness.store.url
