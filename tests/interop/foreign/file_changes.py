"""Files and directories beside those of a table, hints, and schema files that are gone."""

from __future__ import annotations

from foreign.place import Place

HINTS = ("{}\n", " {} ", "", "x", "-1", "0", "99", "{}.0", "1", "{}\n\n", "99999999999999999999", "{}\0", "+{}", "0{}")
FOLDERS = ("snapshot", "schema", "manifest", "tag", "branch", "consumer", "changelog", "index", "statistics", ".", "bucket-0")
NAMES = (
    ".{0}-1.crc", "{0}-x", "{0}-", ".{0}-1.tmp", "_SUCCESS", "{0}-1.tmp", "{0}-99.crc", ".DS_Store", "{0}-1-copy", "{0}--1", "{0}-01",
    "README", "._{0}-1", "{0}-1.json", "_temporary", ".{0}-7.1b9c.tmp", "{0}-99999999999999999999", "{0}", "{0}-1 ", "LATEST.tmp",
)  # fmt: skip


def hint(place: Place) -> str | None:
    path = place.one("hint")
    if path is None:
        return None
    text = place.draw.choice(HINTS).format(path.read_text())
    path.write_text(text)
    return f"{path.name} is {text!r}"


def hint_gone(place: Place) -> str | None:
    gone = [path for path in place.files("hint") if place.draw.random() < 0.7]
    for path in gone:
        path.unlink()
    return f"without {[path.name for path in gone]}"


def stray_file(place: Place) -> str | None:
    folder = place.path / place.draw.choice(FOLDERS)
    folder.mkdir(exist_ok=True)
    name = place.draw.choice(NAMES).format("data" if folder.name in (place.path.name, "bucket-0") else folder.name)
    path = folder / name
    if path.exists():
        return None
    path.write_bytes(place.draw.choice([b"", b"x", b"{}", b"crc\0\0\0\0\0"]))
    return f"stray file {folder.name}/{name}"


def stray_folder(place: Place) -> str | None:
    folder = place.path / place.draw.choice(FOLDERS)
    name = place.draw.choice(("x", "_temporary", ".hive-staging", "bucket-x", "bucket-99", "p=1", "tag-d", "snapshot-9", "branch-", "branch-x"))
    path = folder / name
    if path.exists():
        return None
    path.mkdir(parents=True)
    if place.draw.random() < 0.5:
        (path / "f").write_text("x")
    return f"stray directory {folder.name}/{name}"


def old_schema_gone(place: Place) -> str | None:
    """Schemas of which no file and no snapshot tells."""
    files = place.files("schema")
    used = {place.json(path)["schemaId"] for path in place.files("snapshot", "tag")}
    free = [path for path in files if path.name.removeprefix("schema-") not in map(str, used) and path.parent.parent == place.path]
    free = [path for path in free if path != max(files, key=lambda path: (len(path.name), path.name))]
    if not free:
        return None
    path = place.draw.choice(free)
    path.unlink()
    return f"{path.name} is gone"


def snapshot_gone(place: Place) -> str | None:
    """One that is neither the newest nor the oldest: a hole in the history."""
    files = sorted(place.path.glob("snapshot/snapshot-*"), key=lambda path: int(path.name.rpartition("-")[2]))[:-1]
    if not files:
        return None
    path = place.draw.choice(files)
    path.unlink()
    return f"{path.name} is gone"


CHANGES = (hint, hint_gone, stray_file, stray_folder, old_schema_gone, snapshot_gone)
