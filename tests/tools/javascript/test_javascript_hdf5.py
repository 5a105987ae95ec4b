"""jsfive and h5wasm, which read HDF5 in browsers, open the files of a mount."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tools import samples
from tests.tools.programs import need_program, run

ROOT = Path(__file__).parents[3]
KINDS = (
    ("i1", 2), ("u1", 4), ("i2", 1), ("u2", 3), ("i4", 3), ("u4", 2), ("f4", 4), ("f8", 2),
)  # fmt: skip


@pytest.mark.parametrize("library", ["jsfive", "h5wasm"])
def test_it_reads_what_the_source_has(library, tmp_path, mounted):
    need_program("node")
    place = ROOT / ".venv" / library
    if not (place / "node_modules").exists():
        pytest.skip(f"{library} is not installed: .ci/npm.sh installs it")
    mount = mounted(samples.make(tmp_path / "g", KINDS), "views=default,chunked.h5")
    pairs: list[object] = []
    for code, rank in KINDS:
        name = f"{code}_{rank}"
        for file in ("array.h5", "array.chunked.h5"):
            pairs += [mount / name / file, name]
        pairs += [mount / "group.h5", name]
    script = Path(__file__).with_name("hdf5_read.mjs")
    found = iter(json.loads(run("node", script, library, place, *pairs)))
    for code, rank in KINDS:
        for _ in range(3):
            read = next(found)
            data = np.reshape(read["data"], read["shape"])
            np.testing.assert_array_equal(data, samples.values(code, rank), f"{code}_{rank}")
            assert read["units"] == "K"
    assert next(found, None) is None
