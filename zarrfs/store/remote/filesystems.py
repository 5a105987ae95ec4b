"""Opens the fsspec file system of a URL, with errors that say what the user can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import fsspec
import fsspec.core
from fsspec.registry import known_implementations

from zarrfs.errors import NodeNotFound, UsageError, to_install
from zarrfs.store.redact import shown_url
from zarrfs.store.remote.references.document import read_references
from zarrfs.store.remote.references.targets import Targets, confine, leaves_targets_open

_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "adl": "azure",
    "az": "azure",
    "http": "http",
    "https": "http",
}
# Options that say where a document of references lies, and how it is opened.
_DOCUMENT_OPTIONS = ("fo", "target_protocol", "target_options", "ref_storage_args")
# Packages that read Parquet, for references in that format.
_OF_PARQUET = frozenset({"pandas", "fastparquet", "pyarrow"})
# zarrfs decides what is retried and how many requests are in flight; other layers must not.
_S3_CLIENT: Mapping[str, object] = {
    "retries": {"total_max_attempts": 1},
    "max_pool_connections": 128,
}
# fsspec would read their members without bounds; `zarrfs.store.remote.archives` reads zip and tar
# files that are the first link of a chain.
_ARCHIVES = frozenset({"zip", "tar", "libarchive"})
# fsspec looks these up by names that the server does not have.
_KEPT_BY_FSSPEC = tuple(
    [cache, protocol]
    for cache in ("filecache", "blockcache", "cached")
    for protocol in ("http", "https")
)
_NEED_HOST = frozenset({"s3", "s3a", "gs", "gcs", "http", "https"})


def open_filesystem(
    url: str, options: Mapping[str, object], redact: Callable[[str], str]
) -> tuple[Any, str]:
    """A new file system and the path in it that ``url`` names.

    Raises `UsageError` and `NodeNotFound`; passes on the errors of the service.
    """
    protocols = _protocols(url)
    shown = shown_url(url)
    for protocol, bit in protocols:
        if protocol not in known_implementations and protocol not in fsspec.available_protocols():
            raise UsageError(f"{shown}: unknown protocol {protocol!r}")
        check_no_archive(protocol, shown)
        if protocol in _NEED_HOST and not urlsplit(bit).netloc:
            raise UsageError(f"{shown}: names no {'host' if 'http' in protocol else 'bucket'}")
    if [protocol for protocol, _ in protocols[:2]] in _KEPT_BY_FSSPEC:
        raise UsageError(
            f"{shown}: fsspec's filecache does not serve {protocols[1][0]}:// URLs; use "
            "-o disk_cache= or simplecache::"
        )
    # fsspec shares cached instances, with their listings, among all callers with equal options.
    # So every link of a chain gets an instance of its own.
    wanted = {**_with_defaults(protocols[0][0], options), "skip_instance_cache": True}
    for protocol, _ in protocols[1:]:
        inner = wanted.get(protocol)
        wanted[protocol] = {
            **_with_defaults(protocol, inner if isinstance(inner, Mapping) else {}),
            "skip_instance_cache": True,
        }
    names = [protocol for protocol, _ in protocols]
    if leaves_targets_open(names, options) or isinstance(options.get("fs"), Targets):
        wanted["fs"] = {}  # `confine` sets them
    try:
        filled_url, wanted = _with_references(url, protocols, wanted)
        filesystem, path = fsspec.core.url_to_fs(filled_url, **wanted)
    except ImportError as error:
        raise UsageError(f"{shown}: {_what_to_install(protocols, error, redact)}") from None
    except FileNotFoundError:
        raise NodeNotFound(f"{shown}: no such file") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{shown}: {redact(str(error))}") from None
    confine(filesystem, names, options, url)
    _keep_nothing(filesystem)
    return filesystem, str(path)


def check_no_archive(protocol: object, shown: str) -> None:
    """Raises UsageError for the protocol of an archive, whose members nothing here bounds."""
    if protocol == "libarchive":
        raise UsageError(f"{shown}: only zip and tar archives are served; unpack the archive")
    if protocol in _ARCHIVES:
        raise UsageError(
            f"{shown}: an archive must be the first link: {protocol}://PATH_IN_IT::URL; "
            "unpack one that is inside another"
        )


def _keep_nothing(filesystem: Any) -> None:
    """Keep a file system from retrying by itself and from keeping listings."""
    if hasattr(filesystem, "retries") and isinstance(filesystem.retries, int):
        filesystem.retries = 1  # of s3fs and gcsfs, around the retries of their clients
    listings = getattr(filesystem, "dircache", None)
    if listings is not None and hasattr(listings, "use_listings_cache"):
        listings.use_listings_cache = False


def _with_defaults(protocol: str, options: Mapping[str, object]) -> dict[str, Any]:
    """The options of one link, with zarrfs's defaults for its client."""
    if protocol not in ("s3", "s3a"):
        return dict(options)
    config: Any = options.get("config_kwargs")
    own = config if isinstance(config, Mapping) else {}
    return {**options, "config_kwargs": {**_S3_CLIENT, **own}}


def _with_references(
    url: str, protocols: list[tuple[str, str]], options: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """URL and options, with the document of references itself in place of its address.

    fsspec then reads the document that was checked. Raises as `read_references`.
    """
    if protocols[0][0] != "reference":
        return url, options
    # zarrfs fills in the templates, by its own rules only.
    options = {key: value for key, value in options.items() if key != "simple_templates"}
    first, chained, below = url.partition("::")
    others = dict(options)
    if chained:
        names = [protocol for protocol, _ in protocols[1:]]
        place, inner = below, {name: others.pop(name) for name in names if name in others}
        for own in _DOCUMENT_OPTIONS:
            others.pop(own, None)
        own_options = inner.pop(names[0], None)
        if isinstance(own_options, Mapping):
            inner = {**inner, **own_options}
    else:
        given = others.get("fo")
        if not isinstance(given, str):
            return url, options
        place = given
        for protocol in (others.get("target_protocol"), *(p for p, _ in _protocols(given))):
            check_no_archive(protocol, shown_url(given))
        given = others.get("ref_storage_args") or others.get("target_options") or {}
        inner = {**given, "protocol": others.get("target_protocol")}
    document = read_references(place, {**inner, "skip_instance_cache": True})
    return first if "://" in first else f"{first}://", {**others, "fo": document}


def inner_link(url: str, options: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    """URL and options of the link below a chained URL's first link; None if there is none."""
    _, chained, rest = url.partition("::")
    if not chained:
        return None
    own, *below = [protocol for protocol, _ in _protocols(rest)]
    inner = options.get(own)
    kept = {name: value for name, value in options.items() if name in below}
    return rest, {**kept, **(inner if isinstance(inner, Mapping) else {})}


def _protocols(url: str) -> list[tuple[str, str]]:
    """Protocol and URL of each link of a chain, the outermost first."""
    links = []
    for bit in url.split("::"):
        match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", bit)
        if match:
            links.append((match[1], bit))
        elif re.fullmatch(r"[a-z]+", bit):
            links.append((bit, bit + "://"))  # zip::…, a form that fsspec accepts
        else:
            links.append(("file", bit))
    return links


def _what_to_install(
    protocols: list[tuple[str, str]], error: ImportError, redact: Callable[[str], str]
) -> str:
    if error.name in _OF_PARQUET:
        return f"references in Parquet need a package, {to_install('parquet')}"
    for protocol, _ in protocols:
        try:
            fsspec.get_filesystem_class(protocol)
        except ImportError:
            if extra := _EXTRAS.get(protocol):
                return f"{protocol}:// needs a package, {to_install(extra)}"
            hint = known_implementations.get(protocol, {}).get("err", str(error))
            return f"{protocol}:// needs a package: {redact(hint)}"
    return redact(str(error))
