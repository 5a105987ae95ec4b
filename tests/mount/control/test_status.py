"""``zarrfs status`` and ``zarrfs mounts``, and what they read."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.conftest import COMMAND, run_zarrfs
from zarrfs import __version__
from zarrfs.cache.stats import Stats
from zarrfs.counted import printable
from zarrfs.fs import status
from zarrfs.fs.nodes.nodes import Local
from zarrfs.fs.status import MountStatus, to_metrics
from zarrfs.store.wrappers.timed import StoreTimes


def test_status(mount_daemon, source):
    daemon = mount_daemon(source, "rw")
    with open(daemon.path / "array.bin", "r+b") as file:
        file.read(1000)
        file.seek(0)
        file.write(b"12")
        file.flush()
        done = run_zarrfs("status", daemon.path)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[0] == f"{daemon.path}: {source} (read and write)"
        assert f"process {daemon.pid}, up" in lines[1]
        assert lines[1].endswith("1 array in memory, 1 open file")
        rows = {line.split()[0]: line for line in lines[2:]}
        assert re.search(r"in \d+ requests?$", rows["read"])  # this is one, too
        assert rows["written"].endswith("2 bytes in 1 request")
        assert "; journal /" in rows["to"]
        assert rows["errors"].split() == ["errors", "0"]
        told = json.loads(run_zarrfs("status", "--json", daemon.path).stdout)
    assert told["mountpoint"] == str(daemon.path)
    assert told["config"]["pid"] == daemon.pid
    assert told["stats"]["writes"] == {"count": 1, "bytes": 2}
    store = told["stats"]["store"]
    assert store["requests"] >= 2
    assert store["read_bytes"] > 0
    assert {"zarr.json"} <= {slow["key"] for slow in store["slowest"]}


def test_errors_are_shown(mount_daemon, source):
    (source / "c/0/0").write_bytes(b"rubbish")
    daemon = mount_daemon(source, quiet=False)
    with pytest.raises(OSError):
        (daemon.path / "array.bin").read_bytes()
    said = run_zarrfs("status", daemon.path).stdout
    assert re.search(r"^  errors   [1-9]\d*$", said, re.MULTILINE)
    assert " c/0/0: " in said.splitlines()[-1]


def test_watch(mount_daemon, source):
    """In a pipe one document a line, on a terminal in place; both until interrupted."""
    daemon = mount_daemon(source)
    watch = [*COMMAND, "status", "--watch", "-i", "0.1", str(daemon.path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*watch, "--json"], **pipes, text=True) as process:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert second["stats"]["uptime_seconds"] > first["stats"]["uptime_seconds"]
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == ""
        assert process.returncode == 0
    ours, theirs = pty.openpty()
    with (
        subprocess.Popen(watch, stdout=theirs, stderr=theirs) as process,
        open(ours, "rb", 0) as tty,
    ):
        os.close(theirs)
        try:
            said = b""
            while said.count(b"\x1b[H") < 3:
                said += tty.read(4096)
            assert b"(read-only)\x1b[K" in said
            # Whoever looks at it keeps it busy for a moment, which is no reason not to end.
            daemon.umount()
            # A terminal has room for so much, and then the command waits.
            with pytest.raises(OSError, match="Input/output error"):
                tty.readall()
            assert process.wait() == 1
        finally:
            process.kill()


def test_rates_are_since_the_last_look(mount_daemon, source):
    from zarrfs.cli.status import status_lines
    from zarrfs.daemon.status import Status

    daemon = mount_daemon(source)
    before = Status.of(str(daemon.path))
    (daemon.path / "array.bin").read_bytes()
    now = Status.of(str(daemon.path))
    seconds = now.stats["uptime_seconds"] - before.stats["uptime_seconds"]
    # Looking is reading, too.
    assert 600_000 / seconds <= now.rates(before)["read"] < 650_000 / seconds
    rates = [line for line in status_lines(now, before) if re.search(r"[sB]/s ", line)]
    assert [line.split()[0] for line in rates] == ["read", "fetched"]
    assert now.rates(now) == {}


def status_of(path) -> tuple[int, str]:
    done = run_zarrfs("status", path, timeout=30)
    assert done.stdout == ""
    return done.returncode, done.stderr


def state_of(path) -> dict:
    told = json.loads(run_zarrfs("mounts", "--json").stdout)
    return next((mount for mount in told if mount["mountpoint"] == str(path)), {})


def test_nothing_there(tmp_path):
    assert status_of(tmp_path) == (1, f"zarrfs: {tmp_path} is not mounted\n")
    assert status_of("/proc")[0] == 1


def test_a_dead_mount(mount_daemon, source):
    daemon = mount_daemon(source, quiet=False)
    assert state_of(daemon.path) == {
        "mountpoint": str(daemon.path),
        "source": str(source),
        "writable": False,
        "state": "alive",
        "pid": daemon.pid,
    }
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    status, said = status_of(daemon.path)
    dead = "is dead: its daemon was killed; zarrfs umount clears the mount point"
    assert (status, said) == (1, f"zarrfs: {daemon.path} {dead}\n")
    assert state_of(daemon.path)["state"] == "dead"


@pytest.mark.timeout(60)
def test_a_hung_mount(mount_daemon, source):
    """A daemon that is stopped answers nothing, and can be seen not to."""
    daemon = mount_daemon(source)
    daemon.signal(signal.SIGSTOP)
    try:
        status, said = status_of(daemon.path)
        assert (status, said) == (1, f"zarrfs: {daemon.path} does not answer: it hangs\n")
        table = run_zarrfs("mounts").stdout.splitlines()
        assert table[0].split() == ["MOUNTPOINT", "SOURCE", "MODE", "STATE", "PID"]
        row = next(line.split() for line in table if line.startswith(f"{daemon.path} "))
        assert row == [str(daemon.path), str(source), "ro", "hung", "-"]
    finally:
        daemon.signal(signal.SIGCONT)


def test_umount_shows_progress_on_a_terminal(mount_daemon, source):
    """What is left to store, where that takes a while, as this report here says twice."""
    daemon = mount_daemon(source, "rw")
    ours, theirs = pty.openpty()
    script = """
import sys
from zarrfs.daemon import umount
from zarrfs.daemon.life import end_report

looks, wait, read = [], umount._Daemon.wait, end_report.EndReader.read

def seem_busy(daemon, seconds):
    # However soon the daemon ends.
    looks.append(seconds)
    return len(looks) > 2 and wait(daemon, seconds)

def seem_to_store(reader):
    return end_report.End(storing=True, left=5 << 20) if len(looks) <= 2 else read(reader)

umount._Daemon.wait, end_report.EndReader.read = seem_busy, seem_to_store
from zarrfs.cli.main import main
main()
"""
    command = [sys.executable, "-c", script, "umount", str(daemon.path)]
    done = subprocess.run(command, stdout=theirs, stderr=theirs, timeout=60, check=False)
    said = os.read(ours, 4096)
    assert done.returncode == 0, said
    os.close(theirs)
    os.close(ours)
    assert b"storing changes  [" in said
    assert b"0 bytes of 5 MiB" in said
    assert said.endswith(b"\r\x1b[K\x1b[?25h"), "the bar is cleared, and the cursor shown"


def test_names_are_harmless_on_a_terminal():
    assert printable("a b\x1b]0;title\x07\n\udcff é") == r"a b\x1b]0;title\x07\n\udcff é"


def test_metrics(mount_daemon, source):
    daemon = mount_daemon(source)
    (daemon.path / "array.bin").read_bytes()
    text = (daemon.path / ".zarrfs/metrics").read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    stats = json.loads((daemon.path / ".zarrfs/stats.json").read_bytes())
    assert families["zarrfs_cache_misses"].type == "counter"
    (sample,) = families["zarrfs_cache_misses"].samples
    assert (sample.name, sample.value) == ("zarrfs_cache_misses_total", stats["cache"]["misses"])
    assert families["zarrfs_dirty_bytes"].samples[0].value == 0
    assert families["zarrfs_loop_longest_held_seconds"].type == "gauge"
    # Of the loop of this mount, which has answered some requests.
    assert 0 < stats["loop"]["longest_held_seconds"] < stats["uptime_seconds"]
    assert stats["loop"]["held_over_20_ms"] >= 0
    assert all(family.documentation for family in families.values())
    labels = {"mountpoint": str(daemon.path), "source": str(source)}
    assert sample.labels == labels
    (what,) = families["zarrfs"].samples
    assert what.name == "zarrfs_info"
    assert what.labels == labels | {"version": __version__, "mode": "ro"}
    # Those of all mounts are one document. Other tests have mounts, too.
    said = run_zarrfs("metrics").stdout
    of_all = {family.name: family for family in text_string_to_metric_families(said)}
    assert of_all.keys() == families.keys()
    seen = [one.labels for one in of_all["zarrfs_cache_misses"].samples]
    assert seen.count(labels) == 1


@pytest.mark.parametrize("local", [Local.STATS, Local.METRICS])
def test_a_file_is_never_shorter_than_its_size_was(local):
    """Numbers get shorter, too; what fills the file then is not read as content."""
    stats = stats_of_nothing()
    mount = MountStatus({"mountpoint": "/m"}, lambda started: stats)
    size = mount.size(local)
    stats["memory"]["budget"] = 10**9
    long = mount.size(local)
    assert long > size
    stats["memory"]["budget"] = 0
    content = mount.content(local)
    assert len(content) == long
    if local == Local.STATS:
        assert json.loads(content) == stats
    else:
        families = {f.name: f for f in text_string_to_metric_families(content.decode())}
        assert families["zarrfs_memory_budget_bytes"].samples[0].value == 0
    assert mount.size(local) == long


def test_labels_of_metrics_are_escaped():
    config = {"mountpoint": '/a "b"\\c\nd', "source": "\udcff"}
    stats = stats_of_nothing()
    (family, *_) = text_string_to_metric_families(to_metrics([(config, stats)]).decode())
    assert family.samples[0].labels["mountpoint"] == config["mountpoint"]


def stats_of_nothing() -> dict:
    """Each number that metrics show is 0."""
    stats: dict = {}
    for _, _, path, _ in status._METRICS:
        *above, last = path.split("/")
        inner = stats
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = 0
    return stats


def test_bad_chunks_do_not_fill_the_log(caplog):
    stats = Stats()
    for i in range(1000):
        stats.error(f"c/{i}", "is bad")
        stats.error("c/0", "is bad")
    assert len(caplog.records) == 20
    assert stats.snapshot()["errors"]["count"] == 2000
    stats._minute -= 60
    stats.error("c/0", "is bad")
    assert [record.getMessage() for record in caplog.records[20:]] == [
        "1980 more errors within a minute; .zarrfs/stats.json has the last",
        "c/0: is bad",
    ]


def test_slowest_requests():
    times = StoreTimes()
    for i in range(30):
        times._remember(f"c/{i % 10}", i / 10)
    slowest = times.snapshot()["slowest"]
    assert [(slow["key"], slow["seconds"]) for slow in slowest] == [
        (f"c/{i % 10}", i / 10) for i in range(29, 21, -1)
    ]
    begun = time.time()
    assert all(begun - 60 < slow["time"] <= time.time() for slow in slowest)
    with pytest.raises(ZeroDivisionError):
        times.measure("x", lambda: 1 // 0)
    assert (times.requests, times.failures) == (1, 1)
