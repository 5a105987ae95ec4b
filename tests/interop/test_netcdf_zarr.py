"""Stores that netCDF-C writes in its Zarr form."""

from pathlib import Path

import netCDF4
import numpy as np
import pytest

import zarrfs

VALUES = np.linspace(-3, 1e9, 1000)


@pytest.mark.parametrize("spelling", ["as written", "as netCDF-C 4.9.3 writes it"])
@pytest.mark.parametrize("dtype", ["i2", "u4", "f4", "f8"])
@pytest.mark.parametrize("options", [{"zlib": True}, {"zlib": True, "fletcher32": True}])
def test_shuffle_with_an_element_size_of_zero(
    tmp_path: Path, dtype: str, options: dict[str, bool], spelling: str
) -> None:
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
