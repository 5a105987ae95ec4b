"""Files in NetCDF's classic formats hold what netCDF4 reads, however their records lie."""

import json
import struct

import netCDF4
import numpy as np
import pytest

pytestmark = pytest.mark.timeout(120)

FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
RANDOM = np.random.default_rng(3)


def create(path, form, kinds, *, records=7, width=3):
    """Variables of these types, all with an unlimited dimension but those called fixed."""
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.set_fill_off()
        file.title, file.number = "é", np.int16(4)
        file.createDimension("t", None)
        file.createDimension("x", width)
        for number, kind in enumerate(kinds):
            name = f"v{number}"
            data = RANDOM.integers(0, 100, (records, width))
            made = file.createVariable(name, kind, ("t", "x"))
            data = data.astype("S1") if kind == "S1" else data.astype(kind)
            if records:
                made[:] = data
            made.units = "K"
            fixed = file.createVariable(f"fixed{number}", kind, ("x",))
            fixed[:] = np.ones(width, kind)
        file.createVariable("scalar", "f8", ())[...] = 2.5


def check(files, path):
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        for name, variable in file.variables.items():
            data = np.asarray(variable[...])
            expected = data.astype(data.dtype.newbyteorder("<")).tobytes()
            assert files.read(f"{name}/array.bin") == expected, name
            document = json.loads(files.read(f"{name}/zarr.json"))
            assert tuple(document["dimension_names"]) == variable.dimensions


KINDS = [["i1"], ["i2"], ["S1"], ["f4"], ["i2", "i1"], ["i1", "i1"], ["f8", "i4", "S1"], []]


@pytest.mark.parametrize(
    ("form", "kinds"),
    [*((FORMATS[0], kinds) for kinds in KINDS), (FORMATS[1], ["i2"]), (FORMATS[1], KINDS[-2])],
)
def test_every_variable(form, kinds, tmp_path, open_direct):
    create(tmp_path / "a.nc", form, kinds)
    files = open_direct(tmp_path / "a.nc")
    check(files, tmp_path / "a.nc")
    assert json.loads(files.read("zarr.json"))["attributes"] == {
        "title": "é",
        "number": 4,
        "zarrfs_types": "int16 number",
    }


@pytest.mark.parametrize("kinds", [["u1"], ["u1", "u2", "u4", "i8", "u8", "i2", "S1"]])
def test_cdf5(kinds, tmp_path, open_direct):
    create(tmp_path / "a.nc", FORMATS[2], kinds)
    check(open_direct(tmp_path / "a.nc"), tmp_path / "a.nc")


def test_long_records_and_no_records(tmp_path, open_direct):
    create(tmp_path / "long.nc", FORMATS[0], ["i2", "f8"], width=70_001)
    check(open_direct(tmp_path / "long.nc"), tmp_path / "long.nc")
    create(tmp_path / "none.nc", FORMATS[0], ["i2", "f8"], records=0)
    check(open_direct(tmp_path / "none.nc"), tmp_path / "none.nc")


def test_a_large_variable_is_cut_into_chunks(tmp_path, open_direct):
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=FORMATS[0]) as file:
        file.createDimension("y", 2503)
        file.createDimension("x", 1801)
        file.createVariable("a", "f4", ("y", "x"))[:] = RANDOM.random((2503, 1801), "f4")
    files = open_direct(tmp_path / "a.nc")
    check(files, tmp_path / "a.nc")
    assert len(files.names("a/chunks")) == 5


def test_a_file_that_is_cut_short_has_a_note(tmp_path, open_direct):
    create(tmp_path / "a.nc", FORMATS[0], ["i2", "f8"], width=70_001)
    data = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(data[:-1000])
    files = open_direct(tmp_path / "cut.nc")
    assert "ends before its data" in files.read("v1/zarrfs-note.txt").decode()
    assert files.read("fixed0/array.bin")


def test_records_that_nobody_counted(tmp_path, open_direct):
    create(tmp_path / "a.nc", FORMATS[0], ["i2", "f8"])
    data = (tmp_path / "a.nc").read_bytes()
    assert data[4:8] == struct.pack(">I", 7)
    (tmp_path / "b.nc").write_bytes(data[:4] + b"\xff" * 4 + data[8:])
    files = open_direct(tmp_path / "b.nc")
    check(files, tmp_path / "a.nc")
