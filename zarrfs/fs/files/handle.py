"""Open files, as their handles name them."""

from __future__ import annotations

from dataclasses import dataclass

from zarrfs.fs.coherence.array_pages import ArrayPages
from zarrfs.fs.coherence.kernel_pages import Epochs
from zarrfs.fs.files.storing import Storing
from zarrfs.fs.nodes.nodes import MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import WritableView


@dataclass(slots=True, eq=False, repr=False)
class Handle:
    """An open file, as its handle names it.

    view : its bytes.
    direct : whether the kernel keeps no pages of what is read and written.
    append : whether everything is written behind the end.
    sync : whether each write is to be stored when it returns, and the kernel does not ask for that.
    mapped : whether the file may be mapped and changed there through this handle.
    storing : of the node, where it may be written to through this handle.
    arrays : whose elements the file has.
    pages : of each array, where its elements may be written to through any file.
    unused : what the file had at the open, until the first request, if the kernel then drops pages.
    """

    place: Place
    view: WritableView
    arrays: tuple[MountedArray, ...]
    direct: bool
    append: bool
    sync: bool
    mapped: bool
    storing: Storing | None
    pages: tuple[ArrayPages, ...]
    unused: Epochs | None = None
