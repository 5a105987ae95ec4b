"""Opens file systems without a kernel."""

import pytest

from tests.fs.fixtures import loop, mount
from tests.fs.writable import Writable
from zarrfs.views.slabs import sequential_writes

__all__ = ["loop", "mount"]


@pytest.fixture
def opened(loop):
    """``opened(store, **config)``: a writable mount that stores nothing by itself."""
    mounts = []

    def open_store(store, **config):
        mounts.append(Writable(loop, store, **{"flush_delay": 3600.0, **config}))
        return mounts[-1]

    yield open_store
    for each in mounts:
        each.close()


@pytest.fixture
def gathers_at_once(monkeypatch):
    """From the second of successive writes on."""
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 1)
    monkeypatch.setattr(sequential_writes, "_LEAST_WRITES", 1)
