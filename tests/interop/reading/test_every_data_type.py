"""Every data type of the page that says what zarrfs reads is served, alone and among others."""

import io

import numpy as np
import pytest

from docs.format_support import rows
from docs.format_support.samples import write

pytestmark = pytest.mark.timeout(120)

ROWS = {
    **{f"v3 {name}": samples[0] for name, samples in rows.data_types().items()},
    **{f"v2 {name}": samples[0] for name, samples in rows.types_of_v2().items()},
}


def check(files, directory, elements):
    prefix = f"{directory}/" if directory else ""
    names = files.names(directory)
    assert "zarrfs-note.txt" not in names or "array.jsonl" in names
    for name in names:
        if name.startswith("array."):
            files.read(prefix + name)
    if elements.dtype == object:
        lines = files.read(f"{prefix}array.jsonl").decode().splitlines()
        assert len(lines) == elements.size
        return
    assert files.read(f"{prefix}array.bin") == elements.tobytes()
    if "array.npy" in names:
        loaded = np.load(io.BytesIO(files.read(f"{prefix}array.npy")), allow_pickle=False)
        assert loaded.shape == elements.shape
        assert loaded.tobytes() == elements.tobytes()


@pytest.mark.parametrize("name", ROWS)
def test_alone(name, tmp_path, open_direct):
    elements = write(ROWS[name], tmp_path / "a")
    files = open_direct(tmp_path / "a")
    check(files, "", elements)


def test_all_in_one_group(tmp_path, open_direct):
    group = tmp_path / "g"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    arrays = {f"{i:03}": write(sample, group / f"{i:03}") for i, sample in enumerate(ROWS.values())}
    files = open_direct(group)
    assert files.names("") == ["zarr.json", ".zarrfs", *arrays]
    for name, elements in arrays.items():
        check(files, name, elements)


STRUCT = {
    "name": "struct",
    "configuration": {
        "fields": [
            {"name": "a", "data_type": "float8_e5m2"},
            {"name": "b", "data_type": "complex_bfloat16"},
            {"name": "c", "data_type": "int16"},
        ]
    },
}


@pytest.mark.parametrize("data_type", [STRUCT, "complex_float8_e5m2"])
def test_a_type_that_npy_cannot_express_has_no_npy_file(data_type, tmp_path, open_direct):
    fill = {"a": 0, "b": [0, 0], "c": 0} if isinstance(data_type, dict) else [0, 0]
    sample = rows.Sample(3, rows.v3(data_type, fill_value=fill))
    elements = write(sample, tmp_path / "a")
    files = open_direct(tmp_path / "a")
    assert "array.npy" not in files.names("")
    assert files.read("array.bin") == elements.tobytes()
