"""Converts the exceptions of ``icechunk``, which has the kind of a failure only in its text."""

from __future__ import annotations

import re

from zarrfs.errors import reason_of
from zarrfs.store.remote.requests import ServiceError

# Failures that a retry may mend: of the connection, of a service that is busy.
_PASSING = re.compile(
    r"dispatch failure|timed? ?out|timeout|connection (?:reset|refused|closed)|connect error"
    r"|error sending request|SlowDown|ServiceUnavailable|InternalError"
    r"|StatusCode\((?:408|425|429|5\d\d)\)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|StatusCode\(40[13]\)|permission denied",
    re.IGNORECASE,
)
_MARK = re.compile(r"\s*[x×]\s+")
_LONGEST = 300


def first_line(error: BaseException) -> str:
    """The first line of an exception, without the places in the source that follow it."""
    text = str(error).strip("\n")
    line = text.partition("\n")[0]
    return _MARK.sub("", line, count=1)[:_LONGEST] or reason_of(error)


def failure(error: BaseException) -> Exception:
    """The exception to raise instead of one of ``icechunk``, or of a panic in it.

    A `ConnectionError` if a retry may help, else a `ServiceError`; 403 if access is denied.
    """
    line = first_line(error)
    if not isinstance(error, Exception):
        return ServiceError(f"icechunk failed: {line}", None, None)
    if _DENIED.search(str(error)):
        return ServiceError(line, 403, None)
    if _PASSING.search(str(error)):
        return ConnectionError(line)
    return ServiceError(line, None, None)


def is_panic(error: BaseException) -> bool:
    """Whether code in Rust panicked; the class of such an error cannot be imported."""
    return type(error).__name__ == "PanicException"
