"""The options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from zarrfs.errors import UsageError

if TYPE_CHECKING:
    from zarrfs.library.engine import EngineConfig
    from zarrfs.library.source import SourceOptions
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


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from zarrfs.daemon.options.option_values import memory

    try:
        return memory(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} {error}") from None


def _made(
    name: str, make: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """A command gets, as ``name``, what ``make`` makes of the values of ``options``."""
    keywords = signature(make).parameters

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> int:
            made = make(**{key: given.pop(key) for key in keywords if key in given})
            return function(**{name: made}, **given)

        decorated: Command = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _source(
    memory: int | None,
    loaders: int | None,
    storage_options: Mapping[str, object],
    source_format: str | None = None,
) -> SourceOptions:
    from zarrfs.library.source import SourceOptions

    version: Any = None if source_format is None else int(source_format)
    return SourceOptions(
        memory=memory, loaders=loaders, zarr_format=version, storage_options=storage_options
    )


_MEMORY_AND_LOADERS = (
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
)

source_options = _made(
    *("source_options", _source, *_MEMORY_AND_LOADERS),
    click.option(
        "--zarr-format",
        "source_format",
        type=click.Choice(["1", "2", "3"]),
        help="Open only this version of Zarr. [default: the newest in SOURCE]",
    ),
    storage_options,
)
"""Decorates a command, which gets ``source_options``, a `SourceOptions`."""

copy_options = _made("source_options", _source, *_MEMORY_AND_LOADERS, storage_options)
"""The same for a command in which ``--zarr-format`` is the version of the destination."""


def _engine(scheduler: str, scheduler_file: str | None) -> EngineConfig:
    from zarrfs.library.engine import EngineConfig

    return EngineConfig(scheduler, scheduler_file)


engine_options = _made(
    *("engine", _engine),
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
"""Decorates a command, which gets ``engine``, an `EngineConfig`."""


path_option = click.option(
    "--path", default="", metavar="PATH", help="Path of the array in a hierarchy."
)
byteorder_option = click.option(
    "--byteorder",
    type=click.Choice(["little", "big"]),
    help="Byte order of the elements. [default: little]",
)
order_option = click.option(
    "--order",
    type=click.Choice(["C", "F"]),
    help="C: the last axis is fastest; F: the first (Fortran, MATLAB). [default: C]",
)


def flat_options(*formats: str, default: str) -> Callable[[Command], Command]:
    """A command gets ``flat``, a `Flat`, of one of ``formats``; ``default`` in words."""
    return _made(
        *("flat", Flat),
        path_option,
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
        byteorder_option,
        order_option,
    )
