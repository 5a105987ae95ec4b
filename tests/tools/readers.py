"""Programs of Python that open a file by its name: ``python readers.py READER OUT FILE…``.

Each gives the elements with the slowest axis of the file first. They run in a process of their
own, whatever they do to the one that they are in.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np


def h5py(path: str):
    import h5py

    with h5py.File(path) as file:
        return file[Path(path).parent.name][...]


def netcdf4(path: str):
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return file[Path(path).parent.name][...]


def xarray(path: str):
    import xarray

    with xarray.open_dataset(path, mask_and_scale=False) as file:
        return file[Path(path).parent.name].values


def h5netcdf(path: str):
    import xarray

    with xarray.open_dataset(path, mask_and_scale=False, engine="h5netcdf") as file:
        return file[Path(path).parent.name].values


def pyfive(path: str):
    import pyfive

    with pyfive.File(path) as file:
        return file[Path(path).parent.name][...]


def simpleitk(path: str):
    import SimpleITK

    return SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path))


def vtk(path: str):
    import vtk
    from vtk.util.numpy_support import vtk_to_numpy

    readers = {
        "nhdr": "vtkNrrdReader",
        "nrrd": "vtkNrrdReader",
        "mhd": "vtkMetaImageReader",
        "mha": "vtkMetaImageReader",
        "nii": "vtkNIFTIImageReader",
        "xmf": "vtkXdmfReader",
    }
    reader = getattr(vtk, readers[path.rpartition(".")[2]])()
    reader.SetFileName(path)
    reader.Update()
    image = reader.GetOutputDataObject(0)
    scalars = image.GetPointData().GetArray(0)
    return vtk_to_numpy(scalars).reshape(image.GetDimensions()[::-1])


def nibabel(path: str):
    import nibabel

    return np.asarray(nibabel.load(path).dataobj).T


def pynrrd(path: str):
    import nrrd

    return nrrd.read(path, index_order="C")[0]


def tifffile(path: str):
    import tifffile

    return tifffile.imread(path)


def tifffile_memmap(path: str):
    import tifffile

    return tifffile.memmap(path, mode="r")


def astropy(path: str):
    from astropy.io import fits

    return fits.getdata(path)


def fitsio(path: str):
    import fitsio

    return fitsio.read(path)


def rasterio(path: str):
    import rasterio

    with rasterio.open(path) as file:
        return file.read(1 if file.count == 1 else None)


def mrcfile(path: str):
    import mrcfile

    with mrcfile.open(path) as file:
        return np.array(file.data)


def safetensors(path: str):
    from safetensors.numpy import load_file

    (tensor,) = load_file(path).values()
    return tensor


def numpy(path: str):
    return np.load(path, mmap_mode="r")


READERS: dict[str, Callable] = {
    reader.__name__: reader
    for reader in (
        *(h5py, netcdf4, xarray, h5netcdf, pyfive, simpleitk, vtk, nibabel, pynrrd, tifffile),
        *(tifffile_memmap, astropy, fitsio, rasterio, mrcfile, safetensors, numpy),
    )
}


def main(name: str, out: str, *paths: str) -> None:
    """Has what was read in ``OUT``, an NPZ file with ``0``, ``1``, … for the files."""
    np.savez(out, **{str(i): np.asarray(READERS[name](path)) for i, path in enumerate(paths)})


if __name__ == "__main__":
    main(*sys.argv[1:])
