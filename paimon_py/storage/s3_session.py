"""S3 sessions that do not wait before each write, and that assume a role again before its keys expire.

Source: AWS, "AssumeRole"; Hadoop `AssumedRoleCredentialProvider` (names of options).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from aiobotocore.credentials import AioDeferredRefreshableCredentials
from aiobotocore.session import AioSession
from botocore.handlers import add_expect_header

from paimon_py.spec.options import parse_duration

_NANOS = 1_000_000_000
_SESSION_NAME = "paimon-py"


@functools.cache
def without_expect_continue(kind: Any) -> Any:
    """The class of s3fs, changed to send the bytes of a file with the request, without asking for permission first.

    botocore asks (`Expect: 100-continue`) and waits for the answer: one more round trip for every file.
    """

    class Immediate(kind):  # type: ignore[misc]
        _immediate: Any = None

        async def set_session(self, *arguments: Any, **named: Any) -> Any:
            """The client that makes the requests."""
            client = await super().set_session(*arguments, **named)
            if client is not self._immediate:
                client.meta.events.unregister("before-call.s3", add_expect_header)
                self._immediate = client
            return client

    return Immediate


def role_session(role: Mapping[str, str], own: Mapping[str, Any], region: str | None) -> Any:
    """A session whose requests use a role.

    Args:
        role: the options `assumed.role.*`.
        own: the credentials that assume the role: key, secret, token or profile; empty: the cloud's own chain.
        region: region of the store; also the region of the service that assigns roles.
    """
    home = AioSession(profile=own.get("profile"))
    request = {"RoleArn": role["arn"], "RoleSessionName": role.get("session.name", _SESSION_NAME)}
    if "external.id" in role:
        request["ExternalId"] = role["external.id"]
    seconds = (parse_duration(role.get("session.duration", "")) or 0) // _NANOS
    client = {
        "region_name": role.get("sts.endpoint.region") or region or "us-east-1",
        "endpoint_url": _with_scheme(role.get("sts.endpoint")),
        "aws_access_key_id": own.get("key"),
        "aws_secret_access_key": own.get("secret"),
        "aws_session_token": own.get("token"),
    }

    async def fetch() -> dict[str, str]:
        async with home.create_client("sts", **{name: value for name, value in client.items() if value}) as service:
            answer = await service.assume_role(**request, **({"DurationSeconds": seconds} if seconds else {}))
        given = answer["Credentials"]
        return {
            "access_key": given["AccessKeyId"],
            "secret_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expiry_time": given["Expiration"].isoformat(),
        }

    session = AioSession()
    session._credentials = AioDeferredRefreshableCredentials(refresh_using=fetch, method="assume-role")
    return session


def _with_scheme(endpoint: str | None) -> str | None:
    return endpoint if endpoint is None or "://" in endpoint else f"https://{endpoint}"
