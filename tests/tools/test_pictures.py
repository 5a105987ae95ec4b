"""Pictures of the documentation, drawn from mounted files; `make pictures` keeps them."""

import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_module

UM = {"type": "space", "unit": "micrometer"}


@pytest.fixture
def draw(tmp_path):
    """``draw(figure, name)`` keeps a picture, or makes it for the test alone."""
    need_module("matplotlib")
    folder = Path(os.environ.get("ZARRFS_PICTURES", tmp_path)) / "images"
    folder.mkdir(exist_ok=True)

    def keep(figure, name):
        figure.savefig(folder / name, dpi=96, metadata={"Software": None})
        assert 2_000 < (folder / name).stat().st_size < 60_000

    return keep


def cells(length):
    """Round cells with a nucleus each, in two channels; and which nucleus each pixel is of."""
    random = np.random.default_rng(4)
    y, x = np.mgrid[:length, :length]
    pixels = np.full((2, length, length), 20, "f4")
    labels = np.zeros((length, length), "u1")
    for number, (row, column) in enumerate(random.uniform(20, length - 20, (24, 2)), 1):
        distance = np.hypot(y - row, (x - column) * random.uniform(0.8, 1.2))
        pixels[0] += 900 * np.exp(-((distance / 7) ** 4))
        pixels[1] += 500 * np.exp(-((distance / 15) ** 4))
        labels[distance < 7] = number
    return pixels.astype("u2"), labels


def image(path):
    """An OME-Zarr image of two channels in three levels, with labels."""
    pixels, labels = cells(256)
    axes = [{"name": "c", "type": "channel"}, *({"name": n, **UM} for n in "yx")]
    root = zarr.create_group(path)
    of_labels = root.create_group("labels").create_group("nuclei")
    for group, data, said in ((root, pixels, axes), (of_labels, labels, axes[1:])):
        datasets = []
        for level in range(3):
            step = 2**level
            group.create_array(str(level), data=data[..., ::step, ::step].copy(), chunks="auto")
            scale = [1.0] * (data.ndim - 2) + [0.5 * step] * 2
            steps = [{"type": "scale", "scale": scale}]
            datasets.append({"path": str(level), "coordinateTransformations": steps})
        multiscales = [{"version": "0.5", "axes": said, "datasets": datasets}]
        group.attrs["ome"] = {"version": "0.5", "multiscales": multiscales}
    channels = [{"label": "DNA", "color": "3060FF"}, {"label": "actin", "color": "20FF40"}]
    root.attrs["ome"] |= {"omero": {"channels": channels}}
    return pixels, labels


def test_an_image_its_levels_and_labels(mounted, tmp_path, draw):
    pytest.importorskip("tifffile")
    import tifffile
    from matplotlib.figure import Figure

    pixels, labels = image(tmp_path / "image.zarr")
    mount = mounted(tmp_path / "image.zarr")
    with tifffile.TiffFile(mount / "image.ome.tif") as file:
        levels = [level.asarray() for level in file.series[0].levels]
    nuclei = tifffile.imread(mount / "labels/nuclei/image.ome.tif")
    assert np.array_equal(levels[0], pixels)
    assert np.array_equal(nuclei, labels)

    figure = Figure(figsize=(7.5, 3.1), layout="constrained")
    colours = np.array([[0x30, 0x60, 0xFF], [0x20, 0xFF, 0x40]]) / 255
    places = figure.subplots(1, 3)
    shown = [(levels[0], "image.ome.tif"), (levels[2], "its third level"), (levels[0], "labels")]
    for place, (level, title) in zip(places, shown, strict=True):
        seen = np.einsum("cyx,cr->yxr", np.clip(level / 900.0, 0, 1), colours)
        place.imshow(np.clip(seen, 0, 1), interpolation="nearest", extent=(0, 128, 128, 0))
        place.set(title=title, xticks=[0, 128], yticks=[], xlabel="µm")
    outline = np.ma.masked_equal(nuclei, 0)
    places[2].imshow(outline, cmap="prism", interpolation="nearest", extent=(0, 128, 128, 0))
    draw(figure, "levels.png")


def test_packed_temperatures_with_missing_values(mounted, tmp_path, draw):
    import xarray as xr
    from matplotlib.figure import Figure

    latitude, longitude = np.arange(-89.0, 90, 2), np.arange(-179.0, 180, 2)
    wave = np.sin(np.radians(3 * longitude)) * np.cos(np.radians(latitude[:, None])) ** 2
    kelvin = 245 + 55 * np.cos(np.radians(latitude[:, None])) + 8 * wave
    kelvin[(latitude > 20) & (latitude < 40), 60:75] = np.nan
    source = xr.Dataset(
        {"t2m": (("lat", "lon"), kelvin, {"units": "K"})},
        {
            "lat": ("lat", latitude, {"units": "degrees_north"}),
            "lon": ("lon", longitude, {"units": "degrees_east"}),
        },
    )
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    source.to_zarr(tmp_path / "climate.zarr", encoding={"t2m": packed}, zarr_format=2)
    mount = mounted(tmp_path / "climate.zarr")
    with xr.open_dataset(mount / "group.h5", engine="netcdf4") as found:
        xr.testing.assert_allclose(found, source, atol=0.005)
        t2m = found["t2m"].load()

    figure = Figure(figsize=(6.5, 3.3), layout="constrained")
    place = figure.subplots()
    place.set_facecolor("0.8")
    seen = place.pcolormesh(t2m.lon, t2m.lat, t2m, cmap="RdYlBu_r", rasterized=True)
    place.set(title="t2m of group.h5: missing values grey", xlabel="lon", ylabel="lat")
    figure.colorbar(seen, label=t2m.attrs["units"])
    draw(figure, "temperature.png")
