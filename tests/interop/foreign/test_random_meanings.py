"""Datasets drawn at random mean the same in the netCDF files of a mount as in their store."""

import random

import numpy as np
import pytest

from tests.soak import TIMES

xarray = pytest.importorskip("xarray")

SEEDS = range(3) if TIMES == 1 else range(3 * TIMES)
NAMES = [("lat", "lon"), ("y", "x"), ("northing", "easting"), ("j", "i")]
MAPPINGS = [
    {"grid_mapping_name": "latitude_longitude", "earth_radius": 6371229.0},
    {
        "grid_mapping_name": "polar_stereographic",
        "latitude_of_projection_origin": 90.0,
        "straight_vertical_longitude_from_pole": -45.0,
        "standard_parallel": 70.0,
    },
    {"crs_wkt": 'GEOGCS["a"]', "GeoTransform": "0 1 0 9 0 -1"},
    {"grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": 39.25},
]
WITHOUT = np.nan


def places(draw: random.Random, count: int) -> np.ndarray:
    """Coordinates: regular, falling, not regular, rounded, or whole numbers."""
    found = draw.choice([0, 40.5, 500000]) + np.arange(count) * draw.choice([1, 0.25, 1 / 3, 30])
    return draw.choice(
        [found, found[::-1], found**1.5, found.astype("f4"), np.arange(count) * 2 + 7]
    )


def variable(draw: random.Random, kind: str, dims, shape):
    """A variable with its attributes, and how it is stored."""
    numbers = np.random.default_rng(draw.randrange(10**6)).integers(0, 100, shape)
    holes = numbers.astype("f8")
    holes.flat[0] = WITHOUT
    attributes = draw.choice([{}, {"units": "K", "long_name": "é"}])
    if kind == "packed":
        scale, offset = draw.choice([0.01, 2.0, 1.0]), draw.choice([273.15, 0.0])
        stored = {"dtype": "i2", "scale_factor": scale, "add_offset": offset, "_FillValue": -9}
        return (dims, holes * scale + offset, attributes), stored
    if kind == "unsigned":
        return (dims, holes, attributes), {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}
    if kind == "missing":
        return (dims, holes, attributes), {"dtype": "i2", "missing_value": -7}
    if kind == "zero":
        return (dims, np.where(holes == 0, 1, holes)), {"dtype": "u1", "_FillValue": 0}
    if kind == "flags":
        said = {"flag_values": np.array([0, 1], "i1"), "flag_meanings": "a b"}
        return (dims, (numbers % 2).astype("i1"), said), {}
    if kind == "bool":
        return (dims, numbers > 50), {}
    if kind == "moment":
        stored = draw.choice([{}, {"dtype": "f8", "units": "days since 1970-01-01"}])
        return (dims, np.datetime64("2001-01-01", "ns") + numbers.astype("m8[D]")), stored
    if kind == "float":
        fill = draw.choice([{}, {"_FillValue": np.float32(-999)}])
        return (dims, holes.astype("f4"), attributes), fill
    return (dims, numbers.astype(draw.choice(["u2", "i4", "i8", "u1"])), attributes), {}


KINDS = ["packed", "unsigned", "missing", "zero", "flags", "bool", "moment", "float", "whole"]


def dataset(draw: random.Random):
    """A dataset, and how its variables are stored."""
    y, x = draw.choice(NAMES)
    sizes = {"time": draw.randint(1, 4), y: draw.randint(2, 6), x: draw.randint(2, 7)}
    found = xarray.Dataset()
    if y != "j":
        units = ("degrees_north", "degrees_east") if y == "lat" else ("m", "m")
        for name, unit in zip((y, x), units, strict=True):
            found[name] = (name, places(draw, sizes[name]), {"units": unit})
    else:
        found = found.assign_coords(lat=((y, x), np.ones((sizes[y], sizes[x]))))
    if draw.random() < 0.6:
        calendar = draw.choice(["standard", "noleap", "360_day"])
        times = xarray.date_range(
            "2000-01-01", periods=sizes["time"], freq=draw.choice(["D", "MS"]), calendar=calendar,
            use_cftime=calendar != "standard",
        )  # fmt: skip
        found["time"] = ("time", times)
    mapping = draw.choice([None, *MAPPINGS]) if y != "j" else None
    if mapping is not None:
        found["crs"] = ((), 0, mapping)
    encoding = {}
    for kind in draw.sample(KINDS, 4):
        dims = [name for name in sizes if draw.random() < 0.8] or [x]
        if draw.random() < 0.2:
            draw.shuffle(dims)
        found[kind], stored = variable(draw, kind, dims, [sizes[name] for name in dims])
        if mapping is not None and {y, x} <= set(dims):
            found[kind].attrs["grid_mapping"] = "crs"
        encoding[kind] = stored
    return found, encoding


def without_axis(coordinate):
    """GDAL needs the attribute where only the name of a coordinate says whose it is."""
    if coordinate.name in ("y", "x", "northing", "easting"):
        assert coordinate.attrs.pop("axis") in ("Y", "X")


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_xarray_reads_of_a_mount_what_it_reads_of_the_store(seed, tmp_path, mounted):
    draw = random.Random(seed)
    written, encoding = dataset(draw)
    zarr_format = draw.choice([2, 3])
    written.to_zarr(
        tmp_path / "a.zarr", zarr_format=zarr_format, encoding=encoding, consolidated=False
    )
    mount = mounted(tmp_path / "a.zarr", "views=nc,h5")
    with xarray.open_zarr(tmp_path / "a.zarr", consolidated=False) as source:
        with xarray.open_dataset(mount / "group.h5", engine="netcdf4") as found:
            for each in (found, source):
                if "crs" in each.variables:
                    # Coordinates come before a transform.
                    each["crs"].attrs.pop("GeoTransform", None)
            for coordinate in found.coords.values():
                without_axis(coordinate)
            xarray.testing.assert_identical(found, source)
        for name in encoding:
            with xarray.open_dataset(mount / name / "array.nc", engine="netcdf4") as found:
                of = source[name]
                xarray.testing.assert_identical(found[name].variable, of.variable)
                for axis in set(of.dims) & set(source.coords):
                    without_axis(found[axis])
                    xarray.testing.assert_identical(found[axis].variable, source[axis].variable)
                if "grid_mapping" in of.encoding | of.attrs:
                    assert found["crs"].attrs.items() >= source["crs"].attrs.items()
