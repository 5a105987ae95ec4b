"""Requests and fetched bytes, which no busy machine changes, and times."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from benchmarks.remote import contenders
from benchmarks.remote.contenders import Mount, Timed
from benchmarks.remote.store import BUCKET, CHUNK_BYTES, RemoteStore

PEERS = ("tensorstore_read", "zarr_python")
_WALKS = (["find"], ["ls", "-lR", "--ignore=.zarrfs"], ["du", "--exclude=.zarrfs"])


class Distance(Protocol):
    """The part of `benchmarks.remote.__main__.Run` that these tables use."""

    store: RemoteStore
    directory: Path

    def mounted(self, kind: str, name: str, *options: str) -> AbstractContextManager[Mount]: ...

    def apart(self, call: str, kind: str) -> Timed: ...


def reads(run: Distance) -> Iterator[str]:
    """Arrays read once, from S3."""
    yield (
        "| one read of all | contender | requests | bytes / stored | seconds "
        "| processor ms a request |"
    )
    yield "|---|---|---|---|---|---|"
    kinds = {
        "morton": "a shard of 1 024 inner chunks",
        "eight": "a shard of 8 MiB and its index",
        "tiny": f"chunks of {CHUNK_BYTES >> 10} KiB",
        "plain": "chunks of 1 MiB",
    }
    for name, shown in kinds.items():
        for busy in (0, 20) if name == "plain" else (0,):
            run.store.busy(busy)
            what = f"{shown}, 5 % of 503" if busy else shown
            for who, took, counts in _each(run, name):
                yield _line(what, who, took, counts, run.store.sizes[name])
    run.store.busy(0)


def _each(run: Distance, name: str) -> Iterator[tuple[str, Timed, dict[str, object]]]:
    with run.mounted("s3", name) as mount:
        run.store.reset()
        took = contenders.timed(lambda: contenders.read_file(mount.path / "array.bin"), mount.pid)
        yield "zarrfs", took, run.store.counts()
    # zarr-python takes minutes for many small chunks.
    for peer in PEERS[:1] if name == "tiny" else PEERS:
        run.store.reset()
        took = run.apart(f"{peer}(KIND, URL, {name!r})", "s3")
        yield peer.removesuffix("_read").replace("_", "-"), took, run.store.counts()


def _line(what: str, who: str, took: Timed, counts: dict[str, object], stored: int) -> str:
    requests = sum(counts["requests"].values())  # type: ignore[attr-defined]
    fetched = int(counts["sent"]) / stored  # type: ignore[call-overload]
    each = took.processor * 1e3 / max(1, requests)
    return f"| {what} | {who} | {requests} | {fetched:.2f} | {took.seconds:.2f} | {each:.2f} |"


def walks(run: Distance) -> Iterator[str]:
    """Walks over a group of 200 arrays, and `zarrfs info`."""
    yield "| command | mount | requests first | again |"
    yield "|---|---|---|---|"
    for options in ((), ("immutable",)):
        with run.mounted("s3", "consolidated", *options) as mount:
            for words in _WALKS:
                counted = [_requests(run, [*words, str(mount.path)]) for _ in range(2)]
                yield f"| {words[0]} | {' '.join(options)} | {counted[0]} | {counted[1]} |"
    words = [sys.executable, "-m", "zarrfs", "info", f"s3://{BUCKET}/tiny"]
    yield f"| zarrfs info of 20 000 chunks | | {_requests(run, words)} | |"


def _requests(run: Distance, words: list[str]) -> int:
    run.store.reset()
    environment = contenders.environment(run.store.url)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=600)
    return int(sum(run.store.counts()["requests"].values()))


def kept(run: Distance) -> Iterator[str]:
    """A zip file, and a disk cache."""
    yield "| read of all | requests | bytes / stored | seconds |"
    yield "|---|---|---|---|"

    def read(mount: Mount) -> Callable[[], int]:
        return lambda: contenders.read_file(mount.path / "array.bin")

    def line(what: str, took: Timed, name: str) -> str:
        counts = run.store.counts()
        fetched = counts["sent"] / run.store.sizes[name]
        asked = sum(counts["requests"].values())
        return f"| {what} | {asked} | {fetched:.2f} | {took.seconds:.2f} |"

    with run.mounted("zip", "zipped.zip") as mount:
        run.store.reset()
        yield line("a zip of 128 members", contenders.timed(read(mount), mount.pid), "zipped.zip")
    cache = run.directory / "cache"
    for what in ("no cache", "cold", "warm"):
        options = () if what == "no cache" else (f"disk_cache={cache}",)
        with run.mounted("s3", "fine", *options) as mount:
            run.store.reset()
            took = contenders.timed(read(mount), mount.pid)
            yield line(f"a shard of 4 096 inner chunks, {what}", took, "fine")
    shutil.rmtree(cache, ignore_errors=True)
