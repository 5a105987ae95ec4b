"""Extensions as metadata name them, and the error for one that this installation does not serve."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from zarrfs.bounds import shown
from zarrfs.errors import to_install


class UnservedError(ValueError):
    """Metadata name something that this installation does not serve.

    A `ValueError`, because the code that configures codecs and data types raises one for a bad
    configuration. The metadata readers know the document and convert this error into
    `zarrfs.errors.UnsupportedError`.
    """


def missing_package(what: str, extra: str) -> UnservedError:
    """The error for ``what`` if its optional package is not installed."""
    return UnservedError(f"{what} needs an optional package, {to_install(extra)}")


def module_of(codec: str, module: str) -> Any:
    """The optional module of a codec, whose extra has the codec's name. Raises UnservedError."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_package(f"the codec {codec}", codec) from error


def name_and_configuration(value: Any, what: str) -> tuple[str, Mapping[str, Any]]:
    """The parts of an extension, which metadata give as a name or as an object of both.

    Raises ValueError that says ``what`` was expected.
    """
    match value:
        case str(name):
            return name, {}
        case {"name": str(name), **others} if others.keys() <= {"configuration", "must_understand"}:
            configuration = others.get("configuration")
            if configuration is None or isinstance(configuration, Mapping):
                return name, configuration or {}
            raise ValueError(f"{what} {name!r}: the configuration is not an object")
    raise ValueError(f"{shown(repr(value))} is not a {what}: a name, or an object with a name")
