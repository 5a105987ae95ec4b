"""Whether a mount shows other users what the store keeps from them."""

from __future__ import annotations

import os
from pathlib import Path

from zarrfs.daemon.options.options import MountOptions
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.store.open import local_directory

_READ, _ENTER = 0o004, 0o005


def shows_private(source: str, options: MountOptions) -> str | None:
    """The path of what others could not read but for the mount; None where there is none.

    Looked at are the source's directory and its metadata documents.
    """
    if not options.allow_other or options.umask & _READ:
        return None
    if (directory := local_directory(source)) is None:
        return None
    places = [(Path(directory), _ENTER)]
    places += [(Path(directory, name), _READ) for name in sorted(DOCUMENT_NAMES)]
    for path, needed in places:
        try:
            if os.stat(path).st_mode & needed != needed:
                return str(path)
        except OSError:
            continue
    return None
