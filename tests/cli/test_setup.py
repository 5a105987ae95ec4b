"""``zarrfs setup`` by an ordinary user."""

from __future__ import annotations

import os

import pytest

from zarrfs.cli.main import cli, run


@pytest.mark.parametrize("option", [(), ("--remove",)])
def test_it_says_that_root_is_needed(monkeypatch, capsys, option):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(cli, "zarrfs", ["setup", *option]) == 1
    said = "zarrfs: setup changes system directories: run it as root, or with --user\n"
    assert capsys.readouterr().err == said
