"""Packages of Python open an array by the name of a file, with nothing else said."""

from itertools import product

import numpy as np
import pytest

from tests.soak import EXHAUSTIVE
from tests.tools.programs import read
from tests.tools.samples import ORDERS, values

NUMBERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
BITS_32 = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")

# Reader, extension, types and ranks.
CASES = {
    ("numpy", "npy"): ((*NUMBERS, "b1", "f2", "c8", "c16"), (1, 2, 3, 4)),
    ("h5py", "h5"): ((*NUMBERS, "b1", "f2", "c8", "c16"), (1, 2, 3, 4)),
    ("netcdf4", "h5"): (NUMBERS, (1, 2, 3, 4)),
    ("xarray", "h5"): (NUMBERS, (1, 2, 3, 4)),
    ("netcdf4", "nc"): (NUMBERS, (1, 2, 3, 4)),
    ("xarray", "nc"): (NUMBERS, (1, 2, 3, 4)),
    ("h5netcdf", "nc"): (NUMBERS, (1, 2, 3, 4)),
    ("pyfive", "h5"): (NUMBERS, (1, 2, 3, 4)),
    ("h5py", "chunked.h5"): (NUMBERS, (1, 2, 3, 4)),
    ("netcdf4", "chunked.h5"): (NUMBERS, (1, 2, 3, 4)),
    ("xarray", "chunked.h5"): (NUMBERS, (1, 2, 3, 4)),
    ("pyfive", "chunked.h5"): (NUMBERS, (1, 2, 3, 4)),
    ("simpleitk", "nhdr"): (NUMBERS, (2, 3, 4)),
    ("simpleitk", "nrrd"): (NUMBERS, (2, 3, 4)),
    ("simpleitk", "mhd"): (BITS_32, (2, 3, 4)),
    ("simpleitk", "mha"): (BITS_32, (2, 3, 4)),
    ("simpleitk", "nii"): (NUMBERS, (2, 3, 4)),
    ("vtk", "nhdr"): (BITS_32, (3,)),
    ("vtk", "mhd"): (BITS_32, (3,)),
    ("vtk", "nii"): (BITS_32, (3,)),
    ("vtk", "xmf"): (("u1", "i2", "i4", "f4", "f8"), (3,)),
    ("pynrrd", "nhdr"): (NUMBERS, (1, 2, 3, 4)),
    ("pynrrd", "nrrd"): (NUMBERS, (1, 2, 3, 4)),
    ("nibabel", "nii"): ((*NUMBERS, "c8", "c16"), (2, 3, 4)),
    ("tifffile", "tif"): ((*NUMBERS, "f2", "c8", "c16"), (2, 3, 4)),
    ("tifffile_memmap", "tif"): ((*NUMBERS, "f2", "c8"), (2, 3, 4)),
    ("astropy", "fits"): (NUMBERS, (1, 2, 3, 4)),
    ("fitsio", "fits"): ([code for code in NUMBERS if code != "u8"], (1, 2, 3, 4)),
    ("rasterio", "vrt"): (NUMBERS[1:], (2, 3)),
    ("rasterio", "bin"): (NUMBERS[1:], (2, 3)),
    ("mrcfile", "mrc"): (("i1", "i2", "u2", "f4", "f2", "c8"), (2, 3)),
    ("safetensors", "safetensors"): ((*NUMBERS, "b1", "f2"), (1, 2, 3, 4)),
}


def files(case, order):
    """Type, rank and path in its mount of each file of a case."""
    codes, ranks = CASES[case]
    if case[1] == "nii" and order != "C":
        # The fourth axis is time, which NIfTI does not have as the fastest one.
        ranks = tuple(rank for rank in ranks if rank < 4)
    for (i, code), (j, rank) in product(enumerate(codes), enumerate(ranks)):
        # Each type and each rank, and of their pairs half, others for other readers.
        if EXHAUSTIVE or len(ranks) == 1 or (i + j + len(case[0])) % 2:
            node = f"{code}_{rank}"
            yield code, rank, f"{node}/{'array' if order == 'C' else node}.{case[1]}"


@pytest.mark.soak
@pytest.mark.parametrize("reader", dict.fromkeys(reader for reader, _ in CASES))
def test_opens_by_its_name(reader, mounts, tmp_path):
    asked = [
        (case, order, code, rank, mounts[order] / path)
        for case in CASES
        if case[0] == reader
        for order in ORDERS
        # HDF5 in chunks is in C order and little-endian.
        if order == "C" or case[1] != "chunked.h5"
        for code, rank, path in files(case, order)
    ]
    results = read(reader, [path for *_, path in asked], tmp_path / "found.npz")
    for (case, order, code, rank, path), found in zip(asked, results, strict=True):
        expected = values(code, rank)
        if order != "C" and reader != "numpy":
            # The first axis of the array is the fastest one of the file.
            expected = expected.T
            if case == ("vtk", "nii"):
                # VTK turns the slices round where the affine has a negative determinant.
                expected = expected[::-1]
        assert found.shape == expected.shape, path
        np.testing.assert_array_equal(found, expected, err_msg=str(path))
