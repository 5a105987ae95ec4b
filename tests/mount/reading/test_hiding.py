"""`-o hide`: views that are left out of listings and can be opened by name."""

import os

import numpy as np
import pytest

ALL = {"array.bin", "array.npy", "chunks", "shards", "zarr.json"}


@pytest.mark.parametrize(
    ("mode", "option", "left_out"),
    [
        ("ro", "hide=chunks", {"chunks"}),
        ("rw", "hide=chunks,shards,npy", {"chunks", "shards", "array.npy"}),
        ("rw", r"hide=npy\,chunks", {"chunks", "array.npy"}),
    ],
)
def test_hidden_views_are_not_listed_and_can_be_opened(mounted, sharded, option, left_out, mode):
    path = mounted(sharded.group, mode, option) / sharded.name
    assert set(os.listdir(path)) & ALL == ALL - left_out
    assert np.array_equal(np.load(path / "array.npy"), sharded.data)
    assert (path / "chunks/0/0/0").read_bytes() == sharded.data[:10, :10, :10].tobytes()
    assert set(os.listdir(path / "shards")) == {"0", "1"}


def test_children_of_a_group_are_never_hidden(mounted, sharded):
    """Whatever they are called."""
    os.rename(sharded.group / sharded.name, sharded.group / "chunks")
    path = mounted(sharded.group, "hide=chunks")
    assert "chunks" in os.listdir(path)
    assert "chunks" not in os.listdir(path / "chunks")
    assert "array.bin" in os.listdir(path / "chunks")
