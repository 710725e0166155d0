"""What Java makes of each damage that we call corruption is what our list of checks says (`foreign.refusals`)."""

from __future__ import annotations

import random
import re
import shutil

import pyarrow as pa
import pytest
from foreign.ask import Java
from foreign.damages import DAMAGES
from foreign.origins import OWN, Maker
from foreign.place import Place
from foreign.refusals import REFUSALS, REFUSES, WRONG

from paimon_py import Catalog
from paimon_py.errors import CorruptionError

pytestmark = [pytest.mark.java, pytest.mark.budget(None)]

NEW = {"p": "x", "k": 50, "v": "v", "n": 1}
STEPS = {
    "rows": {"op": "read"}, "tag t1": {"op": "read", "options": {"scan.tag-name": "t1"}},
    "filter": {"op": "read", "filter": ["=", "n", 1]}, "write": {"op": "write", "rows": [NEW]},
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(java, tmp_path_factory):
    """(Java, the warehouse of changed tables, the table of each damage)."""
    session, folder = Java(), tmp_path_factory.mktemp("damages")
    maker, made = Maker(session, folder), {}
    own = {origin.name for origin in OWN}
    for number, (name, damage) in enumerate(DAMAGES.items()):
        made[name] = f"t{number}"
        path = folder / "changed" / "db.db" / made[name]
        shutil.copytree(maker.path(damage.table, "j" if damage.table in own else "g"), path)
        damage.do(Place(path, random.Random(0)))
    yield session, folder / "changed", made
    session.close()


def refusal(catalog: Catalog, name: str, ask: str) -> str:
    """What we say; nothing where we read on."""
    try:
        table = catalog.table(name + (ask if ask[0] == "$" else ""))
        if ask == "write":
            table.write_arrow(pa.Table.from_pylist([NEW], schema=table.scan().schema))
        elif ask == "filter":
            table.scan(where="n = 1").to_arrow()
        else:
            table.scan(**({"tag": "t1"} if ask == "tag t1" else {})).to_arrow()
    except CorruptionError as error:
        return str(error)
    return ""


def pattern(words: str) -> str:
    """Words of a message in the source as a pattern of the message."""
    return ".*".join(re.escape(part.strip("'")) for part in re.split(r"\{.*?\}", words))


def test_java_answers_damage_as_the_list_says(tables):
    java, warehouse, made = tables
    catalog, said = Catalog.open(str(warehouse)), {}
    for name, table in made.items():
        said[name] = refusal(catalog, f"db.{table}", DAMAGES[name].ask)
    steps = [
        {**STEPS[damage.ask], "table": f"db.{made[name]}"} if damage.ask in STEPS else {"op": "read", "table": f"db.{made[name]}{damage.ask}"}
        for name, damage in DAMAGES.items()
    ]  # fmt: skip
    reads = {name: answer["ok"] for name, answer in zip(DAMAGES, java.run(str(warehouse), steps, check=False), strict=True)}
    wrong = [f"{name} is read" for name, text in said.items() if not text]
    for module, rows in REFUSALS.items():
        for row in rows:
            answers = [reads[name] for name in row.damages]
            wrong += [f"{module}: {name}: {said[name]}" for name in row.damages if not re.search(pattern(row.words), said[name])]
            if (row.java == REFUSES and any(answers)) or (row.java == WRONG and answers and not any(answers)):
                wrong.append(f"{module} {row.function}: {row.words}: Java reads {dict(zip(row.damages, answers, strict=True))}")
    assert not wrong, "\n".join(wrong)
