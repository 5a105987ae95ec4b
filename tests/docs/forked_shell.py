"""Runs the commands of a page, with ``zarrfs`` and ``python3`` in forks of this process.

It is a fork of `tests.forked_mount` itself, and so has imported what they import, which takes most
of the processor time of a short command. All that it starts is in a session of its own.
"""

import json
import marshal
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

_MOST = 1 << 18
_PEER = struct.Struct("3i")  # process, user and group
_COMMAND = "zarrfs.cli.main"
# In place of a command: says what it was called with, and ends as its fork does.
_STANDS_IN = f"""#!{sys.executable} -IS
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.connect({{address!r}})
said = marshal.dumps((sys.argv, os.getcwd(), dict(os.environ)))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([said], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
status = int(server.recv(16))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def main(root: Path, timeout: float, environment: dict[str, str]) -> None:
    """Runs ``script``, in the directory ``data``; what it says is in ``said``, all below ``root``.

    The stand-ins are put into ``bin`` where this process has zarrfs.
    """
    os.setsid()
    (root / "group").write_text(str(os.getpid()))
    address = f"\0zarrfs-page-{os.getpid()}"
    for name in ("zarrfs", "python3") if _COMMAND in sys.modules else ():
        path = root / "bin" / name
        path.write_text(_STANDS_IN.format(address=address))
        path.chmod(0o755)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
        selectors.DefaultSelector() as waiting,
        (root / "said").open("wb") as said,
    ):
        server.bind(address)
        server.listen()
        waiting.register(server, selectors.EVENT_READ)
        shell = subprocess.Popen(
            ["bash", "-c", (root / "script").read_text()],
            cwd=root / "data",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        shell_ends = os.pidfd_open(shell.pid)
        waiting.register(shell_ends, selectors.EVENT_READ)
        give_up = time.monotonic() + timeout
        while shell.poll() is None and time.monotonic() < give_up:
            for key, _ in waiting.select(give_up - time.monotonic()):
                if key.fileobj is server:
                    connection, _ = server.accept()
                    if not _is_own(connection):
                        connection.close()
                        continue
                    ends, pid = _fork(connection)
                    waiting.register(ends, selectors.EVENT_READ, (pid, connection))
                elif key.data is not None:
                    waiting.unregister(key.fileobj)
                    os.close(key.fd)
                    _tell(*key.data)


def _is_own(connection: socket.socket) -> bool:
    """Whether it comes from this user: any may connect to an address without a file."""
    whose = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return _PEER.unpack(whose)[1] == os.geteuid()


def _fork(connection: socket.socket) -> tuple[int, int]:
    said, descriptors, *_ = socket.recv_fds(connection, _MOST, 3)
    pid = os.fork()
    if not pid:
        for standard, descriptor in enumerate(descriptors):
            os.dup2(descriptor, standard)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _command(*marshal.loads(said))
    for descriptor in descriptors:
        os.close(descriptor)
    return os.pidfd_open(pid), pid


def _tell(pid: int, connection: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with connection:
        connection.send(b"%d" % os.waitstatus_to_exitcode(status))


def _command(words: list[str], directory: str, environment: dict[str, str]) -> NoReturn:
    from tests.forked_mount import run_to_end

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = words
    if words[0].endswith("zarrfs"):
        sys.path[0] = os.path.dirname(words[0])
        run_to_end(sys.modules[_COMMAND].main)
    run_to_end(_python)


def _python() -> None:
    """``python3 -c PROGRAM`` or ``python3 -``."""
    option, *arguments = sys.argv[1:]
    program = sys.stdin.read() if option == "-" else arguments.pop(0)
    sys.argv[:] = [option, *arguments]
    sys.path[0] = ""
    module: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        exec(compile(program, "<string>", "exec"), module.__dict__)
    except Exception:  # noqa: BLE001 - as Python tells it
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    main(Path(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3]))
