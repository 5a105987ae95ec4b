"""An ``obstore`` for a bucket, with the settings of an ``s3fs`` file system.

``s3fs`` and the client below it follow the conventions of the ecosystem: options, environment,
profiles, roles, endpoints. So they find the endpoint, the region and the credentials, also those
that expire, and ``obstore`` sends the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

# The ``client_kwargs`` and ``config_kwargs`` that affect only endpoint, region and credentials, or
# how s3fs waits and retries.
_UNDERSTOOD_CLIENT = frozenset(
    {
        "region_name",
        "endpoint_url",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
    }
)
_UNDERSTOOD_CONFIG = frozenset(
    {"retries", "max_pool_connections", "connect_timeout", "read_timeout", "region_name", "s3"}
)
_REGIONS = {None: "us-east-1", "aws-global": "us-east-1"}
# Settings for S3 that do not matter for a request to a known region.
_IRRELEVANT = frozenset({"us_east_1_regional_endpoint"})
# How often obstore asks for credentials that expire; the s3fs client renews them in time.
_RENEWED = timedelta(minutes=5)
# How long the client may take to get new ones.
_RENEW_S = 60.0


class BucketSettings(NamedTuple):
    """How another client reaches a bucket as ``s3fs`` would.

    endpoint : URL of the service, without the bucket.
    virtual : whether the bucket has a host of its own, instead of a path below the endpoint.
    region : its name.
    anonymous : whether requests are sent without a signature.
    credentials : returns the current ones as `obstore` takes them. Blocks until the loop of the
        file system has them. None if there are none, or if ``anonymous``.
    requester_pays : whether the user pays for the requests.
    """

    endpoint: str
    virtual: bool
    region: str
    anonymous: bool
    credentials: Callable[[], dict[str, Any]] | None
    requester_pays: bool


async def opener_for(filesystem: Any, bucket: str) -> Callable[..., Any] | None:
    """Opens the bucket as `ObstoreObjects` takes it; None if ``obstore`` lacks one of the settings
    of ``filesystem``."""
    try:
        from obstore.store import S3Store  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return None
    found = await bucket_settings(filesystem, bucket)
    if found is None or (found.credentials is None and not found.anonymous):
        return None
    settings: dict[str, Any] = {
        "region": found.region,
        "endpoint": _host(found.endpoint, bucket) if found.virtual else found.endpoint,
        "virtual_hosted_style_request": found.virtual,
    }
    if found.anonymous:
        settings["skip_signature"] = True
    else:
        settings["credential_provider"] = found.credentials
    if found.requester_pays:
        settings["request_payer"] = True

    return partial(S3Store, bucket, **settings)


async def bucket_settings(filesystem: Any, bucket: str) -> BucketSettings | None:
    """The settings of an ``s3fs`` file system; None if it has some that only ``s3fs`` follows."""
    client_options = filesystem.client_kwargs
    if (
        client_options.keys() - _UNDERSTOOD_CLIENT
        or filesystem.config_kwargs.keys() - _UNDERSTOOD_CONFIG
        or filesystem.s3_additional_kwargs
        or bucket.startswith("arn:")
        or bucket.endswith("--x-s3")
    ):
        return None
    await filesystem.set_session()
    client = await filesystem.get_s3(bucket)
    endpoint = client.meta.endpoint_url
    # With those of the environment and of the configuration files.
    config = client.meta.config
    own = {**(config.s3 or {})}
    style = own.pop("addressing_style", None) or "auto"
    ca_bundle = filesystem.session.get_config_variable("ca_bundle")
    if (
        any(own[name] for name in own.keys() - _IRRELEVANT)
        or config.use_dualstack_endpoint
        or config.use_fips_endpoint
        or (ca_bundle and endpoint.startswith("https:"))
    ):
        return None
    return BucketSettings(
        endpoint,
        _is_virtual(endpoint, bucket, style),
        _REGIONS.get(client.meta.region_name, client.meta.region_name),
        bool(filesystem.anon),
        None if filesystem.anon else await _credentials(filesystem, client_options),
        bool(filesystem.req_kw.get("RequestPayer")),
    )


def _is_virtual(endpoint: str, bucket: str, style: str) -> bool:
    of_aws = (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
    # Like botocore: an endpoint that the user named has hosts for buckets only on request.
    virtual = style == "virtual" or (style == "auto" and of_aws)
    return virtual and "." not in bucket


def _host(endpoint: str, bucket: str) -> str:
    """The URL of the bucket's own host."""
    parts = urlsplit(endpoint)
    return urlunsplit((parts.scheme, f"{bucket}.{parts.netloc}", parts.path, "", ""))


async def _credentials(filesystem: Any, client_options: Any) -> Callable[[], dict[str, Any]] | None:
    """See `BucketSettings.credentials`."""
    key = filesystem.key or client_options.get("aws_access_key_id")
    secret = filesystem.secret or client_options.get("aws_secret_access_key")
    token = filesystem.token or client_options.get("aws_session_token")
    if key and secret:
        # Installed with every such file system.
        found = import_module("aiobotocore.credentials").AioCredentials(key, secret, token)
    elif (found := await filesystem.session.get_credentials()) is None:
        return None

    async def current() -> dict[str, Any]:
        frozen = await found.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _RENEWED,
        }

    return lambda: asyncio.run_coroutine_threadsafe(current(), filesystem.loop).result(_RENEW_S)
