"""Stores that netCDF-C writes in its Zarr form."""

from pathlib import Path

import netCDF4
import numpy as np
import pytest

import zarrfs

VALUES = np.linspace(-3, 1e9, 1000)


@pytest.mark.parametrize("spelling", ["as written", "as netCDF-C 4.9.3 writes it"])
@pytest.mark.parametrize(
    ("dtype", "checked"), [("i2", False), ("u4", True), ("f4", True), ("f8", False)]
)
def test_shuffle_with_an_element_size_of_zero(
    tmp_path: Path, dtype: str, checked: bool, spelling: str
) -> None:
    options = {"zlib": True, "fletcher32": checked}
    with netCDF4.Dataset(f"file://{tmp_path}/store#mode=zarr,file", "w") as file:
        file.createDimension("x", VALUES.size)
        variable = file.createVariable("v", dtype, ("x",), chunksizes=(300,), **options)
        written = VALUES.astype("i8").astype(dtype)
        variable[:] = written
    document = tmp_path / "store/v/.zarray"
    text = document.read_text()
    assert '"elementsize": 0' in text
    if spelling != "as written":
        document.write_text(text.replace('"elementsize": 0', '"elementsize": "0"'))
    with zarrfs.open_array(str(tmp_path / "store/v")) as array:
        np.testing.assert_array_equal(array[:], written)


@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
@pytest.mark.parametrize("spelling", ["as written", "as netCDF-C 4.8.0 writes it"])
def test_characters_and_their_fill_value(tmp_path: Path, mode: str, spelling: str) -> None:
    written = np.array([list("abcd"), list("ef  ")], "S1")
    with netCDF4.Dataset(f"file://{tmp_path}/store#mode={mode},file", "w") as file:
        file.createDimension("x", 4)
        file.createDimension("n", 4)
        variable = file.createVariable("v", "S1", ("x", "n"), fill_value=b"-", chunksizes=(2, 4))
        variable[:2] = written
        file.createVariable("unfilled", "S1", ("x",))
    (tmp_path / "store/v/1.0").unlink(missing_ok=True)
    if spelling != "as written":
        for name, fill in (("v", '"-"'), ("unfilled", '""')):
            document = tmp_path / "store" / name / ".zarray"
            text = document.read_text()
            assert f'"fill_value": {fill}' in text
            document.write_text(text.replace(f'"fill_value": {fill}', f'"fill_value": [{fill}]'))
    with zarrfs.open_array(str(tmp_path / "store"), path="v") as array:
        np.testing.assert_array_equal(array[:2], written)
        assert array[2:].tobytes() == b"-" * 8
    with zarrfs.open_array(str(tmp_path / "store"), path="unfilled") as array:
        assert array[:].tobytes() == bytes(4)
