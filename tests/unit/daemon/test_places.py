"""Where a daemon keeps its files if the user has no home directory."""

import os

import pytest

from zarrfs.daemon.places import journal_place, references_directory
from zarrfs.errors import UsageError


def test_a_user_without_a_home(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    # The user of a container, whose number no file names.
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert references_directory() is None
    with pytest.raises(UsageError, match="option journal: the user has no home directory"):
        journal_place("file:///a", None)
    assert journal_place("file:///a", str(tmp_path)).startswith(f"{tmp_path}/")
