"""Usage, from the root of the repository:

    python -m tests.mutants [--count N] [--seed S] [--patience SECONDS] [--tests PATH]… [PATH…]

``PATH`` begins the names of the modules to mutate; without any, all of `MODULES`. The same seed
takes the same mutations, as long as the modules stay the same. It prints a line for each: killed
and by which test, survived, unseen (no test executes its line), or timeout (a test that hangs
notices, too). A survivor is either a fault that no test notices, or a change that changes nothing;
somebody has to look. Those that the tests in one process cannot see, because they are in the head
of a function or in no function, are made in a copy of the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import sys
from collections import defaultdict

import pytest

from tests.mutants.copies import Copy
from tests.mutants.mutations import modules, mutations
from tests.mutants.session import Result, Session

# All run in one process; real mounts do not.
TESTS = (
    "tests/fs",
    "tests/model",
    "tests/unit/test_cache_budget.py",
    "tests/unit/test_dirty_objects.py",
    "tests/unit/test_leftovers.py",
    "tests/unit/test_locks.py",
    "tests/unit/test_resize.py",
    "tests/unit/test_resized_documents.py",
    "tests/unit/test_shared_work.py",
    "tests/unit/test_write_chunks.py",
    "tests/unit/test_write_shards.py",
    "tests/store/local_writing",
    "tests/store/test_every_writable_store.py",
    "tests/store/test_leftovers.py",
    "tests/store/test_races.py",
    "tests/faults/test_journal.py",
    "tests/faults/test_journal_entries.py",
    "tests/faults/test_bad_data.py",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20, help="how many mutations")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--line", type=int, action="append", help="only those of this line")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds of tests for one")
    parser.add_argument("--tests", action="append", help="tests to run, instead of the usual")
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    names = modules(arguments.paths)
    every = [
        mutation
        for name in names
        for mutation in mutations(name)
        if not arguments.line or mutation.line in arguments.line
    ]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mutations of {len(names)} modules", flush=True)
    fates: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    out = os.fdopen(os.dup(1), "w")
    copy: list[Copy] = []

    def tell(result: Result) -> None:
        if result.fate == "unswapped":
            if not copy:
                copy.append(Copy())
            result = copy[0].result(result.mutation, arguments.tests or TESTS)
        mutation, fate, test, seconds = result
        fates[mutation.module][fate] += 1
        print(f"{fate:<9} {seconds:4.0f} s  {mutation}  [{test}]", file=out, flush=True)

    session = Session(modules([]), chosen, tell, arguments.patience)
    options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=30"]
    os.environ["ZARRFS_SOAK"] = "1"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        pytest.main(["-n0", *options, *(arguments.tests or TESTS)], plugins=[session])
    if sum(map(len, fates.values())) == 0:
        sys.exit(said.getvalue())
    for one in copy:
        one.close()
    for module, counts in sorted(fates.items()):
        said = ", ".join(f"{fate} {count}" for fate, count in sorted(counts.items()))
        print(f"{module}: {said}", file=out, flush=True)


if __name__ == "__main__":
    main()
