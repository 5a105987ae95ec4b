"""From the facts about an array to those about a file with its elements."""

from __future__ import annotations

from dataclasses import replace

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import Region
from zarrfs.views.facts.as_cf import as_cf
from zarrfs.views.facts.facts import Around, Facts, Georeference
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.place.affine import affine_of_part
from zarrfs.views.facts.text import plain
from zarrfs.views.facts.wcs import cards_of_part
from zarrfs.views.headers.described import Described

_NOTHING = Around()


def describe(
    metadata: ArrayMetadata,
    layout: FlatConfig,
    path: str = "",
    around: Around = _NOTHING,
    region: Region | None = None,
) -> Described:
    """The description of an array for headers, from any metadata. Raises nothing.

    path : of the array in its source, whose last part is its name.
    around : the attributes of the groups above.
    region : the box of the array in the file; None: all of it.
    """
    facts = gather(metadata, around)
    facts = facts if region is None else _part(facts, region)
    name = path.rpartition("/")[2] or around.name
    # In a header, a unit is that of a spacing.
    axes = tuple(axis._replace(unit="") if axis.irregular else axis for axis in facts.axes)
    georeference = _in_file(facts, layout)
    return Described(
        metadata.layout.data_type,
        axes[::-1] if layout.order == "F" else axes,
        layout,
        plain(name) or "array",
        metadata.layout.fill if metadata.has_fill else None,
        as_cf(metadata).attributes,
        georeference,
        facts=facts,
        chunks=metadata.layout.read.regular_shape if region is None else None,
    )


def _part(facts: Facts, region: Region) -> Facts:
    """The facts about a box."""
    axes = [
        axis._replace(
            length=length,
            origin=axis.origin + (axis.spacing or 1.0) * first,
            coordinates=axis.coordinates and axis.coordinates.part(first, length),
        )
        for axis, first, length in zip(facts.axes, region.origin, region.shape, strict=True)
    ]
    kept = [i for i in range(len(axes)) if i not in region.dropped]
    channels = facts.channels
    for i, axis in enumerate(facts.axes):
        if axis.is_channel and len(channels) == axis.length:
            first = region.origin[i]
            channels = channels[first : first + region.shape[i]]
    affine = facts.affine
    if affine is not None:
        spatial = all(facts.axes[i].role not in ("x", "y", "z") for i in region.dropped)
        affine = affine_of_part(affine, facts.axes, region.origin) if spatial else None
    found = replace(
        facts,
        axes=tuple(axes[i] for i in kept),
        channels=channels,
        affine=affine,
        cards=cards_of_part(facts.cards, region.origin, kept),
    )
    y, x = facts.y_axis, facts.x_axis
    if y not in kept or x not in kept:
        return replace(found, georeference=Georeference(), y_axis=None, x_axis=None)
    place = facts.georeference
    if place.transform is not None:
        left, width, row_x, top, column_y, height = place.transform
        across, down = region.origin[x], region.origin[y]
        left += across * width + down * row_x
        top += across * column_y + down * height
        place = place._replace(transform=(left, width, row_x, top, column_y, height))
    return replace(found, georeference=place, y_axis=kept.index(y), x_axis=kept.index(x))


def _in_file(facts: Facts, layout: FlatConfig) -> Georeference:
    """The georeference of the planes of the file, whose last axes are lines and columns.

    Nothing if these are other axes than y and x.
    """
    count = len(facts.axes)
    if facts.y_axis is None or facts.x_axis is None:
        return Georeference()
    order = [*range(count)][:: -1 if layout.order == "F" else 1]
    channels = Described.channels_of(tuple(facts.axes[i] for i in order))
    ends = order[: -1 if channels else None][-2:]
    place = facts.georeference
    if ends == [facts.y_axis, facts.x_axis]:
        return place
    if ends != [facts.x_axis, facts.y_axis]:
        return Georeference()
    if place.transform is not None:
        # The columns of the file are the rows of the array.
        x, width, row_x, y, column_y, height = place.transform
        place = place._replace(transform=(x, row_x, width, y, height, column_y))
    return place
