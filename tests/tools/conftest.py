"""Arrays that are written to with ordinary programs."""

from pathlib import Path

import pytest

from tests.mount.arrays import Target, make_array
from tests.tools.samples import ORDERS, make


@pytest.fixture
def sharded(tmp_path: Path) -> Target:
    """A sharded array in a group of its own."""
    return make_array(tmp_path / "group.zarr", "a", "sharded")


@pytest.fixture
def file(mounted, sharded: Target) -> Path:
    """Its ``array.bin`` on a mount of its own."""
    return mounted(sharded.group, "rw") / sharded.name / "array.bin"


@pytest.fixture(scope="module")
def mounts(tmp_path_factory, shared_mounter) -> dict[str, Path]:
    """A mount of all samples, to be read only, for each of `ORDERS`."""
    samples = make(tmp_path_factory.mktemp("samples") / "g.zarr")
    return {
        order: shared_mounter(samples, "views=all", *options).path
        for order, options in ORDERS.items()
    }
