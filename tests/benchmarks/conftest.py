"""What the benchmarks start anew is here what forks, or this process, does."""

import importlib
import subprocess
from types import SimpleNamespace

import pytest
import zarr

from benchmarks import mounts
from benchmarks.library_process import Taken
from tests.conftest import run_zarrfs


@pytest.fixture
def nothing_starts_anew(monkeypatch):
    """Mounts are forks, and libraries work in this process: to start them takes far longer."""
    monkeypatch.setattr(mounts, "subprocess", SimpleNamespace(**{**vars(subprocess), "run": _run}))
    monkeypatch.setattr("benchmarks.bench.run_task", _run_task)
    monkeypatch.setattr("benchmarks.shapes.workshop.run_task", _run_task)


def _run(words, **keywords):
    start = mounts.command()
    if words[: len(start)] != start:
        subprocess.run(words, **keywords)  # noqa: PLW1510 - among the keywords
        return
    done = run_zarrfs(*words[len(start) :])
    assert done.returncode == 0, done


def _run_task(task, before, **arguments):
    module, _, name = task.partition(".")
    pipeline = zarr.config.get("codec_pipeline.path")
    # Some tasks set it.
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        prepared = getattr(importlib.import_module(f"benchmarks.libraries.{module}"), name)(
            **arguments
        )
        before()
        prepared()
    return Taken(1.0, 1.0)
