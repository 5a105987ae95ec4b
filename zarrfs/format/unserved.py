"""What is well-formed but is not there: an unknown extension, or an optional package."""

from __future__ import annotations


class UnservedError(ValueError):
    """Metadata names something that this installation does not serve.

    A `ValueError`, because whoever configures codecs and data types raises one
    for a bad configuration; the metadata readers, which know the document, turn
    this one into `zarrfs.errors.UnsupportedError`.
    """


def missing_package(what: str, extra: str) -> UnservedError:
    """The error for ``what`` when its optional package is absent."""
    return UnservedError(f"{what} needs an optional package: install zarrfs[{extra}]")
