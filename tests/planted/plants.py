"""Planted bugs: how the package would be wrong, and which tests should say so.

A plant replaces one snippet of the package, which must be found exactly once in it, in whatever file. After a change of
the code that a snippet shows, write the same bug into the new code.
"""

from __future__ import annotations

from typing import NamedTuple


class Plant(NamedTuple):
    """`name`: the bug. `old`, `new`: a snippet of the package and what replaces it. `judges`: tests, below `tests/`."""

    name: str
    old: str
    new: str
    judges: tuple[str, ...]


def plant(name: str, old: str, new: str, *judges: str) -> Plant:
    return Plant(name, old, new, judges)


MERGING = (
    plant(
        "a merge window ends on the first key of another run",
        "probe.key(len(probe) - 1) >= limit)",
        "probe.key(len(probe) - 1) > limit)",
        "unit/lsm/test_merge.py",
    ),
    plant(
        "negative zero and zero are one key",
        "wide = numpy_values(array).astype(np.float64)",
        "wide = numpy_values(array).astype(np.float64) + 0.0",
        "unit/lsm/test_order.py",
    ),
    plant(
        "every NaN is a key of its own",
        "words[np.isnan(wide)] = np.uint64((1 << 64) - 1)",
        "pass",
        "unit/lsm/test_order.py",
    ),
    plant(
        "decimals beyond 64 bits are ordered by their lower words alone",
        "return [_ranged_part(high ^ _SIGN, valid), _ranged_part(low, valid)]",
        "return [_ranged_part(low, valid)]",
        "unit/lsm/test_order.py",
    ),
    plant(
        "nulls among descending sequence fields are the newest",
        "head = parts[:1] if nullable else []",
        "head: list[Part] = []",
        "unit/lsm/test_order.py",
    ),
    plant(
        "with one sequence number an add does not come after a delete",
        "return [(values & 1 == 0).astype(np.uint64)]",
        "return [(values & 1 == 1).astype(np.uint64)]",
        "unit/lsm/test_merge.py",
    ),
    plant(
        "files that touch in one key are not merged",
        "begins = np.flatnonzero(min_ranks[order][1:] > reach[:-1]) + 1",
        "begins = np.flatnonzero(min_ranks[order][1:] >= reach[:-1]) + 1",
        "unit/lsm/test_intervals.py",
    ),
    plant(
        "two files with a common key share a sorted run",
        "if ends and ends[0][0] < low:",
        "if ends and ends[0][0] <= low:",
        "unit/lsm/test_intervals.py",
    ),
    plant(
        "spilled runs are merged too early where versions come between",
        "engine=EveryRow() if plan.repeats else plan.engine, drop_deletes=False)",
        "drop_deletes=False)",
        "unit/lsm/test_spill.py",
    ),
    plant(
        "rows after a spill begin with the sequence number of the spilled ones",
        "first = self._first_sequence + self._spilled_rows\n            count",
        "first = self._first_sequence\n            count",
        "unit/lsm/test_spill.py",
    ),
    plant(
        "first-row keeps the newest row",
        "if adds.all():\n            return Merged(groups.oldest_rows)",
        "if adds.all():\n            return Merged(groups.newest_rows)",
        "unit/lsm/test_first_row.py",
    ),
    plant(
        "ignored deletes still win",
        "newest_add = np.maximum.reduceat(positions, groups.firsts)",
        "newest_add = groups.ends - 1",
        "unit/lsm/test_deduplicate.py",
    ),
    plant(
        "a sum of decimals wraps at 64 bits",
        "if most * longest <= _LONG and most <",
        "if most <",
        "unit/lsm/test_aggregates.py",
    ),
    plant(
        "retracted values are added to a sum",
        "signed = part.values if fold.retracts is None else np.where(fold.retracts, -part.values, part.values)",
        "signed = part.values",
        "unit/lsm/test_aggregates.py",
    ),
    plant(
        "a partial update takes what a sequence group says is older",
        "placed = segments << self.bits | numbers\n        newest: Mask = placed == np.maximum.accumulate(placed)",
        "newest: Mask = numbers >= 0",
        "unit/lsm/test_partial_update.py",
    ),
    plant(
        "deletes end although older rows lie above",
        "return settings.deletion_vectors or output_level >= max((run.level for run in runs), default=-1)",
        "return settings.deletion_vectors or output_level > 0",
        "unit/compaction/test_picker.py",
        "golden/test_lsm.py",
    ),
    plant(
        "the picker waits for one run more than the trigger",
        "if count < trigger:\n            return None",
        "if count <= trigger:\n            return None",
        "unit/compaction/test_picker.py",
        "golden/test_lsm.py",
    ),
    plant(
        "the picker counts the last run into the size amplification",
        "if sum(self.sizes[:-1]) * 100 > self.settings",
        "if sum(self.sizes) * 100 > self.settings",
        "unit/compaction/test_picker.py",
        "golden/test_lsm.py",
    ),
    plant(
        "level 0 is read oldest first",
        "return -file.max_sequence, file.min_sequence",
        "return file.max_sequence, file.min_sequence",
        "unit/compaction/test_picker.py",
        "golden/test_lsm.py",
    ),
)

BYTES = (
    plant(
        "a text of seven bytes leaves its slot in a BinaryRow",
        "long = lengths > INLINE_LIMIT",
        "long = lengths >= INLINE_LIMIT",
        "unit/codec/binary_row",
    ),
    plant(
        "DECIMAL(18) is stored wide in a BinaryRow",
        "COMPACT_DECIMAL = 18",
        "COMPACT_DECIMAL = 17",
        "unit/codec/binary_row",
    ),
    plant(
        "the hash of a BinaryRow forgets its length",
        "out: Hashes = hashes ^ np.asarray(length, np.uint32)",
        "out: Hashes = hashes ^ np.uint32(0)",
        "unit/codec/binary_row",
    ),
    plant(
        "the bucket of a negative hash is the mathematical remainder",
        "np.abs(np.fmod(hash_rows(columns, types), np.int32(buckets)))",
        "np.mod(hash_rows(columns, types), np.int32(buckets))",
        "unit/codec/test_buckets.py",
    ),
    plant(
        "a varint loses the sign of its zigzag",
        "value &= 0xFFFF_FFFF_FFFF_FFFF\n    return (value >> 1) ^ -(value & 1), position + 1",
        "value &= 0xFFFF_FFFF_FFFF_FFFF\n    return value >> 1, position + 1",
        "unit/codec/test_avro.py",
        "unit/codec/test_avro_shape.py",
    ),
    plant(
        "a nullable value of Avro names the other branch",
        'emit(b"\\x00" if value is None else b"\\x02")',
        'emit(b"\\x02" if value is None else b"\\x00")',
        "unit/codec/test_avro_shape.py",
        "unit/codec/test_avro.py",
    ),
    plant(
        "the checksum of a deletion vector is not compared",
        "if zlib.crc32(body) != expected:",
        "if expected < 0:",
        "unit/codec/test_deletion_vectors.py",
    ),
    plant(
        "a deletion vector is read one row late",
        "batch = _without(batch, dead.within(position, position + batch.num_rows) - position)",
        "batch = _without(batch, dead.within(position + 1, position + batch.num_rows) - position)",
        "unit/scan/test_deletions.py",
        "unit/files/test_reader.py",
    ),
    plant(
        "a hash index is written lowest byte first",
        'return hashes.astype(">i4").tobytes()',
        'return hashes.astype("<i4").tobytes()',
        "unit/write/test_dynamic_buckets.py",
    ),
    plant(
        "a bitmap index answers for the next key where it lacks one",
        "if at < len(self.keys) and self.keys[at] == key else None",
        "if at < len(self.keys) else None",
        "unit/codec/test_file_index.py",
    ),
    plant(
        "a bloom filter sets the bits of half of its hashes",
        "steps = np.arange(1, count + 1, dtype=np.int32)[:, None]",
        "steps = np.arange(0, count, dtype=np.int32)[:, None]",
        "unit/codec/test_file_index.py",
    ),
    plant(
        "ORC timestamps before 1970 are one second late",
        "seconds -= (seconds < 0) & (nanos > 999_999)",
        "pass",
        "unit/formats/test_orc_timestamps.py",
    ),
    plant(
        "microseconds before 1970 are cut towards zero in a BinaryRow",
        "millis = values // per_milli",
        "millis = np.trunc(values / per_milli).astype(np.int64)",
        "unit/codec/binary_row",
    ),
    plant(
        "decimals are rounded down where a column gets a smaller scale",
        "wide = scaled_down(array, scale, half_up=True)",
        "wide = scaled_down(array, scale, half_up=False)",
        "unit/files/test_cast.py",
    ),
    plant(
        "decimals that a narrower column cannot hold keep their digits",
        "return pc.cast(pc.if_else(fits, wide, pa.scalar(None, wide.type)), target)",
        "return pc.cast(pc.if_else(fits, wide, high), target)",
        "unit/files/test_cast.py",
    ),
)

READING = (
    plant(
        "the upper bound of a long text is cut like the lower one",
        "code = ord(high[at]) + 1",
        "code = ord(high[at])",
        "unit/files/test_stats.py",
    ),
    plant(
        "files are pruned although nobody counted their nulls",
        "return bits if not mask.null_count else bits | ~_bits(mask.buffers()[0], mask.offset, size)",
        "return bits if not mask.null_count else bits & _bits(mask.buffers()[0], mask.offset, size)",
        "unit/expr/test_prune.py",
    ),
    plant(
        "files of a value and of NaN are pruned by comparisons with larger values",
        'return leaf.operator in (("==",) if leaf.literal != leaf.literal else ("!=", ">", ">="))',
        'return leaf.operator in (("==",) if leaf.literal != leaf.literal else ("!=",))',
        "unit/expr/test_prune.py",
    ),
    plant(
        "a backslash in LIKE escapes nothing",
        'if sign == "\\\\" and position + 1 < len(pattern):',
        'if sign == "\\\\" and position + 1 < 0:',
        "unit/expr",
    ),
    plant(
        "LIKE stops at the end of a line",
        'if ignore_case else "(?s)")',
        'if ignore_case else "")',
        "unit/expr",
    ),
    plant(
        "columns of older files are found by name",
        "by_id = {field.id: field for field in file_fields}\n        self.sources = tuple(by_id[field.id] for field in"
        " read_fields if field.id in by_id)",
        "names = {field.name: field for field in file_fields}\n        by_id = {field.id: names[field.name] for field in"
        " read_fields if field.name in names}\n        self.sources = tuple(by_id[field.id] for field in read_fields"
        " if field.id in by_id)",
        "unit/files/test_evolve.py",
    ),
    plant(
        "a predicate finds the columns of older files by name",
        "field = next((field for field in fields if field.id == field_id), None)",
        "field = next((field for field in fields if field.name == ref.name), None)",
        "unit/expr/test_split.py",
    ),
    plant(
        "values of deleted rows are calculated before rows are merged",
        "return msgspec.structs.replace(predicate, keeps_failing=True)",
        "return predicate",
        "unit/expr/test_value_conditions.py",
    ),
    plant(
        "values are calculated for rows that another part of the condition has ruled out",
        "late = [_among_rows(part) for part in predicate.parts if calculates(part)]",
        "late = [lambda columns, _, mask=_node(part): mask(columns) for part in predicate.parts if calculates(part)]",
        "unit/expr/test_value_conditions.py",
    ),
    plant(
        "conditions on calculated values of some rows are taken for decided",
        "if not columns_of(part) <= wanted or may_fail(part):",
        "if not columns_of(part) <= wanted:",
        "unit/expr/test_value_conditions.py",
    ),
    plant(
        "a calculated zero keeps its sign in conditions",
        "return pc.add(array, 0.0) if pa.types.is_floating(array.type) else array",
        "return array",
        "unit/expr/test_where_texts.py",
    ),
    plant(
        "bounds of a column that a file lacks count no nulls",
        "null_count=from_numpy(entries.row_count, pa.int64()))",
        "null_count=from_numpy(entries.row_count * 0, pa.int64()))",
        "unit/files/test_stats_evolution.py",
    ),
    plant(
        "a limit leaves out files before rows are filtered",
        "some = self._order or self._where is not None or not self._view.one_for_one(self._request)",
        "some = self._order or not self._view.one_for_one(self._request)",
        "unit/scan/test_scan.py",
        "unit/scan/test_pushdown_life.py",
    ),
    plant(
        "the first rows of an order lose those that tie in its first column",
        "return bind(column >= last if descending else column <= last, [field])",
        "return bind(column > last if descending else column < last, [field])",
        "unit/scan/test_top_n.py",
    ),
    plant(
        "a lookup remembers the snapshot that a rollback took away",
        "if state is None or state.snapshot != snapshot or",
        "if state is None or state.snapshot.id != snapshot.id or",
        "unit/lookup",
    ),
    plant(
        "a null inside a row is a row of nulls",
        "bitmap, nulls = validity_bitmap(nulls_or_none(rows))\n    return pa.Array.from_buffers(kind, len(rows), [bitmap]",
        "nulls = 0\n    return pa.Array.from_buffers(kind, len(rows), [None]",
        "unit/files/test_evolve.py",
        "unit/files/test_cast.py",
    ),
    plant(
        "rows older than the oldest time by less than a second end",
        "ended: Mask = _seconds(times) < self.oldest",
        "ended: Mask = _seconds(times) <= self.oldest",
        "unit/files/test_expiry.py",
    ),
)

COMMITTING = (
    plant(
        "an entry is another file if only its level differs is forgotten",
        "        columns.level,\n        same[extra_codes],",
        "        same[extra_codes],",
        "unit/metadata/test_fold.py",
    ),
    plant(
        "a DELETE ends all files of its manifest",
        "alive[rows] = added & ~np.isin(codes, codes[deleted])",
        "alive[rows] = False",
        "unit/metadata/test_fold.py",
    ),
    plant(
        "the hint is trusted although newer snapshots are there",
        "if not self._exists(hint + 1):",
        "if hint:",
        "unit/metadata/test_snapshots.py",
    ),
    plant(
        "a hint is lowered",
        "if current is None or current < value:",
        "if current is None or current != value:",
        "unit/metadata/test_snapshots.py",
    ),
    plant(
        "a local file that is there is replaced by put_new",
        "os.link(temporary, path)\n",
        "os.replace(temporary, path)\n",
        "unit/storage/test_local_store.py",
    ),
    plant(
        "a put_new whose answer was lost is tried again by the store",
        "-> bool:\n        return self._store.put_new(path, data, within=within)",
        "-> bool:\n        return self._retried(lambda: self._store.put_new(path, data, within=within))",
        "unit/storage/test_retry.py",
    ),
    plant(
        "a bucket's file is deleted twice without a word",
        "before = after.pop(key, None)",
        "before = after.get(key)",
        "unit/commit/test_conflicts.py",
    ),
    plant(
        "files of one level may overlap in one key",
        "if before.max_rank >= after.min_rank:",
        "if before.max_rank > after.min_rank:",
        "unit/commit/test_conflicts.py",
    ),
    plant(
        "rows of a column that became NOT NULL are committed",
        "if written.nullable and not latest.nullable:",
        "if written.nullable and not latest.nullable and not where:",
        "unit/commit/test_conflicts.py",
    ),
    plant(
        "new sequence numbers begin again at the largest one",
        "return self.max_sequences.get((partition, bucket), -1) + 1",
        "return self.max_sequences.get((partition, bucket), 0)",
        "unit/write/test_existing.py",
        "unit/write/test_session.py",
    ),
    plant(
        "a union of hash indexes forgets what others added",
        "now[bucket] = np.union1d(current, added)",
        "now[bucket] = added",
        "unit/write/test_dynamic_buckets.py",
    ),
    plant(
        "a dynamic bucket takes one key more than it should",
        "taken = min(left, target - size)",
        "taken = min(left, target - size + 1)",
        "unit/write/test_bucket_assigner.py",
    ),
    plant(
        "several writers of a bucket go unnoticed",
        "if bool(mine.any() if not fills else not mine.all()):",
        "if bool(mine.any() and fills and not len(mine)):",
        "unit/write/test_dynamic_buckets.py::test_other_shares_are_refused_where_readers_wait_for_the_compaction_of_a_bucket",
    ),
    plant(
        "few assigners of a partition fill the same buckets",
        "return (start + (self.number - start) % self.writers) % self.assigners",
        "return self.number % self.assigners",
        "unit/write/test_dynamic_buckets.py::test_few_assigners_of_a_partition_fill_different_buckets",
    ),
    plant(
        "two runs that assigned the same rows fit together",
        "if len({frozenset(run.name for run in runs) for runs in taken}) > 1:",
        "if len({frozenset(run.name for run in runs) for runs in taken}) > 2:",
        "unit/distributed/test_assigned_write.py::test_a_share_that_is_assigned_twice_is_noticed_and_leaves_nothing",
    ),
    plant(
        "new rows of a merge are written among the changed ones",
        "if kind == NEW:\n                self._held.add([Sent(number, kind, data)])\n            elif kind == CHANGED:",
        "if kind in (NEW, CHANGED):",
        "unit/distributed/test_spread_merge.py::test_new_rows_come_after_changed_ones_of_the_same_key",
    ),
    plant(
        "an assigner opens the buckets of another",
        "self._next += self._settings.count",
        "self._next += 1",
        "unit/write/test_bucket_assigner.py",
    ),
    plant(
        "an overwrite replaces all partitions but its own",
        "return lambda partitions: numpy_values(pc.is_in(partitions, value_set=wanted))",
        "return lambda partitions: ~numpy_values(pc.is_in(partitions, value_set=wanted))",
        "unit/commit/test_commit.py",
    ),
    plant(
        "a manifest that deletes files may stay as it is in a full compaction",
        "return file.deleted_files > 0 or file.size_bytes",
        "return file.size_bytes",
        "unit/metadata/test_manifest_merge.py",
    ),
    plant(
        "new rows of two insert clauses are checked one clause at a time",
        "self._require_distinct(rows)",
        "[self._require_distinct(each) for _, each in chosen]",
        "unit/rows/test_merge_limits.py",
    ),
    plant(
        "a SAS token is not a secret",
        '"account_key", "sas_token", "connection_string", "client_secret",',
        '"account_key", "connection_string", "client_secret",',
        "unit/storage/test_fsspec_store.py",
    ),
    plant(
        "credentials of a store are pickled",
        "return FsspecStore, (self.scheme, harmless_arguments(self._arguments))",
        "return FsspecStore, (self.scheme, dict(self._arguments))",
        "unit/storage/test_fsspec_store.py",
    ),
    plant(
        "an update by row id is committed although its range is gone",
        "if not (_lies_inside(_range(entry), ranges) if apart else _range(entry) in ranges):",
        "if not (_lies_inside(_range(entry), ranges) if apart else True):",
        "simulation/test_columns.py::test_columns_that_were_written_before_are_committed_only_beside_their_rows",
    ),
    plant(
        "a compaction joins a range to which others have added a column",
        "if one[0] == other[0] and other[1] < one[1] + one[2]:",
        "if one[0] == other[0] and other[1] < one[1]:",
        "simulation/test_columns.py::test_a_compaction_beside_an_update_by_row_id",
    ),
    plant(
        "cells that others have set are set from what was read before",
        "name = _written_column(table, given, entries)",
        "name = None",
        "simulation/test_columns.py::test_no_cell_that_others_set_is_set_from_what_was_read_before",
    ),
    plant(
        "a column with an index over row ids is set",
        "found = sorted(one for one in names if (entry.partition, schema.field(one).id) in indexed)",
        "found: list[str] = []",
        "simulation/test_columns.py::test_an_index_that_appears_beside_an_update",
    ),
)

TWELVE = (
    plant(
        "1: who lost a race does not ask whether the winner committed the same bytes",
        "found = self._find(state)\n",
        "found = None if self._looked else self._find(state)\n",
        "simulation/test_the_twelve.py::test_1_the_same_bytes_by_two_at_once",
    ),
    plant(
        "2: an entry returns to an identity that it had",
        "return next((again[key] for key in map(identifier, gone) if key in again), None)",
        "return None",
        "regressions/test_indexes_that_return.py",
    ),
    plant(
        "3: a commit whose snapshots have expired was not committed before",
        "return live or (None if certain or whole else _UNDECIDABLE)",
        "return live",
        "regressions/test_late_repeats.py",
    ),
    plant(
        "3: tags and snapshots that are left are not asked for a late commit",
        "return self._anywhere(state, certain=certain) if isinstance(found, HistoryGap) else found",
        "return None if isinstance(found, HistoryGap) else found",
        "simulation/test_the_twelve.py::test_3_a_commit_repeated_late",
    ),
    plant(
        "4: a retry deletes what the first call is about to publish",
        "if self.request.label.identifier is not None and self.repeats.are_foreign():",
        "if not self.request.is_new:",
        "simulation/test_the_twelve.py::test_4_a_retry_between_the_append_and_the_compact",
    ),
    plant(
        "5: a forked child uses the writer of its parent",
        "return self._root.env.ids.process() == self._process",
        "return True",
        "regressions/test_forked_writers.py::test_the_child_can_do_nothing_with_it",
        "regressions/test_forked_writers.py::test_the_child_deletes_nothing",
        "simulation/test_the_twelve.py::test_5_a_fork_with_rows_in_memory",
    ),
    plant(
        "6: a snapshot is not read back after its publication",
        "found, seen = self._look_back(snapshot, parent)\n",
        "found, seen = (None, _Seen()) if created else self._look_back(snapshot, parent)\n",
        "simulation/test_the_twelve.py::test_6_java_puts_its_snapshot_over_ours",
    ),
    plant(
        "7: publication makes the directory of a renamed table",
        "created = root.store.put_new(path, data, within=within)",
        "created = root.store.put_new(path, data)",
        "regressions/test_renamed_tables.py",
        "simulation/test_the_twelve.py::test_7_a_table_renamed_beside_a_writer",
    ),
    plant(
        "8: files that were written again do not tell whose place they took",
        "        yield from earlier_names(name)",
        "        pass",
        "simulation/test_the_twelve.py::test_8_a_repeat_after_nobody_knows",
    ),
    plant(
        "9: a repeated compaction deletes the index files that a tag names",
        "if self.request.is_new:\n                self.files.delete_index",
        "if True:\n                self.files.delete_index",
        "simulation/test_the_twelve.py::test_9_a_compaction_repeated_after_its_snapshot_expired",
    ),
    plant(
        "10: any snapshot in the place of the parent is the parent",
        "if parent is not None and there == parent:",
        "if parent is not None and there is not None:",
        "simulation/test_the_twelve.py::test_10_a_rollback_before_or_after_publication",
    ),
    plant(
        "11: who has as many files as the next snapshot was its parent",
        "    return before == after",
        "    return len(before) == len(after)",
        "unit/metadata/test_ancestry.py",
    ),
    plant(
        "12: no commit is quick enough for snapshots that are not retained",
        'max(options.get_duration("snapshot.time-retained") / 2000, _ATTEMPT_SECONDS)',
        'options.get_duration("snapshot.time-retained") / 2000',
        "simulation/test_the_twelve.py::test_12_no_time_retained_lets_commits_succeed",
    ),
)
"""One way of each of the twelve: how acknowledged commits were lost or doubled, or files deleted."""

FOUND_BY_SEEDS = {
    "1:": ("same_bytes", 10),
    "2:": ("indexed", 10),
    "3: a commit": ("late", 40),
    "3: tags": ("late", 40),
    "4:": ("same_bytes", 10),
    "5:": ("forked", 10),
    "6:": ("beside_java", 40),
    "7:": ("moved", 250),
    "8:": ("unknown", 250),
    "9:": ("late", 40),
    "10:": ("rolled_back", 100),
    "11:": ("stalled", 100),
    "12:": ("impatient", 60),
}
"""By the beginning of its name: the family of the simulation whose seeds find each of the twelve, with nothing forced,
and how many of them are enough."""

FOUND_AT_ONCE = ("1:", "2:", "4:", "5:")
"""Those that the bounded run looks for."""

MENDS = (
    plant(
        "a compaction committed again under its identifier loses its files",
        "and self._names_made.isdisjoint(_with_earlier(names)) and self._has_none_left()",
        "and self._names.isdisjoint(_with_earlier(names))",
        "regressions/test_changes_given_twice.py",
    ),
    plant(
        "a file whose name was taken is deleted as one's own",
        "self._paths.pop()  # the file belongs to another writer\n            raise",
        "raise",
        "unit/files/test_writer.py",
    ),
    plant(
        "forked processes give files the same names",
        "if process != self._process:",
        "if process < 0:",
        "unit/files/test_naming.py",
    ),
    plant(
        "a schema is acknowledged although another writer replaced it",
        "return there == data",
        "return True",
        "unit/metadata/test_schemas.py",
    ),
    plant(
        "a renamed table gets its directory back by an alter",
        "within=None if after is None else schema_directory(self._path))",
        "within=None)",
        "regressions/test_renamed_tables.py",
    ),
    plant(
        "a renamed table gets its directory back by a tag",
        "put_new(path, tag_to_json(tag), within=self._path)",
        "put_new(path, tag_to_json(tag))",
        "regressions/test_renamed_tables.py",
    ),
    plant(
        "a hint that cannot be read fails those who read it",
        "return _read_hint(store, path)\n    except StorageError:\n        return None",
        "return _read_hint(store, path)\n    except FileMissingError:\n        return None",
        "regressions/test_unreadable_hints.py",
    ),
)

STRANGERS = (
    plant(
        "two rows of one run with one key are merged with each other",
        "    if repeats or not same.any():\n        return order, starts\n",
        "    return order, starts\n",
        "unit/lsm/test_merge.py",
    ),
    plant(
        "a branch of today has the columns of its snapshot",
        "newest_schema=from_ is ...))",
        "newest_schema=False))",
        "unit/maintain/test_branches.py",
    ),
    plant(
        "a tag that names another snapshot leaves the files of the old one",
        "    _delete_with_files(table, [old], lambda: None)\n",
        "",
        "unit/maintain/test_tag_names.py",
    ),
    plant(
        "manifests are written in Avro whatever their table wants",
        'if settings.format == "avro":',
        "if settings.format:",
        "unit/metadata/test_orc_manifests.py",
    ),
    plant(
        "the nanoseconds of pandas inside lists are cut off",
        "        if any(map(_has_nanoseconds, values)) or len(set(_zones(values))) > 1:\n",
        "        if len(set(_zones(values))) > 1:\n",
        "unit/write/test_exact_values.py",
    ),
    plant(
        "an error of another job, or of the data, is taken for that of a task",
        '        return error_from(base64.b64decode(ours.group(1)))\n',
        '        return error_from(base64.b64decode(ours.group(1)))\n'
        '    for found in re.finditer(r"\\(paimon-error \\S+ ([A-Za-z0-9+/=]+)\\)", text):\n'
        '        return error_from(base64.b64decode(found.group(1)))\n',
        "unit/test_errors_as_data.py",
    ),
    plant(
        "all pipelines of Spark that name no user are one user",
        "    if query is None:\n        raise UsageError(\n",
        "    if not verb:\n        raise UsageError(\n",
        "unit/test_spark_numbers.py",
    ),
    plant(
        "a step of other events under the same number is a repeated one",
        "StepNumber(identifier, str(survey.digest))",
        "StepNumber(identifier, str(identifier))",
        "unit/cdc/test_steps.py",
    ),
    plant(
        "the size of lists without offsets is asked of Arrow",
        "    if not len(array):\n        return 0\n    if isinstance(kind, pa.BaseExtensionType):\n",
        "    if not len(array):\n        return int(array.nbytes)\n    if isinstance(kind, pa.BaseExtensionType):\n",
        "unit/codec/test_row_size.py",
    ),
    plant(
        "events of another key are taken",
        "if set(change.keys) != self.keys:",
        "if not self.keys:",
        "unit/cdc/test_fitting.py",
    ),
    plant(
        "a time without zone is one of UTC in every session of Spark",
        "    return Clocks(zone)\n",
        '    return Clocks("UTC")\n',
        "unit/test_spark_meaning.py",
    ),
    plant(
        "one table of a later release stops the system tables of all",
        "            _skip_unreadable(database, table, error)\n",
        "            raise\n",
        "unit/test_later_releases.py",
    ),
)

OUTSIDE = (
    plant(
        "every external path is one of the table",
        "        if not self._is_declared(url):\n            raise _outside_error(path)\n",
        "",
        "unit/storage/test_data_store.py",
        "unit/test_outside.py::test_external_paths_stay_below_the_external_roots",
    ),
    plant(
        "roots of earlier schemas do not count",
        "for number in reversed(self.ids()):\n            yield from declared_roots",
        "for number in self.ids()[-1:]:\n            yield from declared_roots",
        "unit/test_outside.py::test_a_table_of_java_with_external_paths_of_an_earlier_schema_stays_readable",
    ),
    plant(
        "a dropped table takes files of its neighbours along",
        'if store is root.store and below != place and f"{DATABASE_SUFFIX}/" in below:\n        return False\n    store',
        "store",
        "unit/test_outside.py::test_a_root_that_holds_other_tables_gives_none_of_their_files_to_a_drop",
    ),
    plant(
        "prefixes of tables of others are not checked when they are written",
        "        check_prefixes(options)\n",
        "",
        "unit/test_outside.py::test_prefixes_that_are_no_part_of_a_name_are_refused",
    ),
    plant(
        "changes under a used identifier delete files of the table",
        "self._names_made.isdisjoint(_with_earlier(names)) and self._has_none_left()",
        "self._names_made.isdisjoint(_with_earlier(names))",
        "unit/commit/test_commit.py",
    ),
    plant(
        "a directory whose name looks like a pattern takes others along",
        "if _PATTERN.isdisjoint(directory):",
        "if True:",
        "unit/storage/test_fsspec_store.py",
    ),
    plant(
        "pickles keep options that nobody knows",
        "for name, text in options.items() if is_harmless(name)}",
        "for name, text in options.items()}",
        "unit/test_secrets.py",
    ),
    plant(
        "errors keep what Python saw before them",
        "        failed.__context__ = failed.__cause__\n",
        "",
        "unit/test_secrets.py",
    ),
)

CARE = (
    plant(
        "partitions go for age though others wrote to them meanwhile",
        "if expiry.time is not None or state.latest is None or state.latest == latest:",
        "if True:",
        "unit/maintain/test_expire_partitions.py",
    ),
    plant(
        "partitions whose values say no time have expired",
        "is_old = np.array([time is not None and time < limit for time in times], np.bool_)",
        "is_old = np.array([time is None or time < limit for time in times], np.bool_)",
        "unit/maintain/test_expire_partitions.py",
    ),
    plant(
        "more partitions go in one call than may",
        "total = min(expiry.max_num, len(found.expired))",
        "total = len(found.expired)",
        "unit/maintain/test_expire_partitions.py",
    ),
    plant(
        "days after the end of a month are in the next one",
        "return min(days_of(year, month, day), days_of(year + years, following + 1, 1) - 1)",
        "return days_of(year, month, day)",
        "unit/codec/test_date_pattern.py",
    ),
    plant(
        "statistics outlive their schema",
        "statistics=part.statistics or (latest.statistics if latest and same_schema else None)",
        "statistics=part.statistics or (latest.statistics if latest else None)",
        "unit/maintain/test_analyze.py",
    ),
    plant(
        "statistics that no snapshot names stay behind",
        "with discarding_on_failure(lambda: delete_statistics(table.root, name)):",
        "with discarding_on_failure(lambda: None):",
        "unit/maintain/test_analyze.py",
    ),
)

TWO_HISTORIES = (
    plant(
        "a number stands for any snapshot that has it",
        "if not SnapshotId.of(found).is_same(number):",
        "if False:",
        "regressions/test_numbers_of_two_histories.py::test_an_id_that_names_a_snapshot_which_is_gone_is_refused",
    ),
    plant(
        "the changelog after a position is its own whatever came before",
        "        if found.follows(self.base) is None:\n            self._check_base(follows=False)\n",
        "",
        "regressions/test_numbers_of_two_histories.py",
    ),
    plant(
        "a user's last number outlives the rollback of its snapshot",
        "root.users.put(value.rolled_back())",
        "pass",
        "regressions/test_numbers_of_two_histories.py",
    ),
    plant(
        "levels that the options have given up are none",
        "is_final = output == self.top_level or",
        "is_final = output == settings.level_count - 1 or",
        "unit/compaction/test_fewer_levels.py",
    ),
    plant(
        "a key that moves is added before it is deleted",
        "first, later = batch.filter(_mask(ending)), batch.filter(_mask(~ending))",
        "first, later = batch.filter(_mask(~ending)), batch.filter(_mask(ending))",
        "unit/scan/test_changes_of_moving_keys.py",
    ),
    plant(
        "a branch descends from no tag whose snapshot had expired",
        "older = [*(() if known is None else known.ancestors), *tagged]",
        "older = [*(() if known is None else known.ancestors)]",
        "unit/maintain/test_branches.py",
    ),
    plant(
        "states of one number are one state",
        "return start is not None and start.mark != last.mark",
        "return False",
        "regressions/test_numbers_of_two_histories.py",
    ),
    plant(
        "the newest tag names all files of older tags, whatever its history is",
        "    if near or len(older) < 2:\n        return max(near, key=lambda tag: tag.id, default=None)\n",
        "    if older:\n        return max(older, key=lambda tag: tag.id)\n",
        "regressions/test_numbers_of_two_histories.py",
    ),
    plant(
        "the tag that an expiry recorded counts for any history",
        "if record is None or record.snapshot != first.mark:",
        "if record is None:",
        "regressions/test_numbers_of_two_histories.py",
    ),
    plant(
        "automatic tags go on by number after a rollback",
        "return last is not None and last.mark != state.mark",
        "return False",
        "unit/maintain/test_auto_tags.py",
    ),
    plant(
        "a commit that was taken back gives its mark to the next one",
        "                    if was_visible:\n",
        "                    if False:\n",
        "unit/metadata/test_publishing.py::test_a_snapshot_that_was_taken_back_and_the_next_one_with_its_id_have_different_marks",
    ),
    plant(
        "a fast-forward deletes a schema that a commit in progress will name",
        "            self._schemas.continue_latest(cutting, discard=discard)\n",
        "            self._schemas.move(cutting, discard=discard)\n",
        "faults/test_fast_forward_races.py::test_a_commit_that_a_discarded_schema_underlies_can_be_read",
    ),
    plant(
        "a fast-forward does not name a commit that came right before its snapshot",
        "                root.store.put(path, data, within=root.path)\n                self.gone.add(number)\n",
        "                root.store.put(path, data, within=root.path)\n",
        "simulation/test_care_schedules.py::test_what_schedules_of_care_found_stays_mended",
    ),
)

CLOCKS = (
    plant(
        "waiting files have the times of their writers' clocks",
        "            part = in_waiting_order(part, state, now)\n",
        "",
        "unit/maintain/test_waiting_order.py::test_the_later_commit_is_newer_whatever_the_clocks_say",
    ),
    plant(
        "history does not tell which snapshot added a waiting file",
        "added[unsettled] = _added_by(root, snapshot, waiting.take(unsettled))",
        "pass",
        "unit/maintain/test_waiting_order.py::test_history_tells_the_order_of_files_of_other_writers",
    ),
    plant(
        "the order of waiting files is lost with a commit that brings none",
        "return msgspec.structs.replace(part, waiting=order)",
        "return part",
        "unit/maintain/test_waiting_order.py::test_every_commit_passes_on_how_far_the_order_goes",
    ),
    plant(
        "waiting files of other writers count as ordered",
        "since = _BEFORE_ALL if known is None else max(known, _BEFORE_ALL)",
        "since = _BEFORE_ALL",
        "unit/maintain/test_waiting_order.py",
    ),
    plant(
        "a machine that is ahead makes files of tomorrow",
        "min(after_millis if made is None else made, now_millis)",
        "after_millis if made is None else made",
        "unit/maintain/test_waiting_order.py",
    ),
    plant(
        "a stream tells waiting rows in the order of manifests",
        "oldest_first(self._root, snapshot, self._root.manifests.live_entries(snapshot, wanted))",
        "self._root.manifests.live_entries(snapshot, wanted)",
        "unit/maintain/test_waiting_order.py::test_a_stream_that_begins_with_all_rows_tells_waiting_ones_in_their_order",
    ),
    plant(
        "files with one sequence number are ordered by the clocks of their writers",
        "adds, _ = with_growing_times(part.adds, _BEFORE_ALL, now_millis, lambda _: True)",
        "adds = part.adds",
        "unit/maintain/test_waiting_order.py",
    ),
    plant(
        "a machine that is ahead takes live consumers for idle",
        "lag = store_lag(root) if idle else 0",
        "lag: int | None = 0",
        "unit/maintain/test_after_commit.py::test_a_machine_whose_clock_is_ahead_forgets_no_consumer",
    ),
    plant(
        "a machine that is behind looks for idle consumers after each commit",
        "min([latest_due, *dues])",
        "min(dues, default=latest_due)",
        "unit/maintain/test_after_commit.py::test_a_machine_whose_clock_is_behind_does_not_ask_for_consumers_each_time",
    ),
    plant(
        "a store that tells no times has the time of this machine",
        "    if status is None or status.modified_millis is None:\n        return None\n    return max(0,",
        "    if status is None or status.modified_millis is None:\n        return 0\n    return max(0,",
        "unit/maintain/test_remove_orphans.py::test_a_store_that_tells_no_times",
    ),
)

KEEPING = (
    plant(
        "an upsert that was overtaken does not ask which keys others wrote",
        "return not any((probe.find(keys) >= 0).any() for keys in own for probe in probes)",
        "return True",
        "unit/rows/test_upserts_that_keep.py::test_a_row_that_others_change_meanwhile_is_looked_up_again",
    ),
    plant(
        "a column of a sequence group that the data lack is not looked up",
        "if replaces and (is_touched or name in required):",
        "if replaces and name in required:",
        "unit/rows/test_upserts_that_keep.py::test_only_columns_that_the_engine_does_not_keep_are_looked_up",
    ),
    plant(
        "a row after a delete of its key keeps the columns of the deleted one",
        "found: Mask = before > np.repeat(before[firsts], sizes)",
        "found: Mask = before < 0 * np.repeat(before[firsts], sizes)",
        "unit/rows/test_upserts_that_keep.py::test_kinds_of_rows_go_on_working_and_a_row_after_a_delete_is_new",
    ),
    plant(
        "a column that a dataset's file has and its schema lacks is left out",
        "unknown = [name for name in names if name not in schema.names]\n    if not unknown:",
        "unknown = [name for name in names if name not in schema.names]\n    if unknown or not unknown:",
        "unit/write/test_loaded_files.py::test_a_dataset_that_would_leave_a_column_out_is_refused_by_file_and_column",
    ),
)

EDGES = (
    plant(
        "a consumer that was written at the limit expires",
        "status.modified_millis is not None and status.modified_millis < millis",
        "status.modified_millis is not None and status.modified_millis <= millis",
        "unit/stream/test_consumers.py::test_a_consumer_written_at_the_limit_stays_and_a_later_limit_also_deletes_its_marks",
    ),
    plant(
        "the expiry of a consumer leaves the file with its marks",
        "                self._store.delete(join(directory, CONSUMER_MARK_PREFIX + name))\n",
        "",
        "unit/stream/test_consumers.py::test_a_consumer_written_at_the_limit_stays_and_a_later_limit_also_deletes_its_marks",
    ),
    plant(
        "the newest old row id counts as a new one where the snapshot before has expired",
        "return 1 + max((-1 if file",
        "return max((-1 if file",
        "unit/metadata/test_commit_history.py::test_an_update_of_the_last_row_of_all_adds_none_after_the_snapshot_before_expired",
    ),
    plant(
        "row ids within a longer range are counted again",
        "ends = np.maximum.accumulate(first + entries.row_count[order])",
        "ends = first + entries.row_count[order]",
        "unit/metadata/test_row_ranges.py::test_row_ids_of_files_within_others_count_once",
    ),
    plant(
        "a cut goes on without its file where another one ended just now",
        "if found is None or found.owner != cut.owner:\n                raise self.error(found or cut)",
        "if found is not None and found.owner != cut.owner:\n                raise self.error(found)",
        "unit/maintain/test_remains.py::test_a_cut_that_another_one_keeps_out_does_not_begin_though_that_one_ends_at_this_moment",
    ),
    plant(
        "changelogs expire that a consumer has not read",
        'kept changelog never expires"))\n    ends += [',
        'kept changelog never expires"))\n    _ = [',
        "unit/maintain/test_expire_snapshots.py::test_the_first_changelog_that_stays",
    ),
    plant(
        "automatic tags wait after a rollback over two snapshots",
        "state.snapshot_id > latest + 1:",
        "state.snapshot_id > latest + 2:",
        "unit/maintain/test_auto_tags.py::test_the_first_commit_after_a_rollback_of_another_process_makes_its_tag",
    ),
    plant(
        "the tag of a day is that of this machine's time zone",
        'wall_in(options.find_str("sink.process-time-zone"), latest.time_millis)',
        "wall_in(None, latest.time_millis)",
        "unit/maintain/test_auto_tags.py::test_the_tag_of_a_batch_is_that_of_the_day_in_the_zone_of_the_table",
    ),
    plant(
        "the zone of +18:00 is unknown",
        "ahead <= timedelta(hours=18)",
        "ahead < timedelta(hours=18)",
        "unit/maintain/test_auto_tags.py::test_zones",
    ),
    plant(
        "the last millisecond of the year 9999 is refused",
        "if moment > _NO_MORE:",
        "if moment >= _NO_MORE:",
        "unit/scan/test_moments.py::test_the_last_millisecond_of_the_year_9999_is_a_time_and_the_next_is_none",
    ),
    plant(
        "a rollback to a tag deletes the changelogs up to the one before it",
        "if is_ours and before >= target.id - 1",
        "if is_ours and before >= target.id",
        "unit/maintain/test_going_back.py::test_a_rollback_keeps_the_changelogs_up_to_its_target",
    ),
    plant(
        "a rollback names a consumer that has read just up to its target",
        "if consumer.next_snapshot_id > number]",
        "if consumer.next_snapshot_id >= number]",
        "unit/stream/test_consumers.py::test_a_consumer_that_read_no_rolled_back_snapshot_continues_without_a_warning",
    ),
    plant(
        "levels change their meaning although files have deletion vectors",
        "any(not task.rewrite_all or task.deletions for task in tasks)",
        "any(not task.rewrite_all for task in tasks)",
        "unit/maintain/test_level_rules.py::test_a_rollback_to_files_of_the_top_level_with_deletion_vectors_is_warned_of",
    ),
    plant(
        "a stream from the last compaction passes over one without a number",
        "number % start.commits == 0 or number == BATCH_COMMIT_IDENTIFIER",
        "number % start.commits == 0",
        "unit/stream/test_stream.py::test_streams_and_scans_agree_on_the_last_full_compaction",
    ),
    plant(
        "a stream does not look twice at snapshots that name no parent",
        "return chain if said or self._root.snapshots.find(last) == newest else []",
        "return chain",
        "unit/stream/test_stream.py::test_snapshots_that_name_no_parent_are_read_twice",
    ),
    plant(
        "files are chosen by the time of UTC",
        "FileChoice(created_since_millis=wall_millis(millis))",
        "FileChoice(created_since_millis=millis)",
        "unit/scan/test_time_travel.py::test_files_are_chosen_by_the_local_time_that_they_store",
    ),
    plant(
        "a scan of the last full compaction takes any where no changelog is made",
        ' or options.is_set("full-compaction.delta-commits"):',
        ":",
        "unit/stream/test_stream.py::test_streams_and_scans_agree_on_the_last_full_compaction",
    ),
    plant(
        "an update of the last row of a file does not meet another one",
        'np.searchsorted(given.ids, last, side="right")',
        "np.searchsorted(given.ids, last)",
        "unit/rows/test_column_rows.py::test_values_of_any_row_of_a_file_are_refused_where_others_set_the_column_in_that_file",
    ),
    plant(
        "a decimal of only fractions fits no column of whole numbers",
        "given.precision - given.scale + wanted.scale or 1,",
        "given.precision - given.scale + wanted.scale,",
        "unit/rows/test_fractions.py::test_a_number_is_converted_if_nothing_of_it_is_lost",
    ),
    plant(
        "a substring without letters is accepted",
        "(end is not None and end <= begin)",
        "(end is not None and end < begin)",
        "unit/cdc/test_shaping.py::test_what_is_no_computed_column_is_refused_at_once",
    ),
    plant(
        "an Iceberg snapshot expires that is exactly as old as the limit",
        'one["timestamp-ms"] < now_millis - options.retained_millis',
        'one["timestamp-ms"] <= now_millis - options.retained_millis',
        "unit/iceberg/test_values.py::test_snapshots_expire_by_number_and_age_from_the_oldest_on",
    ),
    plant(
        "files of the oldest Iceberg version that stays are deleted",
        "if number - options.previous_max <= one < number]",
        "if number - options.previous_max < one < number]",
        "unit/iceberg/test_publication.py::test_old_versions_can_be_read_as_long_as_they_stay",
    ),
    plant(
        "files of an Iceberg manifest lose the row ids that they have",
        "if not entry.is_live or entry.file.first_row_id is not None:",
        "if not entry.is_live:",
        "unit/iceberg/test_values.py::test_row_ids_go_on_from_manifest_to_manifest",
    ),
    plant(
        "the same result twice is deleted as one too many",
        "elif self._values[number] != result.value:",
        "elif self._values[number] is not result.value:",
        "unit/executors/test_run_tasks.py::test_the_first_result_of_a_task_counts_and_what_others_wrote_goes",
    ),
    plant(
        "a first commit goes to another empty table that came to the path",
        "(there is None and self._is_gone())",
        "(there is None and not self._root.schemas.ids())",
        "faults/test_another_table.py::test_an_empty_recreated_table_receives_no_commit",
    ),
    plant(
        "an expiry goes on in another table that came to the path",
        "    root.require_own(going[0], following)\n",
        "",
        "faults/test_another_table.py::test_a_table_recreated_at_any_call_loses_nothing",
    ),
    plant(
        "a renamed tag takes the tag of another table with it",
        "is_same = self.get(tag.name) == tag",
        "is_same = self.get(tag.name) is not None",
        "faults/test_another_table.py::test_a_table_recreated_at_any_call_loses_nothing",
    ),
    plant(
        "a stream that ends where it begins does not look at its snapshot",
        "                line.require_base()\n",
        "                pass\n",
        "regressions/test_numbers_of_two_histories.py::test_a_stream_that_ends_where_it_begins_refuses_a_history_that_was_rolled_back",
    ),
    plant(
        "the error of the last task is raised instead of the first",
        "raise self._errors[min(self._errors)]",
        "raise self._errors[max(self._errors)]",
        "unit/executors/test_run_tasks.py::test_the_error_of_the_first_task_is_raised_and_nothing_is_left",
    ),
    plant(
        "a compaction passes over rows of an earlier writer of the same commit",
        "any(name in others or name in earlier for name",
        "any(name in others for name",
        "unit/commit/test_conflicts.py::test_a_compaction_of_own_new_files_is_dropped_for_rows_committed_before_them",
    ),
)

PLANTS = (
    *MERGING, *BYTES, *READING, *COMMITTING, *TWELVE, *MENDS, *STRANGERS, *OUTSIDE, *CARE, *CLOCKS, *TWO_HISTORIES,
    *KEEPING, *EDGES,
)  # fmt: skip
