"""Exceptions of the clients of services are told without Python's names, in one line."""

import errno
import ssl
from importlib import import_module
from types import SimpleNamespace

import aiohttp
import azure.core.exceptions
import botocore.exceptions
import google.auth.exceptions
import pytest
import s3fs.errors

from zarrfs.store.remote.foreign_errors import converted

KEY = SimpleNamespace(host="example.org", port=443, ssl=True)
REFUSED = {"Error": {"Code": "InvalidRequest", "Message": "Not so."}}
CLIENT_ERROR = botocore.exceptions.ClientError(REFUSED, "GetObject")
INVALID = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
INVALID.verify_message = "certificate has expired"
OF_AZURE = "This request is not allowed.\nErrorCode:No\nContent: <?xml version='1.0'?>"

SAID = [
    (OSError(errno.EIO, "Input/output error", "/x"), "Input/output error"),
    (RuntimeError("too many cooks"), "too many cooks"),
    (AttributeError("'NoneType' object has no attribute 'x'"), "it is damaged"),
    (RuntimeError(), "gave no reason"),
    (
        aiohttp.ClientConnectorError(
            KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 443)")
        ),
        "cannot connect to example.org:443: Connection refused",
    ),
    (
        aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
        "cannot connect to example.org:443: Name or service not known",
    ),
    (
        aiohttp.ClientConnectorCertificateError(KEY, INVALID),
        "cannot connect to example.org:443: certificate has expired",
    ),
    (
        aiohttp.ClientResponseError(SimpleNamespace(real_url="x"), (), status=418, message="No."),
        "HTTP status 418: No.",
    ),
    (
        aiohttp.ClientPayloadError("Response payload is not completed: <TransferEncodingError: 4>"),
        "Response payload is not completed",
    ),
    (aiohttp.ServerDisconnectedError(), "Server disconnected"),
    (s3fs.errors.translate_boto_error(CLIENT_ERROR), "Not so."),
    (CLIENT_ERROR, "GetObject operation: Not so."),
    (botocore.exceptions.NoCredentialsError(), "Unable to locate credentials"),
    (
        botocore.exceptions.EndpointConnectionError(endpoint_url="http://x"),
        "Could not connect to the endpoint",
    ),
    (google.auth.exceptions.RefreshError("no token"), "no token"),
    (azure.core.exceptions.HttpResponseError(OF_AZURE), "This request is not allowed."),
]


@pytest.mark.parametrize(("error", "said"), SAID, ids=[type(each).__name__ for each, _ in SAID])
def test_told_in_words(error, said):
    made = converted("a/b", "bucket/a/b", error, redact=str)
    assert made is not None
    assert said in made.reason
    assert "\n" not in made.reason
    for name in (type(error).__name__, "Error(", "Error:", "<", "object at"):
        assert name not in made.reason


def test_an_error_of_google_is_told_in_words():
    # Its import takes longer than all of these tests.
    made = import_module("gcsfs.retry").HttpError({"code": 409, "message": "Busy"})
    test_told_in_words(made, "Busy")


OTHERS = ("/run/token", b"/run/token", 7, "bucket/a/c", "bucket/a", "bucket/a/b%20", "", "?x")
SAME = (
    "bucket/a/b", "/srv/bucket/a/b", b"bucket/a/b", "bucket/a/b/", "a/b", "bucket//a/b", None,
    "https://example.org/bucket/%61/b?versionId=3", r"\\host\bucket\a\b",
)  # fmt: skip


def test_a_missing_file_of_credentials_is_no_missing_object():
    """As botocore raises it where a web identity's token or a ``credential_process`` is gone."""
    path = "bucket/a/b"
    for name in OTHERS:
        shown = name.decode() if isinstance(name, bytes) else name
        made = converted("a/b", path, FileNotFoundError(2, "No such file", name), redact=str)
        assert made is not None
        assert f"{shown}: No such file" in str(made)
    for name in SAME:
        error = FileNotFoundError(2, "No such file", name)
        assert converted("a/b", path, error, redact=str) is None
    error = FileNotFoundError(2, "No such file", "https://example.org/b/a%20b%25")
    assert converted("a b%", "b/a b%", error, redact=str) is None
