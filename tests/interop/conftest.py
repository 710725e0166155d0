"""One JVM per Java Paimon version for the whole run; skipped by name where there is no JDK or Maven."""

from __future__ import annotations

import shutil

import oracle
import pytest

VERSIONS = ("2.0.0", "1.4.2", "0.9.0")


class Reader(oracle.Session):
    """A session that asks again where Java's own threads stood in each other's way.

    Java 0.9 reads manifests of a filtered read on several threads, and now and then one meets a collection that another
    is changing (`ConcurrentModificationException`). Only scripts that do nothing but read are asked again.
    """

    def run(self, warehouse, steps, check=True, **others):
        for _ in range(5 if all(step["op"] == "read" for step in steps) else 0):
            try:
                outputs = super().run(warehouse, steps, check, **others)
            except oracle.OracleError as error:
                if "ConcurrentModificationException" not in str(error):
                    raise
            else:
                if not any("ConcurrentModificationException" in str(output.get("error")) for output in outputs):
                    return outputs
        return super().run(warehouse, steps, check, **others)


@pytest.fixture(scope="session")
def java():
    """`java(version)` gives a running oracle session of that Java Paimon."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the oracle (real Java Paimon) needs {', '.join(missing)}")
    sessions: dict[str, Reader] = {}

    def session(version: str) -> Reader:
        if version not in sessions:
            sessions[version] = Reader(version=version, tz="UTC")
        return sessions[version]

    yield session
    for open_session in sessions.values():
        open_session.close()
