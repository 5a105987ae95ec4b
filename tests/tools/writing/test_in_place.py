"""Programs change elements of an array in a file of another format; zarr-python reads it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_module, need_program, run
from tests.tools.samples import make, values

# Of ``data``, which has the slowest axis of the file first.
CHANGE = "data[3, 5, 2:4] = 77"
PYTHON = {
    ("numpy", "npy"): ("numpy", "data = numpy.load(path, mmap_mode='r+'); CHANGE; data.flush()"),
    ("h5py", "h5"): (
        "h5py",
        "file = h5py.File(path, 'r+'); data = file[name]; CHANGE; file.close()",
    ),
    ("netcdf4", "h5"): (
        "netCDF4",
        "file = netCDF4.Dataset(path, 'r+'); data = file[name]; CHANGE; file.close()",
    ),
    ("tifffile", "tif"): (
        "tifffile",
        "data = tifffile.memmap(path, mode='r+'); CHANGE; data.flush()",
    ),
    ("astropy", "fits"): (
        "astropy.io.fits",
        """file = astropy.io.fits.open(path, mode='update')
data = file[0].data; CHANGE; file.close()""",
    ),
    ("mrcfile", "mrc"): (
        "mrcfile",
        "file = mrcfile.mmap(path, mode='r+'); data = file.data; CHANGE; data.flush()",
    ),
    ("nibabel", "nii"): (
        "nibabel.openers",
        """file = nibabel.load(path); import numpy; start = file.dataobj.offset
data = numpy.memmap(path, file.get_data_dtype(), 'r+', start, file.shape, 'F').T
CHANGE; data.flush()""",
    ),
}
OPTIONS = {"C": (), "F, big-endian": ("order=F", "byteorder=big")}


@pytest.fixture
def array(tmp_path, mounted):
    """``array(order)``: the path of a new group, and a mount of it that can be written to."""

    def mount(order="C"):
        kinds = [(code, 3) for code in ("u1", "i2", "u2", "f4")]
        path = make(tmp_path / f"{order}.zarr", kinds=kinds)
        return path, mounted(path, "rw", "views=all", *OPTIONS[order])

    return mount


def check(path: Path, name: str, code: str, change, order: str = "C") -> None:
    """What others read is what was there, but for the change."""
    expected = values(code, 3)
    change(expected if order == "C" else expected.T)
    found = zarr.open_array(path / name, mode="r")[...]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", PYTHON, ids=" ".join)
def test_packages_of_python(case, array):
    module, program = PYTHON[case]
    need_module(module.partition(".")[0])
    files = []
    for order in OPTIONS:
        path, mount = array(order)
        for code in ("i2", "f4"):
            file = mount / f"{code}_3" / f"array.{case[1]}"
            files.append((order, path, code, file, file.read_bytes()))
    named = [word for *_, file, _ in files for word in (file, file.parent.name)]
    text = (
        f"import sys, {module}\nfor path, name in zip(sys.argv[1::2], sys.argv[2::2]): "
        f"exec({program.replace('CHANGE', CHANGE)!r})"
    )
    run(sys.executable, "-W", "ignore", "-c", text, *named)

    def change(data: np.ndarray) -> None:
        data[3, 5, 2:4] = 77

    for order, path, code, file, before in files:
        check(path, file.parent.name, code, change, "C" if case[0] == "numpy" else order)
        after = file.read_bytes()
        assert len(after) == len(before)
        size = np.dtype(code).itemsize
        assert sum(a != b for a, b in zip(after, before, strict=True)) <= 2 * size


def test_unsigned_numbers_of_fits(array):
    """They are stored with another first bit."""
    need_module("astropy")
    path, mount = array()
    text = (
        "import sys; from astropy.io import fits; file = fits.open(sys.argv[1], mode='update', "
        "uint=True, memmap=False); file[0].data[3, 5, 2] = 40000; file.close()"
    )
    run(sys.executable, "-W", "ignore", "-c", text, mount / "u2_3" / "array.fits")

    def change(data: np.ndarray) -> None:
        data[3, 5, 2] = 40000

    check(path, "u2_3", "u2", change)


@pytest.mark.parametrize("file", ["array.bin", "array.vrt", "array.tif"])
def test_gdal(file, array, tmp_path):
    """It opens headers to read and write even where it only reads."""
    need_program("gdal_rasterize")
    path, mount = array()
    # Columns 2 to 4 and rows 5 to 7 of a picture without georeference.
    square = '{"type": "Polygon", "coordinates": [[[2, 5], [5, 5], [5, 8], [2, 8], [2, 5]]]}'
    (tmp_path / "square.geojson").write_text(square)
    # Of a TIFF it opens the first page.
    plane = 0 if file == "array.tif" else 2
    target = mount / "u1_3" / file
    options = ("-q", "-b", plane + 1, "-burn", "99")
    run("gdal_rasterize", *options, tmp_path / "square.geojson", target)

    def change(data: np.ndarray) -> None:
        data[plane, 5:8, 2:5] = 99

    check(path, "u1_3", "u1", change)


def test_a_header_cannot_be_changed(array):
    _, mount = array()
    for name in ("array.nhdr", "array.h5", "array.fits"):
        file = mount / "u1_3" / name
        before = file.read_bytes()
        with open(file, "r+b", buffering=0) as stream:
            stream.write(before[:64])  # what is there already may be written
            with pytest.raises(PermissionError):
                stream.write(b"\0" * 16)
        assert file.read_bytes() == before
