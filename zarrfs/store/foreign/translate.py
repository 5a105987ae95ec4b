"""A program: writes references to the chunks of one file, in kerchunk's form.

Its arguments are KIND FILE TARGET LARGEST SECONDS ALIVE; `zarrfs.isolation.interpreter` starts it.
TARGET and ALIVE are numbers of open files; the program ends when the pipe ALIVE does.

It is a separate process because the libraries that it uses trust the data: a damaged file may
exhaust the memory, run forever or crash the process. The exit status is 0, `MISSING` if a package
is not installed, or else 1 with the reason on stderr; its last line is for users.
"""

from __future__ import annotations

import gc
import json
import math
import resource
import sys
import traceback
import warnings
from importlib import import_module

from zarrfs.errors import reason_of
from zarrfs.isolation.interpreter import end_with

MISSING = 3
_MEMORY = 4 << 30


def main() -> int:
    kind, path, target, largest, seconds, alive = sys.argv[1:]
    end_with(int(alive))
    # A collection in a thread of zarr waits for a lock of h5py, which waits for that thread.
    gc.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    cpu = math.ceil(float(seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    warnings.simplefilter("ignore")
    try:
        # KIND is the name of a module beside this one, which only this process imports.
        refs = import_module(f"zarrfs.store.foreign.{kind}").references(path).all_refs()
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return MISSING
    except MemoryError:
        sys.stderr.write(f"needs more than {_MEMORY >> 30} GiB of memory\n")
        return 1
    except Exception as error:  # noqa: BLE001 - these libraries raise any exception
        traceback.print_exc()
        sys.stderr.write(f"{reason_of(error)}\n")
        return 1
    text = json.dumps({"version": 1, "refs": refs})
    if len(text) > int(largest):
        sys.stderr.write(f"its references take {len(text)} bytes, more than {largest}\n")
        return 1
    with open(int(target), "w") as file:
        file.write(text)
    return 0
