"""Sources to mount, and file systems that misbehave."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

FAKE = Path(__file__).parent / "fake_zarrfs.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"mount_daemon", "mounted"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.mount)


@pytest.fixture
def data() -> np.ndarray:
    return np.arange(600 * 500, dtype=np.uint16).reshape(600, 500)


@pytest.fixture
def source(tmp_path: Path, data: np.ndarray) -> Path:
    """A small array."""
    path = tmp_path / "source.zarr"
    array = zarr.create_array(path, shape=data.shape, chunks=(100, 100), dtype=data.dtype)
    array[:] = data
    return path


@pytest.fixture
def mount_fake(mount_daemon, source: Path) -> Callable:
    """Mounts the file system of `fake_zarrfs`, with settings for it as name=value."""

    def mount(*settings: str, **keywords):
        return mount_daemon(source, command=(sys.executable, FAKE, *settings), **keywords)

    return mount
