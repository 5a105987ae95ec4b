"""Messages have the words that the user typed."""

import os

import pytest
import zarr

from tests.cli.in_process import Done, in_process
from tests.conftest import run_zarrfs
from zarrfs.cli.main import as_typed, cli, run


@pytest.mark.parametrize("command", ["info", "check", "mount"])
def test_a_local_source_is_named_as_it_was_typed(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    for typed in ("./here", "link") if command == "mount" else ("here", "link", tmp_path / "here"):
        if command == "mount":
            mount = run_zarrfs(command, typed)
            done = Done(mount.returncode, mount.stdout, mount.stderr)
        else:
            done = in_process(command, typed)
        assert done.status != 0
        assert done.stderr.startswith(f"zarrfs: {typed}: no Zarr array or group here")


def test_a_group_where_an_array_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    zarr.create_group("g.zarr").create_array("a", shape=(2,), dtype="i2")
    assert run(cli, "zarrfs", ["export", "g.zarr", "a.npy"]) == 2
    said = (
        "g.zarr is a group, not an array; it has a (choose one with --path, in Python with path=)"
    )
    assert capsys.readouterr().err == f"zarrfs: {said}\n"


def test_other_words_stay():
    here = os.getcwd()
    message = f"file://{here}/ab: no; zip::file://{here}/a; file://{here}/a/b and s3://a"
    expected = f"file://{here}/ab: no; zip::file://{here}/a; a/b and s3://a"
    assert as_typed(message, ["a", "-o", "", "s3://a"]) == expected
