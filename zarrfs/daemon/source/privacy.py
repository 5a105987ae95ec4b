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

    Looked at are the directories from the source's to that which is shown, and their metadata
    documents.
    """
    if not options.allow_other or options.umask & _READ:
        return None
    if (directory := local_directory(source)) is None:
        return None
    shown = Path(options.path)
    places = []
    for below in (*reversed(shown.parents), shown) if options.path else (shown,):
        places.append((Path(directory, below), _ENTER))
        places += [(Path(directory, below, name), _READ) for name in sorted(DOCUMENT_NAMES)]
    for path, needed in places:
        try:
            if os.stat(path).st_mode & needed != needed:
                return str(path)
        except OSError:
            continue
    return None
