"""Periods of automatic tags: names, and when a tag is due."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from paimon_py import OptionError
from paimon_py.spec.options import Options
from paimon_py.spec.tag_periods import TagPeriod, TagRule


def wall(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


HOURLY = {"tag.creation-period": "hourly"}
NAMES = [
    ({}, "2024-02-28", "2024-02-28"),
    ({"tag.period-formatter": "without_dashes"}, "2024-02-28", "20240228"),
    (HOURLY, "2024-02-28T23:00", "2024-02-28 23"),
    ({**HOURLY, "tag.period-formatter": "without_dashes"}, "2024-02-28T23:00", "20240228 23"),
    ({**HOURLY, "tag.period-formatter": "without_dashes_and_spaces"}, "2024-02-28T23:00", "2024022823"),
    ({"tag.creation-period": "two-hours", "tag.period-formatter": "without_dashes"}, "2024-02-28T22:00", "2024-02-28 22"),
    ({"tag.creation-period-duration": "30 min"}, "2024-02-28T23:30", "202402282330"),
]


@pytest.mark.parametrize(("options", "begins", "name"), NAMES)
def test_names(options, begins, name):
    period = TagPeriod.of(Options(options))
    assert (period.name(wall(begins)), period.begins(name)) == (name, wall(begins))
    assert period.before(wall("2024-02-29T00:05")) == wall(begins)


@pytest.mark.parametrize("name", ["2024-2-28", "2024-02-30", "x2024-02-28", "20240228", "", "t"])
def test_other_tags(name):
    assert TagPeriod.of(Options({})).begins(name) is None
    assert TagPeriod.of(Options(HOURLY)).begins(name) is None


def test_what_follows_a_day_does_not_count():
    assert TagPeriod.of(Options({})).begins("2024-02-28 by hand") == wall("2024-02-28")


def rule(**options):
    given = {name.replace("_", "-"): text for name, text in options.items()}
    return TagRule.of(Options({"tag.automatic-creation": "process-time", **{f"tag.{name}": text for name, text in given.items()}}))


@pytest.mark.parametrize(
    ("options", "moment", "last", "expected"),
    [
        ({}, "2024-02-29T12:00", None, "2024-02-28"),
        ({}, "2024-02-29T12:00", "2024-02-29", None),
        ({}, "2024-02-29T23:59", "2024-02-28", "2024-02-28"),
        ({"creation_delay": "1 h"}, "2024-03-01T00:59", "2024-02-29", None),
        ({"creation_delay": "1 h"}, "2024-03-01T01:00", "2024-02-29", "2024-02-29"),
        ({}, "2024-03-05T12:00", "2024-02-29", "2024-03-04"),
        ({"automatic_completion": "true"}, "2024-03-05T12:00", "2024-02-29", "2024-02-29"),
        ({"automatic_completion": "true"}, "2024-03-05T12:00", None, "2024-03-04"),
    ],
)
def test_when_a_tag_is_due(options, moment, last, expected):
    found = rule(**options).tag_at(wall(moment), None if last is None else wall(last))
    assert found == (None if expected is None else wall(expected))


def test_rules():
    assert TagRule.of(Options({})) is None and TagRule.of(Options({"tag.automatic-creation": "batch"})) is None
    given = {"sink.process-time-zone": "Europe/Berlin", "sink.watermark-time-zone": "Asia/Tokyo"}
    assert TagRule.of(Options({"tag.automatic-creation": "process-time", **given})).zone == "Europe/Berlin"
    assert TagRule.of(Options({"tag.automatic-creation": "watermark", **given})).zone == "Asia/Tokyo"
    assert TagRule.of(Options({"tag.automatic-creation": "watermark"})).zone == "UTC"
    for wrong in ({"tag.creation-delay": "1 d"}, {"tag.creation-period-duration": "0 s"}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            TagRule.of(Options({"tag.automatic-creation": "watermark", **wrong}))
