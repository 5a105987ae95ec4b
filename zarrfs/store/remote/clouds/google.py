"""A bucket of Google's, with the settings of a ``gcsfs`` file system."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from zarrfs.store.base import Generation
from zarrfs.store.remote.clouds.cloud_service import Bucket
from zarrfs.store.remote.obstore_objects import NO_LIMIT, ONE_ATTEMPT
from zarrfs.store.remote.requests import NotAsExpected

# How often obstore asks for credentials that expire; gcsfs renews them in time.
_RENEWED = timedelta(minutes=1)


def google_bucket(filesystem: Any, name: str) -> Bucket | None:
    """None if ``obstore`` is not installed or lacks one of the settings."""
    try:
        from obstore.store import GCSStore  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return None
    if filesystem.requester_pays or filesystem.version_aware or filesystem.session_kwargs:
        return None
    credentials = filesystem.credentials
    # Anonymous access. Without the provider, a write would look for credentials nevertheless.
    settings: dict[str, Any] = {
        "skip_signature": True,
        "credential_provider": lambda: {"token": "", "expires_at": None},
    }
    if credentials.credentials is not None:

        def current() -> dict[str, Any]:
            credentials.maybe_refresh()
            return {
                "token": credentials.credentials.token,
                "expires_at": datetime.now(UTC) + _RENEWED,
            }

        settings = {"credential_provider": _in_thread(current)}
    settings["base_url"] = filesystem.base.partition("/storage/v1")[0]
    store = GCSStore(
        name,
        **settings,
        client_options={**NO_LIMIT, "allow_http": True},
        retry_config=ONE_ATTEMPT,
    )

    def delete(key: str, state: Generation | None) -> None:
        condition = {} if state is None else {"ifGenerationMatch": state[1]}
        try:
            filesystem.call("DELETE", "b/{}/o/{}", name, key, **condition)
        except FileExistsError as error:  # the error that gcsfs raises for it
            raise NotAsExpected from error
        except OSError as error:
            if getattr(error, "code", None) == 412:
                raise NotAsExpected from error
            raise

    return Bucket(name, store, _condition, delete, suffixes=True)


def _condition(state: Generation) -> dict[str, str] | None:
    etag, version = (*state, None, None)[:2]
    if not isinstance(version, str):
        return None
    return {"version": version, **({"e_tag": etag} if isinstance(etag, str) else {})}


def _in_thread(work: Any) -> Any:
    """Run ``work`` in a thread, because getting a token may take a request."""

    async def current() -> Any:
        return await asyncio.to_thread(work)

    return current
