"""Messages have the words that the user typed."""

import os

import pytest
import zarr

from tests.conftest import run_zarrfs
from zarrfs.cli.main import as_typed, cli, run


@pytest.mark.parametrize("command", ["info", "check", "mount"])
@pytest.mark.parametrize("typed", ["here", "./here", "link", "{directory}/here"])
def test_a_local_source_is_named_as_it_was_typed(tmp_path, monkeypatch, command, typed):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    typed = typed.format(directory=tmp_path)
    done = run_zarrfs(command, typed)
    assert done.returncode != 0
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
