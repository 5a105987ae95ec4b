"""Errors that are kept keep nothing else, and their reasons are for users."""

import gc
import re
import struct
import weakref
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs.errors import ChunkError, DecodeError, StoreError, reason_of, unexpected


class Memory:
    """Whoever has it in use has a frame that knows it."""


@pytest.fixture
def uncollected():
    gc.disable()
    yield
    gc.enable()


def decode(memory):
    raise DecodeError(f"{type(memory).__name__} cannot be decoded")


def store(memory):
    try:
        decode(memory)
    except DecodeError as error:
        raise ChunkError("c/0", str(error)) from error


def clean_up(memory):
    try:
        store(memory)
    except ChunkError:
        raise StoreError("c/0", "is stuck")  # noqa: B904 - only its context tells of the other


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("work", [decode, store, clean_up])
def test_an_error_without_frames_keeps_no_memory(work):
    memory = Memory()
    there = weakref.ref(memory)
    kept = []
    try:
        work(memory)
    except (DecodeError, ChunkError, StoreError) as error:
        kept.append(error.without_frames())
    del memory
    assert there() is None
    with pytest.raises(type(kept[0])):
        raise kept[0]


def raised_by(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any kind
        call()
    return caught.value


@pytest.mark.parametrize(
    "call",
    [
        lambda: None.members,
        lambda: {}["a name"],
        [].pop,
        lambda: len(None),
        lambda: int("x"),
        lambda: struct.unpack("<I", b""),
        lambda: np.zeros(3).reshape(2, 2),
        lambda: np.frombuffer(b"abc", "<i4"),
        lambda: sorted([1, "a"]),
    ],
)
def test_words_about_python_are_not_for_users(call):
    assert reason_of(raised_by(call)) == "it is damaged, or has a form that zarrfs does not know"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("Can't read data\n  (filter returned failure)"), None),
        (ValueError("has 3 points, expected 4"), None),
        (KeyError("Unable to open object (component not found)"), None),
        (TypeError("f() got an unexpected keyword argument 'a'"), "it has an unknown member 'a'"),
        (TypeError("f() missing 1 required positional argument: 'a'"), "it lacks 'a'"),
        (MemoryError(), "it decodes to more than the memory that it may take"),
        (RecursionError("maximum recursion"), "it is nested too deeply"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "its text is not UTF-8"),
    ],
)
def test_a_reason_is_one_line_for_users(error, reason):
    assert reason_of(error) == (reason or " ".join(str(error.args[0]).split()))


# These tell of faults of zarrfs itself, or of a service, or go to no user.
_OF_NO_DATA = {
    "daemon/system/background.py", "daemon/life/serve.py", "daemon/life/control_socket.py",
    "fuse/failures.py", "jobs/worker.py", "cache/write/journal/journal.py",
    "store/local/local_errors.py", "store/remote/foreign_errors.py",
    "store/remote/icechunk/repository.py", "fs/nodes/opening.py", "errors.py",
    "format/codecs/pcodec.py", "library/engine.py",
}  # fmt: skip


def test_no_message_about_data_shows_an_exception_as_python_does():
    root = Path(zarrfs.__file__).parent
    shows = re.compile(r"error!r|repr\(error\)|type\(error\)\.__name__|split\(error\)")
    found = {
        str(path.relative_to(root)) for path in root.rglob("*.py") if shows.search(path.read_text())
    }
    assert found <= _OF_NO_DATA


def test_a_limit_on_processes_is_named():
    assert "ulimit -u" in unexpected(RuntimeError("can't start new thread"))
    assert unexpected(RuntimeError("other")) == "unexpected RuntimeError: other"
