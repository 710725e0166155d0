"""The promises of every catalog, kept by a Hive Metastore: one inside the process, and where they run real ones."""

from __future__ import annotations

import pytest
from catalogs.suite import CatalogSuite
from unit.catalogs.hive_stub import StubMetastore

from paimon_py import Catalog


def _opening(stub, warehouse, **more):
    settings = {"metastore": "hive", "uri": stub.uri, "fs.local.fsync": "false", **more}
    return lambda env=None, **others: Catalog.open(warehouse, {**settings, **others}, env=env)


@pytest.fixture
def stub(request):
    made = StubMetastore(version=request.param, databases=())
    yield made
    made.close()


@pytest.mark.parametrize("stub", [2, 3, 4], indirect=True, ids=["hive-2", "hive-3", "hive-4"])
class TestHive(CatalogSuite):
    @pytest.fixture
    def opened(self, stub, tmp_path):
        return _opening(stub, tmp_path / "warehouse")


@pytest.mark.parametrize("stub", [4], indirect=True, ids=["hive-4"])
class TestHiveWithLocks(CatalogSuite):
    @pytest.fixture
    def opened(self, stub, tmp_path):
        more = {"lock.enabled": "true", "location-in-properties": "true"}
        return _opening(stub, tmp_path / "warehouse", **more)
