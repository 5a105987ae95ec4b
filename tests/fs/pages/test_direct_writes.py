"""What is opened for writing alone is written past the kernel's pages, which never shows."""

import pytest

from tests.fs.documents import array_document
from tests.fs.write_store import WriteStore
from zarrfs.errors import FileTooLarge
from zarrfs.fs.attributes import OpenMode

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def mount(opened):
    return opened(WriteStore({"zarr.json": array_document((64,), (16,), data_type="uint8")}))


def test_only_what_cannot_be_mapped_is_direct(mount):
    assert mount.edit("array.bin", read=False).opened.direct
    assert mount.edit("chunks/0", read=False).opened.direct
    assert not mount.edit("array.bin").opened.direct
    assert not mount.open("chunks/0").opened.direct


def test_alone_it_has_nothing_dropped(mount):
    with_pages = mount.open("array.npy")
    file = mount.edit("array.bin", read=False)
    file.write(0, b"abc")
    assert mount.dropped.inodes == []
    assert with_pages.read(128, 3) == b"abc"


def test_pages_that_came_later_are_dropped_before_a_write_returns(mount):
    writer = mount.edit("array.bin", read=False)
    reader = mount.open("array.bin")
    asked: list[int] = []

    async def settle():
        asked.append(mount.dropped.inodes.count(reader.inode))

    mount.dropped.while_settling = settle
    writer.write(0, b"abc")
    assert asked == [1]
    assert not mount.open("array.bin").keep_cache


def test_pages_that_come_for_ever_do_not_hold_a_write_up(mount):
    writer = mount.edit("array.bin", read=False)
    mapped = mount.edit("array.bin")
    came = 0

    async def hand_over():
        nonlocal came
        came += 1
        await mount.fs.write(mapped.opened.handle, 32, b"x")

    mount.dropped.while_settling = hand_over
    assert writer.write(0, b"abc") == 3
    assert 1 < came < 100


def test_what_fails_is_told_and_the_next_write_is_not_held_up(mount):
    writer = mount.edit("array.bin", read=False)
    reader = mount.open("array.bin")
    with pytest.raises(FileTooLarge):
        writer.write(64, b"a")
    assert writer.write(63, b"ab") == 1
    assert reader.read(63, 2) == b"a"


def test_a_write_past_the_pages_is_stored_when_it_returns_if_that_is_asked_for(mount):
    """The kernel does not ask for it; of writes through pages it does."""
    inode = mount.stat("array.bin").inode
    for read in (False, True):

        async def write(read: bool) -> int:
            opened = await mount.fs.open_file(inode, OpenMode(read, write=True, sync=True))
            assert opened.direct is not read
            mount.store.requests.clear()
            await mount.fs.write(opened.handle, 0, b"\1\2")
            stored = sum(request.operation == "put" for request in mount.store.requests)
            await mount.fs.release(opened.handle)
            return stored

        assert mount.loop.run(write, read) == (0 if read else 1)
