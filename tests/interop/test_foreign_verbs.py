"""Tables that another writer might have left, in the hands of our verbs: whatever we acknowledge can be read.

A finding prints its seed; `Guests(folder, names).live(seed)` makes it again.
"""

from __future__ import annotations

import pytest
from foreign.origins import OWN, golden_cases
from foreign.verbs import Guests

FEW = [("wide append parquet", "o"), ("keys in parts avro", "o"), ("append in parts", "o"), ("partial update", "o")]
FULL_SHARDS, SHARD = 20, 50


def check(guests, seeds):
    found = [trouble for trouble in map(guests.live, seeds) if trouble is not None]
    print(f"{guests.lived} tables, {guests.acknowledged} acknowledged calls")
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("shard", range(4))
def test_no_verb_makes_a_table_of_strangers_unreadable(tmp_path, shard):
    guests = Guests(tmp_path, FEW)
    check(guests, range(500_000 + 12 * shard, 500_000 + 12 * (shard + 1)))
    assert guests.acknowledged > 3


@pytest.mark.full
@pytest.mark.parametrize("shard", range(FULL_SHARDS))
def test_no_verb_makes_any_table_of_strangers_unreadable(tmp_path, shard):
    every = [(origin.name, "o") for origin in OWN] + [(name, "g") for name in golden_cases()]
    check(Guests(tmp_path, every), range(shard * SHARD, (shard + 1) * SHARD))
