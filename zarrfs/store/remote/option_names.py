"""Names of storage options: those without secrets, and the one that a client rejects."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Options that a user needs to see in a message about them.
_PUBLIC = frozenset(
    {
        "addressing_style",
        "anon",
        "account_name",
        "endpoint_url",
        "profile",
        "project",
        "region_name",
        "signature_version",
    }
)
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


def without_public(options: Mapping[str, object]) -> Mapping[str, object]:
    """The options that may hold secrets."""
    return {
        name: without_public(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if name not in _PUBLIC
    }


def option_names(options: Mapping[str, object]) -> frozenset[str]:
    """The names of all options, nested ones included."""
    found = set(options)
    for value in options.values():
        if isinstance(value, Mapping):
            found |= option_names(value)
    return frozenset(found)


def unknown_option(error: Exception, given: frozenset[str]) -> str | None:
    """The storage option that a client does not accept, if ``error`` complains of one.

    given : the names of all options.
    """
    if not isinstance(error, TypeError) or (match := _UNKNOWN.search(str(error))) is None:
        return None
    return match[1] if match[1] in given else None
