"""Makes references to the chunks of one file, in kerchunk's form; see `zarrfs.isolation`.

It runs in a process of its own because the libraries that it uses trust the data: a damaged file
may exhaust the memory, run forever or crash the process.
"""

from __future__ import annotations

import gc
import json
import resource
import warnings
from importlib import import_module
from typing import Any

_MEMORY = 4 << 30


def decode(parameters: dict[str, Any], _data: bytes) -> bytes:
    """The references as JSON; nothing if a package is not installed.

    parameters : ``path`` of the file and its ``kind``, which names a module beside this one.

    Raises ValueError, and any exception of the libraries.
    """
    # A collection in a thread of zarr waits for a lock of h5py, which waits for that thread.
    gc.disable()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    memory = _MEMORY if hard == resource.RLIM_INFINITY else min(hard, _MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    warnings.simplefilter("ignore")
    try:
        # Only this process imports it.
        module = import_module(f"zarrfs.store.foreign.{parameters['kind']}")
        refs = module.references(parameters["path"]).all_refs()
    except ImportError:
        return b""
    except MemoryError:
        raise ValueError(f"needs more than {memory >> 20} MiB of memory") from None
    return json.dumps({"version": 1, "refs": refs}).encode()
