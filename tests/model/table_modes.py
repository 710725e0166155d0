"""Tables of every bucket mode, as small as makes their machinery work at once."""

from __future__ import annotations

import msgspec

VECTORS = {"deletion-vectors.enabled": "true"}
WIDE_VECTORS = {**VECTORS, "deletion-vectors.bitmap64": "true"}
INDEXES = {"file-index.bloom-filter.columns": "v", "file-index.bitmap.columns": "n"}
MORE_INDEXES = {
    "file-index.bsi.columns": "n", "file-index.range-bitmap.columns": "x", "file-index.bitmap.columns": "v",
    "file-index.in-manifest-threshold": "1 b",
}  # fmt: skip
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "5"}
POSTPONED = {"bucket": "-2"}
BY_KEY = {"bucket": "3", "bucket-key": "k"}
CLUSTERED = {"clustering.incremental": "true", "clustering.columns": "k,n"}
AGGREGATES = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.x.aggregate-function": "max"}


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of table. `shared`: several writers fill its dynamic buckets together; `moves`: keys move between parts."""

    name: str
    options: dict
    keyed: bool = True
    parted: bool = False
    shared: bool = False
    moves: bool = False

    @property
    def bucket(self) -> int:
        return int(self.options["bucket"])

    @property
    def engine(self) -> str:
        return self.options.get("merge-engine", "deduplicate")

    @property
    def fixed(self) -> bool:
        return self.bucket > 0

    @property
    def dynamic(self) -> bool:
        return self.keyed and self.bucket == -1

    @property
    def postponed(self) -> bool:
        return self.bucket == -2

    @property
    def marks(self) -> bool:
        return self.options.get("deletion-vectors.enabled") == "true"

    @property
    def hides(self) -> bool:
        """Readers leave out what no compaction has seen."""
        return self.keyed and (self.marks or self.engine == "first-row")

    @property
    def clusters(self) -> bool:
        return self.options.get("clustering.incremental") == "true"

    @property
    def sortable(self) -> bool:
        ordered = self.fixed and self.options.get("bucket-append-ordered") != "false"
        return not (self.keyed or self.clusters or ordered)

    @property
    def deletable(self) -> bool:
        return not self.keyed or (self.engine == "deduplicate" and not self.postponed)

    @property
    def updatable(self) -> bool:
        return not self.keyed or (self.replaceable and not self.postponed)

    @property
    def replaceable(self) -> bool:
        """Whether a row that is written takes the place of another, seen or not."""
        return self.engine in ("deduplicate", "partial-update")


def keyed(name: str, *, parted: bool = False, shared: bool = False, **options: str) -> Mode:
    return Mode(name=name, options=options, parted=parted, shared=shared)


def moving(name: str, **options: str) -> Mode:
    return Mode(name=name, options=options, parted=True, moves=True)


def append(name: str, *, parted: bool = False, **options: str) -> Mode:
    return Mode(name=name, options=options, keyed=False, parted=parted)


MODES = (
    keyed("one bucket", bucket="1"),
    keyed("buckets", parted=True, bucket="3"),
    keyed("buckets by mod", **{"bucket": "3", "bucket-key": "k", "bucket-function.type": "mod"}),
    keyed("buckets by hive", parted=True, **{"bucket": "2", "bucket-key": "k", "bucket-function.type": "hive"}),
    keyed("write-only buckets", **{"bucket": "2", "write-only": "true"}),
    keyed("indexed buckets", parted=True, bucket="2", **INDEXES),
    keyed("lookups in writers", **{"bucket": "1", "force-lookup": "true"}),
    keyed("buckets with vectors", bucket="2", **VECTORS),
    keyed("parts with vectors", parted=True, bucket="1", **WIDE_VECTORS, **MORE_INDEXES),
    keyed("write-only vectors", **{"bucket": "1", "write-only": "true"}, **VECTORS),
    keyed("dynamic", **DYNAMIC),
    keyed("dynamic parts", parted=True, **DYNAMIC, **INDEXES),
    keyed("dynamic, at most two", parted=True, **DYNAMIC, **{"dynamic-bucket.max-buckets": "2"}),
    keyed("dynamic, shared", shared=True, parted=True, **DYNAMIC),
    keyed("dynamic, shared by few", shared=True, **DYNAMIC, **{"dynamic-bucket.initial-buckets": "2"}),
    keyed("dynamic with vectors", **DYNAMIC, **VECTORS),
    moving("keys that move", **DYNAMIC),
    moving("keys that move, with vectors", **DYNAMIC, **VECTORS),
    moving("keys that move, partial update", **DYNAMIC, **{"merge-engine": "partial-update"}),
    moving("keys that move, first row", **DYNAMIC, **{"merge-engine": "first-row"}),
    keyed("postponed", **POSTPONED, **{"postpone.target-row-num-per-bucket": "5"}),
    keyed("postponed parts", parted=True, **POSTPONED, **{"postpone.default-bucket-num": "2"}),
    keyed("postponed with vectors", **POSTPONED, **VECTORS),
    keyed("partial update", bucket="2", **{"merge-engine": "partial-update"}),
    keyed("partial update, dynamic", parted=True, **DYNAMIC, **{"merge-engine": "partial-update"}),
    keyed("aggregation", parted=True, bucket="2", **AGGREGATES),
    keyed("aggregation, postponed", **POSTPONED, **AGGREGATES),
    keyed("first row", bucket="2", **{"merge-engine": "first-row"}),
    keyed("first row, dynamic", **DYNAMIC, **{"merge-engine": "first-row"}),
    append("append", bucket="-1"),
    append("append in parts", parted=True, bucket="-1", **INDEXES),
    append("append with vectors", bucket="-1", **VECTORS),
    append("append in parts with vectors", parted=True, bucket="-1", **WIDE_VECTORS, **MORE_INDEXES),
    append("append in buckets", **BY_KEY),
    append("append in parts, by mod", parted=True, **BY_KEY, **{"bucket-function.type": "mod"}),
    append("append in buckets, unordered", **BY_KEY, **{"bucket-append-ordered": "false", "write-only": "true"}),
    append("append in buckets with vectors", parted=True, **BY_KEY, **VECTORS),
    append("clustered", bucket="-1", **CLUSTERED),
    append("clustered parts with vectors", parted=True, bucket="-1", **CLUSTERED, **VECTORS),
    append("clustered buckets", **BY_KEY, **CLUSTERED, **{"bucket-append-ordered": "false"}),
)
