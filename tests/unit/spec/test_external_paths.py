"""External paths: which directories, in whose turn, and what is refused at creation."""

from __future__ import annotations

import collections

import pytest

from paimon_py.errors import OptionError
from paimon_py.spec.external_paths import ExternalPaths, entropy, external_paths, murmur3
from paimon_py.spec.options import Options

PREFIX = "data-file.external-paths"


def given(paths: str | None = "s3://b/one, file:///two/", **more: str) -> dict[str, str]:
    named = {f"{PREFIX}.{name.replace('_', '-')}": value for name, value in more.items()}
    return named if paths is None else {PREFIX: paths, **named}


def parsed(*args, **more) -> ExternalPaths | None:
    return external_paths(Options(given(*args, **more)))


def test_without_a_strategy_files_stay_below_the_table():
    assert parsed() is None
    assert parsed(strategy="none") is None
    assert parsed(None, strategy="round-robin") is None


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("file:///data//x/", "file:/data/x"),
        ("file:/data/x", "file:/data/x"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        (" oss://bucket ", "oss://bucket"),
        ("hdfs://host:9000/a%20b", "hdfs://host:9000/a%20b"),
    ],
)
def test_roots_are_written_as_java_prints_them(text, root):
    assert parsed(text, strategy="round-robin").roots == (root,)


def test_files_take_turns():
    paths = parsed(strategy="round-robin")
    assert [paths.path("p=1/bucket-0", "f", n, 0.9) for n in (1, 2, 3)] == [
        "file:/two/p=1/bucket-0/f", "s3://b/one/p=1/bucket-0/f", "file:/two/p=1/bucket-0/f",
    ]  # fmt: skip
    assert [paths.first_position(draw) for draw in (0.0, 0.49, 0.5, 0.999)] == [0, 0, 1, 1]


def test_a_scheme_picks_paths_whatever_its_case():
    assert parsed(strategy="specific-fs", specific_fs="S3").roots == ("s3://b/one",)


def test_weights_share_the_files():
    paths = parsed("s3://b/a,s3://b/b,s3://b/c", strategy="weight-robin", weights="1, 2,7")
    counts = collections.Counter(paths.path("bucket-0", "f", 1, draw / 100)[5:8] for draw in range(100))
    assert counts == {"b/a": 10, "b/b": 20, "b/c": 70}
    assert parsed("s3://b/a", strategy="weight-robin", weights="3").strategy == "round-robin"
    assert parsed(strategy="weight-robin").strategy == "round-robin"


def test_entropy_directories_come_from_the_name():
    paths = parsed(strategy="entropy-inject")
    assert paths.first_position(0.9) == 0
    path = paths.path("bucket-0", "data-1.orc", 1, 0.0)
    assert path == f"file:/two/bucket-0/{entropy('data-1.orc')}/data-1.orc"
    assert [len(part) for part in entropy("data-1.orc").split("/")] == [4, 4, 4, 8]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0),
        (b"ab", 0x9BBFD75F),
        (b"test", 0xBA6BD213),
        (b"Hello, world!", 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)
def test_murmur3_gives_the_published_values(data, value):
    assert murmur3(data) == value


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (given("/data", strategy="round-robin"), PREFIX),
        (given("data/x", strategy="round-robin"), PREFIX),
        (given("s3://b/a,,s3://b/b", strategy="round-robin"), PREFIX),
        (given("s3://b/../x", strategy="round-robin"), PREFIX),
        (given("file://host/x", strategy="round-robin"), PREFIX),
        (given(strategy="specific-fs"), f"{PREFIX}.specific-fs"),
        (given(strategy="specific-fs", specific_fs="gs"), f"{PREFIX}.specific-fs"),
        (given(strategy="weight-robin", weights="1"), f"{PREFIX}.weights"),
        (given(strategy="weight-robin", weights="1,0"), f"{PREFIX}.weights"),
        (given(weights="1,x"), f"{PREFIX}.weights"),
        (given(strategy="by-hand"), f"{PREFIX}.strategy"),
    ],
)
def test_bad_options_are_named(options, option):
    with pytest.raises(OptionError) as caught:
        external_paths(Options(options))
    assert caught.value.option == option
