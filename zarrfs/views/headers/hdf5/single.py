"""``array.h5`` and ``array.nc``: an array as the one dataset of a file, with dimension scales."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.facts.place.crs import well_known_text
from zarrfs.views.facts.place.georeference import grid_mapping
from zarrfs.views.headers.attributes import TypedAttribute, typed_attributes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.hdf5.dimensions import Dimensions, axis_attribute
from zarrfs.views.headers.hdf5.file import Dataset, Group, Made, make_file
from zarrfs.views.headers.hdf5.messages import MARKS, number_type

_MOST_AXES = 32
# A dimension scale without coordinates has four bytes for each element.
_LONGEST_AXIS = (1 << 62) - 1
GRID_MAPPING = "spatial_ref"
"""The variable with the georeference of an array, as rioxarray and GDAL call it."""


def h5(array: Described) -> Plan:
    """Numbers, complex numbers and booleans of any shape."""
    stored_type(array)
    if len(array.axes) > _MOST_AXES:
        raise Inexpressible(f"HDF5 takes at most {_MOST_AXES} axes")
    if any(axis.length > _LONGEST_AXIS for axis in array.axes):
        raise Inexpressible(f"HDF5 takes dimensions of at most {_LONGEST_AXIS} elements")
    return partial(_form, array)


def nc(array: Described) -> Plan:
    """The numbers that netCDF has; booleans are bytes with the attribute ``dtype = "bool"``."""
    if array.code[:1] not in ("b", "i", "u", "f") or array.code == "f2":
        raise Inexpressible(f"netCDF has no {array.data_type.name}")
    h5(array)
    return partial(_form, array, netcdf=True)


def stored_type(array: Described) -> np.dtype[Any]:
    """The numpy type of the elements as they are in the file. Raises Inexpressible."""
    if not array.code:
        raise Inexpressible(f"HDF5 has no {array.data_type.name}")
    return array.data_type.stored_dtype(big_endian=array.big)


def dataset_of(
    array: Described,
    name: str,
    dimensions: list[str],
    *,
    netcdf: bool,
    grid_mapping: str = "",
) -> Dataset:
    """A dataset. If its only dimension has its own name, it is the scale of that dimension.

    netcdf : whether all types are netCDF's.
    grid_mapping : the name of the variable with the georeference; empty: as the attributes say.
    """
    dtype = stored_type(array)
    # A fill value marks missing values for GDAL, so the file has no other one.
    missing = array.no_data
    fill = None if missing is None else np.array(missing).astype(dtype).tobytes()
    said = array.attributes
    if dimensions == [name]:
        said = {**said, **axis_attribute(name, said)}
    attributes = typed_attributes(said, array)
    kind = array.numbers.newbyteorder(dtype.byteorder)
    if netcdf and kind.kind == "b":
        kind = np.dtype("i1")
        attributes = [a for a in attributes if a.name != "dtype"]
        attributes.append(TypedAttribute("dtype", "bool"))
    if grid_mapping:
        attributes = [a for a in attributes if a.name != "grid_mapping"]
        attributes.append(TypedAttribute("grid_mapping", grid_mapping))
    return Dataset(
        name,
        number_type(kind),
        array.shape,
        array.nbytes,
        fill,
        attributes,
        dimensions,
        scale=dimensions == [name],
    )


def georeference_of(array: Described, name: str) -> Dataset | None:
    """The variable with the georeference of an array; None if nothing is known."""
    place = array.facts.georeference
    said: dict[str, str] = {}
    if place.crs:
        text = well_known_text(place.crs)
        said |= {"crs_wkt": text} if text else {}
        said["spatial_ref"] = text or place.crs
    facts = array.facts
    places = [facts.axes[i] for i in (facts.y_axis, facts.x_axis) if i is not None]
    # Coordinates say it, too, and their array need not name this variable.
    announced = not (said or facts.grid_mapping) and all(axis.coordinates for axis in places)
    if place.transform is not None and not announced:
        said["GeoTransform"] = " ".join(repr(float(number)) for number in place.transform)
    if not said and not facts.grid_mapping:
        return None
    attributes = typed_attributes({k: v for k, v in facts.grid_mapping.items() if k not in said})
    attributes += [TypedAttribute(key, text) for key, text in said.items()]
    return Dataset(
        name, number_type(np.dtype("<i4")), (), 4, attributes=attributes, values=bytes(4)
    )


def _form(array: Described, *, netcdf: bool = False) -> Form:
    made = make_single(array, netcdf=netcdf)
    gap = made.size - array.nbytes - len(made.header)
    return Form(made.header, array.layout, marks=MARKS, gap=gap)


def make_single(
    array: Described, *, netcdf: bool = False, chunks: Shape = (), root: int = 0, span: int = 0
) -> Made:
    """The file of one array; ``chunks``, ``root``, ``span`` : see `Dataset`."""
    name = array.name.replace("/", "_")
    mapping = (array.facts.grid_mapping and grid_mapping(array.attributes)) or GRID_MAPPING
    if mapping == name or any(axis.name == mapping for axis in array.axes):
        mapping = f"{name}_{GRID_MAPPING}"
    place = georeference_of(array, mapping)
    dimensions = Dimensions({name: replace(array, name=name)})
    data = dataset_of(
        array,
        name,
        dimensions.of(name),
        netcdf=netcdf,
        grid_mapping=mapping if place is not None else "",
    )
    others = [place] if place is not None else []
    data = replace(data, chunks=chunks, root=root, span=span)
    return make_file([Group("", [*dimensions.scales(), *others, data])])
