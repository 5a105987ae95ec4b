"""Converts exceptions of fsspec and the packages below it into errors of a store."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from zarrfs.errors import (
    StoreAccessDenied,
    StoreError,
    StoreListingUnsupported,
    StoreTooLarge,
    StoreUnavailable,
    reason_of,
)
from zarrfs.store.remote.requests import (
    BadReply,
    BrokenReply,
    ListingUnsupported,
    ServiceError,
    TooLarge,
)

_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_PASSING_STATUS = frozenset({408, 425, 429})
_PASSING_CODES = frozenset(
    {
        "InternalError",
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "500",
        "502",
        "503",
        "504",
    }
)
# Codes for a missing bucket, as opposed to a missing object in it.
SERVICE_GONE = frozenset({"NoSuchBucket", "InvalidBucketName", "ContainerNotFound"})
# By name and package, because these packages may not be installed.
_NETWORK_PACKAGES = frozenset({"aiohttp", "botocore", "aiobotocore", "urllib3", "requests"})
_PASSING_NAMES = ("Connection", "Connect", "Timeout", "Payload", "Disconnected", "Streaming")
_CREDENTIALS = ("NoCredentials", "PartialCredentials", "TokenRetrieval", "Unauthorized")
_LASTING_NAMES = ("Certificate", "SSL", "InvalidURL")
_QUERY = re.compile(r"\?[^/]*$")
_OBJECT = re.compile(r":? <[^<>]*>")
_NO_REASON = "the service or its client gave no reason"


def s3_code(error: BaseException) -> str | None:
    """The code that S3 gave for an error (``NoSuchKey``, …), also for an error of ``s3fs``."""
    if isinstance(error, ServiceError):
        return error.code
    for candidate in (error, error.__cause__):
        response = getattr(candidate, "response", None)
        if isinstance(response, dict):
            code = response.get("Error", {}).get("Code")
            return None if code is None else str(code)
    return None


def _retry_after_s(error: BaseException) -> float:
    """Seconds that the service asks to wait (RFC 9110, 10.2.3), as far as its client shows them."""
    for candidate in (error, error.__cause__):
        headers = getattr(candidate, "headers", None)
        response = getattr(candidate, "response", None)
        if isinstance(response, Mapping):
            headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
        if not isinstance(headers, Mapping):
            continue
        asked = str(headers.get("Retry-After") or headers.get("retry-after") or "").strip()
        if asked.isdecimal():
            return float(asked)
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    return 0.0


def converted(
    key: str,
    path: str,
    error: Exception,
    *,
    redact: Callable[[str], str],
) -> StoreError | None:
    """The error to raise instead of ``error``; None if it says that ``path`` is missing.

    Raise it ``from None``: the foreign text may hold credentials, and a traceback would show
    them.
    """
    if (own := _own_error(key, error)) is not None:
        return own
    reason = redact(worded(error))
    code, status = s3_code(error), getattr(error, "status", None)
    if isinstance(error, _MISSING):
        name = getattr(error, "filename", None)
        name = os.fsdecode(name) if isinstance(name, bytes) else name
        if name is not None and not _names(str(name), path):
            # Such as one of credentials, or a descriptor: that says nothing about the object.
            return StoreError(key, f"{redact(str(name))}: {reason}")
        # A missing bucket is not a missing chunk, which would read as fill values.
        return StoreError(key, reason) if code in SERVICE_GONE else None
    if isinstance(error, KeyError):
        return None if error.args in ((path,), (key,)) else StoreError(key, reason)
    if isinstance(error, PermissionError) or status in (401, 403):
        return StoreAccessDenied(key, reason)
    if isinstance(error, FileExistsError) and code is None:
        return StoreError(key, "another object is in the way of it")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(key, "the store does not answer")
    if code is not None or isinstance(status, int):
        passing = code in _PASSING_CODES or status in _PASSING_STATUS or (status or 0) >= 500
        if passing:
            return StoreUnavailable(key, reason, _retry_after_s(error))
        return StoreError(key, reason)
    return _by_type(key, error, reason)


def _names(filename: str, path: str) -> bool:
    """Whether one ends with the other: paths may be relative, and URLs contain paths."""
    one, other = _plain(filename), _plain(path)
    return one.endswith(other) or other.endswith(one)


def _plain(name: str) -> str:
    """A path without what clients add to it: escapes, a version, slashes of another kind."""
    parts = unquote(_QUERY.sub("", name)).replace("\\", "/").split("/")
    return "/" + "/".join(filter(None, parts))


def worded(error: BaseException) -> str:
    """The reason that an exception of a client gives, in one line and without Python's names."""
    said: str | None = None
    if (invalid := getattr(error, "certificate_error", None)) is not None:
        said = getattr(invalid, "verify_message", None) or "its certificate is not valid"
    elif isinstance(error, OSError) and isinstance(error.errno, int) and error.strerror:
        # asyncio gives only the address.
        asked = str(error.strerror).startswith("Connect call failed") and error.errno > 0
        said = os.strerror(error.errno) if asked else str(error.strerror)
    if said is not None and isinstance(host := getattr(error, "host", None), str):
        said = f"cannot connect to {host}:{getattr(error, 'port', '')}: {said}"
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    if isinstance(status, int) and isinstance(message, str) and not isinstance(error, ServiceError):
        said = f"HTTP status {status}: {message}".removesuffix(": ")
    if said is None and type(error).__module__ == "builtins" and str(error):
        return reason_of(error)
    # Numbers of requests, times and whole replies are in further lines.
    lines = filter(None, map(str.strip, (said or str(error)).splitlines()))
    return _OBJECT.sub("", next(lines, _NO_REASON))


def _own_error(key: str, error: Exception) -> StoreError | None:
    """The error for a reply that zarrfs itself found wrong; None for any other error."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TooLarge):
        return StoreTooLarge(key, str(error))
    if isinstance(error, BadReply):
        return StoreError(key, str(error))
    if isinstance(error, BrokenReply):
        return StoreUnavailable(key, str(error))
    if isinstance(error, ListingUnsupported | NotImplementedError):
        return StoreListingUnsupported(key, "this kind of store cannot list")
    return None


def _by_type(key: str, error: Exception, reason: str) -> StoreError:
    name, package = type(error).__name__, type(error).__module__.partition(".")[0]
    if package in _NETWORK_PACKAGES:
        if any(part in name for part in _CREDENTIALS):
            return StoreAccessDenied(key, reason)
        if any(part in name for part in _LASTING_NAMES):
            return StoreError(key, reason)
        if any(part in name for part in _PASSING_NAMES):
            return StoreUnavailable(key, reason)
    if isinstance(error, OSError | EOFError):
        return StoreUnavailable(key, reason)
    return StoreError(key, reason)
