"""``zarrfs control``: a running mount stores, drops and changes its memory."""

import json
import mmap
import os
import pwd
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import trio
import zarr

from tests.conftest import run_zarrfs
from zarrfs.daemon.control import Peer, address
from zarrfs.daemon.life import control_socket

MIB = 1 << 20


def stats(daemon) -> dict:
    return json.loads((daemon.path / ".zarrfs/stats.json").read_text())


def control(daemon, *actions: str) -> list[dict]:
    done = run_zarrfs("control", "--json", daemon.path, *actions)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["mountpoint"] == str(daemon.path)
    return told["done"]


def test_flush_stores_what_nobody_has_asked_to_store(mount_daemon, source):
    daemon = mount_daemon(source, "rw", "flush_delay=3600")
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        file.write(np.full(500, 7, np.uint16).tobytes())
        assert zarr.open_array(source, mode="r")[0, 0] == 0
        # Not the command: a child that ends closes copies of this file, which stores, too.
        assert _ask(daemon, b'{"command": "flush"}\n') == {"done": {"stored_bytes": 1000}}
        assert (zarr.open_array(source, mode="r")[0] == 7).all()
        assert stats(daemon)["dirty_bytes"] == 0
        (done,) = control(daemon, "flush")
        assert done["stored_bytes"] == 0


def test_flush_stores_mapped_pages(mount_daemon, source):
    daemon = mount_daemon(source, "rw", "flush_delay=3600")
    with open(daemon.path / "array.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[:2] = b"\x07\x00"
        _ask(daemon, b'{"command": "flush"}\n')
        assert zarr.open_array(source, mode="r")[0, 0] == 7


def test_flush_that_fails(mount_daemon, source):
    """The reason is one line; the changes stay, and the next flush stores them."""
    daemon = mount_daemon(source, "rw", "flush_delay=3600", quiet=False)
    (source / "c/0/0").unlink()
    (source / "c/0/0").mkdir()
    (source / "c/0/0/in the way").touch()
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        file.write(b"\x07\x00")
        failed = run_zarrfs("control", daemon.path, "flush", "drop")
        assert failed.returncode == 1
        assert failed.stderr.startswith("zarrfs: not all changes could be stored: c/0/0")
        assert failed.stderr.count("\n") == 1
        assert failed.stdout == ""
        (source / "c/0/0/in the way").unlink()
        (source / "c/0/0").rmdir()
        control(daemon, "flush")
    assert zarr.open_array(source, mode="r")[0, 0] == 7


def test_drop(mount_daemon, source, data):
    daemon = mount_daemon(source)
    for name in ("chunks/0/0", "chunks/1/1"):
        (daemon.path / name).read_bytes()
    with open(daemon.path / "array.bin", "rb") as file:
        file.seek(3)
        file.read(5)
        before = stats(daemon)
        assert before["memory"]["chunks"] > 0
        (done,) = control(daemon, "drop")
        assert done["freed_bytes"] > 0
        after = stats(daemon)
        assert after["memory"]["chunks"] == 0
        # The kernel's pages are gone, too, also of files that are open.
        file.seek(0)
        assert file.read() == data.tobytes()
    assert stats(daemon)["cache"]["loads"] > after["cache"]["loads"]


def test_drop_keeps_changes(mount_daemon, source, data):
    daemon = mount_daemon(source, "rw", "flush_delay=3600")
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        file.write(b"\x07\x00")
        _ask(daemon, b'{"command": "drop"}\n')
        assert stats(daemon)["dirty_bytes"] == 2
        data[0, 0] = 7
        assert (daemon.path / "array.bin").read_bytes() == data.tobytes()


@pytest.mark.parametrize("options", [(), ("rw",)])
def test_memory(mount_daemon, tmp_path, options):
    data = np.arange(32 * 512 * 512, dtype=np.uint16).reshape(32, 512, 512)
    zarr.create_array(tmp_path / "a.zarr", data=data, chunks=(16, 64, 64))
    daemon = mount_daemon(tmp_path / "a.zarr", "memory=64M", *options)
    chunks = sorted(path for path in (daemon.path / "chunks").rglob("*") if path.is_file())

    def read_all() -> None:
        for path in chunks[::7]:
            with open(path, "rb") as file:
                file.read(100)
        assert (daemon.path / "array.bin").read_bytes() == data.tobytes()

    read_all()
    for size in (16, 128, 32):
        (done,) = control(daemon, f"memory={size}M")
        assert done["memory"] == size * MIB
        memory = stats(daemon)["memory"]
        assert memory["budget"] == size * MIB
        assert memory["used"] <= size * MIB
        config = json.loads((daemon.path / ".zarrfs/config.json").read_text())
        assert config["options"]["memory"] == size * MIB
        read_all()
        assert stats(daemon)["memory"]["used"] <= size * MIB
        if options:
            with open(daemon.path / "array.bin", "r+b") as file:
                data[:] = data[::-1].copy() + size
                file.write(data.tobytes())
            read_all()
    assert (zarr.open_array(tmp_path / "a.zarr", mode="r")[:] == data).all()


def test_less_memory_than_an_array_needs(mount_daemon, tmp_path):
    array = zarr.create_array(
        tmp_path / "a.zarr", data=np.full((1024, 8192), 5, "u2"), chunks=(1024, 8192)
    )
    daemon = mount_daemon(tmp_path / "a.zarr", "memory=128M")
    failed = run_zarrfs("control", daemon.path, "memory=16M")
    assert failed.returncode == 1
    assert "decoding one chunk takes up to" in failed.stderr
    (least,) = re.findall(r" \(memory=(\d+)M would do\)$", failed.stderr.strip())
    assert 16 < int(least) < 128
    assert run_zarrfs("control", daemon.path, f"memory={int(least) - 1}M").returncode == 1
    assert stats(daemon)["memory"]["budget"] == 128 * MIB
    done = run_zarrfs("control", daemon.path, f"memory={least}M")
    assert done.returncode == 0, done.stderr
    assert run_zarrfs("control", daemon.path, "memory=128M").returncode == 0
    assert failed.stderr.count("\n") == 1
    assert stats(daemon)["memory"]["budget"] == 128 * MIB
    assert (daemon.path / "array.bin").read_bytes() == b"\5\0" * array.size


def test_in_words(mount_daemon, source):
    daemon = mount_daemon(source, "memory=128M")
    done = run_zarrfs("control", daemon.path, "flush", "drop", "memory=64M")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "flush: 0 bytes stored",
        "drop: 0 bytes freed",
        "memory: 64 MiB (before: 128 MiB)",
    ]


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (("stop",), "No such action 'stop': flush, drop or memory=SIZE."),
        (("flush", "memory"), "memory needs a size, such as memory=2G."),
        (("memory=1K",), "memory=1K is less than the 16M needed."),
        (("drop=1",), "No such action 'drop=1': flush, drop or memory=SIZE."),
        ((), "Missing argument"),
    ],
)
def test_wrong_usage(tmp_path, actions, reason):
    """Nothing is asked of the mount."""
    failed = run_zarrfs("control", tmp_path, *actions)
    assert failed.returncode == 2
    assert reason in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_not_mounted(tmp_path):
    failed = run_zarrfs("control", tmp_path, "flush")
    assert (failed.returncode, failed.stderr) == (1, f"zarrfs: {tmp_path} is not mounted\n")


def _ask(daemon, request: bytes) -> dict:
    name = json.loads((daemon.path / ".zarrfs/config.json").read_text())["control"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address(name))
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return json.loads(connection.makefile().read())


def test_strange_requests(mount_daemon, source):
    """Each is refused, and the mount goes on."""
    daemon = mount_daemon(source)
    for request in (
        b"", b"\n", b"{\n", b"[]\n", b"{}\n", b'{"command": "memory"}\n', b"x" * 5000,
        b'{"command": "memory", "size": 5}\n', b'{"command": ["flush"]}\n', b"\xff\n",
    ):  # fmt: skip
        assert "error" in _ask(daemon, request), request
    assert _ask(daemon, b'{"command": "flush"}\n') == {"done": {"stored_bytes": 0}}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_users(mount_daemon, source):
    """Only root and the owner may, whoever can see the mount."""
    daemon = mount_daemon(source, "allow_other")
    name = json.loads((daemon.path / ".zarrfs/config.json").read_text())["control"]
    nobody = pwd.getpwnam("nobody").pw_uid
    ask = (
        "import os, socket, sys; from zarrfs.daemon.control import _ask, address;"
        "os.setuid(int(sys.argv[1]));"
        "s = socket.socket(socket.AF_UNIX); s.connect(address(sys.argv[2]));"
        "print(_ask(s, {'command': 'drop'})['error'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", ask, str(nobody), name],
        stdout=subprocess.PIPE, text=True, timeout=30, check=True,
    ).stdout  # fmt: skip
    assert said == "only root and the user who mounted it can control it\n"


def test_other_users_are_answered_before_they_say_anything(monkeypatch):
    """Otherwise their silence would hold up the commands of root and the owner."""
    monkeypatch.setattr(control_socket, "peer", lambda _: Peer(1, os.geteuid() + 1))
    ours, theirs = socket.socketpair()

    async def never(_: object) -> dict[str, object]:
        raise AssertionError

    async def answer() -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        with monkeypatch.context() as patched:
            patched.setattr(trio.SocketStream, "receive_some", never)
            await control_socket._answer(stream, never, trio.CapacityLimiter(1))

    trio.run(answer)
    assert b"only root" in theirs.recv(1000)
    theirs.close()
