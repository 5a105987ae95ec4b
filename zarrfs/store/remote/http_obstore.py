"""Decides which objects of HTTP servers ``obstore`` reads, and makes its stores for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from zarrfs.store.base import ObjectInfo
from zarrfs.store.remote.obstore_objects import NO_LIMIT, ONE_ATTEMPT, ObstoreObjects

# All clients write such paths in the same way; clients differ in what they escape in others.
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._~-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._~-]*)*")


class HttpObjects:
    """The objects of each server, for one event loop.

    filesystem : of fsspec, with the settings of the user.
    describe, smallest_part : as `ObstoreObjects` takes them.
    """

    def __init__(
        self,
        filesystem: Any,
        describe: Callable[[int, int, str | None, str | None], ObjectInfo],
        smallest_part: int,
    ) -> None:
        self._describe = describe
        self._smallest_part = smallest_part
        self._servers: dict[str, ObstoreObjects] = {}
        self._serves = _understood(filesystem)

    def of(self, url: str) -> tuple[ObstoreObjects, str] | None:
        """The reader of the object at ``url`` and its key there; None if the session reads it."""
        if not self._serves:
            return None
        parts = urlsplit(url)
        key = parts.path[1:]
        if parts.query or parts.fragment or "@" in parts.netloc or not _PLAIN.fullmatch(key):
            return None
        origin = f"{parts.scheme}://{parts.netloc}"
        if (objects := self._servers.get(origin)) is None:
            from obstore.store import HTTPStore  # noqa: PLC0415 - it may not be installed

            store = HTTPStore(
                origin,
                client_options={**NO_LIMIT, "allow_http": True},
                retry_config=ONE_ATTEMPT,
            )
            objects = ObstoreObjects(
                store, self._describe, smallest_part=self._smallest_part, as_stored=True
            )
            self._servers[origin] = objects
        return objects, key

    def give_up(self) -> None:
        """Leave all later requests to the session."""
        self._serves = False


def _understood(filesystem: Any) -> bool:
    """Whether ``obstore`` is installed and reaches servers as the session would."""
    try:
        import obstore.store  # noqa: F401, PLC0415
    except ImportError:
        return False
    if type(filesystem).__name__ != "HTTPFileSystem":
        return False
    client = dict(getattr(filesystem, "client_kwargs", None) or {})
    trust_env = client.pop("trust_env", False)
    if client or filesystem.kwargs:
        return False
    # The session takes proxies from the environment only with this setting.
    return bool(trust_env) or not getproxies()
