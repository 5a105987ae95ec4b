"""``array.h5``: an array as the one dataset of an HDF5 file, with dimension scales."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from zarrfs.views.headers.attributes import coordinates, dimension_names, typed_attributes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.hdf5.file import Dataset, make_file, scale
from zarrfs.views.headers.hdf5.messages import MARKS, number_type

_MOST_AXES = 32


def h5(array: Described) -> Plan:
    """Numbers, complex numbers and booleans of any shape."""
    stored_type(array)
    if len(array.axes) > _MOST_AXES:
        raise Inexpressible(f"HDF5 takes at most {_MOST_AXES} axes")
    return partial(_form, array)


def stored_type(array: Described) -> np.dtype[Any]:
    """The numpy type of the elements as they are in the file. Raises Inexpressible."""
    if not array.code:
        raise Inexpressible(f"HDF5 has no {array.data_type.name}")
    return array.data_type.stored_dtype(big_endian=array.big)


def dataset_of(array: Described, name: str, dimensions: list[str]) -> Dataset:
    """A dataset. If its only dimension has its own name, it is the scale of that dimension."""
    dtype = stored_type(array)
    fill = array.fill
    # Zero is HDF5's default. An explicit fill value would mark missing values for GDAL.
    if fill is not None and not any(fill):
        fill = None
    elif fill is not None:
        fill = np.frombuffer(fill, array.data_type.dtype).astype(dtype).tobytes()
    return Dataset(
        name,
        number_type(array.data_type.dtype.newbyteorder(dtype.byteorder)),
        array.shape,
        array.nbytes,
        fill,
        typed_attributes(array.attributes, array),
        dimensions,
        scale=dimensions == [name],
    )


def _form(array: Described) -> Form:
    name = array.name.replace("/", "_")
    dimensions: list[str] = []
    scales: list[Dataset] = []
    if any(axis.name for axis in array.axes):
        dimensions = dimension_names(array.axes, name)
        scales = [
            scale(dimension, axis.length, axis.unit, coordinates(axis))
            for dimension, axis in zip(dimensions, array.axes, strict=True)
            if dimension != name
        ]
    made = make_file([*scales, dataset_of(array, name, dimensions)])
    return Form(made.header, array.layout, marks=MARKS)
