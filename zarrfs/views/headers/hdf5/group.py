"""``group.h5``: the arrays of a group as the datasets of one HDF5 file.

Dimensions are netCDF's. Axes with the same name and length are the same dimension in all arrays. An
array of one axis, with the name of that axis, contains the coordinates of that dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.views.headers.attributes import TypedAttribute, typed_attributes
from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import LARGEST_HEADER, Inexpressible
from zarrfs.views.headers.hdf5.file import Dataset, Made, make_file, scale
from zarrfs.views.headers.hdf5.single import dataset_of, h5
from zarrfs.views.headers.text import plain

MOST_ARRAYS = 1000
LEFT_OUT = "zarrfs_left_out"
"""The attribute of the file that lists the arrays that are left out."""

_LONGEST_LIST = 4000


def group_file(
    arrays: Mapping[str, Described], attributes: Mapping[str, Any], others: Sequence[str]
) -> Made:
    """All bytes before the elements, and the offset of the elements of each array.

    arrays : by their names in the group.
    others : names of arrays that are left out in any case.
    """
    left_out = list(others)
    kept: dict[str, Described] = {}
    for name, array in arrays.items():
        if len(kept) < MOST_ARRAYS and name.isprintable() and _fits(array):
            kept[name] = array
        else:
            left_out.append(name)
    while True:
        made = _make(kept, attributes, left_out)
        if len(made.header) <= LARGEST_HEADER or not kept:
            return made
        for name in list(kept)[len(kept) // 2 :]:
            left_out.append(name)
            del kept[name]


def _fits(array: Described) -> bool:
    try:
        h5(array)
    except Inexpressible:
        return False
    return True


def _make(
    arrays: Mapping[str, Described], attributes: Mapping[str, Any], left_out: Sequence[str]
) -> Made:
    dimensions = _Dimensions(arrays)
    datasets = [dataset_of(array, name, dimensions.of(array)) for name, array in arrays.items()]
    said = typed_attributes(attributes)
    if left_out:
        said.append(TypedAttribute(LEFT_OUT, plain(", ".join(left_out), _LONGEST_LIST)))
    return make_file([*dimensions.scales(), *datasets], said)


class _Dimensions:
    """The dimensions of all arrays, with names that no other array has but their coordinates."""

    def __init__(self, arrays: Mapping[str, Described]) -> None:
        self._arrays = arrays
        self._names: dict[tuple[str, int], str] = {}
        self._axes: dict[str, Axis] = {}
        # Dimensions with coordinates come first, so that they keep their names.
        for name, array in arrays.items():
            if len(array.axes) == 1 and array.axes[0].name == name:
                self._names[name, array.axes[0].length] = name
        for array in arrays.values():
            if all(axis.name for axis in array.axes):
                for axis in array.axes:
                    self._add(axis)

    def of(self, array: Described) -> list[str]:
        """The dimension of each axis; none if an axis has no name."""
        if not all(axis.name for axis in array.axes):
            return []
        return [self._names[axis.name, axis.length] for axis in array.axes]

    def scales(self) -> list[Dataset]:
        """The scales of dimensions without coordinates."""
        return [scale(name, axis.length, axis.unit, None) for name, axis in self._axes.items()]

    def _add(self, axis: Axis) -> None:
        if (axis.name, axis.length) in self._names:
            return
        taken = {*self._names.values(), *self._arrays}
        base = name = axis.name.replace("/", "_").strip() or "dim"
        number = axis.length
        while name in taken:
            name = f"{base}_{number}"
            number += 1
        self._names[axis.name, axis.length] = name
        self._axes[name] = axis
