"""``zarrfs setup`` by an ordinary user."""

import os

import pytest

from zarrfs.cli.main import cli, run


@pytest.mark.parametrize("option", [(), ("--remove",)])
def test_it_says_that_root_is_needed(monkeypatch, capsys, option):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(cli, "zarrfs", ["setup", *option]) == 1
    said = "zarrfs: setup changes system directories: run it as root, or with --user\n"
    assert capsys.readouterr().err == said


def test_updatedb_leaves_mounts_out_where_asked(tmp_path, capsys):
    """Setup says that updatedb walks mounts, changes that only where asked, and takes it back."""
    written = 'PRUNE_BIND_MOUNTS="yes"\nPRUNEFS="NFS fuse.sshfs"\n'
    configuration = tmp_path / "etc/updatedb.conf"
    configuration.parent.mkdir()
    configuration.write_text(written)
    program = tmp_path / "bin/zarrfs"
    program.parent.mkdir()
    for name in ("zarrfs", "mount.zarrfs"):
        (program.parent / name).touch(mode=0o755)
    setup = ["setup", "--root", str(tmp_path), "--program", str(program)]
    assert run(cli, "zarrfs", setup) == 0
    assert f"{configuration} has no fuse.zarrfs in PRUNEFS" in capsys.readouterr().err
    assert configuration.read_text() == written
    assert run(cli, "zarrfs", [*setup, "--updatedb"]) == 0
    assert f"changed {configuration}\n" in capsys.readouterr().out
    assert configuration.read_text() == written.replace("sshfs", "sshfs fuse.zarrfs")
    assert run(cli, "zarrfs", [*setup, "--updatedb"]) == 0
    assert str(configuration) not in "".join(capsys.readouterr())
    assert run(cli, "zarrfs", [*setup, "--remove"]) == 0
    assert configuration.read_text() == written
