"""Every store suite again, on real servers: versitygw for S3, fake-gcs-server, Azurite, a NameNode with a DataNode."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import re
import socket
import threading
import uuid

import pytest
from store_servers import running

from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError
from paimon_py.storage import exclusive_create as promise
from paimon_py.storage.open import open_store
from paimon_py.testing.store_suite import StoreSuite

OBJECT_STORES = ("azure", "gcs", "s3")

pytestmark = [
    pytest.mark.server,
    # The client libraries leave their sessions to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="session", params=OBJECT_STORES)
def server(request, tmp_path_factory):
    """(name, bucket URL, options) of a running object store."""
    yield from running(request.param, tmp_path_factory)


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory):
    """(name, URL, options) of a running HDFS."""
    yield from running("hdfs", tmp_path_factory)


class TestObjectStore(StoreSuite):
    renames_directories = False
    opens_exclusively = False

    @pytest.fixture
    def store(self, server):
        _, url, options = server
        return open_store(url, options)[0]

    @pytest.fixture
    def root(self, server):
        return f"{server[1]}/{uuid.uuid4()}"

    def test_the_store_survives_pickling(self, server, store, root, monkeypatch):
        name, _, options = server
        store.put_new(f"{root}/f", b"1")
        pickled = pickle.dumps(store)
        assert b"testtest" not in pickled
        if name == "s3":
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["s3.access-key"])
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["s3.secret-key"])
        assert pickle.loads(pickled).get(f"{root}/f") == b"1"

    def test_a_directory_is_not_renamed(self, store, root):
        with pytest.raises(UnsupportedError, match="rename"):
            store.rename_directory(f"{root}/a", f"{root}/b")

    def test_a_missing_bucket_is_a_storage_error(self, store, server):
        scheme = server[1].split(":")[0]
        with pytest.raises(StorageError):
            store.put_new(f"{scheme}://nowhere-{uuid.uuid4()}/f", b"1")


@pytest.mark.full  # Maven, and a Java process of two servers
class TestHdfs(StoreSuite):
    @pytest.fixture
    def store(self, hdfs):
        return open_store(hdfs[1], {})[0]

    @pytest.fixture
    def root(self, hdfs):
        return f"{hdfs[1]}/{uuid.uuid4()}"


@pytest.mark.full
def test_processes_that_race_for_a_name_on_hdfs_have_exactly_one_winner(hdfs):
    check_one_winner(hdfs)


@pytest.mark.full
def test_a_name_node_that_is_gone_leaves_the_outcome_open_and_the_file_away(hdfs):
    store, root = open_store("hdfs://127.0.0.1:9/x", {"hadoop.dfs.client.failover.max.attempts": "1"})
    with pytest.raises(StorageError, match="refused") as caught:
        store.put_new(f"{root}/x", b"1")
    assert caught.value.transient


def _race(arguments):
    url, options, root, writer, rounds = arguments
    store, _ = open_store(url, options)
    return [store.put_new(f"{root}/snapshot-{turn}", b"%d" % writer) for turn in range(rounds)]


def test_exactly_one_of_several_racing_processes_creates_a_file(server):
    check_one_winner(server)


def check_one_winner(server):
    _, url, options = server
    root = f"{url}/{uuid.uuid4()}"
    writers, rounds = 4, 40
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(writers, mp_context=context) as pool:
        results = list(pool.map(_race, [(url, options, root, writer, rounds) for writer in range(writers)]))
    store, _ = open_store(url, options)
    for turn in range(rounds):
        winners = [writer for writer in range(writers) if results[writer][turn]]
        assert len(winners) == 1
        assert store.get(f"{root}/snapshot-{turn}") == b"%d" % winners[0]


class Proxy:
    """Passes bytes on; drops the answer to the next request that mentions `mark`."""

    def __init__(self, port):
        self.upstream = port
        self.mark = None
        self.dropped = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start(self.accept)

    def start(self, target, *arguments):
        threading.Thread(target=target, args=arguments, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.upstream))
                doomed = threading.Event()
                self.start(self.upwards, client, server, doomed)
                self.start(self.downwards, client, server, doomed)

    def upwards(self, client, server, doomed):
        with contextlib.suppress(OSError), server:
            while data := client.recv(65536):
                if self.mark is not None and self.mark in data and not self.dropped:
                    doomed.set()
                server.sendall(data)

    def downwards(self, client, server, doomed):
        with contextlib.suppress(OSError), client:
            while data := server.recv(65536):
                if doomed.is_set() and not data.startswith(b"HTTP/1.1 100"):
                    self.dropped += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


def test_a_lost_answer_is_never_reported_as_somebody_elses_file(server, monkeypatch):
    name, url, options = server
    connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    place = connection if name == "azure" else "".join(v for v in options.values() if v.startswith("http"))
    port = re.search(r"127\.0\.0\.1:(\d+)", place).group(1)
    proxy = Proxy(int(port))
    options = {key: value.replace(port, str(proxy.port)) for key, value in options.items()}
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection.replace(port, str(proxy.port)))
    store, _ = open_store(url, options)
    assert store.put_new(f"{url}/{uuid.uuid4()}", b"warm")
    target = f"{url}/{uuid.uuid4()}"
    proxy.mark = target.rpartition("/")[2].encode()
    with pytest.raises(StorageUnknownError):
        store.put_new(target, b"mine")
    assert proxy.dropped == 1
    assert store.get(target) == b"mine"
    proxy.listener.close()


@pytest.mark.parametrize("server", ["s3"], indirect=True)  # whose endpoint is an option
def test_a_server_that_is_gone_leaves_the_outcome_unknown(server):
    _, url, options = server
    store, _ = open_store(url, {**options, "s3.endpoint": "http://127.0.0.1:9"})
    with pytest.raises(StorageError, match="could not probe") as caught:
        store.put_new(f"{url}/x", b"1")
    assert caught.value.transient and not isinstance(caught.value, StorageUnknownError)
    store._endpoint = promise.KNOWN
    with pytest.raises(StorageUnknownError):
        store.put_new(f"{url}/x", b"1")


def test_a_store_that_breaks_the_promise_is_refused(server, monkeypatch):
    _, url, options = server
    store, _ = open_store(url, options)
    monkeypatch.setattr(promise, "_answers", {})
    monkeypatch.setattr(type(store), "_create", lambda self, path, data: self.put(path, data) or True)
    with pytest.raises(UnsupportedError, match="could be lost"):
        store.put_new(f"{url}/{uuid.uuid4()}/snapshot-1", b"1")


@pytest.mark.parametrize("server", ["s3"], indirect=True)  # the emulators of the others accept any credentials
def test_wrong_credentials_are_a_plain_error_without_the_secret(server):
    _, url, options = server
    store, _ = open_store(url, {**options, "s3.secret-key": "canary-secret"})
    with pytest.raises(StorageError) as caught:
        store.put_new(f"{url}/x", b"1")
    assert not isinstance(caught.value, StorageUnknownError)
    assert "canary-secret" not in str(caught.value) + repr(store) + repr(pickle.dumps(store))
