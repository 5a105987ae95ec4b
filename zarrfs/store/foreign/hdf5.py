"""An HDF5 or NetCDF-4 file as references: its groups, links and datasets.

Every dataset that the file lists is served, or has a note that says why it is not. External links,
and data in other files, are followed only below the folder of the file.
"""

from __future__ import annotations

import os
import re
import stat
from importlib import import_module
from typing import Any

from zarrfs.errors import reason_of
from zarrfs.store.foreign import hdf5_boxes
from zarrfs.store.foreign.found import MOST_REFERENCES, Found
from zarrfs.store.foreign.hdf5_dataset import (
    Names,
    address,
    is_dimension_only,
    is_hard_link,
    other_files,
    translate,
)
from zarrfs.store.foreign.hdf5_types import NotServedError, attributes, decoded
from zarrfs.store.foreign.kinds import exact_state_of

_MOST_NODES = 100_000
_MOST_FILES = 64
_DEEPEST = 100
_MOST_LINKS = 32
# The folder of a file that was found in a directory mount, which passes it on as an open file.
_OPEN_FILES = re.compile(r"/proc/\d+/fd")

# Raised by h5py for damaged and for unknown parts of a file.
_BROKEN = (
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    NotImplementedError,
)


def references(path: str) -> Found:
    """Raises ImportError, OSError for a file that HDF5 cannot open, and ValueError."""
    hdf5_boxes.prepare()
    os.chdir(os.path.dirname(path))
    return _Walk(path).run()


class _Walk:
    def __init__(self, path: str) -> None:
        self._h5py = import_module("h5py")
        self._path = path
        self._folder = os.path.dirname(path)
        self._files: dict[str, Any] = {}
        self._found = Found()
        self._nodes = 0
        self._room = MOST_REFERENCES
        # Datasets, by place and the folder of raw data, of which all sources are known to lie
        # below the folder.
        self._checked: set[tuple[str, str, str]] = set()
        self._scales: Names = {}
        # Addresses of all datasets that are served or noted.
        self._seen: set[int] = set()

    def run(self) -> Found:
        root = self._file(self._path)
        self._group(self._path, root["/"], "", ())
        self._compare(root)
        return self._found

    def _compare(self, root: Any) -> None:
        """Note what the library lists and this walk does not know."""

        def visit(name: str, thing: Any) -> None:
            if isinstance(thing, self._h5py.Dataset) and address(thing)[1] not in self._seen:
                self._found.note(decoded(name), "it was left out for a reason that is not known")

        root.visititems(visit)

    def _group(self, path: str, group: Any, at: str, above: tuple[Any, ...]) -> None:
        document = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": attributes(group),
        }
        self._found.document(at, document)
        for name in group:
            self._nodes += 1
            if self._nodes > _MOST_NODES:
                raise ValueError(f"it has more than {_MOST_NODES} groups and datasets")
            below = self._found.name_for(at, decoded(name))
            try:
                where, thing = self._step(path, group, name, 0)
                self._node(where, thing, below, (*above, address(group)))
            except NotServedError as error:
                self._found.note(below, str(error))
                self._left_out(group, name)
            except _BROKEN as error:
                self._found.note(below, f"HDF5 cannot read it: {reason_of(error)}")
                self._left_out(group, name)

    def _left_out(self, group: Any, name: str) -> None:
        try:
            if is_hard_link(group, name):
                self._seen.add(address(group[name])[1])
        except _BROKEN:
            return

    def _node(self, path: str, thing: Any, at: str, above: tuple[Any, ...]) -> None:
        if isinstance(thing, self._h5py.Group):
            if address(thing) in above:
                raise NotServedError("it is a link to a group that it is in")
            if len(above) > _DEEPEST:
                raise NotServedError("it lies too deep")
            self._group(path, thing, at, above)
        elif isinstance(thing, self._h5py.Dataset):
            if path == self._path:
                self._seen.add(address(thing)[1])
            if is_dimension_only(thing):
                return
            self._check(path, thing, 0, os.path.dirname(path))
            made = translate(thing, path, self._room, self._scales)
            self._room -= len(made.chunks)
            self._found.document(at, made.document)
            for key, value in made.chunks.items():
                self._found.refs[f"{at}/{key}"] = value
            if made.box is not None:
                self._found.boxes[at] = {**made.box, "file": "" if path == self._path else path}
        # A named type has no elements.

    # --- links ------------------------------------------------------------------

    def _step(self, path: str, group: Any, name: str | bytes, links: int) -> tuple[str, Any]:
        """The object that ``name`` in a group leads to, and the path of its file."""
        if links > _MOST_LINKS:
            raise NotServedError("its links lead to each other")
        if isinstance(name, bytes):
            if not is_hard_link(group, name):
                raise NotServedError("it is a link with a name that is not UTF-8")
            return path, group[name]
        link = group.get(name, getlink=True)
        if isinstance(link, self._h5py.SoftLink):
            return self._follow(path, group, link.path, links + 1, "a soft link")
        if isinstance(link, self._h5py.ExternalLink):
            other = self._other(
                os.path.join(os.path.dirname(path), link.filename), "an external link"
            )
            return self._follow(other, self._file(other)["/"], link.path, links + 1, "a link")
        return path, group[name]

    def _follow(self, path: str, group: Any, target: str, links: int, what: str) -> tuple[str, Any]:
        thing = group.file["/"] if target.startswith("/") else group
        for part in target.split("/"):
            if part in ("", "."):
                continue
            if not isinstance(thing, self._h5py.Group) or part not in thing.keys():  # noqa: SIM118
                raise NotServedError(f"it is {what} to {target}, which does not exist")
            path, thing = self._step(path, thing, part, links)
        return path, thing

    def _other(self, path: str, what: str) -> str:
        """The real path of another file below the folder. Raises NotServedError."""
        if path == self._path:
            return path
        if _OPEN_FILES.fullmatch(self._folder):
            raise NotServedError(f"it is {what} to {path}: mount the file itself, not a directory")
        real = os.path.realpath(path)
        if os.path.commonpath((real, self._folder)) != self._folder:
            raise NotServedError(f"it is {what} to {path}, which is not below {self._folder}")
        try:
            status = os.stat(real)
        except OSError as error:
            raise NotServedError(f"it is {what} to {path}: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise NotServedError(f"it is {what} to {path}, which is not a file")
        if real != self._path:
            self._found.others[real] = exact_state_of(status)
        return real

    def _file(self, path: str) -> Any:
        if path not in self._files:
            if len(self._files) >= _MOST_FILES:
                raise NotServedError(f"more than {_MOST_FILES} files are linked")
            self._files[path] = self._h5py.File(path, "r")
        return self._files[path]

    def _check(self, path: str, dataset: Any, depth: int, raw: str) -> None:
        """Check that all data of the dataset are there, below the folder.

        raw : the folder where paths of raw data begin: that of the dataset which is read.
        """
        checked = path, dataset.name, raw
        if checked in self._checked:
            return
        if depth > _MOST_LINKS:
            raise NotServedError("it is made of datasets that are made of others, and so on")
        self._checked.add(checked)
        try:
            seen = set()
            for place, name in other_files(dataset, path, raw):
                if (place, name) in seen:
                    continue
                seen.add((place, name))
                other = self._other(place, "made of other data, by a link")
                if name is not None:
                    root = self._file(other)["/"]
                    where, source = self._follow(other, root, name, 0, f"made of {other}: a link")
                    if not isinstance(source, self._h5py.Dataset):
                        raise NotServedError(f"it is made of {name}, which is not a dataset")
                    self._check(where, source, depth + 1, raw)
        except BaseException:
            self._checked.discard(checked)
            raise
