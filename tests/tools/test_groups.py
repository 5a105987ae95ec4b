"""Programs open all arrays of a group by one file."""

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_module, need_program, run

RAIN = np.arange(11 * 13, dtype="f8").reshape(11, 13)
T2M = np.arange(5 * 11 * 13, dtype="i2").reshape(5, 11, 13)


@pytest.fixture(scope="module")
def file(tmp_path_factory, shared_mounter):
    path = tmp_path_factory.mktemp("group") / "w.zarr"
    group = zarr.create_group(path, attributes={"title": "Wetter"})
    named = {
        "lat": (np.linspace(50, 51, 11), ["lat"]),
        "lon": (np.linspace(5, 7, 13), ["lon"]),
        "rain": (RAIN, ["lat", "lon"]),
        "t2m": (T2M, ["time", "lat", "lon"]),
    }
    for name, (data, dims) in named.items():
        group.create_array(
            name, data=data, chunks=tuple(4 for _ in dims), dimension_names=dims,
            attributes={"units": "K"},
        )  # fmt: skip
    return shared_mounter(path).path / "group.h5"


def test_xarray(file):
    need_module("xarray")
    import sys

    text = (
        "import sys, xarray; d = xarray.open_dataset(sys.argv[1]); print(dict(d.sizes), "
        "sorted(d.coords), float(d.rain.sel(lat=50.5, lon=6).values), int(d.t2m[4, 10, 12]))"
    )
    said = run(sys.executable, "-W", "ignore", "-c", text, file).decode().strip()
    assert said == (
        f"{{'lat': 11, 'lon': 13, 'time': 5}} ['lat', 'lon'] {RAIN[5, 6]} {T2M[4, 10, 12]}"
    )


def test_ncdump(file):
    need_program("ncdump")
    said = run("ncdump", "-v", "rain", file).decode()
    assert "double rain(lat, lon) ;" in said
    assert "short t2m(time, lat, lon) ;" in said
    assert ':title = "Wetter" ;' in said
    numbers = said.rpartition("rain =")[2].rpartition(";")[0].split(",")
    np.testing.assert_array_equal([float(n) for n in numbers], RAIN.reshape(-1))


def test_h5dump(file, tmp_path):
    need_program("h5dump")
    run("h5dump", "-d", "/t2m", "-b", "LE", "-o", tmp_path / "raw", file)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "raw", "<i2").reshape(T2M.shape), T2M)


def test_octave(file):
    need_program("octave")
    script = f"s = load('-hdf5', '{file}'); disp(s.rain(13, 11)); disp(s.t2m(3, 2, 5))"
    said = run("octave", "--no-gui", "--quiet", "--eval", script).decode().split()
    assert [float(n) for n in said] == [RAIN[10, 12], T2M[4, 1, 2]]


def test_gdal(file, tmp_path):
    need_program("gdal_translate")
    run("gdal_translate", "-q", "-of", "ENVI", f'HDF5:"{file}"://rain', tmp_path / "raw")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "raw").reshape(RAIN.shape), RAIN)


def test_xarray_opens_a_hierarchy(tmp_path, mounted):
    """Each group has its own dimensions, and coordinates of those above."""
    need_module("xarray")
    import xarray

    above = xarray.Dataset(
        {"t2m": (("time", "lat"), np.arange(8.0).reshape(4, 2), {"units": "K"})},
        {"time": np.arange(4).astype("M8[D]").astype("M8[ns]"), "lat": [50.0, 51.0]},
        {"title": "Wetter"},
    )
    below = xarray.Dataset(
        {"rain": (("time", "x"), np.ones((4, 3), "i2"))}, {"x": np.array(["Köln", "", "x"], object)}
    )
    tree = xarray.DataTree.from_dict({"/": above, "/model/run": below, "/empty": None})
    tree.to_zarr(tmp_path / "t.zarr", consolidated=False)
    file = mounted(tmp_path / "t.zarr", "views=tree.h5") / "tree.h5"
    with xarray.open_datatree(file, engine="netcdf4") as found:
        xarray.testing.assert_identical(found.load(), tree)


@pytest.mark.parametrize("dtype", ["S4", "U4", str])
def test_texts_of_any_and_of_a_fixed_length(dtype, tmp_path, mounted):
    """R crashes at an empty text that is no object of the heap; netCDF 4.9 at fixed lengths."""
    names = ["ab", "", "Köl", "d"]
    group = zarr.create_group(tmp_path / "g.zarr", zarr_format=2)
    said = [name.encode() for name in names] if dtype == "S4" else names
    data = np.array(said, object if dtype is str else dtype)
    array = group.create_array("name", shape=data.shape, dtype=dtype)
    array[...] = data
    file = mounted(tmp_path / "g.zarr") / "group.h5"
    need_module("h5py")
    import h5py

    with h5py.File(file) as found:
        assert [text.decode() for text in found["name"]] == names
    need_program("ncdump")
    assert 'name = "ab", _, "Köl", "d" ;' in run("ncdump", file).decode()
    need_program("Rscript")
    script = "library(ncdf4); cat(ncvar_get(nc_open(commandArgs(TRUE)), 'name'), sep = '|')"
    assert run("Rscript", "-e", script, file).decode().split("|") == names


@pytest.mark.parametrize(
    "name", ["group.h5", "tree.h5", "many/array.chunked.h5", "many/array.h5", "many/array.nc"]
)
def test_netcdf_decodes_nothing_at_open(tmp_path, mounted, name):
    """Its wheels read the first 4 MiB of a file: a damaged chunk there would be an error."""
    group = zarr.create_group(tmp_path / "g.zarr")
    array = group.create_array("many", shape=(64, 512, 512), chunks=(8, 512, 512), dtype="u1")
    array[8] = 5
    (tmp_path / "g.zarr" / "many" / "c" / "0" / "0").mkdir(parents=True)
    (tmp_path / "g.zarr" / "many" / "c" / "0" / "0" / "0").write_bytes(b"damaged")
    views = "views=default,tree.h5,chunked.h5,nc"
    file = mounted(tmp_path / "g.zarr", views, quiet=False) / name
    import netCDF4

    with netCDF4.Dataset(file) as found:
        assert (found["many"][8] == 5).all()
        with pytest.raises(RuntimeError):
            found["many"][0]
