"""The arrays and groups that a translator finds in a file, in the form that is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Refs = dict[str, Any]

KEY = ".zarrfs-foreign.json"
"""The key of what is not a reference: `Found` without ``refs``, as JSON."""


@dataclass(slots=True)
class Found:
    """Arrays and groups by path, and what is not served.

    refs : documents as text, references, and inlined bytes, by key.
    boxes : by the path of an array, how HDF5 reads its chunks without a reference.
    notes : by the path of what is not served, the reason.
    others : the state of each other file that holds data, by path.
    """

    refs: Refs = field(default_factory=dict)
    boxes: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    others: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def document(self, path: str, document: dict[str, Any]) -> None:
        self.refs[f"{path}/zarr.json" if path else "zarr.json"] = json.dumps(document)

    def note(self, path: str, reason: str) -> None:
        """Have an entry at ``path`` that says why nothing is served there."""
        self.notes[path] = reason[:1000]
        # This names the entry in listings; the reason is given instead of it.
        self.document(path, {"zarrfs_note": self.notes[path]})

    def name_for(self, group: str, name: str) -> str:
        """The path for a child of a group, with a name that a node of Zarr can have."""
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if name.startswith((".", "__")) or not name.strip(".") or name == "zarr.json":
            name = f"_{name.lstrip('._')}"
        path = f"{group}/{name}" if group else name
        while f"{path}/zarr.json" in self.refs:
            path += "_"
        return path

    def all_refs(self) -> Refs:
        """The references, and what else there is as one more of them."""
        if not (self.boxes or self.notes or self.others):
            return self.refs
        more = {"boxes": self.boxes, "notes": self.notes, "others": self.others}
        return {**self.refs, KEY: json.dumps(more)}
