"""`close` returns 0 when the data are in the store, whoever else has the file open or closes it."""

import errno
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs
from tests.mount.arrays import Target, other
from tests.mount.controlled import Controlled

PIECE = 8192
# Long enough for a request to reach the daemon; where it is too short nothing fails for that.
MOMENT_S = 0.2


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Path]:
    """The directory of a `Controlled`; nothing waits any more when the test is over."""
    yield tmp_path / "control"
    (tmp_path / "control/hold").unlink(missing_ok=True)
    (tmp_path / "control/full").unlink(missing_ok=True)


@pytest.fixture
def controlled(mount_daemon, target: Target, control: Path) -> Controlled:
    return Controlled.mount(mount_daemon, target.group, control)


@pytest.fixture
def path(controlled: Controlled, target: Target) -> Path:
    return controlled.daemon.path / target.name / "array.bin"


class Call(threading.Thread):
    """A call in a thread of its own; the errno that it ends with is ``code``, 0 for none."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.code: int | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except OSError as error:
            self.code = error.errno
        else:
            self.code = 0

    def returns_soon(self) -> bool:
        self.join(MOMENT_S)
        return not self.is_alive()

    def result(self) -> int | None:
        self.join(30)
        assert not self.is_alive(), "the call does not return"
        return self.code


def _kill(controlled: Controlled) -> None:
    controlled.daemon.signal(signal.SIGKILL)
    controlled.daemon.wait()


def _change(target: Target) -> tuple[bytes, bytes]:
    """New bytes for the first rows of the array, and all of its bytes with these."""
    new = other(target.data).tobytes()[:PIECE]
    return new, new + target.data.tobytes()[PIECE:]


def _forked_child(file: int) -> int:
    """A child that has inherited ``file`` and exits at once, which flushes it."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return child


@pytest.mark.parametrize("error", [0, errno.ENOSPC])
def test_close_waits_for_what_a_forked_child_stores_at_its_exit(controlled, path, target, error):
    """And hears of the error that the child met."""
    new, expected = _change(target)
    file = os.open(path, os.O_RDWR)
    os.pwrite(file, new, 0)
    controlled.hold()
    if error:
        controlled.fill()
    child = _forked_child(file)
    controlled.wait_until_held()
    closing = Call(lambda: os.close(file))
    assert not closing.returns_soon()
    controlled.go_on()
    assert closing.result() == error
    if not error:
        _kill(controlled)
        assert target.stored().tobytes() == expected
    os.waitpid(child, 0)
    if error:
        controlled.empty()


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_of_a_descriptor_closed_at_the_same_moment(controlled, path, target, copies):
    new, expected = _change(target)
    files = [os.open(path, os.O_RDWR)]
    files += [os.dup(files[0]) for _ in range(copies - 1)]
    os.pwrite(files[0], new, 0)
    controlled.hold()
    first = Call(lambda: os.close(files[0]))
    controlled.wait_until_held()
    others = [Call(lambda file=file: os.close(file)) for file in files[1:]]
    assert not any(each.returns_soon() for each in others)
    controlled.go_on()
    assert {each.result() for each in (first, *others)} == {0}
    _kill(controlled)
    assert target.stored().tobytes() == expected


def test_each_copy_of_a_descriptor_hears_that_the_store_is_full(controlled, path, target):
    new, _ = _change(target)
    files = [os.open(path, os.O_RDWR)]
    files += [os.dup(files[0]) for _ in range(3)]
    os.pwrite(files[0], new, 0)
    controlled.hold()
    controlled.fill()
    closings = [Call(lambda file=file: os.close(file)) for file in files]
    controlled.wait_until_held()
    controlled.go_on()
    assert [each.result() for each in closings] == [errno.ENOSPC] * 4
    controlled.empty()


def test_each_descriptor_of_a_file_hears_that_the_store_is_full(controlled, path, target):
    """Also those that another program opened, and which wrote nothing themselves."""
    new, expected = _change(target)
    files = [os.open(path, os.O_RDWR) for _ in range(3)]
    os.pwrite(files[0], new, 0)
    controlled.fill()
    for file in files[:2]:
        with pytest.raises(OSError, match="No space"):
            os.close(file)
    controlled.empty()
    os.close(files[2])
    _kill(controlled)
    assert target.stored().tobytes() == expected


def test_a_write_that_waits_for_room_while_a_copy_of_its_descriptor_is_closed(
    mount_daemon, sharded, control
):
    """The least memory there is: changes of some chunks have to be stored before others fit."""
    # Without a file for what memory has no room for.
    options = ("memory=16M", "spill=none")
    controlled = Controlled.mount(mount_daemon, sharded.group, control, *options)
    size = 16 << 20
    made = run_zarrfs(
        "create", sharded.group / "big", "--shape", f"{size // 4096},4096", "--chunks", "4096,64",
        "--dtype", "uint8",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    path = controlled.daemon.path / "big/array.bin"
    new = np.random.default_rng(1).integers(1, 256, size, np.uint8).tobytes()
    step = 1 << 20
    file = os.open(path, os.O_RDWR)
    last = Call(lambda: [os.pwrite(file, new[at : at + step], at) for at in range(0, size, step)])
    controlled.hold()
    controlled.wait_until_held()
    # Whatever can be written has been, and the next write waits.
    assert not last.returns_soon()
    copies = [os.dup(file) for _ in range(3)]
    closings = [Call(lambda copy=copy: os.close(copy)) for copy in copies]
    assert not any(each.returns_soon() for each in closings)
    controlled.go_on()
    assert {each.result() for each in (*closings, last)} == {0}
    os.close(file)
    _kill(controlled)
    with pytest.raises(OSError, match="not connected"):
        os.stat(path)
    assert zarr.open_array(sharded.group / "big", mode="r")[...].tobytes() == new


def test_a_mapping_whose_pages_the_kernel_writes_through_another_descriptor(
    controlled, path, target
):
    """It hands over all pages of a file through the descriptor that was mapped last."""
    first, second = (os.open(path, os.O_RDWR) for _ in range(2))
    one, two = (mmap.mmap(file, 0) for file in (first, second))
    expected = bytearray(target.data.tobytes())
    one[:5] = expected[:5] = b"first"
    one.close()
    os.close(first)
    _kill(controlled)
    two.close()
    with pytest.raises(OSError, match="not connected"):
        os.close(second)
    assert target.stored().tobytes() == expected


def test_a_forked_child_that_changes_a_mapping_and_exits(controlled, path, target):
    expected = bytearray(target.data.tobytes())
    file = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(file, 0)
    child = os.fork()
    if child == 0:
        mapped[100:105] = b"child"
        os._exit(0)
    os.waitpid(child, 0)
    expected[100:105] = b"child"
    mapped.close()
    os.close(file)
    _kill(controlled)
    assert target.stored().tobytes() == expected


def test_closing_what_was_not_written_to_stores_nothing(controlled, path, target):
    """Nor does it wait for what is being stored for others."""
    new, _ = _change(target)
    writer = os.open(path, os.O_RDWR)
    os.pwrite(writer, new, 0)
    reader = os.open(path, os.O_RDONLY)
    elsewhere = os.open(path.parent / "array.npy", os.O_RDWR)
    os.close(reader)
    os.close(elsewhere)
    assert controlled.changes == 0
    controlled.hold()
    storing = Call(lambda: os.fsync(writer))
    controlled.wait_until_held()
    for name, flags in (("array.bin", os.O_RDONLY), ("array.npy", os.O_RDWR)):
        file = os.open(path.parent / name, flags)
        assert Call(lambda file=file: os.close(file)).result() == 0
    controlled.go_on()
    assert storing.result() == 0
    os.close(writer)


def test_a_store_that_has_room_again_when_it_is_closed_tells_no_error(controlled, path, target):
    """Somebody heard of the error; by now the data are in the store."""
    new, expected = _change(target)
    file = os.open(path, os.O_RDWR)
    copy = os.dup(file)
    os.pwrite(file, new, 0)
    controlled.fill()
    with pytest.raises(OSError, match="No space"):
        os.close(copy)
    controlled.empty()
    os.close(file)
    _kill(controlled)
    assert target.stored().tobytes() == expected
