"""Draws the same examples in every run."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "library",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    # Each example writes an array: what the smallest failing one is would take minutes to find.
    phases=(Phase.generate,),
)


@pytest.fixture
def place():
    """``place(model)``: the path of an array just written; one example's is gone with the next."""
    directory = Path(tempfile.mkdtemp())

    def write(model) -> Path:
        path = directory / "a"
        shutil.rmtree(path, ignore_errors=True)
        model.write(path)
        return path

    yield write
    shutil.rmtree(directory)
