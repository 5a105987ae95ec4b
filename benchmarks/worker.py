"""A library at work in a process of its own: ``python -m benchmarks.worker TASK JSON``.

Imports what the task needs and says "ready"; on a line of input does the task and prints the
seconds and the processor time that it took. Whatever comes before is not counted.
"""

from __future__ import annotations

import importlib
import json
import sys
import time


def main() -> None:
    module, _, name = sys.argv[1].partition(".")
    task = getattr(importlib.import_module(f"benchmarks.libraries.{module}"), name)
    arguments = json.loads(sys.argv[2])
    prepared = task(**arguments)
    print("ready", flush=True)
    sys.stdin.readline()
    begun, used = time.perf_counter(), time.process_time()
    prepared()
    seconds, processor = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps({"seconds": seconds, "processor": processor}), flush=True)


if __name__ == "__main__":
    main()
