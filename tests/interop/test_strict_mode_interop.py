"""`commit.strict-mode.last-safe-snapshot`: we refuse the commits that Java refuses, whoever made those before."""

from __future__ import annotations

import itertools
import random

import pytest
from pair import Kind, Pair

from paimon_py import CommitConflictError, RemoveOption, SetOption

pytestmark = pytest.mark.java

SAFE = "commit.strict-mode.last-safe-snapshot"
COLUMNS = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"]]
KINDS = {
    "keyed": Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "1", "write-only": "true"}),
    "append": Kind(COLUMNS, [], ["p"], {"bucket": "-1", "write-only": "true"}),
    "vectors": Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}),
}


def script_of(rng: random.Random, verbs: list[str], length: int) -> list[tuple]:
    """Commits: the verb, the partition, the user, and the last safe snapshot. Compactions are of all partitions, by new users."""
    script = [("write", "a", "x", None), ("write", "b", "y", None)]
    for number in range(2, length):
        verb = rng.choice(verbs)
        safe = None if rng.random() < 0.3 else rng.randrange(number + 1)
        script.append((verb, rng.choice("ab"), rng.choice("xyz"), safe))
    return script


def ours(pair: Pair, number: int, step: tuple) -> bool:
    verb, partition, user, safe = step
    table = pair.table()
    if safe is not None:
        table.alter(SetOption(SAFE, str(safe)))
    try:
        if verb == "compact":
            left_out = table.compact(full=True).dropped_compaction
            assert left_out is None or SAFE in left_out
            return left_out is None
        else:
            more = {"overwrite": {"p": partition}} if verb == "overwrite" else {}
            pair.our_write([{"p": partition, "k": number}], user=user, identifier=number, **more)
    except CommitConflictError as error:
        assert SAFE in str(error)
        return False
    finally:
        if safe is not None:
            table.alter(RemoveOption(SAFE))
    return True


def javas(pair: Pair, number: int, step: tuple) -> bool:
    verb, partition, user, safe = step
    options = {"write-only": "false"} if verb == "compact" else {}
    options |= {} if safe is None else {SAFE: str(safe)}
    what = {"op": "write", "user": user, "id": number, "options": options, "rows": [{"p": partition, "k": number}]}
    if verb == "compact":
        what |= {"rows": [], "compact": "full", "user": f"care {number}"}
    elif verb == "overwrite":
        what["overwrite"] = {"p": partition}
    (found,) = pair.steps([what], check=False)
    assert found["ok"] or SAFE in found["error"], found
    return found["ok"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 30))])
def test_the_same_commits_are_refused(java, tmp_path, seed):
    rng = random.Random(seed)
    name = rng.choice([*KINDS])
    kind, verbs = KINDS[name], ["write", "write", "write", "overwrite", *(["compact"] if name != "append" else [])]
    script = script_of(rng, verbs, 12)
    answers, kinds = {}, {}
    for turn in ("o", "j", "oj", "jo"):
        pair = Pair(java("2.0.0"), tmp_path / "w", turn)
        pair.create(kind, turn[0])
        actors = itertools.cycle(ours if by == "o" else javas for by in turn)
        answers[turn] = [act(pair, number, step) for number, (step, act) in enumerate(zip(script, actors), 1)]
        kinds[turn] = [snapshot.commit_kind.value for snapshot in pair.table().snapshots()]
        pair.agree()
    for number, (step, *found) in enumerate(zip(script, *answers.values(), strict=True), 1):
        assert len(set(found)) == 1, f"{name}: commit {number}, {step}: {dict(zip(answers, found))} after {kinds}"
