"""Where we answer otherwise than Java on purpose: a wrong answer could come of it, or Java's is one.

Each line is a verdict, a pattern of the change (and what it did), a pattern of what we say, and the reason.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from foreign.ask import BOTH_REFUSE, JAVA_ONLY, JAVA_OTHER, OTHER_BEFORE, OTHER_ROWS, OURS_ONLY, SAME, TURNS, Finding


class Known(NamedTuple):
    verdict: str
    change: str
    detail: str
    reason: str


KNOWN = [
    Known(JAVA_ONLY, "", r"has no column .* instead", "a name in other case or with damage: Java reads NULL for every row"),
    Known(JAVA_ONLY, "", r"has no column", "Java reads NULL in a column that is NOT NULL"),
    Known(JAVA_ONLY, "", r"a ROW has no field", "the same inside a ROW"),
    Known(JAVA_ONLY, "timestamp|by_duckdb|by_polars", r"stored as timestamp", "Java takes the unit from the column: 2024 becomes the year 55972, or 1970"),
    Known(JAVA_ONLY, "_wider|_promoted", r"stored as|is damaged", "a type of another family: Java converts as its library does"),
    Known(JAVA_ONLY, "", r"cannot (write|compact) tables with", "a feature that we only read"),
    Known(JAVA_ONLY, "timeMillis", r"cannot be decoded: OverflowError", "a time beyond the years of Python"),
    Known(JAVA_ONLY, "", r"'(id|schemaId|baseManifestList|deltaManifestList|commit\w+|timeMillis)' is missing", "half a snapshot: Java takes 0"),
    Known(JAVA_ONLY, "laid_out|consumer_value", r"trailing characters", "two writers in one file"),
    Known(JAVA_ONLY, "", r"bytes, its snapshot says", "a list that was cut off at a block would be a shorter list"),
    Known(JAVA_ONLY, "", r"ADDs and \d+ DELETEs, its list says", "files that are missing would be rows that are missing"),
    Known(JAVA_ONLY, "", r"names an index file twice|is added twice", "which of two vectors of a file counts?"),
    Known(JAVA_ONLY, "", r"'fields' is missing|a field needs 'name'", "no columns, or one without name"),
    Known(JAVA_ONLY, "", r"has an id above", "the id of a column is damaged: Java reads NULL for every row"),
    Known(JAVA_ONLY, "", r"names a column twice|have the same (id|name)|names columns that do not exist", "no schema that a release makes"),
    Known(JAVA_ONLY, "", r"consumer '\w+' is damaged", "Java takes 0 for a consumer that says nothing, and keeps all snapshots or none"),
    Known(JAVA_ONLY, "snapshot_gone|field|number|text", r"SnapshotExpired|SnapshotNotFound", "Java waits for a snapshot that never comes"),
    Known(JAVA_ONLY, "", r"(snapshot|schema) version \d+", "what a later release means nobody knows"),
    Known(JAVA_ONLY, "", r"has a wrong value|not a whole number|is a whole number|is a string|no(t a)? time|number of seconds", "Java takes 2 for 2.7, 0 or nothing for no number"),
    Known(JAVA_ONLY, "columns_shuffled", r"of a row|in a row", "statistics of a schema whose columns had another order"),
    Known(JAVA_ONLY, "", r"a serialized row (has|of)", "statistics of another number of columns than their entry says"),
    Known(JAVA_ONLY, "value_otherwise", r"impossible|needs data-evolution|another|unknown", "numbers that contradict one another"),
    Known(JAVA_ONLY, "parquet", r"rows where its footer says|InitBlock EOF", "pyarrow cannot read the page"),
    Known(JAVA_OTHER, "^(parquet|orc|data_avro)_", "", "the same rows in another layout: Java loses or changes them, as by DELTA pages of DuckDB"),
    Known("", "^avro_blocks .*empty ones .*True", "", "Java ends at a block without records, where Avro goes on: it loses rows"),
    Known(JAVA_OTHER, "sizes_wrong .* sizes by 0|_FILE_SIZE is", "", "Java passes over files of 0 bytes, and over the rest of files that are longer"),
    Known("", "option_value .* = None", r"\"null\"", "an option that is null is none; Java shows the text 'null'"),
    Known(OTHER_ROWS, "value_otherwise .*_NUM_ADDED_FILES is 0", "", "Java's $buckets look into manifests of which the list says that they are empty"),
    Known("", "_WRITE_COLS", "", "a list of columns that does not fit the statistics"),
    Known("", "field_details .* description is None", "", "Java says \"null\" in $schemas"),
    Known("", "partitionKeys is None", "", "a schema without the partitions of its entries"),
    Known(JAVA_ONLY, "orc_metadata_column_less", r"lacks a required field of its records", "a column that every record has: Java takes 0"),
    Known(JAVA_ONLY, "_column_less|_missing", r"without the names of their data files", "vectors of no file: rows that were deleted come back"),
    Known(JAVA_ONLY, "avro_(case|missing)", r"manifest schema without usable|impossible record .*KeyError", "what every entry has is not there: Java takes 0"),
    Known(JAVA_ONLY, "text_otherwise .*commitKind", "unknown kind of commit", "Java takes 1 for the second kind"),
    Known(OTHER_BEFORE, "_missing|_column_less", "", "some files lack nullable columns, another one what Java needs"),
    Known(OTHER_BEFORE, "option_value .* = None", "", "an option that is null is none; Java takes the text 'null'"),
    Known(OTHER_BEFORE, "schema_lists .*(primary|partition)Keys", "", "another table: keys are gone"),
    Known("", "stray_file .*tag/tag-$", "", "Java takes {} for a tag without a name"),
    Known(JAVA_ONLY, "type_object", "unknown constructed type", "Java opens a branch without its table, and we look at both"),
    Known(JAVA_ONLY, "data_avro_union_wide", "", "a union of several types, which no column has"),
]  # fmt: skip


def reason(finding: Finding) -> str | None:
    """Why an answer may be another one; None where nobody has said so."""
    if finding.verdict == OURS_ONLY and finding.question in TURNS:
        return None  # a table that nobody but us can read after our commit
    if finding.verdict in (SAME, OURS_ONLY, BOTH_REFUSE):
        return finding.verdict
    where = f"{finding.change} {finding.done}"
    for known in KNOWN:
        if known.verdict in ("", finding.verdict) and re.search(known.change, where) and re.search(known.detail, finding.detail):
            return known.reason
    return None
