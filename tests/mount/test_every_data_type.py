"""Every documented data type is listed and read through the kernel, among all the others."""

import subprocess

import pytest

from docs.format_support import rows
from docs.format_support.samples import write

pytestmark = [pytest.mark.mount, pytest.mark.timeout(120)]

SAMPLES = {
    **{f"v3 {name}": samples[0] for name, samples in rows.data_types().items()},
    **{f"v2 {name}": samples[0] for name, samples in rows.types_of_v2().items()},
}


def test_a_group_of_every_data_type(tmp_path, mounted):
    group = tmp_path / "g"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    arrays = {
        f"{number:03}": write(sample, group / f"{number:03}")
        for number, sample in enumerate(SAMPLES.values())
    }
    mount = mounted(group)
    done = subprocess.run(
        ["ls", "-lR", mount], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name, elements in arrays.items():
        if elements.dtype == object:
            lines = (mount / name / "array.jsonl").read_text().splitlines()
            assert len(lines) == elements.size, name
        else:
            assert (mount / name / "array.bin").read_bytes() == elements.tobytes(), name


@pytest.mark.parametrize("name", ["v3 complex_float8_e5m2", "v3 struct", "v2 structs"])
def test_one_alone(name, tmp_path, mounted):
    elements = write(SAMPLES[name], tmp_path / "a")
    assert (mounted(tmp_path / "a") / "array.bin").read_bytes() == elements.tobytes()
