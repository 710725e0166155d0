"""Finds options of a table that contradict each other, or have no effect with others. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.doctor.facts import Facts
from paimon_py.doctor.finding import NOTE, PROBLEM, WARNING, Finding
from paimon_py.spec.options import Options


def contradicting_options(facts: Facts) -> Iterator[Finding]:
    """Check that options do not contradict each other."""
    options = Options(facts.options)
    for name, why in facts.senseless.items():
        yield senseless_option(name, why)
    yield from _retention(options)
    yield from _write_only(options, facts)
    yield from _without_effect(options, facts)


def senseless_option(name: str, why: str) -> Finding:
    """The finding for an option with an invalid value."""
    return _finding(name, why, f"table.alter(RemoveOption({name!r}))", PROBLEM)


def _retention(options: Options) -> Iterator[Finding]:
    for what in ("snapshot", "changelog"):
        least, most = options.find_int(f"{what}.num-retained.min"), options.find_int(f"{what}.num-retained.max")
        if what == "changelog" and least is None and most is None:
            continue
        least = options.get_int("snapshot.num-retained.min") if least is None else least
        most = options.get_int("snapshot.num-retained.max") if most is None else most
        if least > most:
            name = f"{what}.num-retained.max"
            yield _finding(
                name, f"{what}.num-retained.min = {least} is more than {most}: nothing can expire",
                f"table.alter(SetOption({name!r}, '{least}'))", PROBLEM,
            )  # fmt: skip
    ours, theirs = options.find_duration("changelog.time-retained"), options.get_duration("snapshot.time-retained")
    if ours is not None and ours < theirs:
        yield _finding(
            "changelog.time-retained", "shorter than snapshot.time-retained, so that it has no effect",
            "table.alter(RemoveOption('changelog.time-retained'))",
        )  # fmt: skip
    name, trigger = "num-sorted-run.stop-trigger", options.get_int("num-sorted-run.compaction-trigger")
    stop = options.find_int(name)
    if stop is not None and stop < trigger:
        yield _finding(
            name, f"{name} = {stop} is less than num-sorted-run.compaction-trigger = {trigger}, which is used instead",
            f"table.alter(SetOption({name!r}, '{trigger + 3}'))",
        )  # fmt: skip


def _write_only(options: Options, facts: Facts) -> Iterator[Finding]:
    if not options.get_bool("write-only"):
        return
    producer = options.get_enum("changelog-producer")
    if producer in ("lookup", "full-compaction"):
        yield _finding(
            "write-only",
            f"writers do not compact, and with changelog-producer = {producer} only compactions report changes",
            "table.compact(full=True) in a separate job, regularly", WARNING,
        )  # fmt: skip
    if facts.is_keyed and options.get_bool("deletion-vectors.enabled"):
        yield _finding(
            "write-only", "writers do not compact, and with deletion-vectors.enabled rows are visible only afterwards",
            "table.compact() in a separate job, regularly", WARNING,
        )  # fmt: skip
    if options.find_int("full-compaction.delta-commits") is not None:
        yield _finding(
            "full-compaction.delta-commits", "writers of a write-only table do not compact: the option has no effect",
            "table.alter(RemoveOption('write-only'))",
        )  # fmt: skip


def _without_effect(options: Options, facts: Facts) -> Iterator[Finding]:
    if options.is_set("partition.expiration-time") and not facts.is_partitioned:
        yield _finding(
            "partition.expiration-time", "the table has no partitions that could expire",
            "table.alter(RemoveOption('partition.expiration-time'))",
        )  # fmt: skip
    if facts.followers and not options.is_set("consumer.expiration-time"):
        yield _finding(
            "consumer.expiration-time", "there are consumers, and none expires: a forgotten one keeps all snapshots",
            "table.alter(SetOption('consumer.expiration-time', '7 d'))",
        )  # fmt: skip


def _finding(option: str, message: str, mend: str, severity: str = NOTE) -> Finding:
    return Finding(code="options", severity=severity, message=message, option=option, mend=mend)
