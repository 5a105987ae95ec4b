"""Pages of a mapping that were refused: no fsync or close succeeds before they are written again.

The kernel takes them for clean whatever it is answered, and does not hand them over again.
"""

import mmap

import pytest

from tests.fs.documents import array_document
from tests.fs.writable import WritableFile
from tests.fs.write_store import Request, WriteStore
from zarrfs.errors import FileTooLarge, InvalidElement, StoreFull
from zarrfs.fs.coherence.refused_pages import RefusedPages

pytestmark = pytest.mark.timeout(60)

PAGE = mmap.PAGESIZE
PAGES = 16
SIZE = PAGES * PAGE


class Full:
    """A mount of an array of 16 pages, of which each is a chunk, over a store that is full."""

    def __init__(self, opened, **config) -> None:
        document = array_document((PAGES, PAGE), (1, PAGE), data_type="uint8")
        self.store = WriteStore({"zarr.json": document})
        self.mount = opened(self.store, **config)
        self.full(True)

    def full(self, full: bool) -> None:
        def fail(request: Request) -> None:
            if request.operation == "put" and not request.key.endswith(".json"):
                raise StoreFull(request.key, "by this test")

        self.store.before = fail if full else lambda _request: None

    def fill(self, file) -> list[int]:
        """Write pages until one is refused; the numbers of those that are."""
        budget = self.mount.write_back.budget
        budget.total = budget.most = 4 * self.mount.array().largest_change
        refused = []
        for page in range(PAGES):
            try:
                file.write(page * PAGE, content(page))
            except StoreFull:
                refused.append(page)
        assert 0 < len(refused) < PAGES
        return refused

    def refuse(self) -> tuple[WritableFile, list[int]]:
        """A file some of whose pages were refused, before there was room again."""
        file = self.mount.edit("array.bin")
        refused = self.fill(file)
        self.full(False)
        return file, refused

    def stored(self, opened) -> bytes:
        return opened(WriteStore(self.store.objects)).read("array.bin")


def content(page: int) -> bytes:
    return bytes([page + 1]) * PAGE


WHOLE = b"".join(map(content, range(PAGES)))


@pytest.fixture
def full(opened):
    return Full(opened)


def test_no_fsync_succeeds_before_refused_pages_are_written_again(full, opened):
    file, refused = full.refuse()
    for page in refused:
        for _ in range(2):
            with pytest.raises(StoreFull):
                file.fsync()
        file.write(page * PAGE, content(page))
    file.fsync()
    file.close()
    assert full.stored(opened) == WHOLE


def test_each_open_file_hears_of_them_when_it_is_closed(full):
    files = [full.mount.edit("array.bin") for _ in range(3)]
    full.fill(files[0])
    full.full(False)
    for file in files:
        with pytest.raises(StoreFull):
            file.flush()
        file.release()
    # Nobody can write them again any more, and who comes later has nothing to do with them.
    later = full.mount.edit("array.bin")
    later.fsync()
    later.close()


def test_the_end_of_the_mount_tells_of_them(full):
    file, refused = full.refuse()
    assert [type(error) for error in full.mount.fs.drain()] == [StoreFull]
    assert [path for path, reason in full.mount.errors() if "mapping" in reason] == ["/"]
    for page in refused:
        file.write(page * PAGE, content(page))
    assert full.mount.fs.drain() == []
    file.close()


def test_other_files_do_not_hear_of_them(full):
    file, other = full.mount.edit("array.bin"), full.mount.edit("array.npy")
    full.fill(file)
    full.full(False)
    other.fsync()
    other.close()
    reader = full.mount.open("array.bin")
    reader.close()
    with pytest.raises(StoreFull):
        file.flush()


def test_a_part_that_is_written_again_does_not_do(full):
    file, refused = full.refuse()
    first, last = refused[0] * PAGE, (refused[-1] + 1) * PAGE
    assert last == SIZE
    for start, stop in ((first, first + 10), (last - 10, last), (first + 20, last - 20)):
        file.write(start, WHOLE[start:stop])
        with pytest.raises(StoreFull):
            file.fsync()
    file.write(first + 10, WHOLE[first + 10 : first + 20])
    with pytest.raises(StoreFull):
        file.fsync()
    file.write(last - 20, WHOLE[last - 20 : last - 10])
    file.fsync()


@pytest.mark.parametrize("read", [True, False])
def test_what_can_be_no_page_of_a_mapping_is_the_writers_own_affair(full, read):
    """Its writer has been told, and nobody else may have thought that it was stored."""
    file = full.mount.edit("array.bin", read=read)
    budget = full.mount.write_back.budget
    budget.total = budget.most = 4 * full.mount.array().largest_change
    refused = 0
    for page in range(PAGES):
        try:
            file.write(page * PAGE + read, content(page)[: PAGE - 2 * read])
        except StoreFull:
            refused += 1
    assert refused
    full.full(False)
    file.fsync()
    file.close()


def test_ranges_of_many_requests():
    """Those that follow each other are one; too many are taken for one, which is safe."""
    refused = RefusedPages()
    error = StoreFull("a", "by this test")
    for number in range(1000):
        refused.refused(1, number, number + 1, error)
    assert refused._ranges[1] == [(0, 1000)]
    for number in range(1000):
        refused.refused(2, 2 * number, 2 * number + 1, error)
    assert len(refused._ranges[2]) < 300
    for number in range(999):
        refused.taken(2, 2 * number, 2 * number + 1)
    with pytest.raises(StoreFull):
        refused.check(2, 2000)
    refused.taken(2, 0, 2000)
    refused.check(2, 2000)
    assert 2 not in refused
    assert refused.errors == [error]


def test_few_ranges_are_kept_apart():
    """What is beside a refused range, or at the end of the file, is not missed."""
    refused = RefusedPages()
    error = StoreFull("a", "by this test")
    for number in range(100):
        refused.refused(1, 20 * number, 20 * number + 10, error)
    for number in range(100):
        with pytest.raises(StoreFull):
            refused.check(1, 2000)
        refused.taken(1, 20 * number, 20 * number + 10)
    assert 1 not in refused
    refused.refused(1, 10, 20, error)
    refused.check(1, 10)
    with pytest.raises(StoreFull):
        refused.check(1, 11)


def test_elements_that_cannot_be_are_refused_for_good(opened):
    document = array_document((PAGE,), (PAGE,), data_type="bool", fill_value=False)
    mount = opened(WriteStore({"zarr.json": document}))
    file = mount.edit("array.bin")
    with pytest.raises(InvalidElement):
        file.write(0, bytes([2]) * PAGE)
    with pytest.raises(InvalidElement):
        file.fsync()
    file.write(0, bytes([1]) * PAGE)
    file.close()


def test_what_lies_beyond_the_end_is_not_missed(opened):
    full = Full(opened, resize=True)
    file, refused = full.refuse()
    inode = file.inode
    full.mount.loop.run(full.mount.fs.set_size, inode, (refused[0] + 1) * PAGE)
    with pytest.raises(StoreFull):
        file.fsync()
    full.mount.loop.run(full.mount.fs.set_size, inode, refused[0] * PAGE)
    file.fsync()
    full.mount.loop.run(full.mount.fs.set_size, inode, SIZE)
    file.close()


def test_what_begins_beyond_the_end_of_the_file_is_nothing_that_is_missed(full):
    full.full(False)
    file = full.mount.edit("array.bin")
    with pytest.raises(FileTooLarge):
        file.write(SIZE, content(0))
    file.close()
