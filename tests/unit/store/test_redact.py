"""No form of a secret, however a service or a package quotes it, gets into what a user sees."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from zarrfs.store.redact import Redactor

PASSWORD = "hunter2/very+secret=ü"
USER = "somebody"
URL = (
    f"https://{USER}:{quote(PASSWORD, safe='')}@example.org/data.zarr"
    "?X-Amz-Signature=0a1b2c3d4e5f&X-Amz-Credential=AKIA%2F2026%2Faws4_request&Expires=9"
)


def basic(text):
    return base64.b64encode(text.encode()).decode()


SAID = {
    "plain": f"no access for {PASSWORD}",
    "percent-encoded": f"no access for {quote(PASSWORD, safe='')}",
    "as a form": f"no access for {quote_plus(PASSWORD)}",
    "JSON": json.dumps({"password": PASSWORD}),
    "repr": repr({"password": PASSWORD}),
    "Base64": basic(PASSWORD),
    "Base64 of both": f"Authorization: Basic {basic(f'{USER}:{PASSWORD}')}",
    "Base64 of both in a text": basic(f"x{USER}:{PASSWORD}y"),
    "Base64 for URLs": base64.urlsafe_b64encode(f"ab{USER}:{PASSWORD}".encode()).decode(),
    "Base64 in latin-1": base64.b64encode(f"{USER}:{PASSWORD}".encode("latin-1")).decode(),
    "URL": f"cannot open {URL}",
    "signature": "SignatureDoesNotMatch: 0a1b2c3d4e5f was sent",
    "credential": "AKIA/2026/aws4_request is not known",
    "quoted credential": "AKIA%2F2026%2Faws4_request is not known",
}
SECRETS = (
    PASSWORD, quote(PASSWORD, safe=""), "hunter2", "0a1b2c3d4e5f", "aws4_request", USER,
    basic(PASSWORD)[:-2], basic(f"{USER}:{PASSWORD}")[:-4], "c29tZWJvZHk",
)  # fmt: skip


OPTIONS = {"client_kwargs": {"secret": PASSWORD}}
IN_OPTIONS = ("plain", "percent-encoded", "JSON", "repr", "Base64")


@pytest.mark.parametrize(
    ("options", "source", "form"),
    [
        *(({}, URL, form) for form in SAID),
        *(({}, f"zip://a.zarr::{URL}", form) for form in SAID),
        *((OPTIONS, "s3://bucket/x", form) for form in IN_OPTIONS),
        ({"endpoint_url": URL}, "s3://bucket/x", "Base64 of both"),
    ],
)
def test_no_secret_is_shown(options, source, form):
    shown = Redactor(options, source)(SAID[form])
    assert [secret for secret in SECRETS if secret in shown] == []


def test_what_is_no_secret_stays():
    redact = Redactor({"anon": True, "key": "k"}, "https://example.org/a/b?x=1")
    assert redact("404 for https://example.org/a/b") == "404 for https://example.org/a/b"


def test_a_url_that_is_no_unicode():
    assert "very-secret" not in Redactor({}, "https://h/?a=very-secret\udcff")("very-secret\udcff")
