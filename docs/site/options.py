"""The page of all table options, made from the package's own tables; `python docs/site/options.py` writes the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paimon_py.errors import UnsupportedError
from paimon_py.metastores.option_rows import BY_KIND, FOLLOWED, OF_ALL_ROWS, Row
from paimon_py.spec.file_rules import FORMATS, OTHER_FORMATS, PACKAGED_FORMATS, READ_FORMATS
from paimon_py.spec.idle_options import IDLE
from paimon_py.spec.option_rows.features import ROWS as FEATURES
from paimon_py.spec.option_rows.iceberg import ROWS as ICEBERG
from paimon_py.spec.option_rows.own import ROWS as OWN
from paimon_py.spec.option_rows.tables import ROWS as TABLES
from paimon_py.spec.options import OPTIONS, Option
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_readable, check_writable
from paimon_py.spec.types import STRING, Field

PAGE = Path(__file__).parents[1] / "options.md"
HEAD = """# Options

Every option of tables and catalogs: type, default, what the option does, and whether paimon_py follows it.

## Tables

All options of Java Paimon's `CoreOptions` and `IcebergOptions` (2.0 and its main branch of August 2026), under the
names and with the defaults that Java has, and what paimon_py does with each; at the end, [those of paimon_py
alone](#options-of-paimon_py-alone), which other engines ignore. Give options to
`create_table(options=…)` and `SetOption`, or those of reads to one scan (`table.scan(options=…)`). A text that does
not fit its option is refused with what is allowed; a misspelled name is refused with the right one. Unknown
names pass untouched, as in Java.
Options of [catalogs](#catalogs) are below, those of stores on [their page](stores.md).

**What paimon_py does**

- *followed*: the option does what Java's does.
- *refused*: a table that sets the option to something else than its default cannot be read, or cannot be written, and
  no file is touched.
- *no effect, warned of*: the option changes what a table keeps or tells; a `PaimonWarning` says that nothing happens.
- *no effect*: the option sets the pace of a Java engine (threads, caches, buffers), or belongs to a part of Java that
  paimon_py refuses as a whole.

This page is made by `docs/site/options.py` from the tables that the package itself uses.
"""
CATALOGS = """
## Catalogs

Options of `Catalog.open`, under Java's names; see [catalogs](catalogs.md). `table-default.<option>` gives an option to
each new table, and what is not an option of a catalog is handed to the [store](stores.md). A misspelled name is refused
with the right one.
"""
OF_REFUSED = {
    "chain-table.streaming.": "streams of chain tables",
    "variant.shredding.adaptive.": "inference that files carry on",
    "blob-compaction.": "compaction of `.blob` files",
    "blob-write-null": "writing references to BLOBs",
    "blob-descriptor.": "other credentials for references to BLOBs",
    "blob.copy": "copying of references to BLOBs",
    "blob.split": "splits by the size of BLOBs",
    "data-evolution.row-sidecar.": "row-oriented copies of files",
    "data-evolution.merge-into.": "MERGE INTO of Java's Spark",
    "data-evolution.reassign.": "reassigning row ids",
    "global-index.": "global indexes",
    "scalar-index.": "global indexes",
    "vector-": "indexes of vectors",
    "full-text": "full-text indexes",
    "pk-": "indexes of primary-key tables",
    "format-table.": "format tables",
    "materialized-table.": "materialized tables",
    "lookup.blob": "BLOB columns",
    "visibility-callback.": "waiting until rows are visible",
    "commit.callback": "callbacks of Java classes",
    "tag.callback.": "callbacks of Java classes",
    "partition.mark-done-action.custom": "callbacks of Java classes",
    "partition.mark-done-action.http": "reports by HTTP",
    "manifest-sort.": "sorted manifests",
}
"""Parts of Java that paimon_py refuses, or does nothing for, by how the names of their options begin."""
_POSTPONED = "no effect: postponed rows get their buckets in `compact()`"
OTHERWISE = {
    "chain-table.split.key-range-enabled": "no effect: splits are always cut by key range",
    "chain-table.enabled": "followed by `scan`, for the latest state; everything else is refused",
    "commit.force-compact": "no effect: commits contain the compactions that their rows start in any case",
    "blob-field": "no effect: columns of type BLOB lie in files of their own in any case",
    "dynamic-partition-overwrite": "no effect: the call says which partitions an overwrite replaces",
    "metadata.stats-dense-store": "no effect: statistics are always stored densely, as by default",
    "postpone.batch-write-fixed-bucket": _POSTPONED,
    "postpone.batch-write-fixed-bucket.max-parallelism": _POSTPONED,
    "postpone.batch-write-fixed-bucket.rescale-load-factor": _POSTPONED,
    "data-evolution.compaction.rewrite-row-ids": "no effect: deleted rows stay in files, so that ids stay",
    "data-evolution.row-id-conflict-rewrite.max-size": "no effect: operations that others overtake are evaluated again",
    "variant.shredding.inferenceMode": "no effect: each file is inferred separately, as `per-file` says",
    "write-buffer-for-append": "no effect: rows of append tables go to their files as they come",
    "write-max-writers-to-spill": "no effect: rows of append tables go to their files as they come",
    "compaction.file-num-limit": "no effect: a plan looks at all small files",
    "read.batch-size": "no effect: batches are as large as the memory of a read allows",
    "partition.idle-time-to-report-statistic": "no effect: no job that reports runs beside the writers",
    "key-value.sequence_number.enabled": "no effect: Java's own business",
    "stream-scan-mode": "no effect: Java's own business",
    "batch-scan-mode": "no effect: Java's own business",
    "metastore.tag-to-partition.preview": "no effect: tags do not become partitions",
    "tag.callbacks": "changes of tags are refused",
    "metadata.iceberg.hadoop-conf-dir": "no effect: the client speaks Thrift itself and reads no Hadoop configuration",
    "metadata.iceberg.hive-client-class": "no effect: the client speaks Thrift itself",
}
PACE = frozenset((
    "async-file-write", "cache-page-size", "cross-partition-upsert.bootstrap-parallelism",
    "file-reader-async-threshold",
    "local-kv-db.block-size", "local-merge-buffer-size", "lookup.cache-file-retention", "lookup.cache-max-disk-size",
    "lookup.cache-rows", "lookup.cache-spill-compression", "lookup.cache.bloom.filter.enabled",
    "lookup.cache.bloom.filter.fpp", "lookup.cache.high-priority-pool-ratio", "lookup.continuous.discovery-interval",
    "lookup.hash-load-factor", "lookup.merge-buffer-size", "lookup.merge-records-threshold",
    "lookup.remote-file.enabled",
    "lookup.remote-file.level-threshold", "manifest.merge-optimize.enabled", "page-size", "partition.sink-strategy",
    "sort-compaction.local-sample.magnification", "sort-compaction.range-strategy", "sort-engine",
    "sort-spill-buffer-size", "sort-spill-threshold", "write.batch-memory", "file.block-size",
))  # fmt: skip
"""Settings of Java's threads, caches, buffers and tasks, which decide nothing else."""
_COLUMNS = """
### {}

| option | type | default | what the option does | paimon_py |
|---|---|---|---|---|
"""
_TITLES = {"hive": "Hive", "rest": "REST", "jdbc": "JDBC"}
_KINDS = {
    "bool": "true or false", "int": "whole number", "long": "whole number", "real": "number", "text": "text",
    "size": "size, `64 mb`", "time": "time, `10 min`", "map": "map, `a:1,b:2`",
}  # fmt: skip
_SAMPLES = {
    "bool": ("true", "false"), "int": ("7",), "long": ("7",), "text": ("a",), "size": ("7 mb",), "time": ("7 s",),
}  # fmt: skip


def statuses(package: Path) -> dict[str, str]:
    """What paimon_py does with each option.

    Args:
        package: where the code is; an option is followed only if the code names the option.

    Raises: ValueError if something is said twice about an option, or nothing.
    """
    code = "".join(f.read_text(encoding="utf-8") for f in package.rglob("*.py") if "option_rows" not in f.parts)
    found = {}
    for name, option in OPTIONS.items():
        said = list(_said(option, code))
        if len(said) != 1:
            raise ValueError(f"{name}: {said or 'nothing'} is said about this option")
        found[name] = said[0]
    return found


def _said(option: Option, code: str) -> list[str]:
    refused = _refused(option)
    if refused is not None:
        return [OTHERWISE.get(option.name, refused)]
    if option.name in IDLE:
        return [f"no effect, warned of: {IDLE[option.name]}"]
    if option.name in OTHERWISE:
        return [OTHERWISE[option.name]]
    if option.name in PACE:
        return ["no effect: sets the pace of Java's engines"]
    parts = [part for start, part in OF_REFUSED.items() if option.name.startswith(start)]
    if parts:
        return [f"no effect: belongs to {parts[0]}"]
    family, _, last = option.name.rpartition(".")
    named = f'"{option.name}"' in code or (f'= "{family}"' in code and f"}}.{last}" in code)
    return ["followed"] if named else []


def _refused(option: Option) -> str | None:
    """What becomes of tables that set the option to another value than the default; None: nothing is refused."""
    known = (*FORMATS, *PACKAGED_FORMATS, *READ_FORMATS, *OTHER_FORMATS)
    formats = known if option.name.endswith("file.format") else ()
    samples = formats or option.choices or _SAMPLES.get(option.type, ("a:b",))
    texts = [text for text in samples if text != option.default]
    reads = [text for text in texts if _refuses(check_readable, option.name, text)]
    writes = [text for text in texts if _refuses(check_writable, option.name, text)]
    if not reads and not writes:
        return None
    what = "refused" if reads == writes else ("reads are refused" if not writes else "writes are refused")
    refused = reads or writes
    if refused == texts:
        return what
    if writes == texts:
        return f"writes are refused, and of {', '.join(f'`{text}`' for text in reads)} reads"
    only_read = [text for text in writes if reads and text not in reads]
    parts = [f"{', '.join(f'`{text}`' for text in refused)}: {what if not only_read else 'refused'}"]
    parts += [f"{', '.join(f'`{text}`' for text in only_read)}: writes are refused"] if only_read else []
    return f"followed; {'; '.join(parts)}"


def _refuses(check: Callable[[TableSchema], None], name: str, text: str) -> bool:
    options = {"file.compression": "none", name: text}  # files of text are read if they are not compressed
    schema = TableSchema(id=0, fields=(Field(0, "k", STRING),), highest_field_id=0, options=options)
    try:
        check(schema)
    except UnsupportedError:
        return True
    return False


def page(package: Path) -> str:
    """The page.

    Raises: as `statuses`.
    """
    found = statuses(package)
    parts = [HEAD]
    for title, rows in (("Layout, files, reads, commits, compaction", TABLES), ("Features and engines", FEATURES),
                        ("Iceberg metadata", ICEBERG), ("Options of paimon_py alone", OWN)):
        parts.append(_COLUMNS.format(title))
        parts.extend(_line(OPTIONS[row[0]], found[row[0]]) for row in sorted(rows))
    parts.append(CATALOGS)
    code = "".join(f.read_text(encoding="utf-8") for f in package.rglob("*.py") if f.name != "option_rows.py")
    for kind, of_kind in {"Every catalog": OF_ALL_ROWS, **BY_KIND}.items():
        if of_kind:
            parts.append(_COLUMNS.format(_TITLES.get(kind, kind)))
            parts.extend(_catalog_line(row, code) for row in sorted(of_kind))
    return "".join(parts)


def _catalog_line(row: Row, code: str) -> str:
    name, kind, default, doc, status = row
    named = f'"{name}"' in code or (name.startswith("jdbc.") and '"jdbc."' in code)
    if status.startswith(FOLLOWED) and not named:
        raise ValueError(f"{name} is followed nowhere")
    shown = "-" if default is None else (f"`{default}`" if " " not in default else default)
    return f"| `{name}` | {kind} | {shown} | {_plain(doc)} | {_plain(status)} |\n"


def _line(option: Option, status: str) -> str:
    kind = " ".join(f"`{choice}`" for choice in option.choices) or _KINDS[option.type]
    default = "-" if option.default is None else (f"`{option.default}`" if option.default else "empty")
    older = ", ".join(f"`{name}`" for name in option.fallbacks)
    doc = f"{option.doc} Older names: {older}." if older else option.doc
    return f"| `{option.name}` | {kind} | {default} | {_plain(doc)} | {_plain(status)} |\n"


def _plain(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("#", "&#35;")


if __name__ == "__main__":
    PAGE.write_text(page(Path(__file__).parents[2] / "paimon_py"), encoding="utf-8")
