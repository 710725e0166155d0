"""Tables with `primary-key.nullable`, of 2.1: NULL in a key is a value that equals itself and is below all others."""

from __future__ import annotations

import pytest

from paimon_py import (
    Catalog,
    OptionError,
    RemoveOption,
    Schema,
    SchemaError,
    SetOption,
    UpdateColumnNullability,
    UsageError,
)

NULLABLE = {"primary-key.nullable": "true", "bucket": "2"}


def table_of(tmp_path, keys=("k", "j"), **options):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    columns = {"k": "STRING NOT NULL", "j": "INT", "v": "INT", "w": "INT"}
    return catalog.create_table("db.t", Schema(columns), primary_key=list(keys), options={**NULLABLE, **options})


def rows(found):
    return sorted(map(tuple, (row.values() for row in found.to_pylist())), key=repr)


@pytest.mark.parametrize("options", [
    {}, {"bucket": "-1"}, {"bucket": "1", "deletion-vectors.enabled": "true"}, {"file.format": "avro", "data-file.thin-mode": "true"},
    {"file.format": "orc", "changelog-producer": "lookup"}, {"merge-engine": "partial-update"}, {"bucket": "-2"},
], ids=str)
def test_rows_with_null_in_their_key_are_rows_as_others(tmp_path, options):
    table = table_of(tmp_path, **options)
    model = {}
    for turn in range(4):
        new = [{"k": k, "j": j, "v": turn, "w": None} for k in (None, "a", "b") for j in (None, -1, 4) if (turn + len(k or "") + (j or 0)) % 2]
        table.write_arrow(new)
        model |= {(row["k"], row["j"]): row for row in new}
        if options.get("bucket") == "-2":
            table.compact()
    wanted = sorted(map(tuple, (row.values() for row in model.values())), key=repr)
    for _ in range(2):
        assert rows(table.to_arrow()) == wanted and table.scan().count() == len(model)
        assert rows(table.scan(where="k is null").to_arrow()) == [row for row in wanted if row[0] is None]
        assert rows(table.scan(where="j is not null and k = 'a'").to_arrow()) == [row for row in wanted if row[0] == "a" and row[1] is not None]
        asked = [{"k": k, "j": j} for k in (None, "b", "z") for j in (4, None)]
        assert table.lookup(asked).to_pylist() == [model[tuple(key.values())] for key in asked if tuple(key.values()) in model]
        many = [{"k": k, "j": j} for k in ("a", None) for j in (*range(-50, 50), None)]
        assert table.lookup(many).to_pylist() == [model[tuple(key.values())] for key in many if tuple(key.values()) in model]
        table.compact(full=True)


def test_verbs_find_the_row_of_null(tmp_path):
    table = table_of(tmp_path, keys=("k",))
    table.write_arrow([{"k": None, "j": 1, "v": 1, "w": 1}, {"k": "a", "j": 2, "v": 2, "w": 2}])
    table.upsert([{"k": None, "v": 5}, {"k": "b", "v": 6}])
    assert rows(table.to_arrow()) == [("a", 2, 2, 2), ("b", None, 6, None), (None, 1, 5, 1)]
    source = [{"k": None, "v": 7}, {"k": "a", "v": 7}]
    table.merge(source, on=["k"], when_matched_update={"v": "source.v"})
    assert rows(table.to_arrow())[2] == (None, 1, 5, 1)  # as in SQL, NULL matches nothing
    with pytest.raises(UsageError, match=r"has NULL in the primary key \('k'\).* Write such rows with upsert"):
        table.merge(source, on=["k"], when_matched_update={"v": "source.v"}, when_not_matched_insert={"k": "source.k", "v": "source.v"})
    table.update("k is null", {"w": 9})
    table.delete("k = 'a'")
    assert rows(table.to_arrow()) == [("b", None, 6, None), (None, 1, 5, 9)]
    table.delete("k is null")
    assert rows(table.to_arrow()) == [("b", None, 6, None)]


def test_the_option_makes_keys_nullable_and_stays(tmp_path):
    table = table_of(tmp_path)
    assert [str(field.type.nullable) for field in table.schema.fields] == ["True"] * 4
    table.alter(SetOption("alter-column-null-to-not-null.disabled", "false"))
    table.write_arrow([{"k": None, "j": None, "v": 1, "w": 1}])
    for change in (SetOption("primary-key.nullable", "false"), RemoveOption("primary-key.nullable")):
        with pytest.raises(OptionError, match="cannot change once the table holds data"):
            table.alter(change)
    with pytest.raises(SchemaError, match="'primary-key.nullable' allows NULL in primary-key column 'k'"):
        table.alter(UpdateColumnNullability("k", False))
