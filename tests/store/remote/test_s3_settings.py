"""How obstore reaches a bucket, held against where botocore itself sends a request."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from zarrfs.errors import StoreError
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.s3.s3_obstore import bucket_settings

s3fs = pytest.importorskip("s3fs", reason="the tests of S3 need s3fs")

CASES = {
    "nothing": "",
    "path": "s3 =\n    addressing_style = path\n",
    "virtual": "s3 =\n    addressing_style = virtual\n",
    "auto": "s3 =\n    addressing_style = auto\n",
    "own endpoint": "endpoint_url = https://s3.example.org\n",
    "own endpoint, virtual": "endpoint_url = https://s3.example.org\n"
    "s3 =\n    addressing_style = virtual\n",
}
OF_S3FS_ALONE = {
    "ca_bundle": "ca_bundle = /etc/hostname\n",
    "dual stack": "use_dualstack_endpoint = true\n",
    "accelerate": "s3 =\n    use_accelerate_endpoint = true\n",
}


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Asks for settings with this text in the configuration file."""
    for name in ("AWS_CA_BUNDLE", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anybody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")

    def ask(text: str, bucket: str = "bucket"):
        (tmp_path / "config").write_text(f"[default]\nregion = eu-west-1\n{text}")
        filesystem = s3fs.S3FileSystem(skip_instance_cache=True)

        async def both():
            found = await bucket_settings(filesystem, bucket)
            client = await filesystem.get_s3(bucket)
            place = {"Bucket": bucket, "Key": "a/key"}
            return found, await client.generate_presigned_url("get_object", place)

        running = asyncio.run_coroutine_threadsafe(both(), filesystem.loop)
        return running.result(60)

    return ask


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("bucket", ["bucket", "buck.et"])
def test_a_bucket_is_reached_where_botocore_reaches_it(configured, text, bucket):
    found, url = configured(text, bucket)
    parts, endpoint = urlsplit(url), urlsplit(found.endpoint)
    host = f"{bucket}.{endpoint.netloc}" if found.virtual else endpoint.netloc
    # An address that botocore signs for others has the host of all regions.
    assert parts.netloc.replace(".eu-west-1", "") == host.replace(".eu-west-1", "")
    assert parts.path == ("/a/key" if found.virtual else f"/{bucket}/a/key")


@pytest.mark.parametrize("text", OF_S3FS_ALONE.values(), ids=OF_S3FS_ALONE.keys())
def test_settings_that_obstore_lacks_leave_a_bucket_to_s3fs(configured, text):
    assert configured(text)[0] is None


def test_certificates_of_the_environment_leave_a_bucket_to_s3fs(configured, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", "/etc/hostname")
    assert configured("")[0] is None
    found, _ = configured("endpoint_url = http://127.0.0.1:9\n")
    assert found is not None


def test_a_web_identity_reads_and_one_without_its_token_finds_nothing_missing(
    s3_endpoint, s3_bucket, monkeypatch, tmp_path, quick
):
    name, client = s3_bucket
    client.put_object(Bucket=name, Key="store/x", Body=b"data")
    for unset in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(unset, raising=False)
    token = tmp_path / "token"
    token.write_text("header.claims.signature")
    for variable, value in {
        "ENDPOINT_URL": s3_endpoint,
        "DEFAULT_REGION": "us-east-1",
        "ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
        "WEB_IDENTITY_TOKEN_FILE": str(token),
        "CONFIG_FILE": str(tmp_path / "config"),
        "SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }.items():
        monkeypatch.setenv(f"AWS_{variable}", value)
    for there in (True, False):
        options = {"skip_instance_cache": True}
        store = open_store(f"s3://{name}/store", StoreConfig(storage_options=options, retry=quick))
        if there:
            assert bytes(store.get("x", limit=9).data) == b"data"
            assert store.get("none", limit=9) is None
        else:
            for ask in (store.info, lambda key, store=store: store.get(key, limit=9)):
                with pytest.raises(StoreError, match="token: No such file"):
                    ask("x")
            assert next(iter(store.get_many(["x"], limit=9))).reason.count("token: No such file")
        store.close()
        token.unlink(missing_ok=True)
