"""Real mounts of changed arrays: all files are read or written, and the daemon ends well."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.conftest import run_zarrfs
from tests.fuzz import documents, streams
from tests.fuzz.mutate import mutated_bytes, mutated_json

_CHILDREN = 12
_MOST_READ = 1 << 20


# What a daemon that has ended answers.
_ENDED = {errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV}
# Pipelines that store other elements than they are given.
_LOSSY = ("zfp", "cast", "scale", "bitround", "quantize")


class Mounts:
    """A case mounts a group of changed arrays, reads all there is, and unmounts."""

    def __init__(self) -> None:
        pipelines = {**streams.V3, **streams.ISOLATED}
        self._arrays = []
        self._lossy: set[int] = set()
        for name, (data_type, codecs) in pipelines.items():
            seeds = streams._v3(name, data_type, codecs).seeds
            fill = {"string": "", "bytes": "", "bool": False}.get(str(data_type), 0)
            if isinstance(data_type, dict):
                fill = None
            document = documents._v3(2, data_type=data_type, codecs=codecs, fill_value=fill)
            if any(word in json.dumps(codecs) for word in _LOSSY):
                self._lossy.add(len(self._arrays))
            self._arrays.append((document, seeds))

    def run(self, random: Random) -> str | None:
        with tempfile.TemporaryDirectory() as place:
            source = Path(place, "source")
            source.mkdir()
            (source / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
            exact = [self._make(random, source / f"a{number}") for number in range(_CHILDREN)]
            errors = self._use(random, source, exact)
            shutil.rmtree(source)
        return "errors" if errors else None

    def _use(self, random: Random, source: Path, exact: list[bool]) -> int:
        """Do something with the arrays; how much of it failed.

        exact : which arrays store what they are given.
        """
        with _mounted(source, "ro") as mnt:
            errors = _read_all(mnt)
            assert json.loads((mnt / ".zarrfs/stats.json").read_text())["uptime_seconds"] > 0
        log = source.with_name("log").read_text()
        assert "Traceback" not in log, log[-3000:]
        return errors

    def _make(self, random: Random, place: Path) -> bool:
        """Make an array, maybe of changed metadata; whether it stores what it is given."""
        number = random.randrange(len(self._arrays))
        document, seeds = self._arrays[number]
        if random.random() < 0.5:
            document = mutated_json(random, document)
        (place / "c/0").mkdir(parents=True)
        (place / "zarr.json").write_text(json.dumps(document))
        for name in ("0/0", "0/1"):
            (place / "c" / name).write_bytes(mutated_bytes(random, random.choice(seeds), seeds))
        return number not in self._lossy


class Writes(Mounts):
    """A case writes to each array of a group; a later mount has what was stored without error."""

    def _use(self, random: Random, source: Path, exact: list[bool]) -> int:
        for number in range(_CHILDREN // 2):
            shutil.rmtree(source / f"a{number}/c")
        options = random.choice(("rw", "rw,store_fill", "rw,resize", "rw,allow_remove"))
        with _mounted(source, options, statuses=(0, 1)) as mnt:
            written = [
                _written(random, mnt / f"a{number}", options, exact=exact[number])
                for number in range(_CHILDREN)
            ]
            _read_all(mnt)
        with _mounted(source, "ro") as mnt:
            for number, data in enumerate(written):
                if data is not None and exact[number]:
                    read = (mnt / f"a{number}/array.bin").read_bytes()
                    assert read == data, (source / f"a{number}/zarr.json").read_text()
        return written.count(None)


@contextmanager
def _mounted(source: Path, options: str, *, statuses: tuple[int, ...] = (0,)) -> Iterator[Path]:
    """
    statuses : with which unmounting may end.
    """
    mnt, log, journal = (source.with_name(name) for name in ("mnt", "log", "journal"))
    mnt.mkdir(exist_ok=True)
    options = f"{options},log_file={log},journal={journal},memory=64M"
    done = run_zarrfs("mount", "-o", options, source, mnt)
    assert done.returncode == 0, done.stderr
    try:
        yield mnt
    finally:
        ended = run_zarrfs("umount", mnt)
    assert ended.returncode in statuses, ended.stderr


def _written(random: Random, directory: Path, options: str, *, exact: bool) -> bytes | None:
    """Write to ``array.bin``; all its bytes afterwards, None if that was refused."""
    path = directory / "array.bin"
    try:
        with open(path, "r+b", buffering=0) as file:
            if not 0 < (size := os.fstat(file.fileno()).st_size) <= _MOST_READ:
                return None
            content = bytearray(file.read())
            for _ in range(random.choice((1, 1, 2, 5))):
                at = random.randrange(size)
                data = random.choice((random.randbytes, bytes))(random.randrange(1, size - at + 1))
                os.pwrite(file.fileno(), data, at)
                content[at : at + len(data)] = data
            os.fsync(file.fileno())
        if options == "rw,resize":
            # To whole rows.
            new = random.choice((size // 2, 2 * size, random.randrange(2 * size)))
            os.truncate(path, new)
            found = path.read_bytes()
            assert len(found) >= new
            assert found[: min(size, new)] == content[:new] or not exact
            content[:] = found
        if options == "rw,allow_remove":
            for chunk in sorted(directory.glob("chunks/**/*"))[:: random.randrange(1, 5)]:
                if chunk.is_file():
                    chunk.unlink()
            content[:] = path.read_bytes()
    except OSError as error:
        _check(error)
        return None
    return bytes(content)


def _check(error: OSError) -> None:
    """Raises an error that means that the daemon has ended."""
    if error.errno in _ENDED:
        raise AssertionError from error


def _raise(error: OSError) -> None:
    raise error  # whatever is wrong with an array, it can be listed


def _read_all(mnt: Path) -> int:
    errors = 0
    for directory, _, names in os.walk(mnt, onerror=_raise):
        for name in names:
            try:
                with open(Path(directory, name), "rb") as file:
                    file.read(_MOST_READ)
            except OSError as error:
                _check(error)
                errors += 1
    return errors
