"""The guarantees of every store, as tests to inherit.

A test module derives a class from `StoreSuite` and provides two pytest fixtures: `store` (a new instance of the store)
and `root` (a path in it that nothing else uses).
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.errors import AlreadyExistsError, PaimonError, StorageUnknownError
from paimon_py.storage.store import (
    FileMissingError,
    FileTakenError,
    Store,
    join,
    name_lister,
    new_file,
    page_lister,
    range_reader,
)

MAKING = ("put_new", "put", "open_write")
"""The verbs that create a file."""


class StoreSuite:
    """The guarantees of `paimon_py.storage.store`; set the attributes of unsupported features to False."""

    renames_directories = True
    opens_exclusively = True

    def test_parts_of_a_file_are_read_where_the_store_can(self, store: Store, root: str) -> None:
        path, data = join(root, "parts"), bytes(range(256)) * 10
        store.put(path, data)
        get = range_reader(store)
        if get is None:
            return
        for start, stop in ((0, 1), (0, len(data)), (100, 1000), (len(data) - 1, len(data))):
            assert get(path, start, stop) == data[start:stop]
        try:
            get(join(root, "nowhere"), 0, 10)
        except PaimonError as error:
            assert isinstance(error, FileMissingError)
        else:
            raise AssertionError("a part of a file that is not there was read")

    def test_a_new_file_is_read_back(self, store: Store, root: str) -> None:
        assert store.put_new(join(root, "a/b/c"), b"content") is True
        assert store.get(join(root, "a/b/c")) == b"content"

    def test_the_second_creator_loses_and_changes_nothing(self, store: Store, root: str) -> None:
        path = join(root, "snapshot-1")
        assert store.put_new(path, b"first")
        assert store.put_new(path, b"second") is False
        assert store.get(path) == b"first"

    def test_creating_the_same_bytes_again_is_never_reported_as_done(self, store: Store, root: str) -> None:
        path = join(root, "schema-1")
        assert store.put_new(path, b"same")
        try:
            assert store.put_new(path, b"same") is False
        except StorageUnknownError:
            assert store.get(path) == b"same"

    def test_an_empty_file_is_created_once_too(self, store: Store, root: str) -> None:
        path = join(root, "empty")
        assert store.put_new(path, b"")
        assert store.put_new(path, b"x") is False
        assert store.get(path) == b""

    def test_one_of_many_concurrent_creators_wins(self, store: Store, root: str) -> None:
        for turn in range(5):
            path = join(root, "race", str(turn))
            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(lambda n, path=path: store.put_new(path, b"%d" % n), range(8)))
            assert sum(won) == 1
            assert store.get(path) == b"%d" % won.index(True)

    def test_no_temporary_file_stays_behind(self, store: Store, root: str) -> None:
        store.put_new(join(root, "x"), b"1")
        store.put_new(join(root, "x"), b"2")
        store.put(join(root, "y"), b"3")
        assert [child.name for child in store.list(root)] == ["x", "y"]

    def test_put_replaces_the_whole_file(self, store: Store, root: str) -> None:
        path = join(root, "hints/LATEST")
        store.put(path, b"a long first text")
        store.put(path, b"2")
        assert store.get(path) == b"2"

    def test_listing_shows_direct_children_in_order(self, store: Store, root: str) -> None:
        for name in ("b", "a", "d/below", "d/under/it", "c"):
            store.put_new(join(root, name), b"12345")
        children = store.list(root)
        assert [(child.name, child.is_directory) for child in children] == [
            ("a", False),
            ("b", False),
            ("c", False),
            ("d", True),
        ]
        assert children[0].size_bytes == 5
        assert children[0].path == join(root, "a")
        assert [child.name for child in store.list(join(root, "d"))] == ["below", "under"]

    def test_names_of_files_are_listed_in_order(self, store: Store, root: str) -> None:
        names = name_lister(store)
        for name in ("b", "a", "d/below", "c"):
            store.put_new(join(root, name), b"12345")
        assert (names(root), names(join(root, "d"))) == (["a", "b", "c"], ["below"])
        assert names(join(root, "nowhere")) == []

    def test_files_are_listed_from_a_path_on_where_the_store_can(self, store: Store, root: str) -> None:
        lists = page_lister(store)
        if lists is None:
            return
        names = ["a-1/x", "a/b/c", "a/x", "a/y=ü/z", "b", "b+/d e", "c"]
        for name in names:
            store.put_new(join(root, name), b"12345")
        store.put_new(join(root + "-beside", "c"), b"1")
        paths = [join(root, name) for name in names]
        for at, start in enumerate(paths):
            found = lists(root, start)
            assert [one.path for one in found if one.path >= start] == paths[at : at + len(found)] != []
            assert {(one.name, one.size_bytes, one.is_directory) for one in found} <= {
                (path.rpartition("/")[2], 5, False) for path in paths
            }
        assert [one.path for one in lists(root, join(root, "b!")) if one.path > join(root, "b!")] == paths[5:]
        assert lists(root, join(root, "d")) == []
        assert lists(join(root, "nowhere"), join(root, "nowhere", "a")) == []

    def test_listing_sees_what_was_written_and_deleted_a_moment_ago(self, store: Store, root: str) -> None:
        store.put_new(join(root, "1"), b"")
        assert [child.name for child in store.list(root)] == ["1"]
        store.put_new(join(root, "2"), b"")
        assert [child.name for child in store.list(root)] == ["1", "2"]
        store.delete(join(root, "1"))
        assert [child.name for child in store.list(root)] == ["2"]

    def test_listing_what_is_not_there_is_empty(self, store: Store, root: str) -> None:
        assert store.list(join(root, "nowhere")) == []

    def test_names_keep_their_characters(self, store: Store, root: str) -> None:
        names = ["dt=2024-01-02 03%3A04", "plus+and&", "ünï", "ZZ~", "a,b;c"]
        for name in names:
            store.put_new(join(root, name, "f"), name.encode())
        assert sorted(child.name for child in store.list(root)) == sorted(names)
        for name in names:
            assert store.get(join(root, name, "f")) == name.encode()

    def test_missing_files_are_reported_as_missing(self, store: Store, root: str) -> None:
        for action in (store.get, _read_all(store)):
            error = _error_of(lambda action=action: action(join(root, "absent")))
            assert isinstance(error, FileMissingError)
            assert error.path == join(root, "absent")

    def test_stat_tells_size_and_absence(self, store: Store, root: str) -> None:
        store.put_new(join(root, "d/f"), b"123")
        status = store.stat(join(root, "d/f"))
        assert status is not None
        assert (status.name, status.size_bytes, status.is_directory) == ("f", 3, False)
        directory = store.stat(join(root, "d"))
        assert directory is not None
        assert directory.is_directory
        assert store.stat(join(root, "d/g")) is None

    def test_deleting_what_is_not_there_succeeds(self, store: Store, root: str) -> None:
        store.delete(join(root, "nothing"))
        store.delete_tree(join(root, "nowhere"))

    def test_a_tree_is_deleted_and_its_neighbours_stay(self, store: Store, root: str) -> None:
        for name in ("t/a", "t/b/c", "tt/d"):
            store.put_new(join(root, name), b"1")
        store.delete_tree(join(root, "t"))
        assert [child.name for child in store.list(root)] == ["tt"]

    def test_a_directory_that_must_be_there_is_never_made(self, store: Store, root: str) -> None:
        if not self.renames_directories:
            return
        gone = join(root, "gone")
        for verb in MAKING:
            error = _error_of(lambda verb=verb: _make(store, verb, join(gone, "d/f"), gone))
            assert isinstance(error, FileMissingError)
            assert error.path == gone
            assert store.stat(gone) is None
            assert store.list(gone) == []

    def test_directories_below_one_that_must_be_there_are_made(self, store: Store, root: str) -> None:
        here = join(root, "here")
        store.make_directory(here)
        for verb in MAKING:
            for name in (f"{verb}/d/f", verb + "-f"):
                _make(store, verb, join(here, name), here)
                assert store.get(join(here, name)) == b"1"

    def test_a_stream_never_touches_a_file_that_is_there(self, store: Store, root: str) -> None:
        if not self.opens_exclusively:
            return
        path = join(root, "taken")
        store.put_new(path, b"first")
        assert isinstance(_error_of(lambda: new_file(store, path).__enter__()), FileTakenError)
        assert store.get(path) == b"first"

    def test_streams_write_and_read_large_files(self, store: Store, root: str) -> None:
        path = join(root, "data/file")
        block = bytes(range(256)) * 4096
        with store.open_write(path) as sink:
            for turn in range(7):
                sink.write(block)
                assert sink.tell() == (turn + 1) * len(block)
        with store.open_read(path) as source:
            source.seek(3 * len(block) + 5)
            assert source.read(10) == block[5:15]
            source.seek(0)
            assert source.read() == block * 7

    def test_an_empty_stream_makes_an_empty_file(self, store: Store, root: str) -> None:
        store.open_write(join(root, "none")).close()
        assert store.get(join(root, "none")) == b""

    def test_parquet_goes_through_streams(self, store: Store, root: str) -> None:
        path = join(root, "p.parquet")
        table = pa.table({"a": list(range(100_000))})
        with store.open_write(path) as sink:
            pq.write_table(table, sink)
        with store.open_read(path) as source:
            assert pq.ParquetFile(source).read().equals(table)

    def test_directories_are_renamed_but_never_onto_another(self, store: Store, root: str) -> None:
        if not self.renames_directories:
            return
        for name in ("old/x/y", "taken/z"):
            store.put_new(join(root, name), b"1")
        assert isinstance(
            _error_of(lambda: store.rename_directory(join(root, "old"), join(root, "taken"))), AlreadyExistsError
        )
        store.rename_directory(join(root, "old"), join(root, "fresh"))
        assert store.get(join(root, "fresh/x/y")) == b"1"
        assert store.list(join(root, "old")) == []
        assert [child.name for child in store.list(join(root, "taken"))] == ["z"]

    def test_only_empty_directories_are_removed(self, store: Store, root: str) -> None:
        """Only the given directory is removed, whatever the store's idea of a directory."""
        store.put(f"{root}/a/b/file", b"x")
        assert not store.remove_directory(f"{root}/a/b") and not store.remove_directory(f"{root}/a")
        assert not store.remove_directory(f"{root}/none") and not store.remove_directory(f"{root}/a/b/file")
        assert store.get(f"{root}/a/b/file") == b"x"
        store.delete(f"{root}/a/b/file")
        if store.stat(f"{root}/a/b") is not None and store.remove_directory(f"{root}/a/b"):
            assert store.stat(f"{root}/a/b") is None and store.stat(f"{root}/a") is not None
        store.put(f"{root}/a/b/file", b"y")
        assert store.get(f"{root}/a/b/file") == b"y"

    def test_made_directories_may_be_made_again(self, store: Store, root: str) -> None:
        store.make_directory(join(root, "m/n"))
        store.make_directory(join(root, "m/n"))
        store.put_new(join(root, "m/n/f"), b"1")
        assert store.get(join(root, "m/n/f")) == b"1"

    def test_the_store_survives_pickling(self, store: Store, root: str) -> None:
        store.put_new(join(root, "f"), b"1")
        assert pickle.loads(pickle.dumps(store)).get(join(root, "f")) == b"1"


def _make(store: Store, verb: str, path: str, within: str) -> None:
    if verb == "put_new":
        assert store.put_new(path, b"1", within=within)
    elif verb == "put":
        store.put(path, b"1", within=within)
    else:
        with store.open_write(path, within=within) as sink:
            sink.write(b"1")


def _read_all(store: Store) -> object:
    def read(path: str) -> bytes:
        with store.open_read(path) as source:
            return source.read()

    return read


def _error_of(action: object) -> PaimonError | None:
    try:
        action()  # type: ignore[operator]
    except PaimonError as error:
        return error
    return None
