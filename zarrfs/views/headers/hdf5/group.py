"""``group.h5``: the arrays of a group as the datasets of one HDF5 file that netCDF opens, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.views.facts.georeference import grid_mapping
from zarrfs.views.headers.attributes import size_of, typed_attributes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, GroupForm, Inexpressible, Placed
from zarrfs.views.headers.grouped import CHILDREN, Grouped, GroupFormat
from zarrfs.views.headers.hdf5.dimensions import Dimensions
from zarrfs.views.headers.hdf5.file import Dataset, Made, make_file
from zarrfs.views.headers.hdf5.single import GRID_MAPPING, dataset_of, georeference_of, h5
from zarrfs.views.tiles.computed import Computed, Table

MOST_ARRAYS = 1000


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


def _group_h5(group: Grouped) -> GroupForm:
    """``group.h5``. Raises nothing."""
    arrays = {member.path: member.array for member in group.members}
    made = group_file(arrays, group.attributes, group.others)
    places = sorted((at, name) for name, at in made.offsets.items() if at < made.size)
    return GroupForm(
        Computed([Table.of_bytes(0, made.header)]),
        [Placed(name, at) for at, name in places],
        made.size,
    )


GROUP = GroupFormat(lambda attributes: CHILDREN, _group_h5)


def _fits(array: Described) -> bool:
    try:
        h5(array)
    except Inexpressible:
        return False
    return True


def _make(
    arrays: Mapping[str, Described],
    attributes: Mapping[str, Any],
    left_out: Sequence[str],
) -> Made:
    dimensions = Dimensions(arrays)
    scales = dimensions.scales()
    places = _Places({*arrays, *(scale.name for scale in scales)})
    datasets: list[Dataset] = []
    room = 2 * LARGEST_HEADER
    for name, array in arrays.items():
        # The group's own variable says more than what is known of it.
        said = grid_mapping(array.attributes) in arrays
        mapping = "" if said else places.name_for(array)
        datasets.append(
            dataset_of(array, name, dimensions.of(name), netcdf=True, grid_mapping=mapping)
        )
        room -= size_of(datasets[-1].attributes)
        if room < 0:
            break  # the header is too large in any case
    said_of_group = typed_attributes(attributes, left_out=left_out)
    return make_file([*scales, *places.datasets, *datasets], said_of_group)


class _Places:
    """The variables with georeferences, one for all arrays with the same.

    taken : names in the file.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._names: dict[object, str] = {}
        self.datasets: list[Dataset] = []

    def name_for(self, array: Described) -> str:
        """The variable with the georeference of an array; empty if nothing is known."""
        place = array.facts.georeference, repr(array.facts.grid_mapping)
        if place in self._names:
            return self._names[place]
        name, number = GRID_MAPPING, 2
        while name in self._taken:
            name = f"{GRID_MAPPING}_{number}"
            number += 1
        made = georeference_of(array, name)
        if made is None:
            return ""
        self._taken.add(name)
        self._names[place] = name
        self.datasets.append(made)
        return name
