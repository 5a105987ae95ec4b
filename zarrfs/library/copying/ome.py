"""Attributes of OME-Zarr in the other version of Zarr: 0.4 has Zarr 2, 0.5 has Zarr 3.

https://ngff.openmicroscopy.org/0.5/. The members are the same; 0.5 has them, and one version for
all, below ``ome``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.format.metadata.members import plain

_MEMBERS = (
    "multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout",
    "series",
)  # fmt: skip
_VERSIONED = ("multiscales", "plate", "well", "image-label")
_OLD, _NEW = "0.4", "0.5"


def in_version(attributes: Mapping[str, Any], zarr_format: int) -> dict[str, Any]:
    """The attributes of a node as a node of ``zarr_format`` has them."""
    given: dict[str, Any] = plain(attributes)
    found = given.get("ome")
    if zarr_format == 2 and isinstance(found, dict) and found.get("version") == _NEW:
        del given["ome"]
        del found["version"]
        return given | _with_version(found, _OLD)
    old = {name: given[name] for name in _MEMBERS if name in given}
    versions = {v for name in _VERSIONED if name in old for v in _versions(old[name])}
    if zarr_format == 3 and "ome" not in given and old and versions <= {_OLD}:
        if not versions and not {"labels", "bioformats2raw.layout"} & set(old):
            return given
        rest = {name: value for name, value in given.items() if name not in old}
        return rest | {"ome": {"version": _NEW, **_with_version(old, None)}}
    return given


def axis_names(attributes: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the axes of each array of a group's image; 0.5 wants the array to have them."""
    images = attributes.get("ome", attributes)
    images = images.get("multiscales") if isinstance(images, Mapping) else None
    names: dict[str, list[str]] = {}
    for image in images if isinstance(images, list) else ():
        try:
            axes = [axis if isinstance(axis, str) else str(axis["name"]) for axis in image["axes"]]
            names.update({str(each["path"]): axes for each in image["datasets"]})
        except (KeyError, TypeError):
            continue
    return names


def _versions(value: Any) -> set[Any]:
    parts = value if isinstance(value, list) else [value]
    return {part["version"] for part in parts if isinstance(part, dict) and "version" in part}


def _with_version(members: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    def changed(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        rest = {name: value for name, value in part.items() if name != "version"}
        return rest if version is None else {"version": version, **rest}

    return {
        name: value
        if name not in _VERSIONED
        else [changed(part) for part in value]
        if isinstance(value, list)
        else changed(value)
        for name, value in members.items()
    }
