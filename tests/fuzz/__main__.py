"""Run the fuzz suite by hand.

    python -m fuzz TARGET NUMBER            one input, with its traceback (a finding prints these two)
    python -m fuzz --inputs 20000           so many inputs of all targets
    python -m fuzz --inputs 2000 data-avro  of some targets
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections import Counter

from fuzz import worker
from fuzz.known import owner_of
from fuzz.plan import seeded
from fuzz.runner import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.inputs is None:
        name, number = given.words
        warnings.simplefilter("ignore")
        target = worker.target_of(name)
        print(target.run(random.Random(f"{name}:{number}") if target.sweep is None else int(number)))
        return
    names = [name for name in worker.targets() if not given.words or any(word in name for word in given.words)]
    report = run(seeded(given.inputs, given.first, names), given.workers)
    print(report)
    first = {}
    counts = Counter()
    for finding in report.findings:
        key = (owner_of(finding) or "NOBODY", finding.target, finding.kind, finding.where)
        counts[key] += 1
        first.setdefault(key, finding)
    for key, count in sorted(counts.items()):
        print(key[0], count, first[key])


main()
