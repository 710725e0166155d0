"""Manifests in ORC: the same records as in Avro, and damage that is noticed."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from paimon_py import Catalog, PaimonError, Schema, SetOption, Table, UnsupportedError
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.schemas import MANIFEST
from paimon_py.errors import CorruptionError
from paimon_py.metadata.orc_manifests import as_avro, as_orc

COLUMNS = Schema({"p": "INT NOT NULL", "id": "BIGINT NOT NULL", "v": "STRING"})


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    return catalog


def lived(catalog, name="t", **options):
    """A table with some commits, deletion vectors and a merge of its manifests."""
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "manifest.merge-min-count": "3", **options}
    table = catalog.create_table(f"d.{name}", COLUMNS, primary_key=["p", "id"], partition_by=["p"], options=options)
    for number in range(6):
        table.write_arrow([{"p": number % 2, "id": number, "v": "x"}, {"p": 1, "id": 0, "v": str(number)}])
    table.compact(full=True)
    table.delete("id = 3")
    return table


def manifests(table):
    return sorted(Path(table.location, "manifest").iterdir())


@pytest.mark.parametrize("compression", ["zstd", "none", "snappy", "zlib"])
def test_a_table_is_the_same_under_either_format(catalog, compression):
    found = {}
    for kind in ("avro", "orc"):
        codec = "deflate" if (kind, compression) == ("avro", "zlib") else compression
        table = Table.open(lived(catalog, kind, **{"manifest.format": kind, "manifest.compression": codec}).location)
        filtered = table.scan(where="p = 1 AND id < 3")
        found[kind] = (
            table.to_arrow().sort_by("id"), filtered.to_arrow().sort_by("id"), filtered.explain().file_count,
            table.changes(1, 2, mode="diff").to_arrow().sort_by("id"), len(table.snapshots()), table.doctor(),
        )  # fmt: skip
        assert {path.read_bytes()[:3] for path in manifests(table)} == {b"ORC" if kind == "orc" else b"Obj"}
    assert found["orc"] == found["avro"]


def test_records_survive_both_turns(catalog):
    for path in manifests(lived(catalog)):
        if path.name.startswith("manifest-list") or path.name.startswith("index"):
            continue
        avro = path.read_bytes()
        again = as_avro(as_orc(avro, MANIFEST, "zstd"), "m", MANIFEST)
        assert read_manifests([("m", again)]).entries() == read_manifests([("m", avro)]).entries()


def test_the_format_of_a_table_may_change(catalog):
    table = lived(catalog)
    rows = table.to_arrow().sort_by("id")
    table.alter(SetOption("manifest.format", "orc"))
    table.write_arrow([{"p": 1, "id": 100, "v": "new"}])
    assert {path.read_bytes()[:3] for path in manifests(table)} == {b"ORC", b"Obj"}
    assert Table.open(table.location).scan(where="id < 100").to_arrow().sort_by("id") == rows


def test_parquet_is_refused_by_name(catalog):
    with pytest.raises(UnsupportedError, match="manifest.format=parquet"):
        lived(catalog, **{"manifest.format": "parquet"})
    with pytest.raises(UnsupportedError, match="m is a Parquet file"):
        as_avro(b"PAR1....PAR1", "m", MANIFEST)


def test_unknown_fields_are_skipped_and_damaged_names_are_errors(catalog):
    table = lived(catalog, **{"manifest.format": "orc"})
    path = next(path for path in manifests(table) if path.name.startswith("manifest-") and "list" not in path.name)
    data = orc.read_table(path)
    wanted = as_avro(path.read_bytes(), "m", MANIFEST)

    def read(changed):
        sink = io.BytesIO()
        orc.write_table(changed, sink)
        return as_avro(sink.getvalue(), "m", MANIFEST)

    assert read(data.append_column("_NEW", pa.array(range(len(data))))) == wanted
    with pytest.raises(CorruptionError, match="with a flipped bit"):
        read(data.rename_columns([name.replace("_BUCKET", "_BUCKDT") for name in data.column_names]))
    with pytest.raises(CorruptionError, match="m lacks"):
        read(data.rename_columns([name.replace("_FILE", "_OTHER") for name in data.column_names]))


def test_records_without_required_fields_are_corruption():
    sink = io.BytesIO()
    orc.write_table(pa.table({"_VERSION": pa.array([2], pa.int32())}), sink)
    with pytest.raises(CorruptionError, match="m lacks"):
        as_avro(sink.getvalue(), "m", MANIFEST)


@pytest.mark.parametrize("seed", range(4))
def test_damage_ends_in_rows_or_an_error_of_ours(catalog, seed):
    """A cut file is always noticed. ORC has no checksums, so that a flipped bit in a text may be taken for the text."""
    table = lived(catalog, **{"manifest.format": "orc"})
    rows = table.to_arrow().sort_by("id")
    rng = random.Random(seed)
    for _ in range(25):
        path = rng.choice(manifests(table))
        data = path.read_bytes()
        at = rng.randrange(len(data))
        is_cut = rng.random() < 0.3
        path.write_bytes(data[:at] if is_cut else data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        try:
            found = Table.open(table.location).to_arrow().sort_by("id")
        except PaimonError:
            continue
        else:
            assert found.schema == rows.schema
            assert found == rows or not is_cut, (path.name, at)
        finally:
            path.write_bytes(data)
