"""Selects the files that must be merged with each other: files → sections → runs, on integer key ranks.

Source: Java `IntervalPartition`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import numpy as np

from paimon_py.arrays import Ints


def sections_of(min_ranks: Ints, max_ranks: Ints) -> list[list[int]]:
    """Cut files into sections whose key ranges do not touch, in key order.

    Shapes: two int64 arrays with one slot per file → file numbers per section, ordered by (min, max) in each.
    Cost: one sort of the files.
    """
    order, edges = section_edges(min_ranks, max_ranks)
    files = order.tolist()
    return [files[start:end] for start, end in itertools.pairwise(edges.tolist())]


def section_edges(min_ranks: Ints, max_ranks: Ints) -> tuple[Ints, Ints]:
    """The sections of `sections_of` as arrays: all file numbers, and where each section begins, with the end last.

    Shapes: section i is `order[edges[i] : edges[i + 1]]`; without files there is one edge.
    """
    count = len(min_ranks)
    if not count:
        return np.arange(0), np.zeros(1, np.int64)
    order = np.lexsort((max_ranks, min_ranks))
    reach = np.maximum.accumulate(max_ranks[order])
    begins = np.flatnonzero(min_ranks[order][1:] > reach[:-1]) + 1
    return order, np.concatenate(([0], begins, [count]))


def runs_of(
    section: Sequence[int], min_ranks: Sequence[int] | Ints, max_ranks: Sequence[int] | Ints
) -> list[list[int]]:
    """Cut one section, ordered by (min, max), into the fewest sorted runs that its overlaps allow.

    Shapes: file numbers → file numbers per run; inside a run key ranges ascend and do not touch.
    """
    if len(section) == 1:
        return [list(section)]
    runs: list[list[int]] = []
    ends: list[tuple[int, int]] = []
    for file in section:
        low, high = min_ranks[file], max_ranks[file]
        if ends and ends[0][0] < low:
            number = ends[0][1]
            heapq.heapreplace(ends, (high, number))
            runs[number].append(file)
        else:
            heapq.heappush(ends, (high, len(runs)))
            runs.append([file])
    return runs
