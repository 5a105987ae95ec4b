"""Mount options as they are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from zarrfs.counted import did_you_mean
from zarrfs.daemon.options import option_values as values
from zarrfs.daemon.options.options import (
    HIDEABLE,
    IGNORED,
    IGNORED_PREFIXES,
    OPTIONS,
    MountOptions,
    Option,
)
from zarrfs.errors import UsageError
from zarrfs.views.headers.registry import ALL, DEFAULT, FORMATS, GROUP_OPTIONS

_BY_NAME: Mapping[str, Option] = MappingProxyType({option.name: option for option in OPTIONS})

# Options whose values are lists, and the names in these.
_LISTS: Mapping[str, Collection[str]] = MappingProxyType(
    {"views": (*FORMATS, *GROUP_OPTIONS, ALL, DEFAULT), "hide": HIDEABLE}
)
_DEFAULTS = MountOptions()
# Options of each row exclude each other.
_EXCLUSIVE = (
    ("allow_other", "allow_root"),
    ("immutable", "recheck_metadata"),
    ("rw", "immutable"),
    ("branch", "tag", "snapshot"),
    ("rw", "consolidated=only"),
    ("path", "assume_metadata"),
    ("resize", "region"),
    ("resize", "fill_missing=false"),  # new rows are fill value, and not stored
)
_SEPARATOR = re.compile(r"(?<!\\),")


def parse_options(texts: Iterable[str]) -> MountOptions:
    """The options in ``texts``, each of the form ``name,name=value,…``; the last one wins.

    ``\\,`` is a comma inside a value; between the names of a list it is just ``,``.
    Raises `UsageError` with one line for what is unknown, malformed or contradictory.
    """
    found: dict[str, Any] = {}
    for text in texts:
        for item in _items(text):
            _parse_one(item, found)
    options = MountOptions(**found)
    for names in _EXCLUSIVE:
        if sum(_is_given(options, name) for name in names) > 1:
            *others, last = names
            raise UsageError(f"options {', '.join(others)} and {last} exclude each other")
    for name in ("resize", "allow_remove"):
        if getattr(options, name) and not options.rw:
            raise UsageError(f"option {name} needs rw")
    return options


def _is_given(options: MountOptions, item: str) -> bool:
    """Whether an option has another value than its default, or the one after ``=``."""
    name, separator, text = item.partition("=")
    value = getattr(options, name)
    if separator:
        return bool(value == _BY_NAME[name].read(text))
    return bool(value != getattr(_DEFAULTS, name))


def _items(text: str) -> list[str]:
    items: list[str] = []
    for part in _SEPARATOR.split(text):
        item = part.strip().replace("\\,", ",")
        listed = items[-1].partition("=")[0] if items else ""
        of_region = listed == "region" and values.REGION_PART.fullmatch(item)
        if of_region or (item not in _BY_NAME and item in _LISTS.get(listed, ())):
            items[-1] += f",{item}"
        elif item:
            items.append(item)
    return items


def _parse_one(item: str, found: dict[str, Any]) -> None:
    name, separator, text = item.partition("=")
    if name in IGNORED or name.startswith(IGNORED_PREFIXES):
        return
    if name == "ro":
        found["rw"] = False
        return
    option = _BY_NAME.get(name) or _counterpart(name)
    if option is None:
        raise UsageError(f"unknown option {name!r}{did_you_mean(name, [*_BY_NAME, 'ro'])}")
    if not separator:
        if option.read is not values.flag:
            raise UsageError(f"option {name} needs a value: {name}={option.metavar}")
        text = "true"
    try:
        found[option.name] = option.read(text)
    except ValueError as error:
        raise UsageError(f"option {name}: {text!r} {error}") from None


def _counterpart(name: str) -> Option | None:
    """The option that TensorStore calls ``name``."""
    from zarrfs.daemon.options.tensorstore_names import COUNTERPARTS  # noqa: PLC0415 - seldom used

    for row in COUNTERPARTS:
        if row.name == name and row.option:
            option = _BY_NAME[row.option]
            return option if row.read is None else option._replace(read=row.read)
    return None
