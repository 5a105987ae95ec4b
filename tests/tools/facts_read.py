"""Facts that programs of Python find in files: ``python facts_read.py`` with a list on its input.

Each entry of the list has the path of a file, the index of an element, that of one without a value
or None, and the roles of the axes: ``x``, ``y``, ``z``, or another letter. It answers for each
reader of the file with facts: ``place``, by role; ``raw``, the element; ``value``, what it means;
``hole``, whether the other element has no value.
"""

import json
import sys
from pathlib import Path

import numpy as np


def by_xarray(path, index, hole, roles):
    import xarray

    with xarray.open_dataset(path, engine="netcdf4", decode_times=False) as found:
        array = found[Path(path).parent.name]
        places = {
            role: float(found[dim][i])
            for role, dim, i in zip(roles, array.dims, index, strict=True)
            if dim in found
        }
        said = {"place": places, "value": float(array.values[tuple(index)])}
        return said if hole is None else said | {"hole": np.isnan(array.values[tuple(hole)])}


def by_h5py(path, index, hole, roles):
    import h5py

    with h5py.File(path) as file:
        array = file[Path(path).parent.name]
        places = {
            role: float(axis[0][i])
            for role, axis, i in zip(roles, array.dims, index, strict=True)
            if len(axis) and axis[0].dtype.kind == "f" and role in "xyz"
        }
        return {"place": places, "raw": float(array[tuple(index)])}


def by_netcdf4(path, index, hole, roles):
    import netCDF4

    with netCDF4.Dataset(path) as file:
        array = file[Path(path).parent.name]
        places = {
            role: float(file[dim][i])
            for role, dim, i in zip(roles, array.dimensions, index, strict=True)
            if dim in file.variables and role in "xyz"
        }
        value = array[tuple(index)]
        said = {"place": places, "value": float(value)}
        return said if hole is None else said | {"hole": missing(array[tuple(hole)])}


def missing(value):
    return bool(np.ma.is_masked(value) or np.isnan(value))


def by_vtk(path, index, hole, roles):
    import vtk
    from vtk.util.numpy_support import vtk_to_numpy

    mhd, mrc = path.endswith(".mhd"), path.endswith(".mrc")
    kinds = {"mhd": vtk.vtkMetaImageReader, "mrc": vtk.vtkMRCReader, "xmf": vtk.vtkXdmfReader}
    reader = kinds[path.rpartition(".")[2]]()
    reader.SetFileName(path)
    reader.Update()
    image = reader.GetOutputDataObject(0)
    size, origin, spacing = image.GetDimensions(), image.GetOrigin(), image.GetSpacing()
    # It ignores the directions of MetaImage; XDMF has no place on an axis where places fall.
    turned = mhd and "TransformMatrix" in Path(path).read_text()
    unit = 1e4 if mrc else 1.0  # ångströms
    places = {
        role: (origin[k] + spacing[k] * at) / unit
        for k, (role, at) in enumerate(zip(roles[::-1], index[::-1], strict=True))
        if not turned and (mhd or (origin[k], spacing[k]) != (0, 0 if mrc else 1))
    }
    data = vtk_to_numpy(image.GetPointData().GetArray(0)).reshape(size[::-1])
    found = {"raw": float(data[(0,) * (3 - len(index)) + tuple(index)])}
    return found | {"place": places} if places else found


def by_xdmf(path, index, hole, roles):
    """Calls Xdmf 3 in C: the symbols of Debian's package for Python are not all there."""
    import ctypes

    library, status = ctypes.CDLL("libXdmf.so.3"), ctypes.byref(ctypes.c_int())

    class Handle(ctypes.c_void_p):  # ctypes makes integers of 32 bits of others
        pass

    def call(name, *arguments, returns=Handle):
        function = library[f"Xdmf{name}"]
        function.restype = returns
        return function(*arguments)

    def numbers(kind, array):
        text = call(f"{kind}GetValuesString", array, returns=ctypes.c_char_p)
        return np.array(text.split(), "f8")

    domain = call("ReaderRead", call("ReaderNew"), path.encode(), status)
    grid = call("DomainGetRegularGrid", domain, 0)
    shape, origin, spacing = (
        numbers("Array", call(f"RegularGridGet{name}", grid, status))
        for name in ("Dimensions", "Origin", "BrickSize")
    )
    array = call("RegularGridGetAttribute", grid, 0)
    call("AttributeRead", array, status)
    first = 3 - len(index)
    places = {
        role: origin[k] + spacing[k] * at
        for k, (role, at) in enumerate(zip(roles, index, strict=True), first)
        if (origin[k], spacing[k]) != (0, 1)
    }
    data = numbers("Attribute", array).reshape(shape.astype(int))
    found = {"raw": data[(0,) * first + tuple(index)]}
    return found | {"place": places} if places else found


def by_mrcfile(path, index, hole, roles):
    import mrcfile

    with mrcfile.open(path) as file:
        origin, size = file.header.origin, file.voxel_size
        places = {
            role: (float(origin[role]) + float(size[role]) * at) / 1e4  # ångströms
            for role, at in zip(roles, index, strict=True)
            if role in "xyz" and size[role] > 0
        }
        found = {"raw": float(file.data[tuple(index)])}
        return found | {"place": places} if places else found


def by_simpleitk(path, index, hole, roles):
    import SimpleITK

    image = SimpleITK.ReadImage(path)
    at = index[::-1]
    if path.endswith(".mrc"):  # it reads no origin, and takes ångströms for millimetres
        return {"raw": float(image[*at, *[0] * (image.GetDimension() - len(at))])}
    if image.GetDimension() < len(at):
        at = at[len(at) - image.GetDimension() :]
    places = image.TransformIndexToPhysicalPoint(at)
    scaled = path.endswith(".nii")
    # The volumes are in micrometres; planes have no unit of length.
    scale = 1e3 if scaled and "z" in roles else 1
    found = {"place": {role: float(n) * scale for role, n in zip("xyz", places, strict=False)}}
    if image.GetNumberOfComponentsPerPixel() == 1:
        found["value" if scaled else "raw"] = float(image[at])
    return found


def by_nibabel(path, index, hole, roles):
    import nibabel

    image = nibabel.load(path)
    at = index[::-1]
    x, y, z, _ = image.affine @ [*(*at, 0)[:3], 1]
    value = np.asarray(image.dataobj)[tuple(at)]
    return {"place": {"x": -x, "y": -y, "z": z}, "value": float(value)}


def by_pynrrd(path, index, hole, roles):
    import nrrd

    data, header = nrrd.read(path)
    at = index[::-1]
    found = {"raw": float(data[tuple(at)])}
    if "space origin" in header:
        steps = np.nan_to_num(header["space directions"])
        places = header["space origin"] + np.array(at) @ steps
    elif "axis mins" in header:
        places = header["axis mins"] + np.array(at) * header["spacings"]
    elif "spacings" in header:
        places = np.array(at) * header["spacings"]
    else:
        return found
    found["place"] = dict(zip("xyz", map(float, places), strict=False))
    return found


def by_astropy(path, index, hole, roles):
    from astropy.io import fits

    with fits.open(path) as file:
        return of_fits(file[0].header, file[0].data, index, roles)


def by_fitsio(path, index, hole, roles):
    import fitsio

    with fitsio.FITS(path) as file:
        return of_fits(file[0].read_header(), file[0].read(), index, roles)


def of_fits(header, data, index, roles):
    places = {
        role: header[f"CRVAL{i}"] + (at + 1 - header[f"CRPIX{i}"]) * header[f"CDELT{i}"]
        for i, (role, at) in enumerate(zip(roles[::-1], index[::-1], strict=True), 1)
        if f"CRVAL{i}" in header
    }
    return {"place": places, "value": float(data[tuple(index)])}


def by_tifffile(path, index, hole, roles):
    import tifffile

    with tifffile.TiffFile(path) as file:
        shape = [axis for axis in file.series[0].shape if axis > 1]
        return {"raw": float(file.asarray()[tuple(index)]), "rank": len(shape)}


def by_rasterio(path, index, hole, roles):
    import rasterio

    *planes, row, column = index
    with rasterio.open(path) as file:
        pages = file.subdatasets
    with rasterio.open(pages[planes[0]] if pages else path) as file:
        band = 1 if pages or not planes else planes[0] + 1
        raw = float(file.read(band)[row, column])
        found = {"raw": raw, "value": raw * file.scales[band - 1] + file.offsets[band - 1]}
        if not file.transform.is_identity:
            found["place"] = dict(zip("xy", file.xy(row, column), strict=True))
        return found if hole is None else found | {"hole": not file.read_masks(band)[tuple(hole)]}


READERS = {
    "nc": [by_xarray, by_netcdf4], "h5": [by_h5py, by_netcdf4], "nhdr": [by_simpleitk, by_pynrrd],
    "mhd": [by_simpleitk, by_vtk], "mrc": [by_mrcfile, by_vtk, by_simpleitk],
    "xmf": [by_vtk, by_xdmf], "nii": [by_simpleitk, by_nibabel], "fits": [by_astropy, by_fitsio],
    "tif": [by_tifffile, by_rasterio], "vrt": [by_rasterio], "bin": [by_rasterio],
}  # fmt: skip


def main() -> None:
    answers = []
    for path, index, hole, roles in json.load(sys.stdin):
        found = {}
        for reader in READERS[path.rpartition(".")[2]]:
            try:
                found[reader.__name__[3:]] = reader(path, index, hole, roles)
            except Exception as error:  # noqa: BLE001 - it is part of the answer
                found[reader.__name__[3:]] = {"error": repr(error)}
        answers.append(found)
    print(json.dumps(answers, default=float))


if __name__ == "__main__":
    main()
