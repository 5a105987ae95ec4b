"""Headers of other formats, without a mount."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from zarrfs.errors import UsageError
from zarrfs.library.source import SourceOptions, facts_around, find_array, open_source
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.views.headers.describe import describe


def header(
    source: str, form: FlatForm, of: SourceOptions, *, path: str = "", data_file: str = "array.bin"
) -> bytes:
    """The bytes before the elements in the format of ``form``.

    path : of the array below the source.
    data_file : name of the file with the elements, for a header in a separate file.

    Raises UnsupportedError if the format cannot express the array, and ZarrfsError.
    """
    name = data_file
    if not name.isprintable() or not name.isascii() or name != name.strip() or not name:
        raise UsageError(f"{name!r} cannot be the name of a data file in a header")
    with closing(open_source(source, of)) as store:
        node, metadata = find_array(store, path, of)
        around = facts_around(source, store, node, of)
    array = describe(metadata, form.layout, node.path, around)
    made = form.form(replace(array, data_file=name))
    return made.header.ljust(made.start, b"\0")
