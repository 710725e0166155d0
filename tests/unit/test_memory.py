"""The memory limit of the process from control groups of both versions, and the shares that parts of it take."""

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.env import Env, ThreadPool
from paimon_py.errors import ResourceError, UsageError
from paimon_py.lsm.spill import SpillSettings
from paimon_py.memory import MemoryShares, memory_limit
from paimon_py.parallel import Budget
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.write.settings import WriterSettings

MB = 1 << 20


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        pytest.param({}, None, id="no control groups"),
        pytest.param({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "536870912\n"}, 512 * MB, id="2"),
        pytest.param({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}, None, id="2 without limit"),
        pytest.param(
            {
                "/proc/self/cgroup": "0::/kubepods/pod1/c1\n", "/sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max",
                "/sys/fs/cgroup/kubepods/pod1/memory.max": str(256 * MB),
                "/sys/fs/cgroup/kubepods/memory.max": str(900 * MB),
            },
            256 * MB,
            id="2, the lowest of the groups above",
        ),
        pytest.param(
            {
                "/proc/self/cgroup": "12:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/x\n",
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(512 * MB),
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            },
            512 * MB,
            id="1",
        ),
        pytest.param(
            {
                "/proc/self/cgroup": "4:memory:/docker/abc\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": str(512 * MB),
            },
            512 * MB,
            id="1, in a container whose mount begins with its group",
        ),
        pytest.param(
            {"/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"},
            None,
            id="1 without limit",
        ),
        pytest.param(
            {"/proc/self/cgroup": "nonsense\n0::/../..\n", "/sys/fs/cgroup/memory.max": "-5"}, None, id="nonsense"
        ),
    ],
)  # fmt: skip
def test_the_limit_of_the_container_is_found(files, limit):
    assert memory_limit(files.get) == limit


@pytest.mark.parametrize(
    ("limit", "threads", "buffer_mb"), [(None, 16, 256), (4096, 16, 256), (1024, 7, 128), (512, 3, 64), (256, 1, 32), (64, 1, 8)]
)  # fmt: skip
def test_defaults_follow_the_limit(limit, threads, buffer_mb):
    shares = MemoryShares(None if limit is None else limit * MB)
    assert shares.threads(16) == threads
    schema = new_table_schema(Schema({"id": "INT NOT NULL"}), TableSpec(primary_keys=("id",)), time_millis=0)
    settings = WriterSettings.of(schema, memory=shares)
    assert settings.buffer_bytes == buffer_mb * MB
    assert settings.spills.run_bytes <= settings.buffer_bytes // 4
    assert SpillSettings().within(shares).run_bytes == buffer_mb * MB // 4


def test_options_of_the_table_count_before_the_limit():
    spec = TableSpec(primary_keys=("id",), options={"write-buffer-size": "200 mb"})
    schema = new_table_schema(Schema({"id": "INT NOT NULL"}), spec, time_millis=0)
    assert WriterSettings.of(schema, memory=MemoryShares(256 * MB)).buffer_bytes == 200 * MB


def test_an_environment_takes_the_memory_that_it_is_given():
    assert Env(memory_bytes=300 * MB).memory.limit_bytes == 300 * MB
    assert Env(memory_bytes=300 * MB, threads=5).pool.threads == 5
    for wrong in (0, -1, True, "1gb", 1.5):
        with pytest.raises(UsageError, match="memory_bytes must be a whole number"):
            Env(memory_bytes=wrong)


def test_a_table_that_does_not_fit_is_refused_and_a_reader_goes_on():
    catalog = Catalog(MemoryStore(), "/w", env=Env(memory_bytes=MB))
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"id": "INT", "text": "STRING"}), options={"target-file-size": "1 mb"})
    rows = pa.table({"id": pa.array(range(3_000), pa.int32()), "text": [f"{number:0500}" for number in range(3_000)]})
    table.write_arrow(rows)
    for verb in ("to_arrow", "to_pandas", "to_polars"):
        with pytest.raises(ResourceError, match=r"need more memory than this process gets.*to_reader\(\)"):
            getattr(table.scan(), verb)()
    assert sum(batch.num_rows for batch in table.scan().to_reader()) == 3_000
    assert table.scan(columns=["id"]).to_arrow().equals(rows.select(["id"]))


def test_streams_hold_no_more_than_their_share():
    seen = []

    def begin(item):
        seen.append(item)
        yield item

    pool = ThreadPool(4, memory=MemoryShares(40))
    budget = Budget(1_000, lambda _: 10, lambda _: 0)
    found = pool.streams(begin, range(9), budget)
    assert list(found) == list(range(9))
    assert sorted(seen) == list(range(9))
