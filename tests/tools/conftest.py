"""Arrays that are written to with ordinary programs."""

from pathlib import Path

import pytest

from tests.mount.arrays import Target, make_array


@pytest.fixture
def sharded(tmp_path: Path) -> Target:
    """A sharded array in a group of its own."""
    return make_array(tmp_path / "group.zarr", "a", "sharded")


@pytest.fixture
def file(mounted, sharded: Target) -> Path:
    """Its ``array.bin`` on a mount of its own."""
    return mounted(sharded.group, "rw") / sharded.name / "array.bin"
