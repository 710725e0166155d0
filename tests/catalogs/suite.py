"""What every catalog promises. A test class of one kind of catalog inherits the tests and gives the fixture `opened`."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import paimon_py
from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    Catalog,
    DatabaseNotFoundError,
    SetOption,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.clones.contents import CloneChoice, choose_contents
from paimon_py.clones.unfinished import begin_clone
from paimon_py.metastores.metastore import TableName

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": pa.array(["a", "b", None], pa.string())})


class CatalogSuite:
    """Subclasses define `opened()`: a fixture that gives a function to open the same catalog any number of times."""

    moves_tables = True
    adopts_files = True
    """Whether a table can be made of files that are there, as a clone is."""

    @pytest.fixture
    def catalog(self, opened) -> Catalog:
        made = opened()
        made.create_database("demo")
        return made

    def test_databases_are_made_listed_and_dropped(self, opened):
        catalog = opened()
        assert catalog.databases() == []
        catalog.create_database("b")
        catalog.create_database("a")
        catalog.create_database("a", exist_ok=True)
        with pytest.raises(AlreadyExistsError):
            catalog.create_database("a")
        assert catalog.databases() == opened().databases() == ["a", "b"]
        catalog.drop_database("a")
        catalog.drop_database("a", missing_ok=True)
        with pytest.raises(DatabaseNotFoundError):
            catalog.drop_database("a")
        assert catalog.databases() == ["b"]

    def test_a_database_with_tables_is_dropped_only_with_cascade(self, catalog):
        catalog.create_table("demo.t", ROWS.schema).write_arrow(ROWS)
        with pytest.raises(UsageError, match="cascade"):
            catalog.drop_database("demo")
        assert catalog.tables("demo") == ["t"]
        catalog.drop_database("demo", cascade=True)
        assert catalog.databases() == []
        catalog.create_database("demo")
        assert catalog.tables("demo") == []

    def test_a_table_is_made_once_and_found_by_all(self, catalog, opened):
        made = catalog.create_table(
            "demo.t", ROWS.schema, primary_key=["k"], options={"bucket": "2"}, comment="of the suite"
        )
        made.write_arrow(ROWS)
        other = opened().table("demo.t")
        assert other.schema == made.schema and other.location == made.location and other.comment == "of the suite"
        assert other.scan().to_arrow().sort_by("k") == made.scan().to_arrow().sort_by("k")
        with pytest.raises(AlreadyExistsError):
            opened().create_table("demo.t", ROWS.schema)
        again = opened().create_table("demo.t", pa.schema([("other", pa.int32())]), exist_ok=True)
        assert again.schema == made.schema

    def test_of_several_creators_exactly_one_succeeds(self, catalog, opened):
        def create(number: int) -> bool:
            try:
                opened().create_table("demo.t", ROWS.schema, comment=f"of creator {number}")
            except AlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(create, range(4)))
        assert made.count(True) == 1
        assert catalog.table("demo.t").comment == f"of creator {made.index(True)}"

    def test_a_clone_is_an_independent_table(self, catalog, opened):
        made = catalog.create_table("demo.t", ROWS.schema, primary_key=["k"], options={"bucket": "1"})
        made.write_arrow(ROWS)
        made.alter(AddColumn("w", "INT"))
        if not self.adopts_files:
            with pytest.raises(UnsupportedError, match="REST"):
                catalog.clone_table("demo.t", "demo.c")
            return
        catalog.clone_table("demo.t", "demo.c", history=True)
        with pytest.raises(AlreadyExistsError):
            opened().clone_table("demo.t", "demo.c")
        clone = opened().table("demo.c")
        clone.write_arrow([{"k": 4, "v": "d", "w": 1}])
        assert catalog.tables("demo") == ["c", "t"] and (clone.count(), made.count()) == (4, 3)
        catalog.drop_table("demo.t")
        first = opened().table("demo.c").scan(snapshot_id=1).to_arrow()
        assert first.sort_by("k").to_pylist() == ROWS.sort_by("k").to_pylist()

    def test_a_clone_that_was_interrupted_is_finished_by_the_same_call(self, catalog, opened):
        if not self.adopts_files:
            return
        made = catalog.create_table("demo.t", ROWS.schema)
        made.write_arrow(ROWS)
        for name, is_published in (("a", False), ("b", True), ("c", False)):
            root = catalog._metastore.new_location(TableName("demo", name))
            work = begin_clone(made._root, root, choose_contents(made._root, CloneChoice()))
            work.copy(None)
            if is_published:
                work.publish()
            assert name not in catalog.tables("demo") or is_published
        opened().clone_table("demo.t", "demo.a")
        opened().clone_table("demo.t", "demo.b")
        opened().drop_table("demo.c")
        with pytest.raises(TableNotFoundError):
            opened().drop_table("demo.c")
        assert catalog.tables("demo") == ["a", "b", "t"]
        for name in ("demo.a", "demo.b"):
            assert opened().table(name).to_arrow().equals(made.to_arrow())

    def test_missing_names_have_their_own_errors(self, catalog):
        for verb in (catalog.table, catalog.drop_table, lambda name: catalog.rename_table(name, "demo.b")):
            with pytest.raises(TableNotFoundError, match=r"demo\.a"):
                verb("demo.a")
        for verb in (catalog.table, catalog.drop_table, lambda name: catalog.create_table(name, ROWS.schema)):
            with pytest.raises(DatabaseNotFoundError, match="nowhere"):
                verb("nowhere.t")
        with pytest.raises(DatabaseNotFoundError):
            catalog.tables("nowhere")
        catalog.drop_table("demo.a", missing_ok=True)

    def test_hostile_names_touch_nothing(self, catalog):
        for name in ("demo.../x", "demo.a/b", "../x.t", "demo.", "plain", "demo.a$snapshots", "demo.a$branch_b"):
            with pytest.raises(UsageError):
                catalog.create_table(name, ROWS.schema)
        with pytest.raises(UnsupportedError):
            catalog.create_database("sys")
        assert catalog.databases() == ["demo"] and catalog.tables("demo") == []

    def test_an_invalid_schema_leaves_no_name_behind(self, catalog):
        with pytest.raises(UsageError):
            catalog.create_table("demo.t", ROWS.schema, primary_key=["nope"])
        assert catalog.tables("demo") == []
        catalog.create_table("demo.t", ROWS.schema)

    def test_schema_changes_are_visible_to_all(self, catalog, opened):
        table = catalog.create_table("demo.t", ROWS.schema)
        table.write_arrow(ROWS)
        table.alter(AddColumn("w", "INT"), SetOption("snapshot.num-retained.max", "20"))
        table.write_arrow(ROWS.append_column("w", pa.array([7, 8, 9], pa.int32())))
        other = opened().table("demo.t")
        assert other.schema == table.schema and other.options["snapshot.num-retained.max"] == "20"
        assert other.scan().to_arrow().num_rows == 6

    def test_a_dropped_table_is_gone_with_its_data(self, catalog, opened):
        catalog.create_table("demo.t", ROWS.schema).write_arrow(ROWS)
        catalog.drop_table("demo.t")
        assert opened().tables("demo") == []
        with pytest.raises(TableNotFoundError):
            catalog.table("demo.t")
        again = catalog.create_table("demo.t", ROWS.schema)
        assert again.snapshot() is None and again.scan().to_arrow().num_rows == 0

    def test_renaming_a_table_moves_its_data(self, catalog, opened):
        catalog.create_database("other")
        catalog.create_table("demo.t", ROWS.schema).write_arrow(ROWS)
        catalog.create_table("demo.taken", ROWS.schema)
        if not self.moves_tables:
            with pytest.raises(UnsupportedError):
                catalog.rename_table("demo.t", "other.u")
            assert catalog.table("demo.t").scan().to_arrow().num_rows == 3
            return
        with pytest.raises(AlreadyExistsError):
            catalog.rename_table("demo.t", "demo.taken")
        with pytest.raises(DatabaseNotFoundError):
            catalog.rename_table("demo.t", "nowhere.t")
        catalog.rename_table("demo.t", "other.u")
        assert opened().tables("demo") == ["taken"] and opened().tables("other") == ["u"]
        moved = opened().table("other.u")
        moved.write_arrow(ROWS)
        assert moved.scan().to_arrow().num_rows == 6
        with pytest.raises(TableNotFoundError):
            catalog.table("demo.t")

    def test_several_writers_commit_every_row_once(self, catalog, opened):
        catalog.create_table("demo.t", ROWS.schema)

        def write(number: int) -> None:
            table = opened().table("demo.t")
            for identifier in range(1, 4):
                with table.writer() as writer:
                    writer.write_arrow(ROWS)
                    changes = writer.changes()
                table.commit(changes, user=f"w{number}", identifier=identifier)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(write, range(3)))
        table = opened().table("demo.t")
        assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 10))
        assert table.scan().to_arrow().num_rows == 27

    def test_branches_tags_and_rollbacks_work_in_every_catalog(self, catalog, opened):
        table = catalog.create_table("demo.t", ROWS.schema)
        table.write_arrow(ROWS)
        table.create_tag("one")
        table.create_branch("b", from_="one")
        opened().table("demo.t$branch_b").write_arrow(ROWS)
        assert opened().table("demo.t").branch("b").scan().to_arrow().num_rows == 6
        table.write_arrow(ROWS)
        table.rollback_to("one")
        assert opened().table("demo.t").scan().to_arrow().num_rows == 3

    def test_system_tables_see_the_catalog(self, catalog):
        catalog.create_table("demo.t", ROWS.schema, options={"bucket": "-1"})
        found = catalog.table("sys.tables").scan(columns=["database_name", "table_name"]).to_arrow().to_pylist()
        assert found == [{"database_name": "demo", "table_name": "t"}]
        assert catalog.table("demo.t$options").scan().to_arrow().to_pylist() == [{"key": "bucket", "value": "-1"}]

    def test_catalogs_and_tables_are_pickled_without_secrets(self, catalog):
        table = catalog.create_table("demo.t", ROWS.schema)
        table.write_arrow(ROWS)
        sent = pickle.dumps((catalog, table, table.scan()))
        assert b"sesame" not in sent and b"sesame" not in repr((catalog, table)).encode()
        _, same, scan = pickle.loads(sent)
        assert same.location == table.location
        assert isinstance(scan, paimon_py.Scan)
