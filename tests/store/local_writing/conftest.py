"""A local store to be written to, and what may be around it."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def mount_over(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """``mount_over(path, *mount_arguments)`` mounts there, until the test is over."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done: list[Path] = []

    def mount(path: Path, *arguments: str) -> None:
        command = ["mount", *arguments, str(path)]
        if subprocess.run(command, check=False, capture_output=True, timeout=20).returncode:
            pytest.skip("mounting is not allowed here")
        if path not in done:
            done.append(path)

    yield mount
    for path in reversed(done):
        subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


@pytest.fixture
def small(tmp_path: Path, mount_over: Callable[..., None]) -> Path:
    """A file system of 1 MiB."""
    root = tmp_path / "small"
    root.mkdir()
    mount_over(root, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    return root


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A directory that everybody can reach."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)
