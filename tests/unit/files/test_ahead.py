"""Small files at a distance: fetched together, the next ones while those before are read."""

from __future__ import annotations

import random

import pytest

from paimon_py.env import Env, SerialPool, ThreadPool
from paimon_py.errors import StorageError
from paimon_py.files import prefetch as ahead
from paimon_py.files.prefetch import FilePrefetcher


class Eager(SerialPool):
    """Does at once what may be done ahead."""

    def ahead(self, function):
        found = function()
        return lambda: found


class Files:
    """Files of a store, and what was asked of them."""

    def __init__(self, files, failing=()):
        self.files, self.failing = files, set(failing)
        self.gotten, self.opened = [], []

    def get(self, path):
        self.gotten.append(path)
        if path in self.failing:
            raise StorageError(f"no {path}", operation="get", path=path)
        return self.files[path]

    def open_read(self, path):
        self.opened.append(path)
        return path

    def ranges_of(self, _path):
        return None


def announced(count, size=10, pool=None, **faults):
    store = Files({f"memory://x/{number}": bytes([number % 256]) * size for number in range(count)}, **faults)
    files = FilePrefetcher(store, Env(pool=pool or Eager()))
    files.announce((path, len(data)) for path, data in store.files.items())
    return store, files


def test_the_next_files_are_fetched_when_half_of_the_others_are_opened():
    store, files = announced(200)
    known = []
    for path in store.files:
        files.open_read(path)
        known.append(len(store.gotten))
    assert known[0] == 64
    assert known[30:33] == [64, 128, 128]
    assert known[95] == 192
    assert known[-1] == 200 and len(set(store.gotten)) == 200
    assert not store.opened


def test_memory_of_files_that_wait_is_bounded(monkeypatch):
    monkeypatch.setattr(ahead, "_WINDOW_BYTES", 1000)
    store, files = announced(100, size=90)
    for number, path in enumerate(store.files):
        files.open_read(path)
        assert len(store.gotten) - number - 1 <= 11


@pytest.mark.parametrize("pool", [SerialPool(), Eager(), ThreadPool()], ids=["serial", "eager", "threads"])
@pytest.mark.parametrize("seed", range(5))
def test_files_are_the_same_in_whatever_order_they_are_opened(pool, seed, monkeypatch):
    dice = random.Random(seed)
    monkeypatch.setattr(ahead, "_WINDOW_BYTES", dice.choice([100, 1000, 1 << 20]))
    failing = {f"memory://x/{number}" for number in dice.sample(range(150), 10)}
    store, files = announced(150, pool=pool, failing=failing)
    paths = list(store.files)
    if seed:
        dice.shuffle(paths)
    for path in dice.sample(paths, 120) if seed % 2 else paths:
        file = files.open_read(path)
        assert file == path if path in store.opened else file.read() == store.files[path]
    if not seed:
        assert set(store.opened) == failing, "in order, nothing is asked for twice"


def test_whoever_opens_few_files_fetches_one_window():
    store, files = announced(200)
    for path in list(store.files)[:5]:
        files.open_read(path)
    assert len(store.gotten) == 64
