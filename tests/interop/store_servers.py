"""Servers of stores for tests, each started by its launcher, and what a user would say of them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest

LAUNCHERS = pathlib.Path(__file__).parents[2].parent / "shared" / "servers"
PACKAGES = {"s3": "s3fs", "s3-minio": "s3fs", "gcs": "gcsfs", "azure": "adlfs", "hdfs": "hdfs_native"}


def start(name, directory):
    """Start a server and return its environment."""
    result = subprocess.run(
        [str(LAUNCHERS / name), "start", "--dir", str(directory)], capture_output=True, text=True, timeout=570
    )
    assert result.returncode == 0, result.stderr
    return dict(re.findall(r"^export (\w+)='?(.*?)'?$", result.stdout, re.MULTILINE))


def stop(name, directory):
    subprocess.run(
        [str(LAUNCHERS / name), "stop", "--dir", str(directory)], check=True, capture_output=True, timeout=60
    )


def options_of(name, environment):
    """What a user would give as table or catalog options, and the URL of the bucket."""
    if name in ("s3", "s3-minio"):
        return "s3://warehouse", {
            "s3.endpoint": environment["AWS_ENDPOINT_URL"],
            "s3.access-key": environment["AWS_ACCESS_KEY_ID"],
            "s3.secret-key": environment["AWS_SECRET_ACCESS_KEY"],
            "s3.region": environment["AWS_DEFAULT_REGION"],
            "s3.path.style.access": "true",
        }
    if name == "gcs":
        return "gs://warehouse", {
            "fs.gs.auth.type": "UNAUTHENTICATED",
            "fs.gs.project.id": "test",
            "fs.gs.storage.root.url": environment["STORAGE_EMULATOR_HOST"],
        }
    if name == "hdfs":
        return f"{environment['PAIMON_TEST_HDFS']}/warehouse", {}
    return "abfs://warehouse", {}


def make_container():
    code = (
        "import os; from azure.storage.blob import BlobServiceClient;"
        "BlobServiceClient.from_connection_string(os.environ['AZURE_STORAGE_CONNECTION_STRING'])"
        ".create_container('warehouse')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def forget(name):
    """What a library opened with the environment of another server: it is kept for as long as the process lives."""
    if name == "azure":
        import adlfs

        adlfs.AzureBlobFileSystem.clear_instance_cache()


def running(name, tmp_path_factory):
    if not LAUNCHERS.is_dir():
        pytest.skip(f"no server launchers at {LAUNCHERS}")
    patch = pytest.MonkeyPatch()
    # gcsfs reads this while it is imported; with it the emulator costs a minute per bucket.
    patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    pytest.importorskip(PACKAGES[name])
    directory = tmp_path_factory.mktemp(name)
    environment = start(name, directory)
    forget(name)
    try:
        if name == "azure":
            patch.setenv("AZURE_STORAGE_CONNECTION_STRING", environment["AZURE_STORAGE_CONNECTION_STRING"])
            make_container()
        yield (name, *options_of(name, environment))
    finally:
        patch.undo()
        stop(name, directory)


def asked(options, method, target, body=b""):
    """The answer to a request of the store's administrator."""
    from botocore.auth import S3SigV4Auth, SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest(method=method, url=options["s3.endpoint"] + target, data=body)
    sign, service = (SigV4Auth, "sts") if target == "/" else (S3SigV4Auth, "s3")
    if service == "sts":
        request.headers["Content-Type"] = "application/x-www-form-urlencoded"
    sign(Credentials(options["s3.access-key"], options["s3.secret-key"]), service, options["s3.region"]).add_auth(request)
    sent = urllib.request.Request(request.url, data=body or None, method=method, headers=dict(request.headers))
    with urllib.request.urlopen(sent, timeout=30) as answer:
        return answer.read()
