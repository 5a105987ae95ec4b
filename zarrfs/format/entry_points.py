"""Data types and codecs of other installed packages.

A package declares, in its ``pyproject.toml``::

    [project.entry-points."zarrfs.data_types"]
    "my.type" = "my_package:MY_TYPE"

    [project.entry-points."zarrfs.codecs"]
    "my.codec" = "my_package:MyCodec"

The entry point of a data type is a `zarrfs.format.data_type.DataType`, or a function of the name
and the configuration that returns one. The entry point of a codec is called with the members of the
configuration and returns one of the protocols of `zarrfs.format.codec`. Its attribute ``kind`` is
``"array -> array"``, ``"array -> bytes"`` or ``"bytes -> bytes"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Literal, get_args

from zarrfs.format.data_type import DataType

_Kind = Literal["array -> array", "array -> bytes", "bytes -> bytes"]


def find_data_type(name: str, configuration: Mapping[str, Any]) -> DataType | None:
    """Raises ValueError if the entry point cannot be loaded or is no data type."""
    if (found := _load("zarrfs.data_types", name)) is None:
        return None
    if not isinstance(found, DataType):
        found = found(name, configuration)
    if not isinstance(found, DataType):
        raise ValueError(f"the entry point {name!r} of zarrfs.data_types is not a data type")
    return found


def find_codec(name: str) -> tuple[_Kind, Callable[..., Any]] | None:
    """Raises ValueError if the entry point cannot be loaded or has no valid ``kind``."""
    if (found := _load("zarrfs.codecs", name)) is None:
        return None
    for kind in get_args(_Kind):
        if getattr(found, "kind", None) == kind:
            return kind, found
    raise ValueError(f"the entry point {name!r} of zarrfs.codecs has no kind")


def _load(group: str, name: str) -> Any:
    for entry_point in entry_points(group=group, name=name):
        try:
            return entry_point.load()
        except (ImportError, AttributeError) as error:
            raise ValueError(f"the entry point {name!r} of {group}: {error}") from error
    return None
