"""``.zarrfs/``: what the mount is doing and what is in force, as JSON and as OpenMetrics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs import __version__
from zarrfs.counted import counted
from zarrfs.fs.loop.loop_times import LoopTimes
from zarrfs.fs.nodes.nodes import Local
from zarrfs.fs.nodes.tree import Tree

_WHAT = "What is mounted."
# Kind, name, place in `stats_document`, and what it is.
_METRICS = (
    ("gauge", "uptime_seconds", "uptime_seconds", "Since the mount began."),
    ("gauge", "memory_budget_bytes", "memory/budget", "What the mount may take."),
    ("gauge", "memory_used_bytes", "memory/used", "For chunks, shard indexes and decoding."),
    ("gauge", "cached_chunks", "memory/chunks", "Decoded chunks in memory."),
    ("gauge", "dirty_bytes", "dirty_bytes", "Of chunks with changes that are not stored yet."),
    ("gauge", "open_files", "open_files", "Open files."),
    ("gauge", "arrays", "arrays", "Arrays in memory."),
    ("gauge", "known_nodes", "known_nodes", "Arrays, groups and files that the kernel knows."),
    ("counter", "cache_hits", "cache/hits", "Chunks that were decoded already."),
    ("counter", "cache_misses", "cache/misses", "Chunks that were not."),
    ("counter", "cache_shared", "cache/shared", "Misses that joined a load under way."),
    ("counter", "chunks_decoded", "cache/loads", "Chunks decoded."),
    ("counter", "chunk_parts_decoded", "cache/parts", "Parts of chunks decoded without the rest."),
    ("counter", "chunks_revalidated", "cache/revalidated", "Chunks found to be still current."),
    ("counter", "decoded_bytes", "cache/decoded_bytes", "Of the chunks and parts decoded."),
    ("counter", "reads", "reads/count", "Read requests answered."),
    ("counter", "read_bytes", "reads/bytes", "Of the answers."),
    ("counter", "writes", "writes/count", "Write requests taken."),
    ("counter", "written_bytes", "writes/bytes", "Of those."),
    ("counter", "errors", "errors/count", "Chunks or requests that failed."),
    (
        "gauge",
        "loop_longest_held_seconds",
        "loop/longest_held_seconds",
        "Longest time in which the event loop did not look for requests.",
    ),
    (
        "counter",
        "loop_held_over_20_ms",
        "loop/held_over_20_ms",
        "Number of times that this took more than 20 ms.",
    ),
    ("counter", "store_requests", "store/requests", "Made of the store."),
    ("counter", "store_failures", "store/failures", "Of those, how many failed."),
    ("counter", "store_read_bytes", "store/read_bytes", "Read from the store."),
    ("counter", "store_written_bytes", "store/written_bytes", "Written to the store."),
    ("counter", "store_seconds", "store/seconds", "Taken by all requests together."),
)


def stats_document(
    tree: Tree, started: float, open_files: int, loop_times: LoopTimes
) -> dict[str, Any]:
    """The content of ``stats.json``. ``started`` is seconds since the epoch."""
    return {
        "uptime_seconds": round(time.time() - started, 3),
        "memory": {
            "budget": tree.memory,
            "used": tree.budget.used + tree.parts.size,
            "highest": tree.budget.highest,
            "chunks": tree.cache.chunks,
            "shard_index_bytes": tree.parts.size,
            "node_bytes": tree.nodes.nbytes,
        },
        "dirty_bytes": tree.dirty_bytes,
        "journal": tree.config.journal,
        "open_files": open_files,
        "arrays": tree.arrays,
        "known_nodes": tree.nodes.known,
        **tree.stats.snapshot(),
        "loop": loop_times.snapshot(),
        "store": {**tree.store_times.snapshot(), "trouble": tree.store.trouble},
    }


def summary(tree: Tree, open_files: int) -> str:
    """The state of a mount, in one line for people."""
    numbers = {
        "array": tree.arrays,
        "open file": open_files,
        "byte": tree.dirty_bytes,
        "error": tree.stats.errors,
    }
    arrays, files, size, errors = (counted(number, name) for name, number in numbers.items())
    return f"serving {arrays}, {files}, {size} to store, {errors}"


class MountStatus:
    """The files of ``.zarrfs/``: what is in force, and how the mount is doing. Loop only.

    document : what ``config.json`` shows.
    stats : the content of ``stats.json`` now, for the second at which the mount began.
    """

    def __init__(
        self, document: Mapping[str, Any], stats: Callable[[float], dict[str, Any]]
    ) -> None:
        self._document = document
        self._stats = stats
        self._started = time.time()
        # The sizes that were last said of the files.
        self._sizes: dict[int, int] = {}

    def size(self, local: int) -> int:
        """Bytes of the file with this number, as its next `content` has them at least."""
        self._sizes[local] = size = len(self.content(local))
        return size

    def content(self, local: int) -> bytes:
        """The file with this number.

        Programs such as rsync fail where a file is shorter than its size was. So the content is
        filled with spaces up to the last size.
        """
        if local == Local.CONFIG:
            made, anchor = to_json(self._document), "}"
        elif local == Local.STATS:
            made, anchor = to_json(self._stats(self._started)), "}"
        else:
            made = to_metrics([(self._document, self._stats(self._started))])
            anchor = _WHAT
        before, _, after = made.rpartition(anchor.encode())
        filling = " " * (self._sizes.get(local, 0) - len(made))
        return before + f"{anchor}{filling}".encode() + after

    def set_memory(self, memory: int) -> None:
        """The memory budget in force is another one, in bytes."""
        options = {**self._document.get("options", {}), "memory": memory}
        self._document = {**self._document, "options": options}


def to_json(document: Mapping[str, Any]) -> bytes:
    """Indented, with a newline at the end."""
    return (json.dumps(document, indent=2, default=str) + "\n").encode()


def to_metrics(mounts: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> bytes:
    """``metrics``: the same numbers for a monitoring system, of one mount or of several.

    mounts : the contents of ``config.json`` and ``stats.json`` of each. Each number has the labels
        ``mountpoint`` and ``source``, and ``zarrfs_info`` names the version and the mode.

    https://prometheus.io/docs/specs/om/open_metrics_spec/
    """
    names = [
        _labels({label: config.get(label, "") for label in ("mountpoint", "source")})
        for config, _ in mounts
    ]
    lines = ["# TYPE zarrfs info", f"# HELP zarrfs {_WHAT}"]
    for (config, _), labels in zip(mounts, names, strict=True):
        mode = "rw" if config.get("options", {}).get("rw") else "ro"
        more = _labels({"version": __version__, "mode": mode})
        lines.append(f"zarrfs_info{{{labels},{more}}} 1")
    for kind, name, path, explanation in _METRICS:
        lines += [f"# TYPE zarrfs_{name} {kind}", f"# HELP zarrfs_{name} {explanation}"]
        sample = f"zarrfs_{name}{'_total' if kind == 'counter' else ''}"
        for (_, stats), labels in zip(mounts, names, strict=True):
            value: Any = stats
            for member in path.split("/"):
                value = value[member]
            lines.append(f"{sample}{{{labels}}} {value}")
    return "\n".join([*lines, "# EOF\n"]).encode("utf-8", "backslashreplace")


def _labels(labels: Mapping[str, object]) -> str:
    """``name="value",…``, escaped as the format asks."""
    escaped = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return ",".join(f'{name}="{str(value).translate(escaped)}"' for name, value in labels.items())
