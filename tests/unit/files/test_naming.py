from unit.files.build import FixedIds

from paimon_py.files.naming import DataFileNames, NameRules
from paimon_py.spec.options import Options


def test_data_and_changelog_files_of_a_writer_share_one_counter():
    names = DataFileNames(NameRules.of(Options({})), FixedIds())
    assert names.data("parquet", "zstd") == "data-u-u-0.parquet"
    assert names.changelog("orc", "zstd") == "changelog-u-u-1.orc"
    assert names.data("avro", "zstd") == "data-u-u-2.avro"


def test_prefixes_and_compression_follow_the_options():
    options = {"data-file.prefix": "part-", "changelog-file.prefix": "log-", "file.suffix.include.compression": "true"}
    names = DataFileNames(NameRules.of(Options(options)), FixedIds())
    assert names.data("parquet", "zstd") == "part-u-u-0.zst.parquet"
    assert names.changelog("parquet", "gzip") == "log-u-u-1.gz.parquet"
    assert names.data("parquet", "snappy") == "part-u-u-2.snappy.parquet"
    assert names.data("parquet", "none") == "part-u-u-3.parquet"


def test_each_process_of_a_fork_has_names_of_its_own():
    class Ids:
        pid, drawn = 7, 0

        def uuid(self):
            self.drawn += 1
            return f"u{self.drawn}"

        def process(self):
            return self.pid

    ids = Ids()
    names = DataFileNames(NameRules.of(Options({})), ids)
    assert names.data("avro", "none") == "data-u1-0.avro"
    ids.pid = 8
    assert [names.data("avro", "none") for _ in range(2)] == ["data-u2-1.avro", "data-u2-2.avro"]
    ids.pid = 9
    assert names.changelog("avro", "none") == "changelog-u3-3.avro"
