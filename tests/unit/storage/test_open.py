import subprocess
import sys

import pytest

from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.open import open_store


def test_paths_and_file_urls_are_local(tmp_path, monkeypatch):
    expected = f"{tmp_path.as_posix()}/a b"
    monkeypatch.chdir(tmp_path)
    for url in (f"{tmp_path}/a b", f"file://{tmp_path}/a%20b", f"file:{tmp_path}/a b", f"local://{tmp_path}/a b", "a b", "./x/../a b/"):
        store, root = open_store(url, {})
        assert (store, root) == (LocalStore(), expected)


def test_fsync_can_be_turned_off_by_option():
    store, _ = open_store("/x", {"fs.local.fsync": "false"})
    assert store == LocalStore(fsync=False)
    with pytest.raises(OptionError, match="true or false"):
        open_store("/x", {"fs.local.fsync": "perhaps"})


def test_memory_urls_share_one_store_per_process():
    first, root = open_store("memory://wh/db/", {})
    second, _ = open_store("memory:///wh", {})
    assert first is second
    assert isinstance(first, MemoryStore)
    assert root == "memory://wh/db"


def test_hostile_and_empty_urls_are_refused():
    for url in ("", "a\0b", "memory://", "memory://a/../b"):
        with pytest.raises(UsageError):
            open_store(url, {})
    with pytest.raises(UnsupportedError, match="host"):
        open_store("file://server/x", {})


def test_a_drive_letter_is_not_a_scheme():
    store, _ = open_store("C:/x", {})
    assert isinstance(store, LocalStore)


def test_local_stores_do_not_load_fsspec():
    code = "import sys; import paimon_py.storage.open as o; o.open_store('/x', {}); print('fsspec' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("url", ["simplecache::file:///x", "filecache::s3://b/x", "zip://a::file:///x.zip"])
def test_chained_file_systems_are_refused_by_name(url):
    with pytest.raises(UsageError, match="'::'"):
        open_store(url, {})
