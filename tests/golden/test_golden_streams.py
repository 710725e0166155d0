"""Streams of tables written by Java Paimon have the steps, rows and kinds that Java's have."""

from __future__ import annotations

import golden
import pytest
from filters import predicate
from locate import CORPUS
from passing import passing

from paimon_py import Catalog, SnapshotExpiredError

CASES = [case for case in golden.cases(str(CORPUS)) if case.streams and (case.stage < 6 or case.name.startswith(("row-ids-", "evolve-")))]


def stream_of(case: golden.Case, stream: dict, warehouse: str):
    where = None
    if "filter" in stream:
        where = predicate(stream["filter"], {name: golden.parse_type(kind) for name, kind in stream["schema"]})
    return passing(Catalog.open(warehouse).table(stream["table"])).stream(
        from_=stream.get("from", "full"), columns=stream.get("projection"), where=where, options=stream.get("options"),
    )  # fmt: skip


def difference(case, stream, plan, table):
    read = {"schema": stream["schema"], "rows": plan["rows"], "kinds": plan["kinds"]}
    return golden.compare(case, read, table, kind_column=None if "$" in stream["table"] else "_row_kind")


WAITS_IN_JAVA = ("decoupled-input", "decoupled-input--java-090", "decoupled-input--java-142")
"""Java deleted the changelogs that these tables were to keep, and waits for them for ever; we say that they are gone."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stream_has_the_steps_of_java(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    for number, stream in enumerate(case.streams):
        ours = stream_of(case, stream, warehouse)
        if "error" in stream or case.name in WAITS_IN_JAVA:
            with pytest.raises(SnapshotExpiredError, match="snapshot.num-retained"):
                ours.poll()
            continue
        where = f"stream {number} {stream.get('from')} {stream.get('options')}"
        steps = list(iter(ours.poll, None))
        wanted = [plan for plan in stream["plans"] if plan["rows"]]
        assert [(step.next_snapshot_id, step.watermark) for step in steps if len(step.to_arrow())] == [
            (plan["next"], plan.get("watermark")) for plan in wanted
        ], where
        assert ours.position.split(":")[1] == str(stream["plans"][-1]["next"] - 1), where
        assert [step.is_full for step in steps[1:]] == [False] * (len(steps) - 1)
        assert not steps or steps[0].is_full == ("from" not in stream and "options" not in stream)
        for plan, step in zip(wanted, [step for step in steps if len(step.to_arrow())]):
            assert difference(case, stream, plan, step.to_arrow()) is None, f"{where}: {step}"
