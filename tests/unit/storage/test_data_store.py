"""Data files by path or URL: which store is asked, and what a pickle carries."""

from __future__ import annotations

import pickle

import pytest

from paimon_py.errors import CorruptionError
from paimon_py.storage.data_store import DataStore
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError


def put(files: DataStore, path: str, data: bytes) -> None:
    with files.open_write(path) as sink:
        sink.write(data)


def get(files: DataStore, path: str) -> bytes:
    with files.open_read(path) as source:
        return source.read()


def never(url, options):
    raise AssertionError(f"{url} is at home")


@pytest.mark.parametrize("url", ["file:/else/f", "file:///else/f", "/else/f", "FILE:/else/f", "C:/else/f"])
def test_file_urls_of_a_local_table_are_paths_of_its_own_store(url):
    home = MemoryStore()
    files = DataStore(home, "/w/t", opener=never)
    put(files, url, b"x")
    assert home.get("C:/else/f" if url.startswith("C:") else "/else/f") == get(files, url) == b"x"
    assert files.stat(url).size_bytes == 1
    files.delete(url)
    assert files.stat(url) is None


def test_a_percent_sign_in_a_file_url_is_a_percent_sign(tmp_path):
    files = DataStore(LocalStore(), str(tmp_path / "t"))
    put(files, f"file:{tmp_path}/p=a%3Ab/f", b"x")
    assert (tmp_path / "p=a%3Ab" / "f").read_bytes() == b"x"


def test_other_stores_are_opened_once_with_the_options_of_the_table():
    home, other, calls = MemoryStore(), MemoryStore(), []

    def opener(url, options):
        calls.append((url, options))
        return other, url.replace("s3a:", "s3:")

    files = DataStore(home, "s3://mine/w/t", {"s3.access-key": "a"}, opener=opener)
    home.make_directory("s3://mine/w/t")
    put(files, "s3a://theirs/x/f", b"1")
    put(files, "s3a://theirs/x/g", b"2")
    assert other.get("s3://theirs/x/g") == b"2"
    put(files, "s3a://mine/x/h", b"3")
    put(files, "s3://mine/w/t/i", b"4")
    assert home.get("s3://mine/x/h") == b"3" and home.get("s3://mine/w/t/i") == b"4"
    assert calls == [("s3a://theirs/x", {"s3.access-key": "a"}), ("s3a://mine/x", {"s3.access-key": "a"})]


def test_only_files_below_the_table_need_its_directory():
    home = MemoryStore()
    files = DataStore(home, "/w/t", opener=never)
    with pytest.raises(FileMissingError, match="/w/t does not exist"):
        files.open_write("/w/t/bucket-0/f")
    put(files, "/w/t2/f", b"x")
    assert home.stat("/w/t") is None and home.get("/w/t2/f") == b"x"


def test_a_local_disk_is_reached_from_a_table_in_memory(tmp_path):
    files = DataStore(MemoryStore(), "memory://w/t")
    put(files, f"file:{tmp_path}/f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


def test_paths_that_climb_are_refused():
    files = DataStore(MemoryStore(), "/w/t")
    with pytest.raises(CorruptionError, match="not a plain path"):
        files.open_read("file:/else/../w/t/f")
    with pytest.raises(FileMissingError):
        files.open_read("file:/else/f")


def test_secrets_stay_out_of_pickles_and_texts():
    options = {"s3.endpoint": "http://e", "s3.access-key": "AK", "s3.secret-key": "SK", "fs.azure.sas.fixed.token": "T"}
    files = DataStore(LocalStore(), "/w/t", options)
    data = pickle.dumps(files)
    assert not any(word in data for word in (b"AK", b"SK", b"token")) and "AK" not in repr(files)
    assert pickle.loads(data).public_options == {"s3.endpoint": "http://e"}
