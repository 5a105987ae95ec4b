"""Mount Zarr arrays as ordinary files, or read, write and copy them from Python.

`open_array`, `open_group`, `create_array`, `copy`, `check` and `SourceOptions` are available here,
too. Their modules are imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrfs.library.check import check as check
    from zarrfs.library.copy import copy as copy
    from zarrfs.library.create_array import create_array as create_array
    from zarrfs.library.open_array import OpenArray as OpenArray
    from zarrfs.library.open_array import open_array as open_array
    from zarrfs.library.open_group import OpenGroup as OpenGroup
    from zarrfs.library.open_group import open_group as open_group
    from zarrfs.library.source import SourceOptions as SourceOptions

__version__ = "0.1.0"

_LIBRARY = {
    "OpenArray": "open_array",
    "OpenGroup": "open_group",
    "SourceOptions": "source",
    "check": "check",
    "copy": "copy",
    "create_array": "create_array",
    "open_array": "open_array",
    "open_group": "open_group",
}


def __getattr__(name: str) -> Any:
    if name not in _LIBRARY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - a cost for users of the library only

    return getattr(import_module(f"zarrfs.library.{_LIBRARY[name]}"), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_LIBRARY))
