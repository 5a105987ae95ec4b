"""The program that finds the chunks of files of other formats: it always ends."""

import gc
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from tests.waiting import gone, wait_until
from zarrfs.errors import StoreError
from zarrfs.store.foreign import translate
from zarrfs.store.open import StoreConfig, open_store

pytestmark = pytest.mark.timeout(120)

HERE = Path(__file__).parent
SLEEPING = HERE / "sleeping_zarrfs.py"
OPEN = """
import sys
sys.path.append(sys.argv[1])
from zarrfs.store.foreign import kept
from zarrfs.store.open import StoreConfig, open_store
kept._PROGRAM = "sleeping_translator"
open_store(sys.argv[2], StoreConfig(references=sys.argv[3]))
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A directory with a file whose chunks are never found, and others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = tmp_path / "data"
    directory.mkdir()
    for name in ("slow", "fast"):
        with h5py.File(directory / f"{name}.h5", "w") as file:
            file["x"] = [1, 2]
    zarr.save_array(directory / "a.zarr", np.arange(3))
    return directory / "slow.h5"


def files_in(kept: Path) -> list[Path]:
    return [path for path in kept.rglob("*") if not path.is_dir()]


def translator(slow: Path) -> int:
    """The number of the process, once it runs."""
    pid = slow.with_suffix(".pid")
    return int(wait_until(lambda: pid.exists() and pid.read_text()))


@pytest.mark.parametrize(
    ("hard", "most"), [(1 << 30, 1 << 30), (8 << 30, 4 << 30), (resource.RLIM_INFINITY, 4 << 30)]
)
def test_it_keeps_a_limit_of_the_user_on_memory(hard, most, monkeypatch):
    """Only root may raise it."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    set_to: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *limits: set_to.append(limits))
    assert translate.decode({"kind": "not_installed"}, b"") == b""
    assert set_to == [(resource.RLIMIT_DATA, (most, most))]


def test_it_ends_in_its_time_and_leaves_nothing(slow, tmp_path, monkeypatch):
    """Its time is longer from turn to turn until it suffices to start the program."""
    monkeypatch.setattr("zarrfs.store.foreign.kept._PROGRAM", "sleeping_translator")
    monkeypatch.syspath_prepend(HERE)
    for seconds in (3, 9, 27):
        config = StoreConfig(references=str(tmp_path / "kept"), translation_timeout=seconds)
        message = rf"not found within {seconds} s: raise -o translation_timeout"
        with pytest.raises(StoreError, match=message):
            open_store(str(slow), config)
        assert files_in(tmp_path / "kept") == []
        if slow.with_suffix(".pid").exists():
            break
    assert gone(translator(slow))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_parent_and_leaves_nothing(slow, tmp_path, number):
    kept = tmp_path / "kept"
    parent = subprocess.Popen([sys.executable, "-c", OPEN, str(HERE), str(slow), str(kept)])
    try:
        pid = translator(slow)
        assert not gone(pid)
    finally:
        parent.send_signal(number)
        assert parent.wait(60) == -number
    wait_until(lambda: gone(pid))
    assert files_in(kept) == []


@pytest.mark.mount
def test_other_files_do_not_wait_for_it(slow, mount_daemon):
    """The program ends when this test says so: all that comes before was answered while it ran."""
    daemon = mount_daemon(
        slow.parent, "translation_timeout=600", command=(sys.executable, SLEEPING), quiet=False
    )
    lists = subprocess.Popen(
        ["ls", str(daemon.path / "slow.h5")], stdout=subprocess.PIPE, text=True
    )
    pid = translator(slow)
    killed = subprocess.Popen(["cat", str(daemon.path / "slow.h5/x/array.bin")])
    killed.kill()
    assert {"a.zarr", "fast.h5", "slow.h5"} <= set(os.listdir(daemon.path))
    assert (daemon.path / "a.zarr/array.bin").stat().st_size == 24
    assert "array.bin" in os.listdir(daemon.path / "fast.h5/x")
    assert (daemon.path / "fast.h5/x/array.bin").read_bytes()[:1] == b"\1"
    assert lists.poll() is None
    assert not gone(pid)
    os.kill(pid, signal.SIGKILL)
    assert lists.communicate(timeout=60)[0] == "zarrfs-note.txt\n"
    assert killed.wait(60) == -signal.SIGKILL
    note = (daemon.path / "slow.h5/zarrfs-note.txt").read_text()
    assert "crashed (signal 9)" in note
    with pytest.raises(OSError, match="Input/output error"):
        (daemon.path / "slow.h5/x/array.bin").read_bytes()


@pytest.mark.mount
def test_a_mount_that_ends_does_not_wait_for_it(slow, mount_daemon):
    daemon = mount_daemon(
        slow.parent, "translation_timeout=600", command=(sys.executable, SLEEPING), quiet=False
    )
    reader = subprocess.Popen(
        ["ls", str(daemon.path / "slow.h5")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pid = translator(slow)
    daemon.signal(signal.SIGTERM)
    daemon.wait(60)
    reader.wait(60)
    wait_until(lambda: gone(pid))
    kept = Path(os.environ["XDG_CACHE_HOME"]) / "zarrfs/references"
    assert files_in(kept) == []
