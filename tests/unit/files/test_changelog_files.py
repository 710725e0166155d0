import pytest
from unit.files.build import FixedIds, batch, read, schema, write

from paimon_py.codec.binary_row import decode
from paimon_py.files.layout import changelog_layout, file_layout
from paimon_py.files.naming import ReplacementNames
from paimon_py.spec.data_file import FileSource
from paimon_py.storage.memory_store import MemoryStore

KEYED = schema((0, "k", "INT NOT NULL"), (1, "v", "STRING"), keys=["k"])
VERSIONS = {
    "_SEQUENCE_NUMBER": [1, 3, 2, 4],
    "_VALUE_KIND": [0, 1, 2, 3],
    "k": [1, 1, 1, 2],
    "v": ["b", "a", "c", None],
}


def changelog(*, level=0, **options):
    """A changelog file of four changes to two keys, and what it was written to."""
    store = MemoryStore()
    named = {name.replace("_", "-"): text for name, text in options.items()}
    (file,) = write(store, KEYED, batch(KEYED, **VERSIONS), level=level, layout_of=changelog_layout, **named)
    return store, file


def with_options(**options):
    return schema((0, "k", "INT NOT NULL"), (1, "v", "STRING"), keys=["k"], options=options)


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
def test_a_changelog_file_holds_all_versions_of_a_key_and_says_so(name):
    store, file = changelog(level=4, **{"file.format": name})
    assert (file.name, file.level, file.source) == (f"changelog-u-u-0.{name}", 4, FileSource.APPEND)
    assert (file.row_count, file.delete_row_count, file.min_sequence, file.max_sequence) == (4, 2, 1, 4)
    keys = decode([file.min_key, file.max_key], [field.type for field in KEYED.key_fields])
    assert keys[0].to_pylist() == [1, 2]
    values = decode([file.value_stats.min_values, file.value_stats.max_values], [field.type for field in KEYED.fields])
    assert (values[1].to_pylist(), file.value_stats.null_counts) == (["a", "c"], (0, 1))
    assert read(store, file, KEYED) == batch(KEYED, **VERSIONS).to_pylist()


def test_the_options_of_changelog_files_count_before_those_of_levels():
    options = {
        "file.format": "avro", "file.format.per.level": "5:orc", "file.compression.per.level": "5:none",
        "metadata.stats-mode": "none", "metadata.stats-mode.per.level": "5:counts",
    }  # fmt: skip
    plain = changelog_layout(with_options(**options), level=5)
    assert (plain.format_name, plain.settings.compression) == ("orc", "none")
    assert {mode.kind for mode in plain.modes} == {"counts"}
    assert changelog_layout(with_options(**options)).format_name == "avro"
    own = {
        "changelog-file.format": "Parquet",
        "changelog-file.compression": "snappy",
        "changelog-file.stats-mode": "full",
    }
    layout = changelog_layout(with_options(**options, **own), level=5)
    assert (layout.format_name, layout.settings.compression) == ("parquet", "snappy")
    assert {mode.kind for mode in layout.modes} == {"full"}
    assert file_layout(with_options(**options, **own), level=5).format_name == "orc"


def test_a_prefix_of_its_own_and_no_statistics():
    _, file = changelog(**{"changelog-file.prefix": "log-", "changelog-file.stats-mode": "none"})
    assert file.name == "log-u-u-0.parquet"
    assert (file.value_stats.null_counts, file.key_stats.null_counts) == ((None, None), (0,))


def test_changelog_files_have_no_indexes_and_do_not_end_at_a_number_of_rows():
    options = {"file-index.bloom-filter.columns": "v", "target-file-row-num": "1"}
    assert file_layout(with_options(**options)).indexes
    layout = changelog_layout(with_options(**options))
    assert (layout.indexes, layout.target_rows > 1 << 40) == ((), True)


def test_a_changelog_file_written_again_is_named_after_the_first():
    assert ReplacementNames("changelog-u-0.orc", FixedIds()).changelog("orc", "zstd").startswith("changelog-u-0-r")
