"""Which options are idle: all that Paimon gives a meaning and paimon_py neither acts on nor refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import paimon_py
from paimon_py import OptionError
from paimon_py.spec.idle_options import IDLE, OF_METASTORES, idle_options
from paimon_py.spec.options import OPTIONS, is_default

PACKAGE = Path(paimon_py.__file__).parent
ELSEWHERE = {
    PACKAGE / "spec" / name
    for name in ("option_rows/features.py", "option_rows/tables.py", "option_names.py", "idle_options.py", "validation.py")
}
"""They name options and do nothing with them, or only refuse wrong ones."""

BUILT = {
    "data-file.external-paths.specific-fs", "data-file.external-paths.strategy", "data-file.external-paths.weights",
    "fields.default-aggregate-function", "pk-bitmap.index.columns", "pk-btree.index.columns", "pk-full-text.index.columns",
    "pk-multivalue.index.columns", "pk-vector.index.columns",
}  # fmt: skip
"""Found or refused by names that are put together."""

DECIDED = {
    "commit.force-compact": "commits wait for the compactions that they start in any case, as Java's do with it",
    "dynamic-partition-overwrite": "the argument `overwrite` decides",
    "postpone.batch-write-fixed-bucket": "rows wait for Table.compact, see docs/buckets.md",
    "metadata.stats-dense-store": "dense in any case, which every reader knows",
}

OF_REFUSED = re.compile(
    r"partition\.mark-done-action\.|(blob|vector|global-index|scalar-index|full-text-index|data-evolution|row-tracking|chain-table|format-table"
    r"|materialized-table|lookup\.blob|commit\.callback|incremental-)"
    r"|scan\.fallback-(snapshot|delta)|scan\.fallback-branch\."
)
"""They say more of what is refused by name, as a kind of table, a type, or another option."""

OF_IDLE = re.compile(
    r"variant\.shredding\.(adaptive\.|inferenceMode)|tag\.callback\.#|metastore\.tag-to-partition\."
    r"|visibility-callback\.(timeout|check)|manifest-sort\.(max|partition)|postpone\.batch-write-fixed-bucket\."
)
"""They say more of an idle option, and nothing without it."""

OF_STREAMS = re.compile(r"stream|continuous|scan\.bounded|(stream|batch)-scan-mode|scan\.ignore-progress|table-read\.|key-value\.")
"""They are for streams and system tables: there is no verb yet that could pass them over."""

PACE = re.compile(
    r"page-size|cache-page|sort-(engine|spill|compaction)|read\.batch|write\.batch|write-(buffer|max)|async-file|file-reader"
    r"|lookup|local-|cross-partition-upsert\.boot|file-operation|manifest\.merge-optimize|compaction\.file-num|sink\."
    r"|partition\.(sink|idle)|dynamic-bucket\.assigner"
)
"""They set the pace of an engine and its job; the table holds the same."""


def acted_on():
    files = set(PACKAGE.rglob("*.py"))
    assert files > ELSEWHERE
    text = "".join(path.read_text() for path in files - ELSEWHERE)
    return {name for name in OPTIONS if f'"{name}"' in text} | BUILT | set(DECIDED)


def test_every_option_is_acted_on_refused_idle_or_beside_the_point():
    others = (OF_REFUSED, OF_IDLE, OF_STREAMS, PACE)
    left = {name for name in OPTIONS if not any(kind.match(name) for kind in others)} - acted_on()
    assert left - set(IDLE) == set()
    assert set(IDLE) - set(OPTIONS) == set()


def test_an_option_that_is_acted_on_is_not_idle():
    # they are acted on by the catalogs that have a metastore
    assert acted_on() & set(IDLE) == {*OF_METASTORES}


@pytest.mark.parametrize(("name", "text"), [
    ("snapshot.time-retained", "60 min"), ("snapshot.num-retained.min", "10"), ("snapshot.num-retained.max", "2147483647"),
    ("snapshot.expire.execution-mode", "SYNC"), ("manifest-sort.enabled", "false"),
])  # fmt: skip
def test_defaults_however_they_are_written_are_not_idle(name, text):
    assert is_default(name, text)
    assert idle_options({name: text}) == {}


def test_idle_options_come_with_what_does_not_happen():
    options = {"metastore.partitioned-table": "true", "bucket": "2", "manifest-sort.enabled": "true", "strange": "x"}
    assert idle_options(options) == {
        "metastore.partitioned-table": "no metastore is notified",
        "manifest-sort.enabled": "manifests are not sorted",
    }
    for wrong in ("1 fortnight", 5):
        with pytest.raises(OptionError, match="scan.plan-auto-tag-for-read.time-retained"):
            idle_options({"scan.plan-auto-tag-for-read.time-retained": wrong})
