"""The options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from zarrfs.errors import UsageError

if TYPE_CHECKING:
    from zarrfs.library.transfer.flat_form import FlatForm


Command = Callable[..., int]


class Flat(NamedTuple):
    """Which part of which array, and how it lies in the file; None: not said."""

    path: str
    region: str
    container: str | None
    byteorder: Literal["little", "big"] | None
    order: Literal["C", "F"] | None

    def form(self, file: str, by_name: Callable[[str], str]) -> FlatForm:
        """The form from the options, or else ``by_name`` of the file."""
        from zarrfs.library.transfer.flat_form import FlatForm

        container = self.container or by_name(file)
        return FlatForm(container, self.byteorder or "little", self.order or "C")


def _read(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> Mapping[str, object]:
    if texts:
        from zarrfs.daemon.system.process_title import hide

        hide(dict.fromkeys(texts, "***"))
    found: dict[str, object] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator:
            # The text may be a secret.
            raise UsageError("a --storage-option is not of the form NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


storage_options = click.option(
    "--storage-option",
    "storage_options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_read,
    help="Argument for the fsspec file system of a remote store, as JSON or plain text; may be "
    "repeated. Other users may see it in the process list for a moment: keep secrets in the "
    "configuration of the service, or for mounts in the file of -o storage_options.",
)
"""Decorates a command, which gets ``storage_options``, a mapping."""


def source_options(function: Command) -> Command:
    """A command gets ``source_options``, a `SourceOptions`."""
    return _source_options(
        function,
        click.option(
            "--zarr-format",
            "source_format",
            type=click.Choice(["1", "2", "3"]),
            help="Open only this version of Zarr. [default: the newest in SOURCE]",
        ),
    )


def copy_options(function: Command) -> Command:
    """The same for a command in which ``--zarr-format`` is the version of the destination."""
    return _source_options(function)


def _source_options(function: Command, *more: Callable[[Command], Command]) -> Command:
    @wraps(function)
    def command(
        *,
        memory: int | None,
        loaders: int | None,
        storage_options: Mapping[str, object],
        source_format: str | None = None,
        **others: Any,
    ) -> int:
        from zarrfs.library.source import SourceOptions

        version: Any = None if source_format is None else int(source_format)
        options = SourceOptions(
            memory=memory, loaders=loaders, zarr_format=version, storage_options=storage_options
        )
        return function(source_options=options, **others)

    return _with(
        command,
        click.option(
            "--memory",
            callback=_size,
            metavar="SIZE",
            help="Memory budget, with a unit K, M or G; at least 16M. "
            "[default: a quarter of the RAM, at most 1G]",
        ),
        click.option(
            "--loaders",
            type=click.IntRange(min=1),
            metavar="N",
            help="Threads that fetch and decode. [default: by CPUs and source]",
        ),
        *more,
        storage_options,
    )


def engine_options(function: Command) -> Command:
    """A command gets ``engine``, an `EngineConfig`."""

    @wraps(function)
    def command(*, scheduler: str, scheduler_file: str | None, **others: Any) -> int:
        from zarrfs.library.engine import EngineConfig

        return function(engine=EngineConfig(scheduler, scheduler_file), **others)

    return _with(
        command,
        click.option(
            "--scheduler",
            default="none",
            metavar="none|dask|ADDRESS",
            help="Who does the work. none: this process. dask: a Dask cluster of processes on this "
            "machine. tcp://HOST:8786: a running Dask cluster. [default: none]",
        ),
        click.option(
            "--scheduler-file",
            metavar="FILE",
            help="File that a running Dask scheduler wrote, in place of its address.",
        ),
    )


def flat_options(*formats: str, default: str) -> Callable[[Command], Command]:
    """A command gets ``flat``, a `Flat`, of one of ``formats``; ``default`` in words."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            *, path: str, region: str, container: Any, byteorder: Any, order: Any, **others: Any
        ) -> int:
            return function(flat=Flat(path, region, container, byteorder, order), **others)

        return _with(command, *_flat_options(formats, default))

    return decorate


def _flat_options(
    formats: tuple[str, ...], default: str
) -> tuple[Callable[[Command], Command], ...]:
    return (
        click.option(
            "--path", default="", metavar="PATH", help="Path of the array in a hierarchy."
        ),
        click.option(
            "--region",
            default="",
            metavar="START:STOP,…",
            help="Use only this part of the array: START:STOP or an index for each axis.",
        ),
        click.option(
            "--format",
            "container",
            type=click.Choice(formats),
            help=f"bin: elements without a header; other formats have one. [default: {default}]",
        ),
        click.option(
            "--byteorder",
            type=click.Choice(["little", "big"]),
            help="Byte order of the elements in FILE. [default: little]",
        ),
        click.option(
            "--order",
            type=click.Choice(["C", "F"]),
            help="C: the last axis is fastest; F: the first (Fortran, MATLAB). [default: C]",
        ),
    )


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from zarrfs.daemon.options.option_values import memory

    try:
        return memory(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} {error}") from None
