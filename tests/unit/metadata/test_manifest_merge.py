"""Which manifests are merged."""

import pytest

from paimon_py.errors import OptionError
from paimon_py.metadata.manifest_merge import ManifestSettings, minor_groups, wants_full
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options


def manifest(name: str, size: int, deleted: int = 0) -> ManifestFile:
    return ManifestFile(name=name, size_bytes=size, added_files=1, deleted_files=deleted, schema_id=0)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([10], ["a"]),
        ([10, 10], ["a", "b"]),
        ([10, 10, 10], ["abc"]),
        ([100, 10, 10], ["a", "b", "c"]),
        ([60, 50, 10, 10, 10], ["ab", "cde"]),
        ([60, 50, 10, 10], ["ab", "c", "d"]),
        ([10, 200, 10], ["ab", "c"]),
        ([99, 1, 10], ["ab", "c"]),
    ],
)
def test_groups_close_at_the_target_and_the_rest_waits_for_company(sizes, expected):
    settings = ManifestSettings(target_file_size_bytes=100, merge_min_count=3)
    files = [manifest(name, size) for name, size in zip("abcde", sizes, strict=False)]
    assert ["".join(file.name for file in group) for group in minor_groups(files, settings)] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([manifest("a", 100), manifest("b", 500)], False),
        ([manifest("a", 100, deleted=1), manifest("b", 99)], False),
        ([manifest("a", 101, deleted=1), manifest("b", 99)], True),
        ([manifest("a", 99), manifest("b", 99), manifest("c", 2)], True),
    ],
)
def test_small_and_deleting_manifests_count_towards_a_full_merge(files, expected):
    settings = ManifestSettings(target_file_size_bytes=100, full_compaction_bytes=200)
    assert wants_full(files, settings) is expected


def test_settings_come_from_the_options_of_the_table():
    options = {"manifest.target-file-size": "1 mb", "manifest.merge-min-count": "7", "manifest.compression": "null"}
    assert ManifestSettings.of(Options(options)) == ManifestSettings(
        compression="null", target_file_size_bytes=1 << 20, merge_min_count=7
    )
    assert ManifestSettings.of(Options({})) == ManifestSettings()
    with pytest.raises(OptionError):
        ManifestSettings.of(Options({"manifest.target-file-size": "many"}))
