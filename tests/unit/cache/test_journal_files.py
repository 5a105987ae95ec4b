"""The files of the recovery journal: what is written is read again, and damage is noticed."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO

import numpy as np
import pytest

from zarrfs.cache.write.journal import entry_file
from zarrfs.cache.write.journal.directory import JournalDirectory
from zarrfs.cache.write.journal.entry_file import (
    HASH_SIZE,
    chunk_pieces,
    growth_pieces,
    read_change,
    read_growth,
    read_header,
)
from zarrfs.cache.write.journal.pending import Change, PendingChunk, PendingGrowth
from zarrfs.errors import JournalError

NAME = f"{'a' * 32}-{'b' * 16}.chunk"
TEMPORARY = f".{NAME}.new"


def change(shape: tuple[int, ...], dtype: str = "<i4") -> Change:
    """Every third element is new."""
    size = int(np.prod(shape))
    elements = np.frombuffer(bytes(range(250)) * 10, dtype, size).reshape(*shape, 1)
    return Change(tuple(range(len(shape))), elements, (np.arange(size) % 3 == 0).reshape(*shape, 1))


def in_part(change: Change) -> Change:
    """The same, where two elements are new in part."""
    size = change.units.itemsize
    new = np.repeat(change.new, size, axis=-1)
    new.reshape(-1, size)[1:3, ::2] = True
    return Change(change.index, change.units.view("V1"), new)


def written(change: Change, **members) -> bytes:
    pending = PendingChunk("group/a", "layout", change, 0.0, None, None)._replace(**members)
    return b"".join(chunk_pieces(pending, 123))


def read(data: bytes) -> Change:
    file = BytesIO(data)
    header = read_header(file, len(data))
    file.seek(0)
    return read_change(file, header)


def with_hash(data: bytes) -> bytes:
    return data + blake2b(data, digest_size=HASH_SIZE).digest()


def changed_header(data: bytes, **members) -> bytes:
    """An entry whose first line was written in another way, with the right hash."""
    line, _, body = data[:-HASH_SIZE].partition(b"\n")
    return with_hash(json.dumps({**json.loads(line), **members}).encode() + b"\n" + body)


def assert_same(one: Change, other: Change) -> None:
    assert one.index == other.index
    assert one.new.tolist() == other.new.tolist()
    assert one.units[one.new].tobytes() == other.units[other.new].tobytes()
    assert one.elements.shape == other.elements.shape


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("dtype", ["u1", "<i4", ">f8", "V5"])
def test_an_entry_is_read_as_it_was_written(monkeypatch, piece, dtype):
    """However many elements are read and written at once."""
    monkeypatch.setattr(entry_file, "_PIECE", piece)
    for shape in [(), (1,), (8,), (9,), (5, 7), (2, 3, 4)]:
        check_read_as_written(shape, dtype)


def check_read_as_written(shape, dtype):
    new = change(shape, dtype)
    for one in (new, in_part(new)):
        assert_same(one, read(written(one)))


def test_the_first_line_says_what_a_mount_needs_to_judge_an_entry():
    data = written(change((5, 7)), base="state", old="hash")
    header = read_header(BytesIO(data), len(data))
    assert (header.path, header.layout) == ("group/a", "layout")
    assert (header.base, header.old, header.written_ns) == ("state", "hash", 123)
    assert (header.index, header.shape, header.item_size) == ((0, 1), (5, 7, 1), 4)
    assert header.marked == 12
    assert data.index(b"\n") + 1 + header.body == len(data)


def test_no_bit_of_an_entry_can_change_unnoticed():
    data = written(in_part(change((5, 7))))
    for at in range(len(data)):
        for bit in (1, 128):
            damaged = bytearray(data)
            damaged[at] ^= bit
            with pytest.raises(JournalError):
                read(bytes(damaged))


def test_an_entry_that_ends_early_or_goes_on_is_damaged():
    data = written(change((5, 7)))
    for stop in range(len(data)):
        with pytest.raises(JournalError):
            read(data[:stop])
    with pytest.raises(JournalError):
        read(data + b"\0")
    # Somebody cuts it, or writes more, after its header was read.
    header = read_header(BytesIO(data), len(data))
    for other in (data[:-1], data[: len(data) // 2], data + b"\0"):
        with pytest.raises(JournalError, match="damaged"):
            read_change(BytesIO(other), header)


WRONG = {
    "format": [0, 2, "3", None, 2.5],
    "path": [None, 5, ["a"]],
    "index": [None, 5, [0], [0, 1, 2], [0, -1], [0, True], [0, 1.5], ["0", "1"], [0] * 65],
    "layout": [None, 5],
    "written_ns": [None, -1, 1.5, True, 1 << 63, "1"],
    "base": [5, ["a"]],
    "old": [5, ["a"]],
    "shape": [None, 35, [35], [5, 7], [5, -7, 1], [7, 6, 1], [1] * 66],
    "item_size": [None, 0, -4, True, 3, 5],
    "marked": [None, -1, 36, 11, 13, True],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_first_line_that_describes_no_entry(name):
    for value in WRONG[name]:
        check_refused(name, value)


def check_refused(name, value):
    data = written(change((5, 7)))
    with pytest.raises(JournalError, match=r"damaged|later version"):
        read(changed_header(data, **{name: value}))


def test_marks_that_do_not_fit_the_first_line():
    """Their hash is right, so that somebody has written them so."""
    new = change((5, 7))
    line, _, body = written(new)[:-HASH_SIZE].partition(b"\n")
    packed = bytearray(body[:5])
    packed[0] ^= 0b01000000
    with pytest.raises(JournalError, match="marks"):
        read(with_hash(line + b"\n" + bytes(packed) + body[5:]))


@pytest.mark.parametrize("line", [b"{", b"[1]", b"5", b"", b"[" * 50_000, b"\xff"], ids=range(6))
def test_a_first_line_that_is_no_object(line):
    for read_one in (read, lambda data: read_growth(BytesIO(data), len(data))):
        with pytest.raises(JournalError, match="damaged"):
            read_one(with_hash(line + b"\n"))


def test_growth():
    growth = PendingGrowth("group/a", (5, 7), 9)
    data = b"".join(growth_pieces(growth))
    assert read_growth(BytesIO(data), len(data)) == growth
    for stop in range(len(data)):
        with pytest.raises(JournalError, match="damaged"):
            read_growth(BytesIO(data[:stop]), stop)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(JournalError, match="damaged"):
            read_growth(BytesIO(bytes(damaged)), len(damaged))
    with pytest.raises(JournalError, match="too large"):
        read_growth(BytesIO(bytes(1 << 20)), 1 << 20)
    for found in ({"rows": -1}, {"shape": 5}, {"path": 5}, {"rows": True}):
        line = json.dumps({"path": "a", "shape": [5, 7], "rows": 9, **found}).encode()
        entry = with_hash(line + b"\n")
        with pytest.raises(JournalError, match="as an entry does"):
            read_growth(BytesIO(entry), len(entry))


# --- the directory ----------------------------------------------------------------


@pytest.fixture
def journal(tmp_path) -> JournalDirectory:
    return JournalDirectory(tmp_path / "made" / "journal")


@pytest.fixture
def nothing_stays_open() -> Iterator[None]:
    before = os.listdir("/proc/self/fd")
    yield
    assert len(os.listdir("/proc/self/fd")) == len(before)


def content(journal: JournalDirectory, name: str = NAME) -> bytes:
    with journal.reading(name) as (file, size):
        data = file.read()
        assert len(data) == size
        return data


def files(journal: JournalDirectory) -> list[str]:
    return sorted(os.listdir(journal.path))


def test_an_entry_replaces_an_earlier_one_in_one_step(journal, nothing_stays_open):
    journal.put(NAME, lambda: iter([b"one", b"", b"two"]))
    assert content(journal) == b"onetwo"

    def fail() -> Iterator[bytes]:
        yield b"half"
        assert content(journal) == b"onetwo"
        assert files(journal) == [TEMPORARY, NAME]
        raise MemoryError

    with pytest.raises(MemoryError):
        journal.put(NAME, fail)
    assert files(journal) == journal.names() == [NAME]
    assert content(journal) == b"onetwo"
    journal.put(NAME, lambda: iter([b"three"]))
    assert content(journal) == b"three"
    journal.remove(NAME)
    journal.remove(NAME)
    assert journal.names() == files(journal) == []


def test_a_temporary_that_cannot_be_locked_is_not_left(journal, monkeypatch, nothing_stays_open):
    """It would be a file of this process, which no other one may remove before an hour is over."""

    def fail(descriptor: int, mode: int) -> None:
        raise MemoryError

    journal.put(NAME, lambda: iter([b"one"]))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", fail)
        with pytest.raises(MemoryError):
            journal.put(NAME, lambda: iter([b"two"]))
    assert files(journal) == [NAME]
    assert content(journal) == b"one"


def test_what_takes_the_place_of_a_temporary_is_not_written_to(journal, monkeypatch, tmp_path):
    """Somebody may put a link there after what was there is removed."""
    other = tmp_path / "other"
    other.write_bytes(b"of somebody else")
    unlink = os.unlink

    def replace(path, *, dir_fd=None) -> None:
        with suppress(FileNotFoundError):
            unlink(path, dir_fd=dir_fd)
        if path == TEMPORARY:
            os.link(other, path, dst_dir_fd=dir_fd)

    journal.put(NAME, lambda: iter([b"one"]))
    monkeypatch.setattr(os, "unlink", replace)
    with pytest.raises(FileExistsError):
        journal.put(NAME, lambda: iter([b"two"]))
    assert other.read_bytes() == b"of somebody else"
    assert content(journal) == b"one"


def test_a_temporary_of_a_killed_writer_is_replaced(journal, nothing_stays_open):
    journal.put(NAME, lambda: iter([b"one"]))
    (journal.path / TEMPORARY).write_bytes(b"half of what was to come")
    journal.put(NAME, lambda: iter([b"two"]))
    assert content(journal) == b"two"
    assert files(journal) == [NAME]


def test_what_is_set_aside_is_durable_in_both_directories(journal, monkeypatch):
    """Else it could come back after a crash, or be in neither directory."""
    journal.put(NAME, lambda: iter([b"one"]))
    kept = journal.path / "damaged" / "kept"
    synced = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        fsync(descriptor)
        if kept.exists():
            synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", note)
    journal.set_aside(NAME, "damaged", "kept")
    assert synced == [kept.parent.stat().st_ino, journal.path.stat().st_ino]


def test_a_directory_that_others_remove_meanwhile_is_made_again(journal, nothing_stays_open):
    tries = []

    def pieces() -> Iterator[bytes]:
        tries.append(1)
        if len(tries) < 3:
            # As another mount does that finds the file before it is locked, and nothing else.
            os.unlink(journal.path / TEMPORARY)
            journal.path.rmdir()
        yield b"one"

    journal.put(NAME, pieces)
    assert content(journal) == b"one"
    assert len(tries) == 3


def test_what_killed_writers_left_is_removed_and_nothing_else(journal, nothing_stays_open):
    journal.put(NAME, lambda: iter([b"one"]))
    for name in (TEMPORARY, ".notes", "notes.new"):
        (journal.path / name).write_bytes(b"x")
    (journal.path / f".{'e' * 32}-{'f' * 16}.chunk.new").mkdir()
    with open(journal.path / TEMPORARY, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        journal.clean()
        assert TEMPORARY in files(journal)
    journal.clean()
    found = [NAME, ".notes", "notes.new", f".{'e' * 32}-{'f' * 16}.chunk.new"]
    assert files(journal) == sorted(found)


def test_only_an_empty_directory_goes(journal, nothing_stays_open):
    journal.put(NAME, lambda: iter([b"one"]))
    kept = journal.set_aside(NAME, "damaged", "kept")
    assert kept.read_bytes() == b"one"
    assert (kept.parent.stat().st_mode & 0o777) == 0o700
    journal.clean()
    assert files(journal) == ["damaged"]
    kept.unlink()
    (journal.path / "conflicts").mkdir()
    journal.clean()
    assert not journal.path.exists()
    assert journal.names() == []
    journal.clean()
    journal.remove(NAME)
    with pytest.raises(FileNotFoundError), journal.reading(NAME):
        pass


def test_one_replay_at_a_time(journal, nothing_stays_open):
    """The second one waits as long as it was told; without a directory nobody waits."""
    with journal.locked(0.0) as alone:
        assert alone
    journal.put(NAME, lambda: iter([b"one"]))
    with journal.locked(0.0) as alone:
        assert alone
        with journal.locked(0.0) as second:
            assert not second
        waiting = threading.Event()
        found = []

        def wait() -> None:
            waiting.set()
            with journal.locked(60.0) as third:
                found.append(third)

        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(30)
    thread.join(30)
    assert found == [True]


def test_an_entry_of_another_user_or_none_is_not_read(journal, monkeypatch, nothing_stays_open):
    journal.put(NAME, lambda: iter([b"one"]))
    link = f"{'c' * 32}.growth"
    (journal.path / link).symlink_to(NAME)
    pipe = f"{'d' * 32}.growth"
    os.mkfifo(journal.path / pipe)
    for name, why in ((link, "symbolic links"), (pipe, "regular file")):
        with pytest.raises(JournalError, match=why), journal.reading(name):
            pass
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for use in (journal.names, journal.sync, lambda: journal.remove(NAME), journal.clean):
        with pytest.raises(JournalError, match="belongs to the user"):
            use()
    with journal.locked(0.0) as alone:
        assert alone
    monkeypatch.undo()
    assert content(journal) == b"one"


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_directory_in_its_place_is_not_used(journal, tmp_path, nothing_stays_open, kind):
    """Others could lead a mount anywhere with a link."""
    elsewhere = JournalDirectory(tmp_path / "elsewhere")
    elsewhere.put(NAME, lambda: iter([b"one"]))
    journal.path.parent.mkdir()
    if kind == "link":
        journal.path.symlink_to(elsewhere.path)
    else:
        journal.path.touch()
    uses = (
        journal.names,
        journal.sync,
        journal.clean,
        lambda: journal.put(NAME, lambda: iter([b"two"])),
        lambda: journal.set_aside(NAME, "damaged", "kept"),
        lambda: journal.remove(NAME),
    )
    for use in uses:
        with pytest.raises(NotADirectoryError):
            use()
    assert files(elsewhere) == [NAME]
    assert content(elsewhere) == b"one"


def test_a_link_in_place_of_the_directory_for_damaged_entries_is_not_followed(
    journal, tmp_path, nothing_stays_open
):
    journal.put(NAME, lambda: iter([b"one"]))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (journal.path / "damaged").symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError):
        journal.set_aside(NAME, "damaged", "kept")
    assert content(journal) == b"one"
    assert list(elsewhere.iterdir()) == []
