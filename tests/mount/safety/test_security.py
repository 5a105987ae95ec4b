"""What others on the machine can see and do, through real mounts."""

import base64
import functools
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import COMMAND, run_zarrfs
from tests.mount.programs import NOBODY

SECRET = "hunter2hunter2"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="to be several users takes root")


class Guarded(SimpleHTTPRequestHandler):
    """Gives files to one user."""

    def do_GET(self) -> None:
        expected = base64.b64encode(f"somebody:{SECRET}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {expected}":
            super().do_GET()
        else:
            self.send_error(401)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """The port of a web server of what is in ``tmp_path``."""
    handler = functools.partial(Guarded, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield listener.server_address[1]
        listener.shutdown()


def processes() -> str:
    """The arguments of all processes but the test's own."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            texts.append(path.read_text(errors="replace"))
        except OSError:
            continue  # it has ended
    return "\n".join(texts)


@pytest.mark.parametrize("way", ["url", "option", "file"])
def test_credentials_are_seen_nowhere(server, mount_daemon, source, data, tmp_path, way):
    """Not in the log, config.json, the mount table or the list of processes."""
    name = f"127.0.0.1:{server}/{source.name}"
    url, options, more = f"http://{name}", [], []
    # aiohttp's own way to say it, as JSON.
    headers = {"Authorization": f"Basic {base64.b64encode(f'somebody:{SECRET}'.encode()).decode()}"}
    if way == "url":
        url = f"http://somebody:{SECRET}@{name}"
    elif way == "option":
        more = ["--storage-option", f"headers={json.dumps(headers)}"]
    else:
        private = tmp_path / "options.json"
        private.write_text(json.dumps({"headers": headers}))
        options = [f"storage_options={private}"]
    command = (*COMMAND, "mount", *more)
    daemon = mount_daemon(url, "log_level=debug", *options, command=command, quiet=False)
    # Not NumPy, which would not let the server's thread run meanwhile.
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    table = Path("/proc/self/mountinfo").read_text()
    config = (daemon.path / ".zarrfs/config.json").read_text()
    stats = (daemon.path / ".zarrfs/stats.json").read_text()
    said = run_zarrfs("status", daemon.path).stdout + run_zarrfs("mounts").stdout
    seen = [daemon.log, config, stats, said, table, processes()]
    assert f"127.0.0.1:{server}" in table
    for secret in (SECRET, headers["Authorization"].split()[1]):
        assert not any(secret in text for text in seen)
    daemon.umount()


def as_nobody(*command) -> int:
    done = subprocess.run(
        [*map(str, command)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.returncode


@ROOT
def test_modes_hold_for_others(place, mount_daemon, source):
    """Root mounts for all with allow_other, and the kernel asks for owner and mode."""
    mnt = mount_daemon(source, "rw,allow_other", at=place / "open").path
    assert as_nobody("cat", mnt / "array.bin") == 0
    assert as_nobody("dd", "if=/dev/zero", f"of={mnt}/array.bin", "count=1", "conv=notrunc") == 1
    closed = mount_daemon(source, "allow_other,umask=077", at=place / "closed").path
    assert as_nobody("cat", closed / "array.bin") == 1
    assert as_nobody("ls", closed) == 2
    own = mount_daemon(source, f"rw,allow_other,umask=077,uid={NOBODY}", at=place / "own").path
    assert as_nobody("dd", "if=/dev/zero", f"of={own}/array.bin", "count=1", "conv=notrunc") == 0


@ROOT
def test_without_allow_other_a_mount_is_its_owners(place, mount_daemon, source):
    mnt = mount_daemon(source, at=place / "mnt").path
    assert as_nobody("stat", mnt / "array.bin") == 1


def test_nothing_in_a_mount_runs_with_other_rights(mounted, source):
    path = mounted(source)
    options = next(
        line.split()[5]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if line.split()[4] == str(path)
    )
    assert {"nosuid", "nodev", "ro"} <= set(options.split(","))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory"),
        (f"{SECRET}", "is not JSON"),
        (f'["{SECRET}"]', "object"),
    ],
)
def test_a_file_of_storage_options_that_is_none(source, tmp_path, content, says):
    path = tmp_path / "options"
    if content is not None:
        path.write_text(content)
    done = run_zarrfs("mount", source, tmp_path, "-o", f"storage_options={path}")
    assert done.returncode == 2
    assert says in done.stderr
    assert SECRET not in done.stderr
