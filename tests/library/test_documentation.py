"""What docs/library.md shows works."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
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
    (script,) = blocks("python")
    exec(compile(script, "library.md", "exec"), {})
    expected = NUMBERS.copy()
    expected[50] += 1
    assert np.array_equal(zarr.open_array("cells.zarr", mode="r")[...], expected)


def test_it_names_everything_public():
    text = DOCUMENT.read_text()
    names = [name for name in dir(zarrfs.OpenArray) if not name.startswith("_")]
    for name in {*names} - {"closed", "writable"}:
        assert f"`{name}" in text or f"`array.{name}" in text, name
    assert {field.name for field in fields(zarrfs.SourceOptions)} >= {
        "memory", "loaders", "recheck", "fill_missing", "store_fill",
    }  # fmt: skip
