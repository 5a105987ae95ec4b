"""A bucket of Google's or container of Azure's, with the settings of ``gcsfs`` or ``adlfs``."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from zarrfs.store.base import Generation
from zarrfs.store.remote.clouds.cloud_service import Bucket
from zarrfs.store.remote.requests import NotAsExpected, ServiceMissing

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

        settings = {"credential_provider": current}
    settings["base_url"] = filesystem.base.partition("/storage/v1")[0]

    def delete(key: str, state: Generation | None) -> None:
        condition = {} if state is None else {"ifGenerationMatch": state[1]}
        try:
            filesystem.call("DELETE", "b/{}/o/{}", name, key, **condition)
        except OSError as error:
            # gcsfs raises the first for it.
            if isinstance(error, FileExistsError) or getattr(error, "code", None) == 412:
                raise NotAsExpected from error
            raise

    return Bucket(name, partial(GCSStore, name, **settings), _condition, delete, suffixes=True)


def _condition(state: Generation) -> dict[str, str] | None:
    etag, version = (*state, None, None)[:2]
    if not isinstance(version, str):
        return None
    return {"version": version, **({"e_tag": etag} if isinstance(etag, str) else {})}


_SCOPE = "https://storage.azure.com/.default"
_TIMEOUT_S = 60.0


def azure_bucket(filesystem: Any, name: str) -> Bucket | None:
    """None if ``obstore`` is not installed or lacks one of the settings."""
    try:
        from obstore.store import AzureStore  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return None
    client = filesystem.service_client
    if filesystem.version_aware or filesystem.location_mode != "primary":
        return None
    parts = urlsplit(client.primary_endpoint)
    settings: dict[str, Any] = {
        "account_name": client.account_name,
        "endpoint": urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")),
    }
    credential = client.credential
    if hasattr(credential, "account_key"):
        settings["account_key"] = credential.account_key
    elif hasattr(credential, "get_token"):
        settings["credential_provider"] = _tokens(credential, filesystem.loop)
    elif parts.query:
        settings["credential_provider"] = lambda: {
            "sas_token": parse_qsl(parts.query),
            "expires_at": None,
        }
    elif credential is None:
        settings["skip_signature"] = True
    else:
        return None

    def delete(key: str, state: Generation | None) -> None:
        etag = None if state is None else str(state[0])
        asyncio.run_coroutine_threadsafe(
            _delete(filesystem, name, key, etag), filesystem.loop
        ).result()

    return Bucket(
        name, partial(AzureStore, name, **settings), _etag_condition, delete, suffixes=False
    )


def _etag_condition(state: Generation) -> dict[str, str] | None:
    return {"e_tag": state[0]} if state and isinstance(state[0], str) else None


async def _delete(filesystem: Any, container: str, key: str, etag: str | None) -> None:
    core: Any = importlib.import_module("azure.core")
    errors: Any = importlib.import_module("azure.core.exceptions")
    blob = filesystem.service_client.get_blob_client(container, key)
    condition = {}
    if etag is not None:
        condition = {"etag": etag, "match_condition": core.MatchConditions.IfNotModified}
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await blob.delete_blob(**condition)
    except errors.ResourceModifiedError as error:
        raise NotAsExpected from error
    except errors.ResourceNotFoundError as error:
        if error.error_code == "ContainerNotFound":
            raise ServiceMissing(str(error.reason), 404, "ContainerNotFound") from error
        raise FileNotFoundError(key) from error


def _tokens(credential: Any, loop: asyncio.AbstractEventLoop) -> Callable[[], dict[str, Any]]:
    def current() -> dict[str, Any]:
        token = credential.get_token(_SCOPE)
        if asyncio.iscoroutine(token):
            token = asyncio.run_coroutine_threadsafe(token, loop).result(_TIMEOUT_S)
        return {"token": token.token, "expires_at": datetime.fromtimestamp(token.expires_on, UTC)}

    return current
