"""Real metastores: the promises of every catalog, and a lock that real servers give."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs.suite import CatalogSuite

from paimon_py import Catalog, LockTimeoutError

pytestmark = [pytest.mark.server, pytest.mark.full]

ROWS = pa.table({"k": pa.array([1, 2], pa.int64())})


def _launcher(*parts: str) -> Path:
    """A program of the workplace that starts a server; tests are passed over where there is none."""
    for base in Path(__file__).parents:
        if base.joinpath("shared", *parts).exists():
            return base.joinpath("shared", *parts)
    pytest.skip(f"there is no launcher {'/'.join(parts)}")


@contextlib.contextmanager
def _hive_4(place: Path):
    launcher = _launcher("servers", "hms")
    done = subprocess.run([launcher, "start", "--dir", place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the metastore does not start here: {done.stderr.strip()[-300:]}")
    try:
        yield done.stdout.strip().partition("=")[2]
    finally:
        subprocess.run([launcher, "stop", "--dir", place], check=False, capture_output=True)


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """Where a metastore answers: the one of `PAIMON_TEST_HMS`, or one that is started."""
    if os.environ.get("PAIMON_TEST_HMS"):
        yield os.environ["PAIMON_TEST_HMS"]
        return
    with _hive_4(tmp_path_factory.mktemp("hms")) as found:
        yield found


def opening(warehouse, uri, **more):
    settings = {"metastore": "hive", "uri": uri, "fs.local.fsync": "false", **more}
    return lambda env=None, **others: Catalog.open(warehouse, {**settings, **others}, env=env)


class _RealSuite(CatalogSuite):
    """The suite expects an empty catalog: databases that others left go, and that of the metastore does not count."""

    @pytest.fixture
    def opened(self, tmp_path, uri):
        open_catalog = opening(tmp_path / "warehouse", uri, **{"lock.enabled": "true"})
        catalog = open_catalog()
        for name in catalog.databases():
            if name != "default":
                catalog.drop_database(name, cascade=True)
        return lambda *given, **named: _WithoutDefault.of(open_catalog(*given, **named)._metastore)


class _WithoutDefault(Catalog):
    def databases(self):
        return [name for name in super().databases() if name != "default"]


class TestRealMetastore(_RealSuite):
    pass


def test_a_lock_keeps_others_out_until_it_is_given_back(tmp_path, uri):
    open_catalog = opening(tmp_path / "w", uri, **{"lock.enabled": "true", "lock-acquire-timeout": "1 s"})
    catalog = open_catalog()
    catalog.create_database("locks", exist_ok=True)
    table = catalog.create_table("locks.t", ROWS.schema)
    with table._root.registration.lock.held("main"), pytest.raises(LockTimeoutError, match="holds lock"):
        open_catalog().table("locks.t").write_arrow(ROWS)
    open_catalog().table("locks.t").write_arrow(ROWS)
    assert table.scan().count() == 2
    catalog.drop_database("locks", cascade=True)
