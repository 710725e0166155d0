"""What commits do for their table: we and Java each commit to a copy, and of what was there the same is left."""

from __future__ import annotations

import os
import random
import shutil
import time
from datetime import timedelta

import pytest
from pair import HINTS, OUR_FILES, Kind, Pair
from passing import passing

from paimon_py.metadata.consumers import Consumer
from paimon_py.spec.layout import CONSUMER_MARK_PREFIX

pytestmark = pytest.mark.java

MADE = ("snapshot/", "changelog/", "tag/", "consumer/")
QUICK = {"2.0.0": range(3), "1.4.2": range(10, 11), "0.9.0": range(13, 14)}
FULL = {"2.0.0": range(100, 160), "1.4.2": range(160, 190), "0.9.0": range(190, 220)}
PERIODS = {
    "daily": "2020-01-01",
    "hourly": "2020-01-01 00",
    "two-hours": "2020-01-01 02",
}


def below(pair: Pair) -> set[str]:
    """All files, but for hints, which Java writes at other times, and for the marks that we record beside consumers and tags."""
    paths = (path for path in pair.path.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    return {str(path.relative_to(pair.path)) for path in paths if not path.name.startswith(CONSUMER_MARK_PREFIX)} - HINTS - OUR_FILES


def directories(pair: Pair) -> set[str]:
    """The directories of partitions and buckets."""
    paths = (str(path.relative_to(pair.path)) for path in pair.path.rglob("*") if path.is_dir())
    return {path for path in paths if path.startswith(("bucket-", "p="))}


def tags(pair: Pair) -> dict[str, tuple[int, float | None]]:
    return {tag.name: (tag.snapshot.id, tag.time_retained_seconds) for tag in pair.table()._root.tags.list()}


def check_readable(pair: Pair) -> None:
    """Whatever is left can be read."""
    table = pair.table()
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.id).to_arrow()
    for tag in table.tags():
        table.scan(tag=tag.name).to_arrow()
    for number in table._root.changelogs.ids():
        passing(table).changes(number - 1, number).to_arrow()


def options_of(rng: random.Random, version: str) -> dict[str, str]:
    least = rng.randrange(2, 5)
    options = {"snapshot.num-retained.min": str(least), "snapshot.num-retained.max": str(rng.choice([least, least + 1, 2**31 - 1])),
               "snapshot.time-retained": rng.choice(["1 ms", "1 h"]), "snapshot.expire.limit": rng.choice(["1", "2", "50"]),
               "consumer.expiration-time": "1 h"}  # fmt: skip
    if rng.random() < 0.4:
        more = rng.randrange(1, 4)
        options |= {"changelog.num-retained.min": str(least + more), "changelog.num-retained.max": str(least + more + 1)}
        options["changelog.time-retained"] = rng.choice(["2 ms", "2 h"])
    if rng.random() < 0.8:
        period = rng.choice(list(PERIODS))
        options |= {"tag.automatic-creation": rng.choice(["watermark", "watermark", "process-time"]), "tag.creation-period": period}
        completes = rng.choice(["true", "false"])
        options["tag.automatic-completion"] = "false" if version == "0.9.0" else completes  # which tags snapshots there anew
        if rng.random() < 0.5:
            options["tag.num-retained-max"] = str(rng.randrange(1, 4))
        if rng.random() < 0.5:
            options["tag.creation-delay"] = rng.choice(["10 min", "59 min"])
        if rng.random() < 0.4:
            styles = ["without_dashes"] if version == "0.9.0" else ["without_dashes", "without_dashes_and_spaces"]
            options["tag.period-formatter"] = rng.choice(styles)
        if rng.random() < 0.3:
            options["tag.default-time-retained"] = "7 d"
        if rng.random() < 0.3 and version != "0.9.0":
            options["tag.creation-period-duration"] = rng.choice(["90 min", "5 h"])
        if rng.random() < 0.3:
            options["sink.watermark-time-zone"] = rng.choice(["America/Los_Angeles", "GMT-08:30"])
        if rng.random() < 0.5 and version != "0.9.0":
            options["tag.create-success-file"] = "true"
    return options


def live(java, version: str, seed: int, directory) -> None:
    rng = random.Random(seed)
    parts = rng.choice([[], ["p"], ["p", "q"]])
    key = rng.choice([[*parts, "k"], []])
    options = {"bucket": "1" if key else "-1", "num-sorted-run.compaction-trigger": "99", **options_of(rng, version)}
    if key and rng.random() < 0.5:
        options["changelog-producer"] = "input"
    now = Pair(java(version), directory / "0", "t")
    if rng.random() < 0.6:
        options["snapshot.clean-empty-directories"] = "true"
    columns = [["p", "INT NOT NULL"], ["q", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"]]
    now.create(Kind(columns, key, parts, options), rng.choice("oj"))
    watermark = 1_700_000_000_000
    for step in range(1, 13):
        prepare(now, rng, options, step)
        before = below(now)
        sides = []
        for name in ("ours", "theirs"):
            shutil.copytree(now.warehouse, directory / f"{name}{step}")
            sides.append(Pair(now.java, directory / f"{name}{step}", "t"))
        ours, theirs = sides
        watermark += rng.randrange(0, 5 * 3_600_000)
        rows = [{"p": rng.randrange(2), "q": rng.choice("ab"), "k": rng.randrange(5), "v": f"{step}"}]
        held = ours.table().partitions() if parts and step > 2 and version != "0.9.0" and rng.random() < 0.3 else []
        if held:
            chosen = rng.choice(held).partition
            gone = {name: chosen[name] for name in parts[: rng.randrange(1, len(parts) + 1)]}
            ours.table().drop_partitions([gone])
            theirs.step("truncate", partitions=[gone])
        else:
            ours.our_write(rows, watermark=watermark)
            theirs.step("write", rows=rows, watermark=watermark)
        assert directories(ours) == directories(theirs), (options, step)
        check_readable(ours)
        left = [below(side) & before for side in sides]
        assert left[0] == left[1], (options, step, left[0] - left[1], left[1] - left[0])
        kept = [{name for name in below(side) if name.startswith(MADE)} for side in sides]
        assert kept[0] == kept[1], (options, step, tags(ours), tags(theirs))
        assert tags(ours) == tags(theirs), (options, step)
        now = rng.choice(sides)
        now.agree()


def prepare(now: Pair, rng: random.Random, options: dict[str, str], step: int) -> None:
    """Tags by hand, some of which are over, and consumers, some of which are gone for long."""
    table = now.table()
    if step > 1 and rng.random() < 0.3:
        table.create_tag(f"t{step}", rng.choice(table.snapshots()).id, retain=rng.choice([None, timedelta(milliseconds=1)]))
    styled = {"tag.period-formatter", "tag.creation-period-duration"} & options.keys()
    if step == 3 and rng.random() < 0.5 and "tag.creation-period" in options and not styled and not tags(now):
        table.create_tag(PERIODS[options["tag.creation-period"]], table.snapshots()[0].id)
    if step > 1 and rng.random() < 0.2:
        name = f"c{rng.randrange(3)}"
        table._root.consumers.put(Consumer(name, int(rng.choice(table.snapshots()).id)))
        if rng.random() < 0.7:
            past = time.time() - rng.choice([10, 2 * 3600])
            os.utime(now.path / "consumer" / f"consumer-{name}", (past, past))


@pytest.mark.parametrize(
    ("version", "seeds"),
    [*QUICK.items(), *(pytest.param(version, seeds[at : at + 10], marks=pytest.mark.full)
                       for version, seeds in FULL.items() for at in range(0, len(seeds), 10))],
    ids=lambda given: given if isinstance(given, str) else f"{given[0]}-{given[-1]}",
)  # fmt: skip
def test_commits_leave_the_same(version, seeds, java, tmp_path):
    for seed in seeds:
        live(java, version, seed, tmp_path / str(seed))
