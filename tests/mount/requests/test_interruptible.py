"""The promise that nothing hangs: a store that never answers."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zarr

from tests.waiting import wait_until

READERS = 12
# The deadline of its mounts passes when the test says so.
LATE = Path(__file__).parent / "late_zarrfs.py"


class _Silent(SimpleHTTPRequestHandler):
    """Serves metadata, and keeps who asks for a chunk waiting until ``released``."""

    asked: threading.Event
    released: threading.Event
    paths: set[str]

    def do_GET(self) -> None:
        if "/c/" in self.path:
            self.paths.add(self.path)
            self.asked.set()
            self.released.wait(100)
            self.close_connection = True
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


class Server:
    def __init__(self, directory: Path) -> None:
        self.asked, self.released = threading.Event(), threading.Event()
        self.paths: set[str] = set()
        shared = {"asked": self.asked, "released": self.released, "paths": self.paths}
        handler = type("Handler", (_Silent,), shared)
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *given: handler(*given, directory=str(directory))
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}/a.zarr"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    for name, length in (("a", 8), ("many", 8 * READERS)):
        path = tmp_path / f"served/{name}.zarr"
        zarr.create_array(path, shape=(length,), chunks=(8,), dtype="u1")[:] = 1
    server = Server(tmp_path / "served")
    yield server
    server.close()


def test_interruptible(mount_daemon, server, tmp_path):
    """A read ends at the deadline of the mount, with an error that says so."""
    late = tmp_path / "late"
    command = sys.executable, LATE, late
    daemon = mount_daemon(server.url, "timeout=3", quiet=False, command=command)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit((daemon.path / "array.bin").read_bytes)
        assert server.asked.wait(30)
        late.touch()
        error = reading.exception()
    # The page cache of newer kernels makes EIO of it.
    assert isinstance(error, OSError)
    assert error.errno in (errno.ETIMEDOUT, errno.EIO)
    assert "gave up after 3 s" in daemon.log
    # The mount goes on, and ends as every other one.
    assert os.listdir(daemon.path / "chunks") == ["0"]
    daemon.umount()


def test_interruptible_by_sigterm(mount_daemon, server):
    """A mount whose store does not answer for an hour ends while a reader waits for it."""
    daemon = mount_daemon(server.url, "timeout=3600", quiet=False)
    failures: list[OSError] = []

    def read() -> None:
        try:
            (daemon.path / "array.bin").read_bytes()
        except OSError as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    assert server.asked.wait(30)
    daemon.signal(signal.SIGTERM)
    daemon.wait_for_log("ending on SIGTERM")
    daemon.signal(signal.SIGTERM)  # the second one does not wait for requests in flight
    daemon.wait()
    reader.join(30)
    assert not reader.is_alive()
    assert len(failures) == 1
    assert not daemon.mounted


@pytest.mark.timeout(150)
def test_many_reads_do_not_delay_the_end(mount_daemon, server):
    """All threads wait for the store: none of them is waited for alone."""
    daemon = mount_daemon(server.url.replace("a.zarr", "many.zarr"), "timeout=3600", quiet=False)

    def read(number: int) -> None:
        with pytest.raises(OSError):
            (daemon.path / "chunks" / str(number)).read_bytes()

    with ThreadPoolExecutor(READERS) as pool:
        reading = pool.map(read, range(READERS))
        wait_until(lambda: len(server.paths) >= READERS)
        daemon.signal(signal.SIGTERM)
        assert daemon.wait(60) == 0
        list(reading)
    # What the watchdog says has the stacks of all threads.
    assert "freeing" not in daemon.log
    assert len(daemon.log.splitlines()) < 100
    assert not daemon.mounted
