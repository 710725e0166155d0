"""A PostgreSQL that changes → Debezium → `paimon_py.cdc`, killed at random: the tables end as the database."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from change_source import plain, source

from paimon_py import Catalog

ROOT = Path(__file__).parents[2]
STEP = 40
WORKER = """
import json, sys
from pathlib import Path
from paimon_py import Catalog
from paimon_py.cdc import Sink, of_lines
warehouse, lines, step = sys.argv[1], Path(sys.argv[2]).read_text().split("\\n")[:-1], int(sys.argv[3])
sink = Sink(Catalog.open(warehouse), "lake", user="live", options={"bucket": "2"})
for start in range(0, len(lines), step):
    print(sink.write(of_lines(lines[start : start + step]), identifier=start), flush=True)
"""
TABLES = {"orders": "id", "items": "a, b"}


@pytest.fixture
def changing():
    place = Path(tempfile.mkdtemp(prefix="cdc-live-"))
    try:
        with source(place) as found:
            yield found
    finally:
        shutil.rmtree(place, ignore_errors=True)


def life(seed):
    """Statements that change two tables, and widen and lengthen them on the way."""
    rng = random.Random(seed)
    said = [
        "CREATE TABLE orders (id bigint PRIMARY KEY, n smallint, price numeric(8,2), note varchar(20), at timestamp(3));",
        "CREATE TABLE items (a int, b text, v double precision, PRIMARY KEY (a, b));",
        "ALTER TABLE items REPLICA IDENTITY FULL;",
    ]
    for number in range(600):
        if number == 200:
            said.append("ALTER TABLE orders ADD COLUMN extra text; ALTER TABLE orders ALTER COLUMN n TYPE integer;")
        if number == 400:
            said.append("ALTER TABLE orders ALTER COLUMN price TYPE numeric(12,3); ALTER TABLE items ADD COLUMN w date;")
        key, n = rng.randrange(60), rng.randrange(-30000, 30000)
        said.append(
            rng.choice(
                [
                    f"INSERT INTO orders(id, n, price, note, at) VALUES ({key}, {n}, {n}.25, 'ä{n}', "
                    f"timestamp '2024-01-01' + interval '{n} hours') ON CONFLICT (id) DO UPDATE SET n = excluded.n, price = 0.5;",
                    f"DELETE FROM orders WHERE id = {key};",
                    f"UPDATE orders SET note = NULL, n = {n} WHERE id % 7 = {key % 7};",
                    f"INSERT INTO items(a, b, v) VALUES ({key % 9}, 'b{n % 5}', {n} / 7.0) ON CONFLICT DO NOTHING;",
                    f"UPDATE items SET a = {key + 100 + number} WHERE a = {key % 9} AND b = 'b{n % 5}';",
                    f"DELETE FROM items WHERE a = {key % 9};",
                    f"BEGIN; DELETE FROM orders WHERE id = {key}; INSERT INTO orders(id, n) VALUES ({key}, 1); COMMIT;",
                ]
            )
        )
    return said


@pytest.mark.full
@pytest.mark.server
@pytest.mark.parametrize("seed", [1, 2])
def test_tables_end_as_the_database_when_the_sink_is_killed_at_random(changing, tmp_path, seed):
    changing.change(life(seed))
    rng, kills = random.Random(seed), 0
    command = [sys.executable, "-c", WORKER, str(tmp_path / "wh"), str(changing.lines), str(STEP)]
    while True:
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = worker.communicate(timeout=rng.uniform(0.8, 4) if kills < 8 else 300)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.communicate()
            kills += 1
            continue
        assert worker.returncode == 0, said.decode()
        break
    catalog = Catalog.open(str(tmp_path / "wh"))
    assert set(catalog.tables("lake")) == {"orders", "items", "done"}, "dead letters"
    for name, key in TABLES.items():
        expected = [json.loads(line) for line in changing.sql(f"SELECT row_to_json({name}) FROM {name} ORDER BY {key};").split("\n")[:-1]]
        got = catalog.table(f"lake.{name}").to_arrow().sort_by([(part, "ascending") for part in key.split(", ")]).to_pylist()
        assert [plain(row) for row in got] == [plain(row) for row in expected]
        assert len(got) > 3
