"""The promises of every catalog, kept by a REST server: a stand-in in this process, and Java's own."""

from __future__ import annotations

import pyarrow as pa
import pytest
from catalogs.rest_server import VERSIONS, running_server
from catalogs.suite import ROWS, CatalogSuite
from unit.catalogs import test_rest_views_and_functions as views
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import Catalog
from paimon_py.env import Env
from paimon_py.metastores.metastore import TableName

pytest.importorskip("urllib3")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def java_rest_server(tmp_path, version):
    with running_server(tmp_path / "rest", version) as options:
        yield options


class TestStandIn(CatalogSuite):
    adopts_files = False

    @pytest.fixture
    def opened(self):
        server = StubServer()
        return lambda: catalog_of(server, Env())


@pytest.mark.full
@pytest.mark.server
class TestServerOfJava(CatalogSuite):
    adopts_files = False

    @pytest.fixture
    def opened(self, java_rest_server):
        return lambda: Catalog.open("warehouse", java_rest_server)

    @pytest.mark.skip(reason="this server answers 500 where two threads make one table")
    def test_of_several_creators_exactly_one_succeeds(self):
        """See the reason."""

    def test_renaming_a_table_moves_its_data(self, catalog, opened):
        """This server forgets that the directory of a table moved with its name."""
        catalog.create_database("other")
        catalog.create_table("demo.t", ROWS.schema).write_arrow(ROWS)
        catalog.rename_table("demo.t", "other.u")
        assert opened().tables("demo") == [] and opened().tables("other") == ["u"]

    @pytest.mark.parametrize("check", [
        views.test_a_view_is_returned_as_it_was_created, views.test_a_view_can_be_changed_renamed_and_dropped,
        views.test_a_function_is_returned_as_it_was_created, views.test_a_function_can_be_changed_and_dropped,
    ], ids=lambda check: check.__name__)  # fmt: skip
    def test_views_and_functions(self, opened, check):
        catalog = opened()
        catalog.create_database("d")
        check(catalog)

    def test_credentials_that_the_server_hands_out(self, java_rest_server):
        catalog = Catalog.open("warehouse", {**java_rest_server, "data-token.enabled": "true"})
        catalog.create_database("d")
        table = catalog.create_table("d.t", ROWS.schema, primary_key=["k"], options={"bucket": "1"})
        for _ in range(7):
            table.write_arrow(ROWS)
        table.compact(full=True)
        assert "VendedStore('d.t')" in repr(table._root.store) and catalog.table("d.t").scan().to_arrow().num_rows == 3

    def test_a_table_is_replaced(self, opened, version):
        if version == "1.4.2":
            pytest.skip("this server is silent where it does not know a call")
        catalog = opened()
        catalog.create_database("d")
        table = catalog.create_table("d.t", ROWS.schema, primary_key=["k"], options={"bucket": "1"})
        table.write_arrow(ROWS)
        wide = pa.schema([("id", pa.int64()), ("w", pa.string())])
        made = catalog.replace_table("d.t", wide, primary_key=["id"], options={"bucket": "2"}, comment="new")
        assert (made.schema.names, made.schema.comment, made.options["bucket"]) == (("id", "w"), "new", "2")
        assert made.scan().to_arrow().num_rows == 0 and made.scan(snapshot_id=1).to_arrow().num_rows == 3
        made.write_arrow(pa.table({"id": [7], "w": ["x"]}))
        assert opened().table("d.t").scan().to_arrow().to_pylist() == [{"id": 7, "w": "x"}]

    def test_names_that_are_encoded(self, opened):
        catalog = opened()
        catalog.create_database("d")
        for name in ("a b", "tä ble~", "日本", "a+b", "x&y=z"):
            catalog.create_table(f"d.{name}", ROWS.schema).write_arrow(ROWS)
            assert opened().table(f"d.{name}").scan().to_arrow().num_rows == 3
        assert len(catalog.tables("d")) == 5

    def test_partitions_and_ids(self, opened):
        catalog = opened()
        catalog.create_database("d")
        table = catalog.create_table(
            "d.t", ROWS.schema, partition_by=["v"], options={"metastore.partitioned-table": "true"}
        )
        table.write_arrow(ROWS)
        table.write_arrow(ROWS)
        found = {one.spec["v"]: one for one in catalog.partitions("d.t")}
        told = {key: (one.record_count, one.file_count) for key, one in found.items()}
        assert told == {"a": (2, 2), "b": (2, 2), "__DEFAULT_PARTITION__": (2, 2)}
        number = catalog._metastore.answer(TableName("d", "t")).id
        assert catalog.table_by_id(number).scan().to_arrow().num_rows == 6
        catalog.alter_database("d", options={"x": "y"})
        assert catalog._metastore.database("d").options["x"] == "y"
