"""``zarrfs``, and scripts that mount, in forks of a process that has imported most of zarrfs.

Of the processor time that a small mount takes, two thirds are the start of Python and its imports.
A fork copies each page of memory that it changes. So it looks for no garbage among what was there
before, and ends without tearing down its modules: another two thirds for a short command.
Only a plain call is forked: the tests of imports, environments and command lines start Python anew.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

_MOST = 1 << 16
_STARTS_S = 60
# Variables that are read when a source is opened, and not when Python starts or imports. netCDF4
# sets the one of HDF5 when a test imports it.
_CARRIED = (
    "AWS_",
    "HDF5_PLUGIN_PATH",
    "STORAGE_EMULATOR_HOST",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
# These, and the rest of zarrfs but for what loads libraries that only some arrays need.
_FIRST = "zarrfs.cli.main"
_LOAD_MORE = (
    "zarrfs.__main__",
    "zarrfs.format.codecs.blosc",
    "zarrfs.format.codecs.grib",
    "zarrfs.format.codecs.gzip",
    "zarrfs.format.extension_types.small_numbers",
    "zarrfs.format.metadata.strict",
    "zarrfs.library.check",
    "zarrfs.library.headers",
    "zarrfs.views.headers.formats",
    "zarrfs.views.headers.tiff",
    "zarrfs.store.foreign",
    "zarrfs.store.remote",
)


def forked(arguments: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str] | None:
    """As `subprocess.run` of ``zarrfs`` or of a script; None if it could differ from that."""
    global _server  # noqa: PLW0603 - one for all tests of this process
    # It runs one command after the other.
    if not _busy.acquire(blocking=False):
        return None
    try:
        if _server is None or _server.pid != os.getpid():
            _server = _Server()
        return _server.run(arguments, timeout) if _server.surroundings == _surroundings() else None
    finally:
        _busy.release()


def end() -> None:
    """End the process. The next call starts another one, with the surroundings of that time."""
    global _server  # noqa: PLW0603 - as above
    with _busy:
        if _server is not None and _server.pid == os.getpid():
            _server.end()
        _server = None


_server: _Server | None = None
_busy = threading.Lock()


def _surroundings() -> tuple[Any, ...]:
    """What a command inherits of this process, but for standard streams."""
    umask = Path("/proc/self/status").read_text().partition("Umask:\t")[2].partition("\n")[0]
    limits = Path("/proc/self/limits").read_text()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTEST_CURRENT_TEST" and not name.startswith(_CARRIED)
    }
    return os.getcwd(), umask, limits, environment


def _carried() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_CARRIED)}


class _Server:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.surroundings = _surroundings()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Ends with the socket, which only this process holds.
        self._process = subprocess.Popen(
            # `zarrfs umount` looks for its own name in the command line of a daemon.
            [sys.executable, __file__, str(theirs.fileno()), "zarrfs", "mount"],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._socket.settimeout(_STARTS_S)
        assert self._socket.recv(_MOST) == b"ready"

    def run(self, arguments: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        with open(os.devnull, "rb") as null, _Pipe() as output, _Pipe() as errors:
            descriptors = [null.fileno(), output.writing, errors.writing]
            message = json.dumps([arguments, _carried()]).encode()
            socket.send_fds(self._socket, [message], descriptors)
            output.close_writing()
            errors.close_writing()
            try:
                status = self._wait((output, errors), timeout)
            except (TimeoutError, ValueError):
                # It hangs or has ended: the next mount gets another one.
                self._process.kill()
                self._process.wait()
                self.pid = -1
                raise
            return subprocess.CompletedProcess(arguments, status, output.text(), errors.text())

    def end(self) -> None:
        self._socket.close()
        self._process.wait(_STARTS_S)

    def _wait(self, pipes: Sequence[_Pipe], timeout: float) -> int:
        """The exit status. Reads the pipes meanwhile, because the command waits when one is full,
        and to the end: whoever still writes to them would keep a user waiting, too."""
        status = -1
        give_up = time.monotonic() + timeout
        waiting: list[socket.socket | _Pipe] = [self._socket, *pipes]
        while waiting:
            ready = select.select(waiting, [], [], max(0, give_up - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("the command, or what it started, does not end")
            for one in ready:
                if isinstance(one, _Pipe):
                    if one.read():
                        continue
                else:
                    status = json.loads(one.recv(_MOST))
                waiting.remove(one)
        return status


class _Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self._parts: list[bytes] = []

    def __enter__(self) -> _Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.reading)
        self.close_writing()

    def close_writing(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def fileno(self) -> int:
        return self.reading

    def read(self) -> bool:
        """Whether there was something before the end."""
        self._parts.append(os.read(self.reading, _MOST))
        return bool(self._parts[-1])

    def text(self) -> str:
        return b"".join(self._parts).decode()


def _serve(connection: socket.socket) -> list[str] | None:
    """Forks for each call; the arguments in a fork, None at the end of all."""
    connection.send(b"ready")
    while True:
        message, descriptors, *_ = socket.recv_fds(connection, _MOST, 3)
        if not message:
            return None
        child = os.fork()
        if not child:
            connection.close()
            for standard, descriptor in enumerate(descriptors):
                os.dup2(descriptor, standard)
                os.close(descriptor)
            asked, carried = json.loads(message)
            for name in _carried():
                del os.environ[name]
            os.environ.update(carried)
            return list(asked)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def _import_most() -> None:
    importlib.import_module(_FIRST)
    for found in pkgutil.walk_packages(sys.modules["zarrfs"].__path__, "zarrfs."):
        if not found.name.startswith(_LOAD_MORE):
            importlib.import_module(found.name)


def run_to_end(main: Callable[[], object]) -> NoReturn:
    """As the end of Python does, but for the modules."""
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    import runpy

    # As with `python -m`.
    sys.path[0] = os.getcwd()
    # As the daemon does before it imports NumPy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _import_most()
    gc.collect()
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1
    if (asked := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        sys.argv[1:] = asked
        if not (asked and asked[0].endswith(".py")):
            run_to_end(sys.modules[_FIRST].main)
        else:
            # As with `python SCRIPT`.
            del sys.argv[0]
            sys.path[0] = os.path.dirname(asked[0])
            runpy.run_path(asked[0], run_name="__main__")
