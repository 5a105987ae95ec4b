"""``zarrfs.create_array``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from zarrfs.array.making.create import IfExists
from zarrfs.errors import UsageError
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.registry import parse_data_type
from zarrfs.format.text_forms import parse_codecs, read_data_type, read_fill
from zarrfs.library.create import create
from zarrfs.library.open_array import OpenArray, open_array
from zarrfs.library.source import SourceOptions

_DEFAULTS = SourceOptions()


def create_array(  # noqa: PLR0913 - as in other libraries, all but three have defaults
    target: str | os.PathLike[str],
    shape: Sequence[int],
    dtype: Any,
    *,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    codecs: str | Sequence[Any] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    options: SourceOptions = _DEFAULTS,
) -> OpenArray:
    """Create an array, and open it for writing. Omitted facts are chosen as ``zarrfs create`` does.

    target : a directory that need not exist, or a URL.
    dtype : as numpy takes it, or a name of Zarr's, such as ``bfloat16``.
    chunks, shards : lengths along each axis; 0 lets zarrfs choose one, -1 is the whole axis.
    codecs : as for ``zarrfs create``, such as ``"zstd:3"`` or ``"none"``, or as in metadata.
    fill_value : a number, or as in the metadata of v3.
    overwrite : whether an array that is there is replaced.

    Raises AlreadyExists, UsageError for what is no array, and other `zarrfs.errors.ZarrfsError`.
    """
    name = os.fspath(target)
    try:
        data_type, endian = data_type_of(dtype)
        fill = fill_value
        if isinstance(fill, int | float | complex | np.number | np.bool_):
            fill = read_fill(str(fill).lower(), parse_data_type(data_type))
        array = NewArray(
            shape=tuple(map(int, shape)),
            data_type=data_type,
            endian=None if endian == "little" else endian,
            zarr_format=zarr_format,
            chunks=ChunkConstraints(() if chunks is None else tuple(chunks)),
            shards=None if shards is None else ChunkConstraints(tuple(shards)),
            codecs=None if codecs is None else codecs_of(codecs),
            fill_value=fill,
            attributes=attributes or {},
            dimension_names=dimension_names,
            usual=True,
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}: {error}") from error
    if_exists = IfExists.REPLACE if overwrite else IfExists.FAIL
    create(name, array, storage_options=options.storage_options, if_exists=if_exists)
    return open_array(name, writable=True, options=options)


def data_type_of(dtype: Any) -> tuple[Any, str]:
    """The data type as in metadata, and the byte order. Raises ValueError, TypeError."""
    if isinstance(dtype, Mapping):
        return dtype, "little"
    if isinstance(dtype, str):
        return read_data_type(dtype)
    plain = np.dtype(dtype)
    return read_data_type(plain.name if plain.kind == "V" else plain.str)


def codecs_of(codecs: str | Sequence[Any]) -> list[Any]:
    """Codecs as in metadata, from text or metadata. Raises ValueError."""
    given = [codecs] if isinstance(codecs, str) else codecs
    return [
        each for one in given for each in (parse_codecs(one) if isinstance(one, str) else [one])
    ]


__all__ = ["create_array"]
