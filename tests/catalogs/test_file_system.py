"""The promises of every catalog, kept by directories."""

from __future__ import annotations

import pytest
from catalogs.suite import CatalogSuite

from paimon_py import Catalog


class TestFileSystem(CatalogSuite):
    @pytest.fixture
    def opened(self, tmp_path):
        return lambda: Catalog.open(tmp_path / "warehouse", {"fs.local.fsync": "false"})
