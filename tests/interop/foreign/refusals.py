"""Every check that ends in `CorruptionError`, and whether Java refuses the same: `tests/house/test_refusals.py` keeps it whole.

A check stays where Java reads on only if a wrong answer may come of it; the reason names the answer. Where a damage is
named (`foreign.damages`), Java 2.0 was asked, and is asked again by `test_refusals_of_damage`; elsewhere the class of Java
is named that decides.
"""

from __future__ import annotations

from typing import NamedTuple

REFUSES = "Java refuses it"
WRONG = "Java reads on"
APART = "no file of Java"
"""Bytes, files or values of paimon_py alone."""


class Refusal(NamedTuple):
    """A check: words of its message in the source, Java's answer, the reason, and the damages that ask Java."""

    function: str
    words: str
    java: str
    reason: str
    damages: tuple[str, ...] = ()


def _at(function: str, words: str, java: str, reason: str, *damages: str) -> Refusal:
    return Refusal(function, words, java, reason, damages)


_BOUND = "memory is bounded: no writer makes it"
_ANY = "the answer of each check that it wraps"

REFUSALS: dict[str, list[Refusal]] = {
    "arguments.py": [
        _at("decoding_metadata", "cannot be decoded", REFUSES, "what no other check foresees"),
        _at("_at_door.wrapper", "{here}: {error}", REFUSES, _ANY, "partition too short"),
    ],
    "clones/contents.py": [_at("_Collector._add", "is outside of the table", APART, "a clone copies what is below the table")],
    "clones/unfinished.py": [_at("UnfinishedClone._copy_bytes", "bytes", WRONG, "CopyFileOperator compares nothing: a file that was cut off would be copied")],
    "codec/avro/container.py": [
        _at("read_header", "not an Avro container", REFUSES, "DataFileStream", "magic"),
        _at("read_header", "the Avro header has", WRONG, _BOUND, "keys of the header"),
        _at("read_header", "broken Avro header", REFUSES, "DataFileStream", "header cut off"),
        _at("read_header", "Avro header without a schema", REFUSES, "DataFileStream", "header without schema"),
        _at("read_blocks", "the file ends inside a block", REFUSES, "Java never ends: BinaryDecoder asks for a byte again and again"),
        _at("read_blocks", "block of {count} records", WRONG, "Java ends there (rows are missing), or memory does", "end cut off"),
        _at("read_blocks", "wrong sync marker", REFUSES, "DataFileStream", "sync"),
        _at("read_blocks", "{path}: {error}", REFUSES, "the codec", "block does not inflate"),
        _at("check_block", "records in", REFUSES, "BinaryDecoder", "block of too many"),
        _at("inflater", "unknown Avro codec", REFUSES, "CodecFactory", "codec"),
    ],
    "codec/avro/data_files.py": [
        _at("DataFileReader.__init__", "broken Avro schema", REFUSES, "Schema.Parser", "Avro's schema"),
        _at("DataFileReader.records", "is damaged", REFUSES, "BinaryDecoder", "Avro's values"),
        _at("DataFileReader._blocks", "a block of {count} records in", REFUSES, "DataFileStream", "Avro's block too long"),
        _at("DataFileReader._blocks", "wrong sync marker", REFUSES, "DataFileStream", "Avro's sync"),
        _at("DataFileReader._blocks", "does not inflate", REFUSES, "the codec", "Avro's block"),
        _at("DataFileReader._blocks", "ends after", WRONG, "Java takes the shorter file: rows are missing", "Avro without its block"),
        _at("DataFileReader._check_count", "{message} {self._row_count}", WRONG, "a file with other rows than were committed", "more rows by the entry, Avro"),
        _at("_Stream._short", "ends inside a block", WRONG, "Java ends there: rows are missing", "Avro cut off"),
        _at("readable", "not an Avro schema", APART, "schemas of change events; Java's decoder refuses them as well (Schema.Parser)"),
        _at("record_of", "the record is damaged", APART, "change events; Java: BinaryDecoder"),
        _at("record_of", "bytes after the record", APART, "change events: another schema than the one that was named"),
    ],
    "codec/avro/shape.py": [_at("shape_of", "broken Avro schema", REFUSES, "Schema.Parser", "schema of Avro", "type of Avro")],
    "codec/binary_row/decode.py": [
        _at("decode", "a serialized row of", REFUSES, "Java looks for a partition of other bytes; bounds of other bytes exclude files", "partition too short"),
        _at("_Region.check", "outside its buffer", REFUSES, "Java looks for a partition of other bytes", "text outside its row"),
        _at("_check_rows", "ends outside its buffer", WRONG, "as the row that is too short, for rows in arrays"),
        _at("_check_rows", "fields, {arity} expected", WRONG, "values of another schema: a partition or bound of another column", "partition of two fields"),
        _at("_wide_decimals", "a decimal in a row", WRONG, "BinaryRow.getDecimal takes bytes of another value: a bound that excludes files"),
        _at("_texts", "longer than seven bytes", REFUSES, "Java looks for a partition of other bytes", "inline text of nine"),
        _at("_texts", "not UTF-8", REFUSES, "Java looks for a partition of another name", "text not UTF-8"),
        _at("_check_lengths", "a nested value of a row is too short", WRONG, "BinaryArray.pointTo reads what lies behind: values of other rows"),
        _at("_map", "a map in a row", WRONG, "BinaryMap pairs keys with values of others"),
    ],
    "codec/blob_refs.py": [
        _at("BlobRef.from_bytes", "names {length} bytes", REFUSES, "OffsetSeekableInputStream; a length of -1 is read as 'to the end' by both"),
        _at("BlobViewRef.from_bytes", "leads to row", WRONG, "no row and no column has such a number: a view of nothing"),
        _at("_parts", "begins with", REFUSES, "BlobDescriptor.deserialize: magic and version"),
        _at("_parts", "ends early", REFUSES, "BlobDescriptor.deserialize: BufferUnderflowException"),
        _at("_parts", "and a text of", REFUSES, "BlobDescriptor.deserialize: a text longer than the bytes"),
        _at("_parts", "is not text", WRONG, "Java replaces what is not UTF-8: another file's path"),
    ],
    "codec/pack_references.py": [
        _at("decode_packs", "does not have the checksum", REFUSES, "ManagedBlobReferenceFile: CRC-32"),
        _at("decode_packs", "is not a list of packs of version", REFUSES, "ManagedBlobReferenceFile: magic and version"),
        _at("decode_packs", "is damaged: {error}", REFUSES, "DataInputStream.readUTF"),
        _at("decode_packs", "texts for {count} packs", REFUSES, "ManagedBlobReferenceFile: count"),
    ],
    "codec/blobs.py": [
        _at("payload_of", "is damaged", WRONG, "BlobFormatReader checks no checksum: other bytes of a blob"),
        _at("index_bytes", "does not end as a blob file", REFUSES, "BlobFileMeta: version and length"),
        _at("decode_index", "does not match its length", REFUSES, "BlobFileMeta: places within the file"),
        _at("decode_deltas", "a number that does not end", REFUSES, "DeltaVarintCompressor"),
        _at("_damage", "a list of blobs", REFUSES, "BlobFormatReader: elements within the row"),
    ],
    "codec/damaged_names.py": [_at("check_names", "with a flipped bit", WRONG, "Java takes the field for missing: files that lie elsewhere, bounds of other columns", "name with a flipped bit")],
    "codec/deletion_vectors.py": [_at("decode.damage", "the deletion vector at offset", WRONG, "Java compares the magic and no checksum: other rows are deleted", "vector's checksum", "vector's magic")],
    "codec/file_index/answer.py": [_at("_Asking._damage", "is damaged", WRONG, "a file without the value by its index: rows are missing")],
    "codec/file_index/container.py": [
        _at("head_bytes", "it should be a file index", REFUSES, "FileIndexFormat: EOFException"),
        _at("head_bytes", "which is not a file index", REFUSES, "FileIndexFormat: magic", "file index begins otherwise"),
        _at("head_bytes", "is a file index of version", REFUSES, "FileIndexFormat: version", "version of a file index"),
        _at("head_bytes", "is impossible", REFUSES, "FileIndexFormat: EOFException"),
        _at("decode_head", "ends within its head", REFUSES, "FileIndexFormat: EOFException", "file index cut off"),
        _at("decode_head", "is damaged", WRONG, "another index would be asked: rows are missing"),
        _at("cut", "ends within an index", REFUSES, "FileIndexFormat: EOFException"),
    ],
    "codec/hash_index.py": [
        _at("decode_hashes", "its checksum is", WRONG, "only names that paimon_py writes hold one: a key would get a second bucket"),
        _at("decode_hashes", "of {count} hashes", WRONG, "HashIndexFile reads what is there: a key gets a second bucket", "hashes cut off"),
    ],
    "codec/json.py": [
        _at("decode_object", "not JSON", WRONG, "text behind the object means two writers in one file; the rest Java refuses as well", "not json", "trailing json"),
        _at("decode_object", "nested too deeply", REFUSES, "Jackson: 1,000 levels"),
        _at("decode_object", "expected a JSON object", REFUSES, "Jackson", "json list"),
        _at("unknown_items", "nested too deeply", WRONG, "what cannot be written again would be lost with the next commit", "deep json"),
        _at("_schema", "has an id above", WRONG, "the next column would get the id of another: its values", "schema with a low highest id"),
        _at("_schema", "no column of a table with a primary key", REFUSES, "names of the columns that key files hold", "field with a name of Paimon's"),
        _at("_fields", "'fields' is missing", REFUSES, "TableSchema", "schema without fields"),
        _at("_fields", "{path}: {error}", REFUSES, "DataTypeJsonParser", "field with half a type", "field without name"),
        _at("_fields", "a field has no id", REFUSES, "DataTypeJsonParser", "field without id"),
        _at("_fields", "have the same id", WRONG, "one column is read as the other", "field with the id of another"),
        _at("_fields", "have the same name", REFUSES, "RowType", "field with the name of another"),
        _at("_keys", "is missing or not a list", REFUSES, "TableSchema", "schema without keys"),
        _at("_keys", "names columns that do not exist", REFUSES, "TableSchema", "schema with unknown keys"),
        _at("_keys", "names a column twice", REFUSES, "RowType", "schema with a key twice"),
        _at("_keys", "cannot be a key", REFUSES, "PrimaryKeyTableUtils", "schema with a nested key"),
        _at("_options", "'options' is missing", REFUSES, "TableSchema", "schema without options"),
        _at("_number", "not a whole number", REFUSES, "TableSchema; of a number with digits behind its point Java takes the whole", "schema without highest id"),
    ],
    "codec/lineage_json.py": [_at("_decode", "property {name!r} is damaged", APART, "properties of paimon_py's jobs")],
    "codec/manifest/columns.py": [
        _at("_Values.entries", "unknown kind of entry", REFUSES, "FileKind.fromByteValue"),
        _at("file_source", "unknown file source", REFUSES, "FileSource.fromByteValue"),
        _at("_decode_texts", "a list of names is not UTF-8", WRONG, "Java replaces what is not UTF-8: the name of another file"),
        _at("_check_text", "is not UTF-8", WRONG, "Java replaces what is not UTF-8: the name of another file"),
    ],
    "codec/manifest/entries.py": [
        _at("_shape", "{path}: {error}", REFUSES, _ANY, "manifest without a field"),
        _at("_check_empty", "a block without records has bytes", WRONG, "Java ends there: rows are missing", "empty block with bytes"),
        _at("_fault", "in the block at byte", REFUSES, "kinds, sources, and records that end elsewhere", "kind of entry", "file source"),
    ],
    "codec/manifest/lists.py": [
        _at("read_index_manifest", "names an index file twice", WRONG, "which of two vectors of a file counts?", "index file twice"),
        _at("_read", "impossible record", REFUSES, "places of vectors that overlap or lie before the file", "vector's length", "vector's place"),
        _at("_records", "broken record", REFUSES, "BinaryDecoder", "list cut in a record"),
        _at("_check_version", "record of version", REFUSES, "VersionedObjectSerializer", "version of list"),
    ],
    "codec/manifest/program.py": [_at("program", "manifest schema without usable", REFUSES, "the serializer of the record", "manifest without a field")],
    "codec/snapshot_json.py": [
        _at("_tag", "is not a time", REFUSES, "Tag: LocalDateTime", "tag with another time"),
        _at("_tag", "is not a number of seconds", REFUSES, "Tag: Duration", "tag with another duration"),
        _at("_snapshot", "is missing", WRONG, "Java takes schema 0 or no user, whose commits are then made again", "snapshot without schema", "snapshot without user", "snapshot without list"),
        _at("_check", "has a wrong value", REFUSES, "Jackson; of a number with digits behind its point Java takes the whole", "snapshot with a half schema"),
    ],
    "codec/statistics_json.py": [
        _at("statistics_from_json", "holds no columns", REFUSES, "Jackson"),
        _at("_column", "is not a column of schema", REFUSES, "Statistics.deserializeFieldsFromString: NullPointerException"),
        _at("_parse_bound", "is not a bound: {error}", REFUSES, "ColStats.deserializeFieldsFromString: the serializer of the type"),
        _at("_parse_bound", "is not a bound'", REFUSES, "Jackson: not a text"),
        _at("_number", "not a number", WRONG, "Java takes 0 for an id: the statistics of another snapshot"),
    ],
    "codec/texts.py": [_at("with_valid_text", "contains bytes that are not UTF-8", APART, "tables and texts of Python; to_arrow() returns the bytes as Java does")],
    "codec/variant/layout.py": [_at("damage", "a variant is damaged", REFUSES, "GenericVariantUtil: MALFORMED_VARIANT")],
    "commit/validate_changes.py": [
        _at("validate_changes", "nothing was committed", APART, "changes on their way to a commit"),
        _at("_require", "otherwise.format", APART, "changes on their way to a commit"),
        _at("_check_edit", "is not described as before", APART, "changes on their way to a commit"),
        _at("_rows", "cannot be read", APART, "changes on their way to a commit"),
    ],
    "compaction/range_picker.py": [
        _at("first_of", "has no first row id", REFUSES, "DataFileMeta.nonNullFirstRowId"),
        _at("_fill_bins", "of only some rows of", REFUSES, "DataEvolutionSplitRead: equal row counts"),
    ],
    "compaction/task_check.py": [_at("_require", "the compaction task does not match", APART, "tasks of executors")],
    "executors/executor.py": [_at("_Run.results", "the executor returned neither", APART, "tasks of executors")],
    "executors/job.py": [
        _at("TaskResult.from_bytes", "not the bytes of a task result", APART, "tasks of executors"),
        _at("Job.task_from", "not the bytes of a task", APART, "tasks of executors"),
        _at("kind_of", "unknown kind of tasks", APART, "tasks of executors"),
    ],
    "files/blob_columns.py": [
        _at("BlobColumn._places", "hold one column of the same rows", REFUSES, "BlobFileBunch: row ids that overlap"),
        _at("BlobColumn._index", "is longer than the file", REFUSES, "BlobFileMeta"),
        _at("BlobColumn._index", "its manifest entry says", WRONG, "BlobFormatReader takes what is there: blobs of other rows"),
        _at("_EntryReader._read", "ends within an entry", REFUSES, "EOFException"),
    ],
    "files/deletion_filter.py": [_at("check_fits", "names row {dead.last}", WRONG, "the vector of another file: other rows are deleted")],
    "files/file_index.py": [_at("index_file", "index files", REFUSES, "FileIndexEvaluator", "two file indexes")],
    "files/physical.py": [_at("readable_fields", "names the column", WRONG, "columns and statistics would be taken for others")],
    "files/reader.py": [_at("FileReader._check_rows", "its manifest entry says", WRONG, "counts and limits of plans would be others than the rows", "more rows by the entry", "more rows by the entry, ORC")],
    "files/row_ids.py": [_at("RowIds.__init__", "has no row ids", WRONG, "Java returns NULL for ids that a table with row tracking has")],
    "formats/base.py": [
        _at("_decoding_error", "it is nested too deeply", REFUSES, "StackOverflowError"),
        _at("_decoding_error", "is damaged: {error}", REFUSES, "the reader of the format", "Parquet cut off", "ORC cut off", "Parquet's magic", "ORC's magic", "text for a number"),
        _at("_decoding_error", "is damaged: {error or", REFUSES, "the reader of the format"),
        _at("_memory_error", "bytes of memory", REFUSES, "OutOfMemoryError"),
    ],
    "formats/lines/format.py": [
        _at("LinesFile._pieces", "cannot be unpacked", REFUSES, "the codec"),
        _at("LinesFile._pieces", "does not end where", WRONG, "lines are missing"),
    ],
    "formats/orc/format.py": [
        _at("OrcOpenFile._stripes", "rows in its stripes", WRONG, "rows that the footer does not count"),
        _at("OrcOpenFile._chosen_stripes", "rows in its stripes", WRONG, "rows that the footer does not count"),
        _at("OrcOpenFile._chosen_stripes", "rows in a stripe of", WRONG, "rows that the footer does not count"),
    ],
    "formats/packaged/opened.py": [
        _at("PackagedOpenFile.positioned_batches", "ends at row", APART, "lance, vortex and mosaic, which Java 2.0 lacks"),
        _at("packaged._translate", "is damaged", APART, "lance, vortex and mosaic, which Java 2.0 lacks"),
    ],
    "formats/parquet/format.py": [_at("ParquetOpenFile._stretch", "rows", WRONG, "rows are missing where pages hold fewer than their row group")],
    "formats/registry.py": [_at("by_extension", "has no extension", REFUSES, "DataFilePathFactory.formatIdentifier", "name of file without ending")],
    "formats/stored.py": [_at("check_absent", "which its schema has", REFUSES, "a column that is NOT NULL; a nullable one is NULL", "column gone")],
    "iceberg/avro_files.py": [_at("_read", "broken record", APART, "metadata of Iceberg; its readers refuse the same")],
    "iceberg/directory.py": [_at("IcebergDirectory._own", "references a file", APART, "metadata of Iceberg: a path outside the table")],
    "iceberg/metadata.py": [_at("parse_version", "is not among its snapshots", APART, "metadata of Iceberg; its readers refuse the same")],
    "imports/source_files.py": [
        _at("_check_row_groups", "its footer says {metadata", APART, "files that are imported"),
        _at("_check_row_groups", "the footer begins at", APART, "files that are imported"),
        _at("_check_row_groups", "values, and the row group", APART, "files that are imported"),
        _at("_orc", "its footer says {sum", APART, "files that are imported"),
    ],
    "imports/verb.py": [_at("_with_column", "nothing was imported", APART, "files that are imported")],
    "lookup/files.py": [
        _at("FileReading._stored_rows", "fewer rows than a moment ago", WRONG, "another file: the row of another key"),
        _at("_check_order", "are not in ascending order", WRONG, "a key that is there would not be found"),
    ],
    "lsm/merge.py": [_at("_backwards", "keys are not in ascending order", WRONG, "Java merges by position: rows that were replaced come back", "keys backwards")],
    "maintain/cleanup/references.py": [
        _at("branch_roots", "has no schema", WRONG, "files of the branch would be deleted"),
        _at("ReferencedNames.read", "it is unknown which files are orphans", WRONG, "files that are referenced would be deleted"),
        _at("ReferencedNames._find_gap", "lacks snapshot", WRONG, "files of a snapshot that a list left out would be deleted"),
        _at("ReferencedNames._find_gap", "has hints, but no snapshots", WRONG, "all files would be deleted"),
    ],
    "metadata/blob_access.py": [_at("BlobAccess.read", "ends before the", REFUSES, "EOFException")],
    "metadata/changelogs.py": [_at("Changelogs.find", "contains snapshot", WRONG, "the changes of another snapshot")],
    "metadata/consumers.py": [
        _at("_decode", "is damaged: {error}", REFUSES, "Jackson", "consumer not json"),
        _at("_decode", "not a snapshot id", REFUSES, "Jackson; without a number Java takes 0, and keeps all snapshots", "consumer without number"),
    ],
    "metadata/cuts.py": [_at("_decode", "interrupted rollback", APART, "a file of paimon_py")],
    "metadata/deletion_files.py": [
        _at("read_deletions", "begins with", WRONG, "DeletionVector.read asks no version: of a later one nobody knows the meaning", "vectors begin otherwise"),
        _at("read_deletions", "cannot have a deletion vector", REFUSES, "DeletionVector.read: another magic or size"),
        _at("_check_count", "the index manifest says", WRONG, "the vector of another file or time: other rows are deleted", "vector's count"),
    ],
    "metadata/fold.py": [_at("check_unique", "is added twice", REFUSES, "FileEntry.mergeEntries; Java's reads without DELETEs show both, and so do ours")],
    "metadata/manifests.py": [
        _at("Manifests.read_list", "its snapshot says", WRONG, "a list that was cut off at a block is a shorter list: rows are missing", "list shorter than its snapshot says"),
        _at("Manifests._blame", "{path}: {found}", REFUSES, _ANY, "kind of entry"),
        _at("_check_counts", "its list says", WRONG, "a manifest that was cut off at a block: rows are missing", "counts of list", "entry twice"),
    ],
    "metadata/missing.py": [_at("_damage", "does not exist, but snapshot", REFUSES, "FileNotFoundException", "data file gone", "manifest gone", "list gone")],
    "metadata/open_table.py": [_at("OpenTable.deletion_places", "has two deletion vectors", WRONG, "which of two vectors of a file counts?")],
    "metadata/orc_manifests.py": [
        _at("as_avro", "lacks a required field", WRONG, "Java takes 0 for what every record has"),
        _at("_read", "contains no records", REFUSES, "OrcReaderFactory"),
    ],
    "metadata/origins.py": [_at("_ancestors", "the origin of the branch", APART, "a file of paimon_py")],
    "metadata/row_ranges.py": [
        _at("row_ranges", "has no first row id", REFUSES, "DataFileMeta.nonNullFirstRowId", "no first row id"),
        _at("row_ranges", "files of the same rows must have equal", REFUSES, "RangeHelper", "ids that overlap"),
        _at("row_ranges", "which no other file holds", REFUSES, "DataEvolutionSplitRead"),
    ],
    "metadata/schemas.py": [
        _at("Schemas.get", "is missing", REFUSES, "FileNotFoundException", "schema gone"),
        _at("Schemas.get", "contains schema", WRONG, "the columns of another schema: values of other columns", "schema of another id"),
    ],
    "metadata/snapshots.py": [_at("Snapshots.find", "contains snapshot", WRONG, "the rows of another snapshot", "snapshot of another id")],
    "metadata/success_file.py": [_at("_creation_millis", "which is not a time", REFUSES, "Jackson")],
    "metadata/user_files.py": [
        _at("_decode", "is damaged: {error}", APART, "a file of paimon_py"),
        _at("_decode", "the file of a user is damaged'", APART, "a file of paimon_py"),
        _at("_decode", "is damaged: {numbers}", APART, "a file of paimon_py"),
    ],
    "metastores/hive/hive_types.py": [_at("_text_of", "which is not one of Hive", REFUSES, "HiveTypeUtils: TypeInfoUtils parses the name")],
    "metastores/rest/views_and_functions.py": [_at("_definition", "a definition of type", REFUSES, "FunctionDefinition: Jackson's subtypes")],
    "scan/blob_views.py": [_at("BlobViews._open", "which is not a table", REFUSES, "Identifier.fromString")],
    "scan/diff_read.py": [_at("_Difference.__call__", "two rows of one state", WRONG, "which of two rows was replaced?")],
    "scan/id_read.py": [_at("_difference", "the same row id", WRONG, "which of two rows was replaced?")],
    "scan/prune_entries.py": [_at("_key_types", "the primary key of a table never changes", WRONG, "keys of other columns would be compared")],
    "scan/row_kinds.py": [_at("kind_texts", "which is not one of", REFUSES, "RowKind.fromByteValue", "kind of row")],
    "spec/layout.py": [
        _at("relative_bucket_path", "must be a plain relative directory", WRONG, "Java writes outside the table"),
        _at("check_file_name", "not a plain file name", WRONG, "Java reads and deletes outside the table", "name of file is a path"),
    ],
    "spec/sequence_property.py": [_at("stored_maximum", "which is not a number", APART, "a property of paimon_py's snapshots")],
    "spec/serializable.py": [
        _at("Serializable.from_bytes", "these bytes are not {cls.called}'", APART, "bytes that paimon_py sends"),
        _at("Serializable.from_bytes", "of version {version}", APART, "bytes that paimon_py sends"),
        _at("Serializable.from_bytes", "they were cut off", APART, "bytes that paimon_py sends"),
        _at("Serializable.from_bytes", "bytes that were written", APART, "bytes that paimon_py sends"),
        _at("Serializable.from_bytes", "wrong checksum", APART, "bytes that paimon_py sends"),
        _at("Serializable.from_bytes", "{cls.called}: {error}", APART, "bytes that paimon_py sends"),
    ],
    "storage/data_store.py": [
        _at("_require_plain", "which is not a plain path", WRONG, "Java reads and deletes outside the table"),
        _at("_outside_error", "neither below the table", WRONG, "Java reads any file of the machine, and sends its keys to any host", "external path"),
    ],
    "system/index_tables.py": [_at("_size", "disappeared while it was read", REFUSES, "FileNotFoundException")],
    "table/snapshots.py": [_at("Snapshot.time", "invalid commit time", APART, "a time that Python's datetime cannot hold; time_millis has it")],
    "write/bucket_indexes.py": [_at("BucketIndexes.load", "at most", WRONG, "a key would get a second bucket")],
    "write/cross_partition.py": [_at("CrossPartitionRouting._twice", "more than once", WRONG, "Java replaces one of the two rows, and the other stays for ever")],
    "write/session.py": [_at("Writer._open", "has used up its sequence numbers", WRONG, "numbers that begin again below zero: older rows win")],
}  # fmt: skip
