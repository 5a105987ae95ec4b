"""The members of an array's ``zarr.json`` whose structure has been checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from zarrfs.errors import MetadataError

Damage = list[str]
"""Why documents, or members of them, that a node can do without count as missing."""


class ArrayMembers(NamedTuple):
    """Members of a document; their extensions are not checked yet.

    data_type, fill_value, codecs, chunk_grid, chunk_key_encoding : as plain JSON.
    grid_name, grid_configuration : of ``chunk_grid``.
    """

    shape: tuple[int, ...]
    data_type: Any
    fill_value: Any
    codecs: list[Any]
    chunk_grid: Any
    chunk_key_encoding: Any
    grid_name: str
    grid_configuration: Mapping[str, Any]
    dimension_names: tuple[str | None, ...]


def plain(value: Any) -> Any:
    """Convert read-only or hashable forms to JSON of lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@contextmanager
def noting(damage: Damage | None) -> Iterator[None]:
    """Adds a MetadataError to ``damage`` in place of raising it; None: raises it."""
    try:
        yield
    except MetadataError as error:
        if damage is None:
            raise
        damage.append(str(error))
