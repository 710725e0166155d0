"""Tags by time to live: each side lets go what the other one made, by calls and by commits, and by the table's option."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
from pair import Kind, Pair

pytestmark = pytest.mark.java

ROWS = [{"k": n, "v": f"v{n}"} for n in range(3)]
MOMENT = timedelta(milliseconds=1)


def begun(java, tmp_path, **options):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind([["k", "BIGINT"], ["v", "STRING"]], ["k"], options={"bucket": "1", **options}), "j")
    pair.act(("write", ROWS), "j")
    return pair


def names(pair):
    return [tag.name for tag in pair.table().tags()]


def tag_by_both(pair):
    """Tags that are over at once, that live on, and that live for good."""
    table = pair.table()
    for side, live in (("ours", table.create_tag), ("java", lambda name, retain: java_tag(pair, name, retain))):
        live(f"{side} over", retain=MOMENT)
        live(f"{side} later", retain=timedelta(hours=5))
        live(f"{side} for good", retain=None)


def java_tag(pair, name, retain):
    seconds = {} if retain is None else {"retained": f"PT{retain.total_seconds():.3f}S"}
    pair.step("tag", name=name, **seconds)


STAYING = ["java for good", "java later", "ours for good", "ours later"]


@pytest.mark.parametrize("by", ["our call", "our commit", "java's commit"])
def test_tags_whose_time_is_over_go(by, java, tmp_path):
    pair = begun(java, tmp_path)
    tag_by_both(pair)
    if by == "our call":
        assert sorted(pair.table().expire_tags()) == ["java over", "ours over"]
    else:
        pair.act(("write", ROWS), "o" if by == "our commit" else "j")
    assert sorted(names(pair)) == STAYING
    pair.agree()


@pytest.mark.parametrize("option", [None, "5 h"])
def test_tags_of_both_hold_the_same_time(option, java, tmp_path):
    pair = begun(java, tmp_path, **({} if option is None else {"tag.default-time-retained": option}))
    tag_by_both(pair)
    stored = [tag.value for tag in pair.table().tags()]
    found = {tag.name: (tag.time_retained_seconds, tag.create_time is None) for tag in stored}
    for kind in ("over", "later"):
        assert found[f"ours {kind}"] == found[f"java {kind}"]
    # Java's call with a duration of null does not ask the option; its call without one does
    assert found["java for good"] == (None, True)
    assert found["ours for good"] == ((None, True) if option is None else (18_000, False))


def test_a_tag_that_goes_takes_the_same_files_on_both_sides(java, tmp_path):
    left = []
    for by in ("o", "j"):
        pair = begun(java, tmp_path / by, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
        pair.table().create_tag("over", retain=MOMENT)
        pair.act(("write", [{"k": 0, "v": "new"}]), by)
        pair.act(("compact", True), by)
        pair.act(("write", [{"k": 1, "v": "new"}]), by)
        assert names(pair) == []
        left.append((len(pair.agree()), [snapshot.total_record_count for snapshot in pair.table().snapshots()]))
        shutil.rmtree(tmp_path / by)
    assert left[0] == left[1]
