"""The error for well-formed metadata that need an unknown extension or a missing package."""

from __future__ import annotations

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
