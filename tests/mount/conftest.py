"""Sources to mount, and file systems that misbehave."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.arrays import KINDS, Target, make_array
from zarrfs.fuse.mount_table import topmost

FAKE = Path(__file__).parent / "fake_zarrfs.py"


@pytest.fixture
def data() -> np.ndarray:
    return np.arange(600 * 500, dtype=np.uint16).reshape(600, 500)


@pytest.fixture
def source(tmp_path: Path, data: np.ndarray) -> Path:
    """A small array."""
    path = tmp_path / "source.zarr"
    zarr.create_array(path, data=data, chunks=(100, 100))
    return path


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everyone can enter."""
    path = Path(tempfile.mkdtemp(prefix="zarrfs-"))
    path.chmod(0o755)
    yield path
    if (entry := topmost(str(path / "mnt"))) is not None:
        subprocess.run(["umount", "-i", "-l", entry.path], check=False, timeout=20)
    shutil.rmtree(path)


@pytest.fixture
def mount_fake(mount_daemon, source: Path) -> Callable:
    """Mounts the file system of `fake_zarrfs`, with settings for it as name=value."""

    def mount(*settings: str, options: tuple[str, ...] = (), **keywords):
        command = (sys.executable, FAKE, *settings)
        return mount_daemon(source, *options, command=command, **keywords)

    return mount


@pytest.fixture(params=KINDS)
def target(tmp_path: Path, request: pytest.FixtureRequest) -> Target:
    """An array to write to, in a group of its own: one plain, one sharded."""
    return make_array(tmp_path / "group.zarr", "a", request.param)


@pytest.fixture
def sharded(tmp_path: Path) -> Target:
    """A sharded array to write to, in a group of its own."""
    return make_array(tmp_path / "group.zarr", "a", "sharded")
