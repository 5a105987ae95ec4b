"""``group.h5`` and ``tree.h5``: arrays of a group, or of all groups below, as one HDF5 file.

netCDF opens it, too. Each group has its own dimensions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isclose

from zarrfs.views.facts.place.georeference import geo_transform, grid_mapping
from zarrfs.views.headers.attributes import TypedAttribute, size_of, typed_attributes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, GroupForm, Inexpressible, Placed
from zarrfs.views.headers.grouped import Below, Grouped, GroupFormat, Member
from zarrfs.views.headers.hdf5.dimensions import Dimensions
from zarrfs.views.headers.hdf5.file import MOST_TEXTS, Dataset, Group, Made, make_file
from zarrfs.views.headers.hdf5.messages import text_type
from zarrfs.views.headers.hdf5.single import GRID_MAPPING, dataset_of, georeference_of, h5
from zarrfs.views.tiles.computed import Computed, Table

MOST_ARRAYS = 1000
# Programs go down into groups by recursion.
_DEEPEST = 64
_GROUPS_SHARE = LARGEST_HEADER // 4
_BYTES_A_GROUP = 256


def _hdf5(group: Grouped) -> GroupForm:
    """Raises nothing: what does not fit is left out, and named in an attribute of the file."""
    left_out = list(group.others)
    groups = _groups(group, left_out)
    kept: dict[str, Member] = {}
    for member in group.members:
        parent, _, name = member.path.rpartition("/")
        if parent not in groups:
            continue
        if len(kept) < MOST_ARRAYS and name.isprintable() and _fits(member):
            kept[member.path] = member
        else:
            left_out.append(member.path)
    while True:
        groups[""] = typed_attributes(group.attributes, left_out=left_out)
        made = _make(groups, kept)
        if len(made.header) <= LARGEST_HEADER or not kept:
            break
        for path in list(kept)[len(kept) // 2 :]:
            left_out.append(path)
            del kept[path]
    places = sorted((at, path) for path, at in made.offsets.items() if at < made.size)
    return GroupForm(
        Computed([Table.of_bytes(0, made.header)]),
        [Placed(path, at) for at, path in places],
        made.size,
    )


GROUP = GroupFormat(lambda attributes: Below.CHILDREN, _hdf5)
TREE = GroupFormat(lambda attributes: Below.HIERARCHY, _hdf5)

_Groups = dict[str, list[TypedAttribute]]


def _groups(group: Grouped, left_out: list[str]) -> _Groups:
    """The attributes of the groups of the file, parents first. Adds to ``left_out``."""
    found: _Groups = {"": []}
    room = _GROUPS_SHARE
    for path, attributes in group.groups.items():
        parent, _, name = path.rpartition("/")
        if parent not in found:
            continue
        said = typed_attributes(attributes)
        size = size_of(said) + len(path) + _BYTES_A_GROUP
        if size <= room and name.isprintable() and path.count("/") < _DEEPEST:
            found[path] = said
            room -= size
        else:
            left_out.append(path)
    return found


def _fits(member: Member) -> bool:
    if member.texts is not None:
        return len(member.texts) <= MOST_TEXTS and len(member.array.axes) <= 1
    # netCDF4 1.7.5 crashes at it, and so does xarray with it.
    if member.array.code == "f2" and not _is_anndata(member.array):
        return False
    try:
        h5(member.array)
    except Inexpressible:
        return False
    return True


def _is_anndata(array: Described) -> bool:
    return "encoding-type" in array.attributes


def _make(groups: _Groups, arrays: Mapping[str, Member]) -> Made:
    inside: dict[str, dict[str, Member]] = {path: {} for path in groups}
    names: dict[str, set[str]] = {path: set() for path in groups}
    for path, member in arrays.items():
        parent, _, name = path.rpartition("/")
        inside[parent][name] = member
    for path in groups:
        parent, _, name = path.rpartition("/")
        names[parent].add(name)
    room = 2 * LARGEST_HEADER
    made: list[Group] = []
    for path, attributes in groups.items():
        datasets = _datasets(inside[path], names[path], room)
        room -= sum(size_of(dataset.attributes) for dataset in datasets)
        made.append(Group(path, datasets, attributes))
    return make_file(made)


def _datasets(
    members: Mapping[str, Member], taken: Collection[str], room: int
) -> Sequence[Dataset]:
    """The datasets of a group.

    taken : names in the group that are no arrays.
    room : for their attributes. Where these take more, the header is too large in any case, and
        datasets are missing.
    """
    arrays = {name: member.array for name, member in members.items()}
    dimensions = Dimensions(arrays, taken)
    scales = dimensions.scales()
    places = _Places({*arrays, *taken, *(scale.name for scale in scales)})
    datasets: list[Dataset] = []
    for name, array in _with_present_places(arrays).items():
        if (texts := members[name].texts) is not None:
            datasets.append(_texts(array, name, dimensions.of(name), texts))
            continue
        # The group's own variable says more than what is known of it.
        said = grid_mapping(array.attributes) in arrays
        mapping = "" if said else places.name_for(array)
        # AnnData takes booleans as HDF5 has them only.
        netcdf = not _is_anndata(array)
        datasets.append(
            dataset_of(array, name, dimensions.of(name), netcdf=netcdf, grid_mapping=mapping)
        )
        room -= size_of(datasets[-1].attributes)
        if room < 0:
            break
    return [*scales, *places.datasets, *datasets]


def _texts(array: Described, name: str, dimensions: list[str], texts: Sequence[bytes]) -> Dataset:
    return Dataset(
        name,
        text_type(),
        array.shape,
        16 * len(texts),
        attributes=typed_attributes(array.attributes, array),
        dimensions=dimensions,
        scale=dimensions == [name],
        texts=texts,
    )


def _with_present_places(arrays: Mapping[str, Described]) -> Mapping[str, Described]:
    """The arrays, with a ``GeoTransform`` in grid mappings only where it is that of their arrays.

    xarray keeps it when it cuts a part from an array.
    """
    found = dict(arrays)
    for name, mapping in arrays.items():
        transforms = {
            array.facts.georeference.transform
            for array in arrays.values()
            if grid_mapping(array.attributes) == name
        } - {None}
        stated = geo_transform(mapping.attributes)
        if stated is None or not transforms or all(_close(stated, t) for t in transforms):
            continue
        attributes = {k: v for k, v in mapping.attributes.items() if k != "GeoTransform"}
        if len(transforms) == 1:  # else only the coordinates of each have its place
            (transform,) = transforms
            attributes["GeoTransform"] = " ".join(repr(float(n)) for n in transform or ())
        found[name] = replace(mapping, attributes=attributes)
    return found


def _close(one: Sequence[float], other: Sequence[float] | None) -> bool:
    return other is not None and all(
        isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(one, other, strict=True)
    )


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
