"""``zarrfs.copy``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from zarrfs.errors import UsageError
from zarrfs.library.copying.copy import CopyConfig, CopyResult, copy_node
from zarrfs.library.copying.form import CopyForm
from zarrfs.library.create_array import codecs_of, data_type_of
from zarrfs.library.engine import EngineConfig
from zarrfs.library.like import like as form_like
from zarrfs.library.source import SourceOptions

_DEFAULTS = SourceOptions()


def copy(  # noqa: PLR0913 - as in other libraries, all but two have defaults
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    path: str = "",
    region: str = "",
    zarr_format: Literal[2, 3] | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    codecs: str | Sequence[Any] | None = None,
    like: str | os.PathLike[str] | None = None,
    dtype: Any = None,
    attributes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    verify: bool = False,
    dry_run: bool = False,
    client: Any = None,
    options: SourceOptions = _DEFAULTS,
) -> CopyResult:
    """Copy an array or a whole hierarchy, as ``zarrfs copy`` does. Blocks.

    chunks : without ``shards`` it asks for no shards. ``shards=[]`` alone asks for none either.
    client : a client of Dask, or any ``concurrent.futures.Executor`` whose workers find source and
        destination; None: this process. ``options.memory`` is then for each task.

    After an interruption the same call goes on. Raises UsageError, AlreadyExists, CopyFailed where
    parts of the source cannot be had, WorkersLost, and other `zarrfs.errors.ZarrfsError`.
    """
    try:
        data_type, endian = (None, None) if dtype is None else data_type_of(dtype)
        form = CopyForm(
            zarr_format=zarr_format,
            chunks=chunks,
            shards=shards,
            codecs=None if codecs is None else codecs_of(codecs),
            like=None if like is None else form_like(os.fspath(like), options.storage_options),
            data_type=data_type,
            endian=endian,
            attributes=attributes or {},
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"{destination}: {error}") from error
    config = CopyConfig(
        path=path,
        region=region,
        form=form,
        overwrite=overwrite,
        verify=verify,
        dry_run=dry_run,
        source=options,
        engine=EngineConfig(client=client),
    )
    return copy_node(os.fspath(source), os.fspath(destination), config)


__all__ = ["CopyResult", "copy"]
