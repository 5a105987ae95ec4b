"""``.zarrfs/``: what the mount is doing and what is in force, as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from zarrfs.fs.tree import Tree


def stats_document(tree: Tree, started: float, open_files: int) -> bytes:
    """``stats.json``. ``started`` is seconds since the epoch."""
    document = {
        "uptime_seconds": round(time.time() - started, 3),
        "memory": {
            "budget": tree.config.memory,
            "used": tree.budget.used + tree.parts.size,
            "highest": tree.budget.highest,
            "chunks": tree.cache.chunks,
            "shard_index_bytes": tree.parts.size,
        },
        "dirty_bytes": 0 if tree.write_back is None else tree.write_back.dirty_bytes,
        "journal": tree.config.journal,
        "open_files": open_files,
        "arrays": tree.arrays,
        **tree.stats.snapshot(),
    }
    return to_json(document)


def to_json(document: Mapping[str, Any]) -> bytes:
    """Indented, with a newline at the end."""
    return (json.dumps(document, indent=2, default=str) + "\n").encode()
