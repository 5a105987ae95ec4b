"""Keeping credentials out of what a user is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_USERINFO = re.compile(r"(\w://)[^/?#\s'\"]*@")
_QUERY = re.compile(r"(\w://[^\s?#'\"]*)[?#][^\s'\")>\]]*")
_SHORTEST_SECRET = 4


def shown_url(url: str) -> str:
    """``url``, which may be chained, without user, password, query and fragment."""
    return "::".join(
        re.sub(r"[?#].*", "", _USERINFO.sub(r"\1", bit), flags=re.DOTALL) if "://" in bit else bit
        for bit in url.split("::")
    )


class Redactor:
    """Removes the storage options' texts, and of any URL what `shown_url` removes."""

    def __init__(self, options: Mapping[str, object]) -> None:
        secrets = {
            text
            for text in _texts(options)
            # An endpoint is worth knowing, and what is secret in a URL goes anyway.
            if len(text) >= _SHORTEST_SECRET and "://" not in text
        }
        longest_first = sorted(secrets, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __call__(self, text: str) -> str:
        text = _QUERY.sub(r"\1", _USERINFO.sub(r"\1", text))
        return " ".join(self._secrets.sub("***", text).split())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from _texts(inner)
