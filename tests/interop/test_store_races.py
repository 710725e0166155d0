"""Eight processes with fifty commits each on one table of every store: each acknowledged commit once, and no gap."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import subprocess
import traceback
import uuid
from collections import Counter

import pyarrow as pa
import pytest
from catalogs.test_jdbc import mariadb, postgres  # noqa: F401 - fixtures
from store_servers import running

from paimon_py import Catalog, CommitRetriesExhaustedError, Table, UnsupportedError
from paimon_py.storage import exclusive_create as promise

PROCESSES = 8
COMMITS = 50
ANSWER_SECONDS = 300

pytestmark = [
    pytest.mark.full,
    pytest.mark.server,
    # The client libraries leave their sessions to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def made(warehouse, options):
    catalog = Catalog.open(warehouse, options)
    catalog.create_database("db")
    return catalog.create_table("db.t", pa.schema([("worker", pa.int64()), ("number", pa.int64())]))


def append_many(warehouse, options, worker, commits, answers):
    try:
        table = Catalog.open(warehouse, options).table("db.t")
        for number in range(commits):
            rows = pa.table({"worker": [worker], "number": [number]})
            answers.put((worker, number, until_published(table, rows)))
    except BaseException:
        answers.put(traceback.format_exc())
        raise


def until_published(table, rows):
    """The snapshot of the rows; whoever lost all races of one commit certainly published nothing, and tries again."""
    while True:
        try:
            return table.write_arrow(rows).snapshot_id
        except CommitRetriesExhaustedError:
            continue


def race(warehouse, options, *, processes=PROCESSES, commits=COMMITS):
    table = made(warehouse, options)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [context.Process(target=append_many, args=(warehouse, options, n, commits, answers)) for n in range(processes)]
    for worker in workers:
        worker.start()
    try:
        got = []
        while len(got) < processes * commits:
            got.append(answers.get(timeout=ANSWER_SECONDS))
            assert isinstance(got[-1], tuple), got[-1]
    finally:
        for worker in workers:
            worker.join(timeout=20)
            worker.kill()
    assert [worker.exitcode for worker in workers] == [0] * processes
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(1, len(got) + 1)) == sorted(snapshot for *_, snapshot in got)
    rows = table.scan().to_arrow()
    found = Counter(zip(rows["worker"].to_pylist(), rows["number"].to_pylist()))
    assert found == Counter((worker, number) for worker, number, _ in got)


@pytest.mark.parametrize("name", ["azure", "gcs", "hdfs", "s3", "s3-minio"])
@pytest.mark.timeout(1500)  # HDFS: half a second for each file that is closed
def test_every_acknowledged_commit_is_there_once_and_there_is_no_gap(name, tmp_path_factory):
    server = running(name, tmp_path_factory)
    _, url, options = next(server)
    try:
        race(f"{url}/{uuid.uuid4()}", options)
    finally:
        server.close()


def test_every_commit_to_a_local_disk_is_there_once(tmp_path):
    race(str(tmp_path / "w"), {})


@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_every_commit_under_the_lock_of_a_database_is_there_once(name, tmp_path, request):
    pytest.importorskip("sqlalchemy")
    url = request.getfixturevalue(name)
    key = f"k{uuid.uuid4().hex[:8]}"
    options = {"metastore": "jdbc", "uri": url, "catalog-key": key, "lock.enabled": "true", "fs.local.fsync": "false"}
    race(str(tmp_path / "w"), options)


def test_a_store_that_ignores_the_condition_is_refused_at_the_first_commit(tmp_path, monkeypatch):
    """s3rver answers a creation under a condition as if there were none."""
    pytest.importorskip("s3fs")
    if shutil.which("npm") is None:
        pytest.skip("no npm to install s3rver with")
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "s3rver@3.7.1"], capture_output=True, text=True, timeout=300
    )
    if installed.returncode:
        pytest.skip(f"s3rver could not be installed: {installed.stderr[-200:]}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "data").mkdir()
    command = ["node", str(tmp_path / "node_modules/.bin/s3rver"), "-d", str(tmp_path / "data"), "-p", str(port), "-a", "127.0.0.1",
               "--configure-bucket", "warehouse"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = []
        while not any("listening" in line for line in said):
            said.append(process.stdout.readline())
            assert said[-1], said
        options = {
            "s3.endpoint": f"http://127.0.0.1:{port}", "s3.path.style.access": "true", "s3.region": "us-east-1",
            "s3.access-key": "S3RVER", "s3.secret-key": "S3RVER",
        }  # fmt: skip
        with pytest.raises(UnsupportedError, match=r"ignores the condition.*lock\.enabled"):
            made("s3://warehouse/w", options)
        assert [path for _, _, names in os.walk(tmp_path / "data") for path in names if "schema-" in path or ".probe." in path] == []
        place = f"http://127.0.0.1:{port}"
        monkeypatch.setitem(promise._answers, ("s3", place, "warehouse"), True)
        table = made("s3://warehouse/w", options)
        monkeypatch.delitem(promise._answers, ("s3", place, "warehouse"))
        before = sorted((home, name) for home, _, names in os.walk(tmp_path / "data") for name in names)
        with pytest.raises(UnsupportedError, match=r"lock\.enabled"):
            Table.open(table.location, options).write_arrow(pa.table({"worker": [1], "number": [1]}))
        assert sorted((home, name) for home, _, names in os.walk(tmp_path / "data") for name in names) == before
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
