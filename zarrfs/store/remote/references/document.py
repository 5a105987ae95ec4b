"""Documents of references, read and checked against limits before fsspec gets them.

https://fsspec.github.io/kerchunk/spec.html

fsspec fills in templates with Python's string formatting, with which a document of a few bytes can
expand to any size. Here only plain names are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import fsspec.core

from zarrfs import bounds
from zarrfs.store.remote.references.generated import generated
from zarrfs.store.remote.references.parquet import ParquetReferences

_NAME = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_PARQUET = ("parq", "parquet", "/")


class ReferencesError(ValueError):
    """The reason why a document of references is not served."""


def read_references(place: str, options: Mapping[str, Any]) -> dict[str, Any] | ParquetReferences:
    """The document at a URL, with its templates filled in.

    options : of the file systems of the URL.

    Raises ReferencesError, ImportError if a package is missing, `BadReply`, and any exception of
    the file system.
    """
    filesystem, path = fsspec.core.url_to_fs(place, **options)
    in_parquet = place.endswith(_PARQUET) or filesystem.isdir(path)
    if ".json" not in path and in_parquet:
        return ParquetReferences(filesystem, path)
    with filesystem.open(path, "rb") as file:
        text = file.read(bounds.LARGEST_REFERENCES + 1)
    if len(text) > bounds.LARGEST_REFERENCES:
        raise ReferencesError(
            f"a document of references has more than {bounds.LARGEST_REFERENCES} bytes; "
            "larger ones can be kept in Parquet"
        )
    try:
        document = bounds.load_json(text, bounds.LARGEST_PARSED_REFERENCES)
    except (ValueError, RecursionError) as error:
        reason = bounds.why_not_json(text, error)
        raise ReferencesError(f"a document of references cannot be parsed: {reason}") from error
    if not isinstance(document, dict):
        raise ReferencesError("a document of references is not a JSON object")
    return filled_in(document)


def filled_in(document: dict[str, Any]) -> dict[str, Any]:
    """The same document without templates. Raises ReferencesError."""
    templates = document.get("templates") or {}
    if not templates and not document.get("gen"):
        return document
    references = document.get("refs", {})
    if not isinstance(templates, dict) or not isinstance(references, dict):
        raise ReferencesError("a document of references has templates or refs that are not objects")
    if not all(isinstance(text, str) and "{{" not in text for text in templates.values()):
        raise ReferencesError("a document of references has templates that are not plain text")
    # Most references name one of a few URLs, so each URL is kept only once.
    urls: dict[str, str] = {}
    room = bounds.LARGEST_REFERENCES

    def fill_in(url: str) -> str:
        nonlocal room
        if (filled := urls.get(url)) is None:
            needed = len(url) + sum(len(templates.get(m[1], "")) for m in _NAME.finditer(url))
            if (room := room - needed) < 0:
                raise ReferencesError(
                    f"the URLs of the references have more than {bounds.LARGEST_REFERENCES} bytes"
                )
            filled = urls[url] = _NAME.sub(lambda m: _value(templates, m[1]), url)
            if "{{" in filled:
                raise ReferencesError(f"{bounds.shown(repr(url))} is not a plain template")
        return filled

    filled = {
        key: [fill_in(value[0]), *value[1:]]
        if isinstance(value, list) and value and isinstance(value[0], str) and "{{" in value[0]
        else value
        for key, value in references.items()
    }
    if gens := document.get("gen"):
        try:
            filled |= generated(gens, templates)
        except ValueError as error:
            raise ReferencesError(f"a document of references: {error}") from error
    others = {key: value for key, value in document.items() if key not in ("templates", "gen")}
    return {**others, "refs": filled}


def _value(templates: Mapping[str, str], name: str) -> str:
    try:
        return templates[name]
    except KeyError:
        raise ReferencesError(f"a reference names an unknown template {name!r}") from None
