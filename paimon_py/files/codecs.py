"""Checks that a table's formats support the codecs in its options, before the options are stored."""

from __future__ import annotations

import io

import msgspec

from paimon_py.codec.avro.container import codec_name
from paimon_py.errors import UnsupportedError
from paimon_py.files.layout import changelog_layout, file_layout
from paimon_py.formats.base import WriteSettings
from paimon_py.formats.registry import format_of
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


def check_codecs(schema: TableSchema) -> None:
    """Refuse codecs that the formats of a table do not support.

    Raises:
        OptionError: the message names the codec, and the codecs of the format.
        UnsupportedError: the same, for manifests in Avro.
    """
    options = Options(schema.options)
    manifests = options.get_str("manifest.compression")
    if options.get_enum("manifest.format") == "avro":
        codec_name(manifests)
    else:
        format_of("orc").create(io.BytesIO(), (), WriteSettings(compression=manifests)).abort()
    levels = {0, *(int(text) for text in options.get_map("file.compression.per.level") if text.isdecimal())}
    for layout_of in (file_layout, changelog_layout):
        for level in sorted(levels):
            try:
                layout = layout_of(schema, level=level)
                settings = msgspec.structs.replace(layout.settings, without_stats=frozenset(schema.names))
                format_of(layout.format_name).create(io.BytesIO(), schema.fields, settings).abort()
            except UnsupportedError:
                continue  # a codec or a format for other writers of the table
