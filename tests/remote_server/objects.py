"""Objects in memory: buckets, conditional writes in one step, uploads in parts."""

import hashlib
import itertools
import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StoredObject:
    """``generation`` as Google numbers the states of an object."""

    data: bytes
    etag: str
    modified: float
    generation: int = 0


class Refused(Exception):
    """With the status and the code that S3 has for it."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message or code


@dataclass
class Upload:
    bucket: str
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


class Objects:
    """Buckets of objects. Used by one thread at a time, so each method is one step.

    conflicts : writes whose condition did not hold.
    """

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.uploads: dict[str, Upload] = {}
        self.conflicts = 0
        self._numbers = itertools.count(1)
        self._generations = itertools.count(1_000_001)

    def bucket(self, name: str) -> dict[str, StoredObject]:
        try:
            return self.buckets[name]
        except KeyError:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist") from None

    def get(self, bucket: str, key: str) -> StoredObject:
        try:
            return self.bucket(bucket)[key]
        except KeyError:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.") from None

    def check(self, bucket: str, key: str, if_match: str | None, if_none_match: str | None) -> None:
        """Raises what S3 answers where a condition of a write does not hold."""
        found = self.bucket(bucket).get(key)
        if if_none_match is not None and found is not None:
            self.conflicts += 1
            raise Refused(412, "PreconditionFailed")
        if if_match is not None:
            if found is None:
                raise Refused(404, "NoSuchKey")
            if if_match.strip('"') not in ("*", found.etag.strip('"')):
                self.conflicts += 1
                raise Refused(412, "PreconditionFailed")

    def check_generation(self, bucket: str, key: str, wanted: str | None) -> None:
        """Raises what Google answers where a condition of a write does not hold."""
        found = self.bucket(bucket).get(key)
        if wanted is not None and int(wanted) != (0 if found is None else found.generation):
            self.conflicts += 1
            raise Refused(412, "PreconditionFailed")

    def put(
        self,
        bucket: str,
        key: str,
        data: bytes,
        if_match: str | None = None,
        if_none_match: str | None = None,
        etag: str | None = None,
    ) -> StoredObject:
        self.check(bucket, key, if_match, if_none_match)
        etag = etag or hashlib.md5(data, usedforsecurity=False).hexdigest()
        stored = StoredObject(data, f'"{etag}"', time.time(), next(self._generations))
        self.bucket(bucket)[key] = stored
        return stored

    def delete(self, bucket: str, key: str, if_match: str | None = None) -> None:
        if if_match is not None and key in self.bucket(bucket):
            self.check(bucket, key, if_match, None)
        self.bucket(bucket).pop(key, None)

    def begin_upload(self, bucket: str, key: str) -> str:
        self.bucket(bucket)
        name = f"upload-{next(self._numbers)}"
        self.uploads[name] = Upload(bucket, key)
        return name

    def upload(self, name: str) -> Upload:
        try:
            return self.uploads[name]
        except KeyError:
            raise Refused(404, "NoSuchUpload") from None

    def complete_upload(
        self, name: str, numbers: list[int], if_match: str | None, if_none_match: str | None
    ) -> StoredObject:
        upload = self.upload(name)
        data = b"".join(upload.parts[number] for number in numbers)
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        stored = self.put(
            upload.bucket, upload.key, data, if_match, if_none_match, f"{digest}-{len(numbers)}"
        )
        del self.uploads[name]
        return stored
