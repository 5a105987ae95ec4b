"""zarrita, which reads Zarr in JavaScript, opens a mount as a store."""

import json
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_program, run

PLACE = Path(__file__).parents[3] / ".venv/zarrita"
VALUES = np.arange(1, 64, dtype="<i4").reshape(7, 9)
ARRAYS = {
    "plain": {"chunks": (3, 4)},
    "shards": {"chunks": (1, 2), "shards": (3, 4)},
    "version2": {"chunks": (3, 4), "zarr_format": 2},
}


def test_it_reads_of_a_mount_what_the_source_has(tmp_path, mounted):
    need_program("node")
    if not (PLACE / "node_modules").exists():
        pytest.skip("zarrita is not installed: .ci/npm.sh installs it")
    zarr.create_group(tmp_path / "g")
    for name, options in ARRAYS.items():
        zarr.create_array(tmp_path / "g" / name, data=VALUES, fill_value=9, **options)
    mount = mounted(tmp_path / "g", "rw,flush_delay=1000")
    with open(mount / "plain" / "array.bin", "r+b") as file:
        file.write(np.int32(5).tobytes())
    script = Path(__file__).with_name("zarrita_read.mjs")
    found = json.loads(run("node", script, PLACE, *(mount / name for name in ARRAYS)))
    changed = VALUES.copy()
    changed[0, 0] = 5
    for name, read in zip(ARRAYS, found, strict=True):
        expected = changed if name == "plain" else VALUES
        np.testing.assert_array_equal(np.reshape(read["data"], read["shape"]), expected, name)
