"""All formats, by the name of their files.

A format is given as the path of its function, so that only the formats of shown files are imported.
Other packages add their formats as entry points, in their ``pyproject.toml``::

    [project.entry-points."zarrfs.views"]
    "my.ext" = "my_package:my_format"

An entry point is a `Format`; its files are called ``array.my.ext``. They are shown only if the user
asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from zarrfs.views.headers.described import Described
    from zarrfs.views.headers.form import Plan
    from zarrfs.views.headers.grouped import GroupFormat

Format: TypeAlias = "Callable[[Described], Plan]"
"""Raises `form.Inexpressible` if its format cannot represent the array."""

Shown: TypeAlias = Literal["always", "image", "volume", "map", "asked"]

_FORMATS = "zarrfs.views.headers.formats"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}", re.ASCII)
_MOST_ENTRY_POINTS = 40


class Row(NamedTuple):
    """One format.

    path : module and function.
    beside : whether its files contain only a header, beside the file with the elements.
    shown : the arrays for which its files are shown by default.
    help : the programs that read it.
    """

    path: str
    beside: bool
    shown: Shown
    help: str


FORMATS: Mapping[str, Row] = {
    "npy": Row(f"{_FORMATS}.npy:npy", False, "always", "NumPy"),
    "nhdr": Row(f"{_FORMATS}.nrrd:nhdr", True, "always", "ITK, VTK, ParaView, 3D Slicer"),
    "bin.hdr": Row(f"{_FORMATS}.envi:envi", True, "always", "GDAL, QGIS, ENVI, IDL"),
    "h5": Row("zarrfs.views.headers.hdf5.single:h5", False, "always", "HDF5, MATLAB, xarray"),
    "mhd": Row(f"{_FORMATS}.metaimage:mhd", True, "asked", "ITK, VTK, ImageJ"),
    "vrt": Row(f"{_FORMATS}.vrt:vrt", True, "asked", "GDAL, QGIS"),
    "xmf": Row(f"{_FORMATS}.xdmf:xmf", True, "asked", "ParaView, VisIt"),
    "tif": Row(f"{_FORMATS}.tiff:tif", False, "image", "ImageJ, QuPath, GDAL, vips"),
    "nii": Row(f"{_FORMATS}.nifti:nii", False, "volume", "nibabel, FSL, SPM, ITK"),
    "nrrd": Row(f"{_FORMATS}.nrrd:nrrd", False, "asked", "ITK, VTK, teem, 3D Slicer"),
    "mha": Row(f"{_FORMATS}.metaimage:mha", False, "asked", "ITK, VTK, ImageJ"),
    # HDF5 under the name that netCDF programs expect: more of them open this than CDF-5.
    "nc": Row("zarrfs.views.headers.hdf5.single:nc", False, "asked", "netCDF, xarray, Panoply"),
    "fits": Row(f"{_FORMATS}.fits:fits", False, "asked", "astropy, DS9"),
    "mrc": Row(f"{_FORMATS}.mrc:mrc", False, "asked", "mrcfile, IMOD, RELION"),
    "safetensors": Row(f"{_FORMATS}.safetensors:safetensors", False, "asked", "PyTorch, JAX"),
    "wav": Row(f"{_FORMATS}.wav:wav", False, "asked", "sox, ffmpeg, Audacity"),
    "y4m": Row(f"{_FORMATS}.y4m:y4m", False, "asked", "ffmpeg, mplayer"),
    "chunked.h5": Row(
        "zarrfs.views.headers.hdf5.chunked:chunked_h5", False, "asked", "HDF5, across the last axis"
    ),
    "cog.tif": Row(
        "zarrfs.views.headers.tiff.pyramid:cog_tif", False, "map", "GDAL, QGIS, rasterio"
    ),
}
"""In the order of their numbers, which are part of inodes: new formats are added at the end."""


class GroupRow(NamedTuple):
    """One format of files that have several arrays of a group.

    path : module and `grouped.GroupFormat`.
    option : its name among ``views``.
    shown : whether its files are shown by default.
    help : the programs that read it.
    """

    path: str
    option: str
    shown: bool
    help: str


_PYRAMID = "zarrfs.views.headers.tiff.pyramid"
GROUP_FORMATS: Mapping[str, GroupRow] = {
    "group.h5": GroupRow("zarrfs.views.headers.hdf5.group:GROUP", "h5", True, "HDF5, xarray"),
    "image.ome.tif": GroupRow(
        f"{_PYRAMID}:OME", "image.ome.tif", True, "Bio-Formats, tifffile, QuPath, openslide, vips"
    ),
    "image.tif": GroupRow(f"{_PYRAMID}:GEO", "image.tif", True, "GDAL, QGIS, rasterio"),
    # The same file under the name by which GDAL and Panoply choose netCDF.
    "group.nc": GroupRow(
        "zarrfs.views.headers.hdf5.group:GROUP", "group.nc", False, "netCDF, GDAL, Panoply"
    ),
    "tree.h5": GroupRow(
        "zarrfs.views.headers.hdf5.group:TREE", "tree.h5", False, "HDF5, xarray's DataTree"
    ),
    "group.arrow": GroupRow(
        "zarrfs.views.headers.arrow.file:ARROW", "group.arrow", False, "pandas, polars, pyarrow"
    ),
}
"""By the name of the file, in the order of their numbers, as `FORMATS`."""

GROUP_OPTIONS = tuple(row.option for row in GROUP_FORMATS.values() if row.option not in FORMATS)
"""Names among ``views`` that select files of groups alone."""

DEFAULT = "default"
"""In place of names: the formats that are shown by default."""

ALL = "all"
"""In place of names: every format."""


def find_format(name: str) -> Format:
    """The format of files ``array.NAME``. Raises KeyError, ImportError, AttributeError."""
    if (row := FORMATS.get(name)) is not None:
        module, _, function = row.path.partition(":")
        found: Format = getattr(import_module(module), function)
        return found
    return _entry_points()[name]()


def other_formats() -> list[str]:
    """The names of the formats from other packages, sorted."""
    return list(_entry_points())


def is_format(name: str) -> bool:
    return name in FORMATS or name in GROUP_OPTIONS or name in _entry_points()


def chosen_of_group(views: Collection[str]) -> Iterator[tuple[int, str]]:
    """Number and name of the files of a group that ``views`` selects."""
    for number, (name, row) in enumerate(GROUP_FORMATS.items()):
        if row.option in views or ALL in views or (DEFAULT in views and row.shown):
            yield number, name


def find_group_format(name: str) -> GroupFormat:
    """The format of the files of this name."""
    module, _, value = GROUP_FORMATS[name].path.partition(":")
    found: GroupFormat = getattr(import_module(module), value)
    return found


@cache
def _entry_points() -> dict[str, Callable[[], Format]]:
    # Reading the metadata of all installed packages takes time, which known names do not need.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found = {
        entry_point.name: entry_point.load
        for entry_point in sorted(entry_points(group="zarrfs.views"), key=lambda e: e.name)
        if entry_point.name not in FORMATS and _NAME.fullmatch(entry_point.name)
    }
    return dict(list(found.items())[:_MOST_ENTRY_POINTS])


def chosen(views: Collection[str], array: Described) -> Iterator[tuple[int, str]]:
    """Number and name of the formats that ``views`` selects for an array.

    views : names of formats, and in place of names ``default`` or ``all``.
    """
    numbered = list(enumerate(FORMATS))
    # The default selection needs no search for installed packages.
    if set(views) - FORMATS.keys() - {DEFAULT}:
        numbered += enumerate(other_formats(), len(FORMATS))
    for number, name in numbered:
        if name in views or ALL in views or (DEFAULT in views and _is_shown(name, array)):
            yield number, name


def _is_shown(name: str, array: Described) -> bool:
    shown = FORMATS[name].shown if name in FORMATS else "asked"
    if shown == "map":
        return array.is_image and array.is_on_earth
    return shown == "always" or (
        array.is_image if shown == "image" else shown == "volume" and array.is_volume
    )
