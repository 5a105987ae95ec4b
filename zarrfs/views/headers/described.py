"""The description of an array for headers, in the order of the elements in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.data_type import DataType
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.facts.as_cf import of_times
from zarrfs.views.facts.facts import Axis, Facts, Georeference, Number
from zarrfs.views.headers.form import Inexpressible
from zarrfs.views.headers.type_names import TYPE_NAMES

# The longest last axis that its name makes channels. Behind lines and columns TIFF sets the limit.
_MOST_CHANNELS = 4
_MOST_BEHIND_AN_IMAGE = 2**16 - 1


@dataclass(frozen=True, slots=True)
class Described:
    """
    name : of the array; ``array`` if it has none.
    layout : byte order and order of the elements in ``data_file``.
    axes : slowest axis of the file first: the array's own axes, or reversed in F order.
    fill : the bytes of the fill value in memory; None if it is not defined.
    georeference : of the planes of the file, whose last axes are lines and columns.
    data_file : the file that contains only the elements, beside a header.
    facts : the other facts; their axes are those of the array.
    chunks : the shape of the chunks that are read, in the array's order of axes; None if they have
        several shapes, or if the file has only a region.
    """

    data_type: DataType
    axes: tuple[Axis, ...]
    layout: FlatConfig = field(default_factory=FlatConfig)
    name: str = "array"
    fill: bytes | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    georeference: Georeference = field(default_factory=Georeference)
    data_file: str = "array.bin"
    facts: Facts = field(default_factory=lambda: Facts(()))
    chunks: Shape | None = None

    @property
    def shape(self) -> Shape:
        """The shape of the file, slowest axis first."""
        return tuple(axis.length for axis in self.axes)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.count * self.data_type.item_size

    @property
    def big(self) -> bool:
        """Whether elements of several bytes are big-endian in ``data_file``."""
        return self.layout.byteorder == "big"

    @property
    def numbers(self) -> np.dtype[Any]:
        """The numpy type of the elements; of counts for times."""
        dtype = self.data_type.dtype
        return np.dtype("<i8") if of_times(dtype) else dtype

    @property
    def code(self) -> str:
        """Kind and bytes of a plain number as it is meant, in numpy's notation: ``u2``, ``b1``.

        Empty for all other types.
        """
        dtype = self.numbers
        plain = dtype.isbuiltin == 1 and dtype.kind in "biufc" and self.data_type.bits is None
        kind = dtype.kind if self.facts.signed is None else "ui"[self.facts.signed]
        return f"{kind}{dtype.itemsize}" if plain and self.data_type.fixed_size else ""

    @staticmethod
    def channels_of(axes: tuple[Axis, ...]) -> int:
        """The length of the last axis if its name is one for channels; else 0."""
        last = axes[-1] if len(axes) > 1 else Axis(0)
        behind = _ends_with(axes[:-1], ("y", "x"))
        most = _MOST_BEHIND_AN_IMAGE if behind else _MOST_CHANNELS
        return last.length if last.is_channel and 1 < last.length <= most else 0

    @property
    def channels(self) -> int:
        """The number of channels of each element of an image; else 0."""
        return self.channels_of(self.axes)

    @property
    def image_axes(self) -> tuple[Axis, ...]:
        """All axes except the one of the channels."""
        return self.axes[:-1] if self.channels else self.axes

    @property
    def is_image(self) -> bool:
        """Whether, by the names of the axes, each plane is an image."""
        return _ends_with(self.image_axes, ("y", "x"))

    @property
    def is_volume(self) -> bool:
        return _ends_with(self.image_axes, ("z", "y", "x"))

    @property
    def is_on_earth(self) -> bool:
        """Whether anything is known of the place of its planes on the earth."""
        return bool(self.georeference.crs) or self.georeference.transform is not None

    @property
    def no_data(self) -> Number | None:
        """The first of the missing values, for formats that have only one."""
        return next(iter(self.facts.missing), None)

    def band_names(self, bands: int) -> list[str] | None:
        """The name of the channel of each plane or interleaved channel; None if none is known.

        bands : planes of the file, or its interleaved channels.
        """
        names = [channel.name for channel in self.facts.channels]
        if not any(names):
            return None
        if self.channels:
            return names
        outer = self.image_axes[:-2]
        places = [i for i, axis in enumerate(outer) if axis.is_channel]
        if len(places) != 1 or math.prod(axis.length for axis in outer) != bands:
            return None
        within = math.prod(axis.length for axis in outer[places[0] + 1 :])
        return [names[band // within % len(names)] for band in range(bands)]

    def type_in(self, format_name: str) -> str:
        """The format's name of the element type. Raises Inexpressible."""
        if (found := TYPE_NAMES[format_name].get(self.code)) is None:
            raise Inexpressible(f"{format_name} has no {self.data_type.name}")
        return found

    def check(self, format_name: str, least: int, most: int, longest: int = 2**31 - 1) -> str:
        """The format's name of the element type.

        Raises Inexpressible for other ranks, for longer axes, and for an empty array, too.
        """
        found, rank = self.type_in(format_name), len(self.axes)
        if not least <= rank <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise Inexpressible(f"{format_name} takes {wanted} axes, the array has {rank}")
        if not self.count:
            raise Inexpressible(f"{format_name} takes no array without elements")
        if max(self.shape, default=0) > longest:
            raise Inexpressible(f"{format_name} takes axes of at most {longest} elements")
        return found


def _ends_with(axes: tuple[Axis, ...], names: tuple[str, ...]) -> bool:
    return tuple(axis.name.lower() for axis in axes[-len(names) :]) == names
