"""From metadata of any convention to facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.as_cf import as_cf
from zarrfs.views.facts.colours import colours_of
from zarrfs.views.facts.coordinates import along
from zarrfs.views.facts.facts import Around, Axis, Channel, Facts, role_of
from zarrfs.views.facts.missing import missing_values, packing, signedness, valid_range
from zarrfs.views.facts.ome import OmeLevel, ome_level
from zarrfs.views.facts.place.affine import oriented, with_affine
from zarrfs.views.facts.place.georeference import georeference
from zarrfs.views.facts.text import number, plain
from zarrfs.views.facts.wcs import cards_of

_UNIT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)?\s*(.*)", re.ASCII)
_LARGEST = 1e30
_NOTHING = Around()


def gather(metadata: ArrayMetadata, around: Around = _NOTHING) -> Facts:
    """All that is known about an array. Raises nothing.

    - names of axes: ``dimension_names`` of Zarr v3, ``_ARRAY_DIMENSIONS`` of xarray, OME-Zarr;
    - units, spacing and origin: TensorStore's ``dimension_units``
      (https://google.github.io/tensorstore/driver/zarr3), OME-Zarr, `coordinates`;
    - place: `georeference`, `affine`, `wcs`; missing values and packed numbers: `missing`.
    """
    metadata = as_cf(metadata)
    attributes = metadata.attributes
    level = ome_level(around, len(metadata.shape))
    axes = [_within_bounds(axis) for axis in along(_axes(metadata, level), around)]
    axes, affine = with_affine(attributes, axes)
    if affine is None and level is not None:
        affine = oriented(axes, [axis.direction for axis in level.axes])
    place, y, x = georeference(attributes, axes, around)
    scale, offset = packing(attributes)
    return Facts(
        tuple(axes),
        place,
        y,
        x,
        missing_values(metadata),
        valid_range(metadata),
        scale,
        offset,
        plain(attributes.get("units"), 64) or plain(attributes.get("BUNIT"), 64),
        signedness(metadata),
        plain(attributes.get("long_name")) or plain(attributes.get("description")),
        _channels(attributes, axes, level),
        around.grid_mapping,
        affine,
        cards_of(attributes),
        colours_of(attributes),
    )


def _axes(metadata: ArrayMetadata, level: OmeLevel | None) -> list[Axis]:
    rank = len(metadata.shape)
    names = list(metadata.dimension_names) or [None] * rank
    texts = [plain(name, 64) for name in names]
    axes = [
        Axis(length, text, role=role_of(text))
        for length, text in zip(metadata.shape, texts, strict=True)
    ]
    if level is not None:
        axes = [
            axis._replace(
                name=axis.name or said.name,
                unit=said.unit,
                spacing=None if level.spacing is None else level.spacing[i],
                origin=level.origin[i],
                role=said.role or axis.role,
            )
            for i, (axis, said) in enumerate(zip(axes, level.axes, strict=True))
        ]
    units = metadata.attributes.get("dimension_units")
    if isinstance(units, Sequence) and not isinstance(units, str) and len(units) == rank:
        for i, unit in enumerate(units):
            if (found := _unit(unit)) is not None:
                factor, base = found
                axes[i] = axes[i]._replace(unit=base, spacing=factor)
    return axes


def _within_bounds(axis: Axis) -> Axis:
    """The axis without numbers that would overflow in calculations with floats."""
    spacing = axis.spacing
    if spacing is not None and not 1 / _LARGEST < abs(spacing) < _LARGEST:
        spacing = None
    origin = axis.origin if abs(axis.origin) < _LARGEST else 0.0
    return axis._replace(spacing=spacing, origin=origin)


def _unit(value: Any) -> tuple[float, str] | None:
    """Factor and base of one of TensorStore's units: ``"4 nm"`` or ``[4, "nm"]``."""
    if isinstance(value, str):
        match = _UNIT.fullmatch(plain(value))
        if match is None:
            return None
        factor, base = (number(float(match[1])) if match[1] else 1.0), match[2]
    elif isinstance(value, list | tuple) and len(value) == 2:
        factor, base = number(value[0]), plain(value[1])
    else:
        factor, base = number(value), ""
    return None if factor is None or factor <= 0 else (factor, base[:32])


def _channels(
    attributes: Mapping[str, Any], axes: Sequence[Axis], level: OmeLevel | None
) -> tuple[Channel, ...]:
    """The channels, if there are as many as the axis of channels is long; one without such an axis.

    The attribute ``long_name`` of rioxarray's bands is a list of their names.
    """
    found = () if level is None else level.channels
    names = attributes.get("long_name")
    if not found and isinstance(names, list | tuple):
        found = tuple(Channel(plain(name, 64)) for name in names[:64])
    lengths = [axis.length for axis in axes if axis.role == "channel"] or [1]
    return found if lengths == [len(found)] else ()
