from unit.files.build import FixedIds

from paimon_py.files.naming import DataFileNames


def test_data_and_changelog_files_of_a_writer_share_one_counter():
    names = DataFileNames({}, FixedIds())
    assert names.data("parquet", "zstd") == "data-u-u-0.parquet"
    assert names.changelog("orc", "zstd") == "changelog-u-u-1.orc"
    assert names.data("avro", "zstd") == "data-u-u-2.avro"


def test_prefixes_and_compression_follow_the_options():
    options = {"data-file.prefix": "part-", "changelog-file.prefix": "log-", "file.suffix.include.compression": "true"}
    names = DataFileNames(options, FixedIds())
    assert names.data("parquet", "zstd") == "part-u-u-0.zst.parquet"
    assert names.changelog("parquet", "gzip") == "log-u-u-1.gz.parquet"
    assert names.data("parquet", "snappy") == "part-u-u-2.snappy.parquet"
    assert names.data("parquet", "none") == "part-u-u-3.parquet"
