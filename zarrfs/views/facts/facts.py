"""The facts about one array, in the order of its own axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.colours import Colours
from zarrfs.views.facts.wcs import Cards

Role: TypeAlias = Literal["time", "channel", "z", "y", "x", ""]
Number: TypeAlias = int | float
Affine: TypeAlias = tuple[tuple[float, ...], ...]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("t", "time", "frame"), "time"),
    **dict.fromkeys(("c", "channel", "channels", "rgb", "rgba", "band", "bands"), "channel"),
    **dict.fromkeys(("s", "sample", "samples"), "channel"),
    **dict.fromkeys(("z", "depth", "lev", "level", "height", "altitude"), "z"),
    **dict.fromkeys(("y", "lat", "latitude", "northing", "projection_y_coordinate"), "y"),
    **dict.fromkeys(("x", "lon", "longitude", "easting", "projection_x_coordinate"), "x"),
}  # fmt: skip


def role_of(name: str) -> Role:
    """The role of an axis by its name."""
    return _ROLES.get(name.lower(), "")


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """The places of elements along one axis, as an array beside their own says them.

    metadata : of the array with the coordinates.
    values : its elements, of its own type.
    regular : the first coordinate, and the distance to the next, which may be negative, and is None
        if there is no next; None where the distances differ.
    """

    metadata: ArrayMetadata
    values: NDArray[Any]
    regular: tuple[float, float | None] | None

    def part(self, first: int, length: int) -> Coordinates:
        """The coordinates of some elements in a row."""
        start = self.regular
        if start is not None and start[1] is not None:
            start = start[0] + first * start[1], start[1]
        return Coordinates(self.metadata, self.values[first : first + length], start)


class Axis(NamedTuple):
    """One axis.

    name, unit : printable and short; empty if unknown.
    spacing : the distance from one element to the next in ``unit``, negative if places fall along
        the axis; None: not known, or not the same everywhere.
    origin : the place of the first element in ``unit``.
    role : empty if unknown.
    coordinates : where another array says the place of each element.
    """

    length: int
    name: str = ""
    unit: str = ""
    spacing: float | None = None
    origin: float = 0.0
    role: Role = ""
    coordinates: Coordinates | None = None

    @property
    def size(self) -> float:
        """The distance between two elements without its sign; 1 if it is not known."""
        return abs(self.spacing or 1.0)

    @property
    def falls(self) -> bool:
        """Whether places become smaller along the axis."""
        return self.spacing is not None and self.spacing < 0

    @property
    def irregular(self) -> bool:
        """Whether the places of its elements are known, and are not at equal distances."""
        return self.coordinates is not None and not self.coordinates.regular

    @property
    def is_channel(self) -> bool:
        return self.role == "channel"


class Georeference(NamedTuple):
    """The place of the axes y and x on the earth.

    crs : the coordinate reference system, as well-known text, as PROJJSON, or as a code such as
        ``EPSG:4326``; empty if unknown.
    transform : GDAL's six numbers for the corner of the first element, whatever the registration:
        x of the corner, x for a column, x for a row, and the same for y; None: not known.
    nodes : whether elements stand for the nodes of a grid, and not for its cells.
    """

    crs: str = ""
    transform: tuple[float, ...] | None = None
    nodes: bool = False


class Channel(NamedTuple):
    """
    colour : red, green and blue from 0 to 255; None: not known.
    window : the values that are shown as black and as the brightest; None: not known.
    """

    name: str = ""
    colour: tuple[int, int, int] | None = None
    window: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """
    axes : of the array, slowest first in C order.
    georeference : of the axes ``y_axis`` and ``x_axis``.
    missing : the elements that mean that there is no value, NaN, too; with the signs they mean.
    valid : the least and the largest valid element; None: not known.
    scale, offset : a value is ``scale`` times the element plus ``offset``; None: no scale is given.
    unit : of the values.
    signed : whether integers mean ones with a sign, if their type says otherwise; None: as it says.
    description : one line for people.
    channels : of the channel axis, in its order; empty if unknown.
    grid_mapping : the attributes of the array that says the georeference in CF's words.
    affine : where the axes x, y and z lie otherwise than to the left, to posterior and to superior:
        the step along each of them, and the place of the first element, each in the unit of these
        axes to there.
    cards : keywords of FITS, the axes numbered from the last one of the array.
    colours : that the elements of an image stand for.
    """

    axes: tuple[Axis, ...]
    georeference: Georeference = field(default_factory=Georeference)
    y_axis: int | None = None
    x_axis: int | None = None
    missing: tuple[Number, ...] = ()
    valid: tuple[Number | None, Number | None] | None = None
    scale: float | None = None
    offset: float | None = None
    unit: str = ""
    signed: bool | None = None
    description: str = ""
    channels: tuple[Channel, ...] = ()
    grid_mapping: Mapping[str, Any] = field(default_factory=dict)
    affine: Affine | None = None
    cards: Cards = field(default_factory=dict)
    colours: Colours = field(default_factory=Colours)

    @property
    def packed(self) -> bool:
        return self.scale is not None or self.offset is not None


@dataclass(frozen=True, slots=True)
class Around:
    """The attributes beside those of an array.

    groups : of each group above it that is known, the nearest first: the path of the array in the
        group, and the attributes of the group.
    grid_mapping : of the neighbouring array that its ``grid_mapping`` names.
    coordinates : of the neighbouring arrays with the names of its axes.
    """

    groups: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    grid_mapping: Mapping[str, Any] = field(default_factory=dict)
    coordinates: Mapping[str, Coordinates] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last part of the path of the array in the groups above it."""
        return self.groups[0][0].rpartition("/")[2] if self.groups else ""
