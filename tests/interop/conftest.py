"""One JVM per Java Paimon version for the whole run; skipped by name where there is no JDK or Maven."""

from __future__ import annotations

import shutil

import oracle
import pytest

VERSIONS = ("2.0.0", "1.4.2", "0.9.0")


@pytest.fixture(scope="session")
def java():
    """`java(version)` gives a running oracle session of that Java Paimon."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the oracle (real Java Paimon) needs {', '.join(missing)}")
    sessions: dict[str, oracle.Session] = {}

    def session(version: str) -> oracle.Session:
        if version not in sessions:
            sessions[version] = oracle.Session(version=version, tz="UTC")
        return sessions[version]

    yield session
    for open_session in sessions.values():
        open_session.close()
