"""Default mount options from configuration files."""

import json
import os

import pytest
import zarr

from tests.conftest import run_python, run_zarrfs
from zarrfs.daemon.options import config_file
from zarrfs.daemon.options.config_file import configured
from zarrfs.errors import UsageError

BOTH = """
options = "memory=2G"
[[mount]]
source = "s3://bucket/*"
options = "immutable"
[[mount]]
source = "/data/*"
mountpoint = "/mnt/*"
options = "views=none"
"""


@pytest.fixture
def user_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(config_file, "_SYSTEM", tmp_path / "system.toml")
    path = tmp_path / "zarrfs/config.toml"
    path.parent.mkdir()
    return path


def options(*sources, at="/mnt/a"):
    return [text for text in configured(sources, at) if text]


def test_options_by_source_and_mount_point(user_file):
    assert options("/data/a") == []
    user_file.write_text(BOTH)
    (user_file.parents[1] / "system.toml").write_text('options = "memory=1G,workers=0"')
    base = ["memory=1G,workers=0", "memory=2G"]
    assert options("s3://bucket/a") == [*base, "immutable"]
    assert options("/data/a") == [*base, "views=none"]
    for source, at in (("/data/a", "/media/a"), ("/other/a", "/mnt/a"), ("/data/a", None)):
        assert options(source, at=at) == base
    assert options("/data/a", "/other/b") == base


def test_a_home_that_is_no_directory(monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    assert options("/data/a") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("options = 3", "options is not a text"),
        ("option = 3", "option: expected options"),
        ("mount = 3", "mount: expected options"),
        ("mount = [3]", "has source, mountpoint and options"),
        ("[[mount]]\nsrc = '*'", "has source, mountpoint and options"),
        ("[[mount]]\nsource = 1", "source is not a text"),
        ("[[", "is not TOML"),
        ("#" * (2 << 20), "has more than"),
    ],
)
def test_what_is_no_configuration(user_file, text, said):
    user_file.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        configured(["/a"], "/b")
    assert str(user_file) in str(caught.value)


def test_a_file_of_another_user_is_refused(user_file, monkeypatch):
    user_file.write_text(BOTH)
    monkeypatch.setattr("os.geteuid", lambda: 1234567)
    if user_file.stat().st_uid == 0:
        os.chown(user_file, 7654321, -1)
    with pytest.raises(UsageError, match="belongs to another user"):
        configured(["/a"], "/b")


def test_a_mount_has_them(mount_daemon, tmp_path, user_file):
    zarr.create_array(tmp_path / "a.zarr", shape=4, dtype="i4")
    user_file.write_text('options = "memory=77M,umask=022"')
    (tmp_path / "m").mkdir()
    done = run_zarrfs("mount", tmp_path / "a.zarr", tmp_path / "m", "-o", "umask=077")
    assert (done.returncode, done.stderr) == (0, "")
    try:
        said = json.loads((tmp_path / "m/.zarrfs/config.json").read_text())["options"]
        assert (said["memory"], said["umask"]) == (77 << 20, "0077")
    finally:
        assert run_zarrfs("umount", tmp_path / "m").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user is for root")
@pytest.mark.parametrize("mode", [0o750, 0o755])
def test_a_directory_of_root_alone_is_not_for_others(tmp_path, mode):
    """As setup makes /etc/zarrfs. A file that is not for them, in a directory that is, is told."""
    tmp_path.chmod(0o755)
    (closed := tmp_path / "zarrfs").mkdir()
    (closed / "config.toml").write_text('options = "memory=2G"')
    (closed / "config.toml").chmod(0o600)
    closed.chmod(mode)
    program = (
        "import os, pathlib\n"
        "from zarrfs.daemon.options import config_file\n"
        "config_file._SYSTEM = pathlib.Path('zarrfs/config.toml')\n"
        f"os.environ['XDG_CONFIG_HOME'] = '.'; os.chdir({str(tmp_path)!r})\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(config_file.configured(['s3://a'], None))\n"
    )
    done = run_python("-c", program)
    if mode == 0o750:
        assert (done.returncode, done.stdout) == (0, "('',)\n"), done.stderr
    else:
        assert "zarrfs/config.toml: Permission denied" in done.stderr
