"""Keeps credentials out of texts that are shown to users."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, unquote_plus

_USERINFO = re.compile(r"(\w://)[^/?#\s'\"]*@")
_QUERY = re.compile(r"(\w://[^\s?#'\"]*)[?#][^\s'\")>\]]*")
_SHORTEST_SECRET = 4
_SHORTEST_BASE64 = 6
_URL_SAFE = str.maketrans("+/", "-_")


def shown_url(url: str) -> str:
    """``url``, which may be chained, without user, password, query and fragment."""
    return "::".join(
        re.sub(r"[?#].*", "", _USERINFO.sub(r"\1", bit), flags=re.DOTALL) if "://" in bit else bit
        for bit in url.split("::")
    )


class Redactor:
    """Removes secrets from a text, and from each URL in it the parts that `shown_url` removes.

    Secrets are the texts in the storage options, and these parts of the source's URL: the user, the
    password, both together, and the values of its query. Each secret is removed in every form in
    which an error may quote it: plain, percent-encoded, escaped, and in Base64.

    url : the source, which may be chained.
    """

    def __init__(self, options: Mapping[str, object], url: str = "") -> None:
        texts = set(_texts(options))
        # An endpoint helps the user; the secrets inside a URL are removed in any case.
        urls = {text for text in texts if "://" in text}
        secrets = texts - urls
        for each in (url, *urls):
            secrets.update(_url_secrets(each))
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __call__(self, text: str) -> str:
        # Secrets first: a secret inside a URL may contain a character that ends the URL.
        text = self._secrets.sub("***", text)
        text = _QUERY.sub(r"\1", _USERINFO.sub(r"\1", text))
        return " ".join(text.split())


def _url_secrets(url: str) -> Iterator[str]:
    """User, password, both together, and the query's values, for each link of a chained URL."""
    for link in url.split("::"):
        _, given, rest = link.partition("://")
        if not given:
            continue
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        userinfo, at, _ = authority.rpartition("@")
        if at:
            yield from (userinfo, *userinfo.split(":", 1))
        query = re.split(r"[?#]", rest, maxsplit=1)[1:]
        for part in re.split(r"[&;#]", query[0]) if query else ():
            yield part.partition("=")[2] or part


def _forms(secret: str) -> Iterator[str]:
    """All forms of a secret that an error may quote, except those too short to be recognised."""
    plain = unquote(secret)
    for text in {secret, plain, unquote_plus(secret)}:
        forms = {
            text,
            quote(text, safe="", errors="surrogatepass"),
            quote(text, errors="surrogatepass"),
            quote_plus(text, errors="surrogatepass"),
            json.dumps(text)[1:-1],
            repr(text)[1:-1],
        }
        yield from (form for form in forms if len(form) >= _SHORTEST_SECRET)
        yield from (form for form in _base64_forms(text) if len(form) >= _SHORTEST_BASE64)


def _base64_forms(text: str) -> Iterator[str]:
    """Base64 of ``text``, alone or with other bytes before and after it."""
    for encoding in ("utf-8", "latin-1"):
        try:
            data = text.encode(encoding)
        except UnicodeEncodeError:
            continue
        for before in range(3):
            # Leaves out the characters that also depend on bytes before or after ``text``.
            encoded = base64.b64encode(bytes(before) + data).rstrip(b"=").decode()
            first = -(-8 * before // 6)
            whole = encoded[first : 8 * (before + len(data)) // 6]
            yield whole
            yield whole.translate(_URL_SAFE)


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
