"""The program that finds the chunks of files, which hangs for HDF5 files called slow."""

import ctypes
import os
from pathlib import Path
from typing import Any

from zarrfs.store.foreign import translate


def decode(parameters: dict[str, Any], data: bytes) -> bytes:
    path = Path(parameters["path"]).resolve()
    if path.stem == "slow":
        path.with_suffix(".pid").write_text(str(os.getpid()))
        ctypes.PyDLL(None).sleep(1000)  # with the interpreter's lock
    return translate.decode(parameters, data)
