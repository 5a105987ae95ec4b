"""What docs/library.md shows works."""

import importlib.util
import multiprocessing
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrfs

DOCUMENT = Path(__file__).parents[2] / "docs" / "library.md"
NUMBERS = np.arange(60 * 8 * 10, dtype="u2").reshape(60, 8, 10)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def test_its_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zarr.create_array("cells.zarr", data=NUMBERS, chunks=(5, 8, 5))
    zarr.create_group("experiment.zarr")
    scripts = blocks("python")
    assert sum("import torch" in script for script in scripts) == 1
    for script in scripts:
        if "import torch" not in script:
            exec(compile(script, "library.md", "exec"), {})
    expected = NUMBERS.copy()
    expected[50] += 1
    assert np.array_equal(zarr.open_array("cells.zarr", mode="r")[...], expected)

    assert np.array_equal(zarr.open_array("twice.zarr", mode="r")[...], expected * 2)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed: it is no dependency of the tests, because of its size",
)
def test_its_example_for_pytorch_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zarr.create_array("cells.zarr", data=NUMBERS, chunks=(1, 8, 10))
    (script,) = (script for script in blocks("python") if "import torch" in script)
    names: dict[str, object] = {}
    exec(compile(script, "library.md", "exec"), names)
    assert names["total"] == NUMBERS.astype("f4").sum()


class Planes:
    """As the example for PyTorch has it."""

    def __init__(self, source):
        self.array = zarrfs.open_array(source, options=zarrfs.SourceOptions(memory=64 << 20))

    def __getitem__(self, index):
        return self.array[index]


def _planes(dataset, indices):
    return [dataset[index] for index in indices]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_dataset_works_in_processes_as_those_of_a_data_loader(tmp_path, method):
    zarr.create_array(tmp_path / "cells.zarr", data=NUMBERS, chunks=(1, 8, 10))
    dataset = Planes(tmp_path / "cells.zarr")
    first = dataset[0]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.starmap(_planes, [(dataset, [0, 7]), (dataset, [59])])
    assert np.array_equal(found[0], [first, NUMBERS[7]])
    assert np.array_equal(found[1][0], NUMBERS[59])


def test_it_names_everything_public():
    text = DOCUMENT.read_text()
    names = [name for name in dir(zarrfs.OpenArray) if not name.startswith("_")]
    for name in {*names} - {"closed", "writable"}:
        assert f"`{name}" in text or f"`array.{name}" in text, name
    assert {field.name for field in fields(zarrfs.SourceOptions)} >= {
        "memory", "loaders", "recheck", "fill_missing", "store_fill",
    }  # fmt: skip
