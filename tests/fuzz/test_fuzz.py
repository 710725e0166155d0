"""Damaged files, values and texts: right rows or an error of ours with a path, in bounded memory and time.

Inputs run in processes of their own. A finding prints its target and number: `python -m fuzz TARGET NUMBER` runs that input
again, with its traceback. What is allowed for the moment, and what no format can tell, stands in `fuzz.known`.
"""

from __future__ import annotations

import collections
import math

import pytest
from fuzz.known import CEILINGS, owner_of
from fuzz.plan import seeded, swept
from fuzz.runner import Job, run

BOUNDED = 20_000
BOUNDED_SHARDS = 4
FULL = 1_000_000
FULL_SHARDS = 100
SWEEP_SHARDS = 20


def check(report):
    """No finding but known ones, and no more silent damage than the formats cannot tell."""
    print(report)
    first, counts = {}, collections.Counter()
    for finding in report.findings:
        if owner_of(finding) is None:
            key = finding.target, finding.kind, finding.where
            counts[key] += 1
            first.setdefault(key, finding)
    lines = [f"{counts[key]} times: {finding}" for key, finding in first.items()]
    for name, inputs in report.inputs.items():
        most = inputs * CEILINGS.get(name, 0.0)
        silent = report.outcomes[name]["undetected"]
        if silent > math.ceil(most + 3 * math.sqrt(most)):
            lines.append(f"{name}: {silent} of {inputs} inputs gave other answers without an error, {most:.1f} are allowed")
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("number", range(BOUNDED_SHARDS))
def test_damage_is_refused_or_makes_no_difference(number):
    size = BOUNDED // BOUNDED_SHARDS
    report = run(seeded(size, first=number * size))
    assert sum(report.inputs.values()) >= size
    check(report)


@pytest.mark.full
@pytest.mark.parametrize("number", range(FULL_SHARDS))
def test_much_damage_is_refused_or_makes_no_difference(number):
    size = FULL // FULL_SHARDS
    report = run(seeded(size, first=1_000_000 + number * size))
    assert sum(report.inputs.values()) >= size
    check(report)


@pytest.mark.full
@pytest.mark.parametrize("shard", range(SWEEP_SHARDS))
def test_every_bit_of_footers_and_metadata_counts(shard):
    check(run(swept(shard, SWEEP_SHARDS)))


# -- the runner can say no ----------------------------------------------------------------------------------------------


def found(name, count=3):
    report = run([Job(name, 0, count)], workers=1)
    assert report.inputs[name] == count
    return {(finding.kind, finding.where) for finding in report.findings}, report


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("planted-memory", "memory"), ("planted-bomb", "memory"), ("planted-raw", "KeyError"),
        ("planted-pathless", "pathless CorruptionError"),
    ],
)  # fmt: skip
def test_the_runner_tells_of_broken_promises(target, kind):
    kinds, _ = found(target)
    assert {each[0] for each in kinds} == {kind}


def test_the_runner_goes_on_behind_an_input_that_ends_its_process():
    kinds, report = found("planted-abort", 12)
    assert {kind for kind, _ in kinds} == {"abort"}
    assert 0 < len(report.findings) < 12
    assert report.outcomes["planted-abort"]["right"] + len(report.findings) == 12


def test_the_runner_ends_an_input_that_does_not():
    kinds, _ = found("planted-loop", 1)
    assert {kind for kind, _ in kinds} == {"slow"}


def test_silent_damage_is_counted():
    _, report = found("planted-silent")
    assert report.undetected("planted-silent") == 1
    with pytest.raises(AssertionError, match="without an error"):
        check(report)


def test_a_seed_is_the_same_input_every_time():
    jobs = [Job("data-avro", 0, 40), Job("manifest", 100, 40), Job("where-text", 7, 100)]
    one, other = run(jobs, workers=1), run(list(reversed(jobs)), workers=2)
    assert one.outcomes == other.outcomes
    assert sorted(one.findings) == sorted(other.findings)


def test_ceilings_name_targets():
    from fuzz.worker import targets

    assert set(CEILINGS) <= set(targets())


def test_every_sweep_has_bits():
    from fuzz.worker import targets

    swept = {name: target.sweep() for name, target in targets().items() if target.sweep}
    assert min(swept.values()) > 0, swept
