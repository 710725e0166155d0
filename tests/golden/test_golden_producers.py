"""Tables of the corpus made again by us: their changelog has the steps, rows and kinds that Java's have."""

from __future__ import annotations

import golden
import pyarrow as pa
import pytest
from locate import CORPUS
from pair import our_change
from values import arrow_rows

from paimon_py import Catalog, Schema, Table
from paimon_py.spec.type_text import print_type

PLAYED = ("create", "write", "alter", "compact", "tag")


def options_of(case: golden.Case) -> dict[str, str]:
    return case.data["script"]["steps"][0].get("tableOptions", {})


def is_ours(case: golden.Case) -> bool:
    """Whether the case follows a changelog from its beginning, and all of its steps are known here."""
    steps = case.data["script"]["steps"]
    told = "changelog-producer" in options_of(case) and any(map(is_whole, case.streams))
    return told and all(step["op"] in PLAYED for step in steps)


def is_whole(stream: dict) -> bool:
    return stream.get("from") == 1 and not {"filter", "projection", "partition"} & stream.keys() and "$" not in stream["table"]


CASES = [case for case in golden.cases(str(CORPUS)) if is_ours(case)]


class Player:
    """Plays the steps of a script."""

    def __init__(self, warehouse: str, name: str) -> None:
        self.catalog = Catalog.open(warehouse)
        self.name = name

    def table(self) -> Table:
        return self.catalog.table(self.name)

    def create(self, step: dict) -> None:
        self.catalog.create_database(self.name.split(".")[0])
        options = dict(step["tableOptions"])
        if options["changelog-producer"] == "full-compaction":
            options["write-only"] = "true"  # Java's core compacts where the script says so, its engines every time
        schema = Schema([(name, kind) for name, kind, *_ in step["columns"]])
        self.catalog.create_table(
            self.name, schema, primary_key=step["primaryKeys"], partition_by=step.get("partitionKeys", []), options=options
        )

    def write(self, step: dict) -> None:
        table = self.table()
        columns = [[field.name, print_type(field.type)] for field in table.schema.fields]
        rows = arrow_rows(table.schema, columns, step["rows"], kinds=True)
        overwrite = None
        if "overwrite" in step:
            overwrite = "dynamic" if table.schema.partition_keys else step["overwrite"]
        table.write_arrow(rows, overwrite=overwrite)
        if step.get("compact"):
            self.table().compact(full=step["compact"] == "full")

        return [print_type(field.type) for field in table.schema.fields]

    def alter(self, step: dict) -> None:
        self.table().alter(*map(our_change, step["changes"]))

    def compact(self, step: dict) -> None:
        self.table().compact(full=step.get("full", True))

    def tag(self, step: dict) -> None:
        self.table().create_tag(step["name"], snapshot_id=step.get("snapshot"))


def told(table: Table) -> dict[int, pa.Table]:
    """What every snapshot tells, by the snapshot to go on from."""
    latest = table.snapshot().id
    steps = {number + 1: table.changes(number - 1, number, mode="changelog").to_arrow() for number in range(1, latest + 1)}
    return {number: rows for number, rows in steps.items() if rows.num_rows}


OLD_OVERWRITES = {"life-043--java-090"}
"""What Java 0.9 overwrites stays on level 0, so a full compaction tells these rows as new; later ones put it on top."""


def bounded(case: golden.Case) -> pytest.param:
    """Scripts that several versions played run once in the bounded run."""
    return pytest.param(case, id=case.name, marks=pytest.mark.full if "--" in case.name else ())


@pytest.mark.parametrize("case", [bounded(case) for case in CASES if case.name not in OLD_OVERWRITES])
def test_our_changelog_tells_what_the_one_of_java_tells(case, tmp_path):
    player = Player(str(tmp_path), case.table)
    for step in case.data["script"]["steps"]:
        getattr(player, step["op"])(step)
    stream = next(filter(is_whole, case.streams))
    wanted = {plan["next"]: plan for plan in stream["plans"] if plan["rows"]}
    found = told(player.table())
    assert list(found) == list(wanted)
    for number, plan in wanted.items():
        read = {"schema": stream["schema"], "rows": plan["rows"], "kinds": plan["kinds"]}
        assert golden.compare(case, read, found[number], kind_column="_row_kind") is None
