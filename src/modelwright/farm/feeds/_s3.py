"""A bucket as a feed: S3, or anything that speaks like it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.farm.feeds._errors import FeedError, FeedFault
from modelwright.farm.feeds._feed import Offered, OnBytes
from modelwright.farm.feeds._http import CHUNK, FIXES, STALL_S, TRIES, fault_of
from modelwright.farm.feeds._names import path_name
from modelwright.farm.feeds._package import LARGEST_DESCRIPTION, Package, Shipment, package_in
from modelwright.farm.feeds._shelves import BlobFeed
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import threading
    import urllib.parse

    import boto3
    import botocore.config
    import botocore.exceptions
else:
    boto3 = lazy("boto3")
    botocore = lazy("botocore")
    threading = lazy("threading")
    urllib = lazy("urllib")

_ONE_PUT = 4 << 30
"""Up to here a file goes as a whole, and the bucket checks its SHA-256 itself."""


class BucketFeed(BlobFeed):
    """`s3://bucket/prefix`, and `?endpoint=https://…` where it is not Amazon's. Who we are, boto3 finds out.

    `blobs/` by digest, shared by all models; `models/` has a description for each package.
    """

    def __init__(self, scheme: str, rest: str, stall_s: float = STALL_S) -> None:
        path, _, query = rest.partition("?")
        self._bucket, _, prefix = path.strip("/").partition("/")
        said = dict(urllib.parse.parse_qsl(query))
        self._endpoint, self._stall_s = said.pop("endpoint", None), stall_s
        if not self._bucket or said:
            what = "unknown words behind the question mark" if said else "it names no bucket"
            raise UsageError(f"{scheme}://{rest} is no bucket", cause=what, fix="s3://bucket/prefix?endpoint=https://…")
        self.address = f"{scheme}://{rest}"
        self._prefix = f"{prefix}/" if prefix else ""
        self._own = threading.Lock()
        self._made: Any = None

    def preflight(self) -> None:
        key = f"{self._prefix}.wright-preflight"
        with self._errors("write to it"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=b"")
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def reference(self, shipment: Shipment) -> str:
        return f"s3://{self._bucket}/{self._place(shipment.package)}"

    def offers(self, model: str) -> tuple[Offered, ...]:
        prefix = f"{self._prefix}models/{path_name(model)}/"
        with self._errors("list it"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            listed = [item for page in pages for item in page.get("Contents", ())]
        found = [(package_in(self._read_object(item["Key"])), item["LastModified"].timestamp()) for item in listed]
        return tuple(Offered(package, since) for package, since in found if package and package.model == model)

    @property
    def _client(self) -> Any:
        with self._own:
            if self._made is None:
                retries = {"total_max_attempts": TRIES, "mode": "standard"}
                limits = {"connect_timeout": self._stall_s, "read_timeout": self._stall_s}
                config = botocore.config.Config(retries=retries, **limits)
                self._made = boto3.session.Session().client("s3", endpoint_url=self._endpoint, config=config)
            return self._made

    def _place(self, package: Package) -> str:
        return f"{self._prefix}models/{package.repository}/{package.tag}.json"

    def _blob(self, file: FileDigest) -> str:
        return f"{self._prefix}blobs/sha256/{file.sha256}"

    def _description(self, package: Package) -> bytes | None:
        return self._read_object(self._place(package))

    def _read_object(self, key: str) -> bytes | None:
        with self._errors("read a description"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
            except botocore.exceptions.ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchKey":
                    return None
                raise
            return bytes(answer["Body"].read(LARGEST_DESCRIPTION + 1))

    def _describe(self, shipment: Shipment) -> None:
        data = shipment.description
        with self._errors("write a description"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._place(shipment.package),
                Body=data,
                ChecksumSHA256=_checksum(shipment.digest),
            )

    def _holds(self, package: Package, file: FileDigest) -> bool:
        """By the checksum that the bucket computed of the whole file; where it has none, by reading it back."""
        with self._errors("ask for a file"):
            try:
                head = self._client.head_object(Bucket=self._bucket, Key=self._blob(file), ChecksumMode="ENABLED")
            except botocore.exceptions.ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                    return False
                raise
        if head["ContentLength"] != file.size:
            return False
        said = head.get("ChecksumSHA256")
        if said is not None and head.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            return bool(said == _checksum(file.sha256))
        return self._hashed(file) == file.sha256

    def _hashed(self, file: FileDigest) -> str:
        seen = hashlib.sha256()
        with self._errors("read a file back"):
            for piece in self._client.get_object(Bucket=self._bucket, Key=self._blob(file))["Body"].iter_chunks(CHUNK):
                seen.update(piece)
        return seen.hexdigest()

    def _upload(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        with self._errors("send a file"), path.open("rb") as stream:
            if file.size <= _ONE_PUT:
                self._put_whole(file, stream)
                on_bytes(file.name, file.size)
            else:
                told = {"Callback": lambda count: on_bytes(file.name, count)}
                self._client.upload_fileobj(stream, self._bucket, self._blob(file), **told)

    def _put_whole(self, file: FileDigest, stream: IO[bytes]) -> None:
        checksum = _checksum(file.sha256)
        self._client.put_object(Bucket=self._bucket, Key=self._blob(file), Body=stream, ChecksumSHA256=checksum)

    def _download(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        with self._errors("read a file"), path.open("wb") as target:
            body = self._client.get_object(Bucket=self._bucket, Key=self._blob(file))["Body"]
            for piece in body.iter_chunks(CHUNK):
                target.write(piece)
                on_bytes(file.name, len(piece))

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except ModuleNotFoundError as error:
            fix = "pip install 'modelwright[s3]'"
            raise FeedError(f"{self.address} needs boto3", kind="unsupported", cause=str(error), fix=fix) from error
        except botocore.exceptions.ClientError as error:
            status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            raise self._failed(
                doing, fault_of(status), f"HTTP status {status}, {error.response['Error']['Code']}"
            ) from error
        except (botocore.exceptions.NoCredentialsError, botocore.exceptions.CredentialRetrievalError) as error:
            raise self._failed(doing, "auth", f"boto3 found no credentials ({type(error).__name__})") from error
        except (botocore.exceptions.BotoCoreError, OSError) as error:
            raise self._failed(doing, "unavailable", " ".join(str(error).split())[:200]) from error

    def _failed(self, doing: str, kind: FeedFault, cause: str) -> FeedError:
        return FeedError(f"{self.address}: could not {doing}", kind=kind, cause=cause, fix=FIXES[kind])


def _checksum(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()
