"""updatedb(8), which walks whole file systems for locate(1), and the types that it leaves out."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from zarrfs.errors import MountError

_CONFIGURATION = "etc/updatedb.conf"
_TYPE = "fuse.zarrfs"
# PRUNEFS = "NFS afs …"
_PRUNED = re.compile(r'^([ \t]*PRUNEFS[ \t]*=[ \t]*")([^"\n]*)(")', re.MULTILINE)


def leave_out(root: Path, *, remove: bool, write: bool) -> Path | None:
    """Adds zarrfs to the types that updatedb leaves out, or takes it away; the file to change.

    root : what stands for ``/``.
    write : otherwise the file stays as it is.

    None: there is nothing to change. Raises MountError where the file cannot be written.
    """
    found = None
    with suppress(OSError, UnicodeDecodeError):
        found = _PRUNED.search((root / _CONFIGURATION).read_text(encoding="utf-8"))
    if found is None or (_TYPE in found[2].split()) != remove:
        return None
    types = [name for name in found[2].split() if name != _TYPE]
    line = found[1] + " ".join(types if remove else [*types, _TYPE]) + found[3]
    path, text = root / _CONFIGURATION, found.string
    try:
        if write:
            path.write_text(text[: found.start()] + line + text[found.end() :], encoding="utf-8")
    except OSError as error:
        raise MountError(f"{path}: {error.strerror}") from error
    return path
