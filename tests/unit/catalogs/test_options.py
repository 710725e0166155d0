"""Options of catalogs are checked like those of tables; locks are refused where there are none."""

from __future__ import annotations

import pytest

from paimon_py import Catalog
from paimon_py.errors import OptionError, PaimonWarning, UnsupportedError
from paimon_py.metastores.options import check_catalog_options


@pytest.mark.parametrize("name, meant", [("metastor", "metastore"), ("lock.enable", "lock.enabled"), ("client-poolsize", "client-pool-size")])
def test_a_misspelled_option_of_a_catalog_is_refused_with_the_right_name(tmp_path, name, meant):
    with pytest.raises(OptionError, match=f"did you mean '{meant}'"):
        Catalog.open(tmp_path / "w", {name: "x"})
    assert not (tmp_path / "w").exists()


WRITTEN = {
    "rest": """
        token-provider=token.provider token.provder=token.provider tokenprovider=token.provider Token.Provider=token.provider Token=token
        dlf.accessKeyId=dlf.access-key-id dlf.access.key.id=dlf.access-key-id dlf.acces-key-id=dlf.access-key-id
        dlf.access-key-secrt=dlf.access-key-secret dlf.security.token=dlf.security-token dlf.securityToken=dlf.security-token
        dlf.regoin=dlf.region dlf.token.path=dlf.token-path dlf.tokenpath=dlf.token-path dlf.token-loder=dlf.token-loader
        dlf.token-ecs-rolename=dlf.token-ecs-role-name dlf.signing.algorithm=dlf.signing-algorithm data.token.enabled=data-token.enabled
        data-token-enabled=data-token.enabled data-tokens.enabled=data-token.enabled prefx=prefix URI=uri warehous=warehouse
        token.provider-path=token.provider.path headers.X-Key=header.X-Key metastor=metastore""",
    "jdbc": """
        jdbc.usr=jdbc.user jdbc.pasword=jdbc.password jdbc.passwd=jdbc.password jdbc_user=jdbc.user jdbc-password=jdbc.password
        catalog.key=catalog-key catalogkey=catalog-key catalog_key=catalog-key catalog-keys=catalog-key lock.enable=lock.enabled
        lock-enabled=lock.enabled lock_enabled=lock.enabled lock.acquire-timeout=lock-acquire-timeout
        lock-aquire-timeout=lock-acquire-timeout lock-check-max-slep=lock-check-max-sleep lock-key-max-lenght=lock-key-max-length
        client-pool-sise=client-pool-size sync-all-propertys=sync-all-properties sync.all.properties=sync-all-properties Uri=uri""",
    "hive": """
        hive-confdir=hive-conf-dir hive_conf_dir=hive-conf-dir hive-conf-dr=hive-conf-dir table-type=table.type table.typ=table.type
        location-in-propertis=location-in-properties location.in.properties=location-in-properties client-pool.size=client-pool-size
        alter-table-cascad=alter-table-cascade alter.table.cascade=alter-table-cascade metastore.client.clas=metastore.client.class
        hadoop-conf-dr=hadoop-conf-dir lock.enabeld=lock.enabled lock_enabled=lock.enabled Metastore=metastore ware-house=warehouse
        client-pool-cache.eviction-interval.ms=client-pool-cache.eviction-interval-ms lock.check-max-sleep=lock-check-max-sleep
        client-pool-cache.key=client-pool-cache.keys alter_table_cascade=alter-table-cascade""",
}  # fmt: skip
"""What people write, and what they mean."""


@pytest.mark.parametrize("kind", WRITTEN)
def test_common_spellings_of_other_libraries_are_refused_with_the_right_name(kind):
    pairs = [pair.split("=") for pair in WRITTEN[kind].split()]
    assert len(pairs) >= 20
    for name, meant in pairs:
        with pytest.raises(OptionError, match=f"did you mean '{meant}'") as caught:
            check_catalog_options(kind, {name: "sesame"})
        assert "sesame" not in str(caught.value)
        check_catalog_options(kind, {meant: "x"})


@pytest.mark.parametrize("name", ["dlf.access-key", "dlf.secret", "dlf.region-id", "dlf.token-ecs-role"])
def test_an_unknown_dlf_option_is_refused_with_the_known_ones(name):
    with pytest.raises(OptionError, match=r"the options of DLF are dlf\.access-key-id, dlf\.access-key-secret, "):
        check_catalog_options("rest", {name: "x"})
    check_catalog_options("filesystem", {name: "x"})


def test_options_of_stores_engines_and_new_tables_are_accepted(tmp_path):
    Catalog.open(tmp_path / "w", {"fs.s3a.endpoint": "x", "hive.metastor": "y", "table-default.bucket": "1", "my-own": "z"})


def test_a_file_system_catalog_has_no_lock(tmp_path):
    with pytest.raises(OptionError, match="has no lock"):
        Catalog.open(tmp_path / "w", {"lock.enabled": "true"})
    assert not (tmp_path / "w").exists()


def test_an_unknown_metastore_is_refused_by_name(tmp_path):
    with pytest.raises(UnsupportedError, match="'metastore' = 'glue'"):
        Catalog.open(tmp_path / "w", {"metastore": "glue"})


def test_a_file_system_catalog_stores_only_names(tmp_path):
    catalog = Catalog.open(tmp_path / "w")
    for given in ({"comment": "c"}, {"location": "/x"}, {"options": {"a": "b"}}):
        with pytest.raises(UnsupportedError, match="no location, comment or options"):
            catalog.create_database("d", **given)
    assert catalog.databases() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jdbc.user": "a"}, "'metastore' is not set"),
        ({"jdbc.useSSL": "true", "uri": "jdbc:mysql://h/d"}, "Set 'metastore' = 'jdbc', or remove"),
        ({"uri": "thrift://h:9083"}, "Set 'metastore' = 'hive' or 'jdbc' or 'rest', or remove"),
        ({"token": "geheim", "metastore": "filesystem"}, "have no effect: 'token' of 'rest'"),
        ({"dlf.region": "x", "header.a": "b"}, "'dlf.region' of 'rest'; 'header.a' of 'rest'"),
        ({"hive-conf-dir": "/x"}, "Set 'metastore' = 'hive', or remove"),
    ],
)
def test_options_of_another_kind_of_catalog_are_a_warning(tmp_path, options, words):
    with pytest.warns(PaimonWarning) as caught:
        assert Catalog.open(tmp_path / "w", options=options).databases() == []
    assert len(caught) == 1 and words in str(caught[0].message) and "geheim" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_options_of_stores_and_of_every_catalog_are_no_warning(tmp_path):
    told = {"hadoop-conf-dir": str(tmp_path), "cache-enabled": "false", "table-default.bucket": "1", "client-pool-size": "3"}
    assert Catalog.open(tmp_path / "w", options=told).databases() == []
