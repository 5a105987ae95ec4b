"""Finds what packages that open files below a directory should not open there."""

from __future__ import annotations

import os

from zarrfs.errors import StoreAccessDenied


def check_links(root: str) -> None:
    """Raises `StoreAccessDenied` for a link that leads out of ``root``, and for a pipe or device.

    Looks at every name below ``root`` once; names that appear later go unnoticed.
    """
    real = os.path.realpath(root)
    waiting = [real]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        _check(entry.path, real)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        raise StoreAccessDenied(entry.path, "is neither file nor directory")
        except (FileNotFoundError, NotADirectoryError):
            continue  # it is gone, or there is no such directory, which its reader reports
        except OSError as error:
            raise StoreAccessDenied(directory, str(error.strerror)) from error


def _check(path: str, root: str) -> None:
    target = os.path.realpath(path)
    if os.path.commonpath([target, root]) != root:
        raise StoreAccessDenied(path, "is a link that leads out of the source; see follow_symlinks")
