"""Changed files of a journal, a disk cache, an Icechunk repository, and references in Parquet."""

import json
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from random import Random

import icechunk

from tests.fuzz.mutate import mutated_bytes, mutated_json
from tests.fuzz.stores import RETRY, read_all
from tests.store.remote.test_icechunk_store import fill
from tests.store.remote.test_parquet_references import References
from tests.unit.cache.test_journal_files import change, changed_header, read, written
from zarrfs.errors import JournalError, ZarrfsError
from zarrfs.store.base import ObjectInfo
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.ranges import Span
from zarrfs.store.wrappers.cache_files import CacheFiles

_CONFIG = StoreConfig(retry=RETRY._replace(attempt_timeout_s=30, deadline_s=60))
# Of the elements of one entry; an entry takes several bytes of its file for 64 of them.
_LARGEST = 1 << 20


class Journals:
    """A case reads one changed entry, whose hash is right in half of the cases."""

    def __init__(self) -> None:
        self._seeds = [written(change(shape)) for shape in ((3,), (4, 5), (2, 3, 4))]

    def run(self, random: Random) -> str | None:
        data = random.choice(self._seeds)
        if random.random() < 0.5:
            header = json.loads(data.partition(b"\n")[0])
            changed = mutated_json(random, header)
            if not isinstance(changed, dict):
                return "no header"
            data = changed_header(data, **changed)
        else:
            data = mutated_bytes(random, data, self._seeds)
        try:
            found = read(data)
        except JournalError:
            return "refused"
        assert found.elements.nbytes <= 64 * len(data) + _LARGEST
        return None


class Caches:
    """A case reads a part of an object whose file was changed: the part as it was, or none."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory()
        self._data = bytes(range(200))
        self._state = ObjectInfo(1000, 5, ("etag", 1))
        files = self._files()
        files.keep("x", self._state, 100, self._data)
        (self._file,) = Path(self._place.name).rglob("*.*.*")
        self._seed = self._file.read_bytes()

    def _files(self) -> CacheFiles:
        return CacheFiles(self._place.name, 1 << 20)

    def run(self, random: Random) -> str | None:
        self._file.write_bytes(mutated_bytes(random, self._seed, [self._seed]))
        part = self._files().read("x", Span(110, 120), self._state.generation)
        if part is None:
            return "not kept"
        assert bytes(part.data) == self._data
        return None


class Repositories:
    """A case reads an Icechunk repository of which one file was changed or cut short."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory()
        self._seed = Path(self._place.name, "seed")
        fill(icechunk.local_filesystem_storage(str(self._seed)), "")
        self._names = [
            path.relative_to(self._seed) for path in sorted(self._seed.rglob("*")) if path.is_file()
        ]

    def run(self, random: Random) -> str | None:
        root = Path(self._place.name, "changed")
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self._seed, root)
        file = root / random.choice(self._names)
        data = file.read_bytes()
        half = data[: random.randrange(len(data) + 1)]
        file.write_bytes(half if random.random() < 0.3 else mutated_bytes(random, data, [data]))
        return _read(f"icechunk://{random.choice(('deep/a', 'point'))}::{root}")


class Parquet:
    """A case reads references in Parquet of which one file was changed or cut short."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory()
        root = Path(self._place.name)
        self._references = made = References(root)
        made.write(1, [made.place(4), None, made.place(8), b"efgh"])
        made.write(2, [None])
        self._seeds = {path: path.read_bytes() for path in made.root.rglob("*") if path.is_file()}

    def run(self, random: Random) -> str | None:
        for path, data in self._seeds.items():
            path.write_bytes(data)
        path = random.choice(list(self._seeds))
        data = self._seeds[path]
        if path.name == ".zmetadata" and random.random() < 0.7:
            text = json.dumps(mutated_json(random, json.loads(data))).encode()
        else:
            text = mutated_bytes(random, data, list(self._seeds.values()))
        path.write_bytes(text)
        return _read(f"reference::file://{self._references.root}", "g/a")


def _read(url: str, path: str = "") -> str | None:
    try:
        with closing(open_store(url, _CONFIG)) as store:
            return "error" if read_all(store, path) else None
    except ZarrfsError:
        return "not opened"
