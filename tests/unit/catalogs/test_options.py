"""Options of catalogs are checked like those of tables; locks are refused where there are none."""

from __future__ import annotations

import pytest

from paimon_py import Catalog
from paimon_py.errors import OptionError, UnsupportedError


@pytest.mark.parametrize("name, meant", [("metastor", "metastore"), ("lock.enable", "lock.enabled"), ("client-poolsize", "client-pool-size")])
def test_a_misspelled_option_of_a_catalog_is_refused_with_the_right_name(tmp_path, name, meant):
    with pytest.raises(OptionError, match=f"did you mean '{meant}'"):
        Catalog.open(tmp_path / "w", {name: "x"})
    assert not (tmp_path / "w").exists()


def test_options_of_stores_engines_and_new_tables_pass(tmp_path):
    Catalog.open(tmp_path / "w", {"fs.s3a.endpoint": "x", "hive.metastor": "y", "table-default.bucket": "1", "my-own": "z"})


def test_a_file_system_catalog_has_no_lock(tmp_path):
    with pytest.raises(OptionError, match="has no lock"):
        Catalog.open(tmp_path / "w", {"lock.enabled": "true"})
    assert not (tmp_path / "w").exists()


def test_an_unknown_metastore_is_refused_by_name(tmp_path):
    with pytest.raises(UnsupportedError, match="'metastore' = 'glue'"):
        Catalog.open(tmp_path / "w", {"metastore": "glue"})


def test_a_file_system_catalog_keeps_nothing_but_names(tmp_path):
    catalog = Catalog.open(tmp_path / "w")
    for given in ({"comment": "c"}, {"location": "/x"}, {"options": {"a": "b"}}):
        with pytest.raises(UnsupportedError, match="no location, comment or options"):
            catalog.create_database("d", **given)
    assert catalog.databases() == []
