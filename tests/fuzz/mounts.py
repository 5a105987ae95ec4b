"""Real mounts of changed arrays: all files are read, and the daemon ends well."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from random import Random

from tests.conftest import run_zarrfs
from tests.fuzz import documents, streams
from tests.fuzz.mutate import mutated_bytes, mutated_json

_CHILDREN = 12
_MOST_READ = 1 << 20


class Mounts:
    """A case mounts a group of changed arrays, reads all there is, and unmounts."""

    def __init__(self) -> None:
        pipelines = {**streams.V3, **streams.ISOLATED}
        self._arrays = []
        for name, (data_type, codecs) in pipelines.items():
            seeds = streams._v3(name, data_type, codecs).seeds
            fill = {"string": "", "bytes": "", "bool": False}.get(str(data_type), 0)
            if isinstance(data_type, dict):
                fill = None
            document = documents._v3(2, data_type=data_type, codecs=codecs, fill_value=fill)
            self._arrays.append((document, seeds))

    def run(self, random: Random) -> str | None:
        with tempfile.TemporaryDirectory() as place:
            source, mnt, log = Path(place, "source"), Path(place, "mnt"), Path(place, "log")
            mnt.mkdir()
            source.mkdir()
            (source / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
            for number in range(_CHILDREN):
                self._write(random, source / f"a{number}")
            done = run_zarrfs("mount", "-o", f"log_file={log},memory=64M", source, mnt)
            assert done.returncode == 0, done.stderr
            try:
                errors = _read_all(mnt)
                assert json.loads((mnt / ".zarrfs/stats.json").read_text())["uptime_seconds"] > 0
            finally:
                ended = run_zarrfs("umount", mnt)
            assert ended.returncode == 0, ended.stderr
            assert "Traceback" not in log.read_text(), log.read_text()[-3000:]
            shutil.rmtree(source)
        return "errors" if errors else None

    def _write(self, random: Random, place: Path) -> None:
        document, seeds = random.choice(self._arrays)
        if random.random() < 0.5:
            document = mutated_json(random, document)
        (place / "c/0").mkdir(parents=True)
        (place / "zarr.json").write_text(json.dumps(document))
        for name in ("0/0", "0/1"):
            (place / "c" / name).write_bytes(mutated_bytes(random, random.choice(seeds), seeds))


def _raise(error: OSError) -> None:
    raise error  # whatever is wrong with an array, it can be listed


def _read_all(mnt: Path) -> int:
    errors = 0
    for directory, _, names in os.walk(mnt, onerror=_raise):
        for name in names:
            try:
                with open(Path(directory, name), "rb") as file:
                    file.read(_MOST_READ)
            except OSError:
                errors += 1
    return errors
