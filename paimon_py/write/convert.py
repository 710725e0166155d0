"""Converts Arrow columns from any source to exactly a table's types, without loss.

A plan is derived from the types alone; conditions on values (a NULL, a string too long, a decimal too large, a
nanosecond that would be lost) are checked when a column is converted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import is_of_storage, to_arrow_type
from paimon_py.codec.columns import (
    Ints,
    Mask,
    child_range,
    from_numpy,
    is_list_view,
    nulls_or_none,
    validity_bitmap,
    validity_mask,
)
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.spec.types import (
    ArrayType,
    Atomic,
    DataType,
    Field,
    MapType,
    MultisetType,
    Root,
    RowType,
    VectorType,
)
from paimon_py.write.convert_variant import WAY as VARIANT_WAY
from paimon_py.write.convert_variant import variant_step
from paimon_py.write.convert_vector import vector_step
from paimon_py.write.intact import with_validation
from paimon_py.write.limits import limit_check
from paimon_py.write.misfits import WIDEN, ColumnPlace, Misfit, in_lists
from paimon_py.write.steps import Refusal, Step, as_is, way_of_extension

_TEXTS = frozenset({Root.CHAR, Root.VARCHAR})
_BINARIES = frozenset({Root.BINARY, Root.VARBINARY, Root.BLOB})
_INTEGERS = frozenset({Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT})
_FLOATS = frozenset({Root.FLOAT, Root.DOUBLE})
_DIGITS_MAX = 20
"""The number of digits of Arrow's largest integer."""
_COUNT = Atomic(Root.INT, nullable=False)


def plan(source: pa.DataType, target: DataType, place: ColumnPlace) -> Step | Refusal:
    """Plan the conversion of arrays of type `source` to the Arrow type of `target`.

    The step checks NOT NULL inside nested values, but not at the top; lengths, precision and lossless conversion
    everywhere. It raises SchemaError.
    """
    part = plan_part(source, target, place)
    if isinstance(part, Refusal) or (found := with_validation(part, source, place)) is as_is:
        return part

    def convert(array: pa.Array) -> pa.Array:
        try:
            return found(array)
        except Misfit as misfit:
            raise misfit.error() from misfit.__cause__

    return convert


def plan_part(source: pa.DataType, target: DataType, place: ColumnPlace) -> Step | Refusal:
    """Make the same plan as `plan`, with a step that raises Misfit and takes arrays for intact."""
    if source.equals(to_arrow_type(target)) and not _must_look(target):
        return as_is
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), to_arrow_type(target))
    unwrapped = _unwrap(source)
    if unwrapped is not None:
        inner_type, unwrap = unwrapped
        inner = plan_part(inner_type, target, place)
        if isinstance(inner, Refusal):
            as_whole = isinstance(source, pa.BaseExtensionType) and inner.place == place
            return inner._replace(given=source, fix=_way(source, target, place) if as_whole else inner.fix)
        return lambda array: inner(unwrap(array))
    plain = _without_views(source)
    if not plain.equals(source):
        step = plan_part(plain, target, place)
        return step._replace(given=source) if isinstance(step, Refusal) else lambda array: step(_without_view(array))
    match target:
        case Atomic(root=Root.VARIANT):
            return variant_step(plain, place) or _refuse(source, target, place, VARIANT_WAY)
        case Atomic():
            return _plan_atomic(source, target, place)
        case ArrayType(element=element):
            return _plan_list(source, target, element, place)
        case MapType(key=key, value=value):
            return _plan_map(source, target, (key, value), place)
        case MultisetType(element=element):
            return _plan_map(source, target, (element, _COUNT), place)
        case RowType():
            return _plan_row(source, target, place)
        case VectorType(element=element):
            lists = plan_part(source, ArrayType(with_nullability(element, False)), place)
            if isinstance(lists, Refusal):
                return _refuse(source, target, place)
            return vector_step(lists, target, place)


def require_values(
    array: pa.Array, place: ColumnPlace, parents: Mask | None = None, *,
    fix: str = "fill them, or make the column nullable",
) -> None:  # fmt: skip
    """Refuse NULL in a NOT NULL column; NULL inside a parent that is NULL itself is ignored.

    Raises:
        Misfit: with the number of nulls and the first position.
    """
    if array.null_count == 0:
        return
    missing = ~validity_mask(array)
    if parents is not None:
        missing &= parents
    count = int(np.count_nonzero(missing))
    if count:
        what = "rows" if place.is_whole else "values"
        before = f" is NOT NULL but {count} of {len(array)} {what} hold NULL (first at "
        raise Misfit(place, int(np.argmax(missing)), before, f"); {fix}")


def _must_look(kind: DataType) -> bool:
    """Whether values of the right Arrow type can still be invalid."""
    match kind:
        case Atomic():
            return kind.root is Root.VARIANT or limit_check(kind) is not None
        case RowType(fields=fields):
            return any(not field.type.nullable or _must_look(field.type) for field in fields)
        case ArrayType(element=element):
            return not element.nullable or _must_look(element)
        case MultisetType():
            return True  # a count is never NULL
        case MapType(key=key, value=value):
            return not value.nullable or _must_look(key) or _must_look(value)
        case VectorType():
            return True  # an element is never NULL
        case _:
            return False


def takeable(source: pa.DataType) -> tuple[pa.DataType, Step]:
    """A type with the same values for which Arrow supports `take`, and the conversion: strings instead of views."""
    unwrapped = _unwrap(source)
    if unwrapped is not None and (pa.types.is_run_end_encoded(source) or _without_views(unwrapped[0]) != unwrapped[0]):
        kind, unwrap = unwrapped
        kind, step = takeable(kind)
        return kind, lambda array: step(unwrap(array))
    return _without_views(source), _without_view


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with strings and bytes instead of views; list views are kept, since Arrow casts them wrongly."""
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.string() if types.is_string_view(kind) else pa.binary()
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), kind.item_field.with_type(_without_views(kind.item_type)))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        value = kind.value_field.with_type(_without_views(kind.value_type))
        if types.is_large_list(kind):
            return pa.large_list(value)
        return pa.list_(value, kind.list_size if types.is_fixed_size_list(kind) else -1)
    return kind


def _without_view(array: pa.Array) -> pa.Array:
    plain = _without_views(array.type)
    return array if plain.equals(array.type) else array.cast(plain)


def _decode(array: pa.Array) -> pa.Array:
    """Decode a dictionary array."""
    values = array.dictionary
    if not _without_views(values.type).equals(values.type):
        array = pa.DictionaryArray.from_arrays(array.indices, _without_view(values))
    return array.dictionary_decode()


def _decode_runs(array: pa.Array) -> pa.Array:
    """Decode runs of any type; Arrow itself decodes those of plain types."""
    values = array.values
    while pa.types.is_run_end_encoded(values.type):
        values = _decode_runs(values)
    numbers = from_numpy(np.arange(len(values), dtype=np.int32), pa.int32())
    places = pa.RunEndEncodedArray.from_arrays(array.run_ends, numbers)
    return _without_view(values).take(pc.run_end_decode(places.slice(array.offset, len(array))))


def _unwrap(source: pa.DataType) -> tuple[pa.DataType, Step] | None:
    if pa.types.is_dictionary(source):
        return source.value_type, _decode
    if is_of_storage(source):
        return source.storage_type, lambda array: array.storage
    if pa.types.is_run_end_encoded(source):
        value = source.value_type
        while pa.types.is_run_end_encoded(value):
            value = value.value_type
        return _without_views(value), _decode_runs
    return None


def _refuse(source: pa.DataType, target: DataType, place: ColumnPlace, fix: str | None = None) -> Refusal:
    return Refusal(place, source, target, fix or _way(source, target, place))


def _way(source: pa.DataType, target: DataType, place: ColumnPlace) -> str:
    """A hint for producing the required type."""
    wanted, types = to_arrow_type(target), pa.types
    column = f"frame[{place.column!r}]"
    if isinstance(target, MapType) and types.is_struct(source):
        return "pass lists of structs with the fields key and value, or rows as mappings: dicts in rows become maps"
    if known := way_of_extension(source, wanted):
        return known
    try:
        pa.nulls(0, source).cast(wanted)
    except pa.ArrowNotImplementedError:
        return f"give pyarrow {wanted}"
    way = f"cast it to pyarrow {wanted}"
    if types.is_floating(source) and types.is_integer(wanted) and place.is_whole:
        return f"{way}, or in pandas, where a column with NaN has floats: {column}.astype('Int{wanted.bit_width}')"
    if types.is_timestamp(source) and types.is_date(wanted) and place.is_whole:
        return f"{way}, or in pandas: {column}.dt.date"
    return way


def _plan_atomic(source: pa.DataType, target: Atomic, place: ColumnPlace) -> Step | Refusal:
    arrow = to_arrow_type(target)
    if target.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ) and pa.types.is_timestamp(source):
        fix = _zone_fix(source, target)
        if fix:
            return _refuse(source, target, place, fix)
    elif not _fits(source, target):
        return _refuse(source, target, place)
    step = as_is if source.equals(arrow) else _casting(arrow, target, place)
    check = limit_check(target)
    if check is None:
        return step

    def convert(array: pa.Array) -> pa.Array:
        array = step(array)
        check(array, place)
        return array

    return convert


def _fits(source: pa.DataType, target: Atomic) -> bool:
    """Whether no value of the source type is lost, or a loss is detected by the cast.

    Numbers may have a wider type than the column: pandas, polars and Python use 64 bits for all integers, DuckDB uses
    integer decimals for sums, and all of them use decimals with the largest scale in the data.
    """
    types, root = pa.types, target.root
    if root is Root.BOOLEAN:
        return bool(types.is_boolean(source))
    if root in _INTEGERS:
        return bool(types.is_integer(source) or (types.is_decimal(source) and source.scale == 0))
    if root in _FLOATS:
        return bool(types.is_floating(source) or types.is_integer(source))
    if root is Root.DECIMAL:
        return bool(types.is_decimal(source) or types.is_integer(source))
    if root in _TEXTS:
        return bool(types.is_string(source) or types.is_large_string(source) or types.is_string_view(source))
    if root in _BINARIES:
        return bool(
            types.is_binary(source)
            or types.is_large_binary(source)
            or types.is_binary_view(source)
            or types.is_fixed_size_binary(source)
        )
    if root is Root.DATE:
        return bool(types.is_date(source))
    return root is Root.TIME and bool(types.is_time(source))


def _zone_fix(source: pa.DataType, target: Atomic) -> str | None:
    if target.root is Root.TIMESTAMP and source.tz is not None:
        return (
            f"drop the zone with pyarrow.compute.local_timestamp(column), or make the column "
            f"TIMESTAMP({target.precision}) WITH LOCAL TIME ZONE"
        )
    if target.root is Root.TIMESTAMP_LTZ and source.tz is None:
        return (
            "say which zone it is in: pyarrow.compute.assume_timezone(column, 'UTC'), or in rows "
            "value.replace(tzinfo=timezone.utc); or make the column "
            f"TIMESTAMP({target.precision})"
        )
    return None


def _casting(arrow: pa.DataType, target: Atomic, place: ColumnPlace) -> Step:
    def convert(array: pa.Array) -> pa.Array:
        try:
            return _cast(array, arrow)
        except pa.ArrowInvalid as error:
            row = _first_misfit(array, arrow)
            value = array.slice(row, 1).cast(pa.string())[0].as_py()
            after = f", {array.type}) does not fit {sql_type(target)} without loss; {WIDEN}"
            raise Misfit(place, row, f": {value} (", after) from error

    return convert


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Cast to another type. Raises: ArrowInvalid for a value that does not fit; floats may be rounded."""
    types, given = pa.types, array.type
    if types.is_float16(given) and types.is_float64(arrow):
        array = array.cast(pa.float32())
    if types.is_decimal32(given) or types.is_decimal64(given):
        array = array.cast(pa.decimal128(given.precision, given.scale))
    if types.is_integer(given) and types.is_decimal(arrow):
        array = array.cast(pa.decimal256(_DIGITS_MAX + arrow.scale, arrow.scale))
    found = array.cast(arrow)
    if types.is_floating(given) and types.is_floating(arrow) and arrow.bit_width < given.bit_width:
        lost = pc.and_(pc.is_inf(found), pc.invert(pc.is_inf(array)))
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid("out of range")
    return found


def _first_misfit(array: pa.Array, arrow: pa.DataType) -> int:
    """The first row that does not fit, in an array that contains one."""
    first, count = 0, len(array)
    while count > 1:
        half = count // 2
        try:
            _cast(array.slice(first, half), arrow)
        except pa.ArrowInvalid:
            count = half
        else:
            first, count = first + half, count - half
    return first


def _plan_list(source: pa.DataType, target: DataType, element: DataType, place: ColumnPlace) -> Step | Refusal:
    listing = _listing(source)
    if listing is None:
        return _refuse(source, target, place)
    child_place = place.inner("element")
    inner = plan_part(source.value_type, element, child_place)
    if isinstance(inner, Refusal):
        return inner
    arrow = to_arrow_type(target)

    def convert(array: pa.Array) -> pa.Array:
        array = listing(array)
        sizes, (child,) = _children(array, [array.values])
        with in_lists(sizes):
            child = inner(child)
            if not element.nullable:
                require_values(child, child_place)
        return _rebuild(arrow, sizes, child, nulls_or_none(array))

    return convert


def _listing(source: pa.DataType) -> Step | None:
    """The conversion of list-like arrays to arrays that `child_range` supports; None for anything else."""
    if pa.types.is_list(source) or pa.types.is_large_list(source) or is_list_view(source):
        return as_is
    if pa.types.is_fixed_size_list(source):
        return lambda array: array.cast(pa.list_(source.value_field))
    return None


def _plan_map(
    source: pa.DataType, target: DataType, parts: tuple[DataType, DataType], place: ColumnPlace
) -> Step | Refusal:
    """Steps from a map, or from a list of structs `key` and `value` (libraries without a map type)."""
    key, value = parts
    is_map = pa.types.is_map(source)
    listing = None if is_map else _listing(source)
    if not is_map and (listing is None or not _is_pair(source.value_type)):
        return _refuse(source, target, place)
    pair = source if is_map else source.value_type
    types = (pair.key_type, pair.item_type) if is_map else (pair.field(0).type, pair.field(1).type)
    first, second = plan_part(types[0], key, place.inner("key")), plan_part(types[1], value, place.inner("value"))
    if isinstance(first, Refusal):
        return first
    if isinstance(second, Refusal):
        return second
    arrow = to_arrow_type(target)
    entry = pa.struct([arrow.key_field, arrow.item_field])

    def convert(array: pa.Array) -> pa.Array:
        if listing is not None:
            array = listing(array)
            sizes, (pairs,) = _children(array, [array.values])
            with in_lists(sizes):
                require_values(pairs, place.inner("entry"))
            keys, values = pairs.field(0), pairs.field(1)
        else:
            sizes, (keys, values) = _children(array, [array.keys, array.items])
        with in_lists(sizes):
            keys, values = first(keys), second(values)
            require_values(keys, place.inner("key"))
            if not value.nullable:
                require_values(values, place.inner("value"))
        entries = pa.Array.from_buffers(entry, len(keys), [None], null_count=0, children=[keys, values])
        return _rebuild(arrow, sizes, entries, nulls_or_none(array))

    return convert


def _is_pair(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_struct(kind)
        and kind.num_fields == 2
        and kind.field(0).name == "key"
        and kind.field(1).name == "value"
    )


def _children(array: pa.Array, children: Sequence[pa.Array]) -> tuple[Ints, list[pa.Array]]:
    """Sizes of the lists, and the items in use."""
    sizes, index, first, last = child_range(array)
    if index is None:
        return sizes, [child.slice(first, last - first) for child in children]
    taken = from_numpy(index, pa.int64())
    return sizes, [_without_view(child).take(taken) for child in children]


def _rebuild(arrow: pa.DataType, sizes: Ints, child: pa.Array, valid: Mask | None) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(arrow, len(sizes), [bitmap, pa.py_buffer(offsets)], null_count=nulls, children=[child])


def _plan_row(source: pa.DataType, target: RowType, place: ColumnPlace) -> Step | Refusal:
    if not pa.types.is_struct(source):
        return _refuse(source, target, place)
    given = [source.field(index).name for index in range(source.num_fields)]
    names = [field.name for field in target.fields]
    unknown = [name for name in given if name not in names]
    if unknown or len(set(given)) < len(given):
        fix = f"it has no field {unknown[0]!r}" if unknown else "a field occurs twice"
        return _refuse(source, target, place, f"{fix}; leave it out, or add it to the table")
    steps: list[tuple[int | None, Step]] = []
    for field in target.fields:
        child_place = place.inner(field.name)
        if field.name not in given:
            if not field.type.nullable:
                return _refuse(source, target, child_place, f"the NOT NULL field {field.name!r} is missing; add it")
            steps.append((None, as_is))
            continue
        index = given.index(field.name)
        step = plan_part(source.field(index).type, field.type, child_place)
        if isinstance(step, Refusal):
            return step
        steps.append((index, step))
    return _row_step(to_arrow_type(target), list(zip(target.fields, steps, strict=True)), place)


def _row_step(arrow: pa.DataType, parts: Sequence[tuple[Field, tuple[int | None, Step]]], place: ColumnPlace) -> Step:
    def convert(array: pa.Array) -> pa.Array:
        valid = nulls_or_none(array)
        fields = []
        for field, (index, step) in parts:
            if index is None:
                fields.append(pa.nulls(len(array), to_arrow_type(field.type)))
                continue
            child = step(array.field(index) if valid is None else pc.struct_field(array, [index]))
            if not field.type.nullable:
                require_values(child, place.inner(field.name), valid)
            fields.append(child)
        bitmap, nulls = validity_bitmap(valid)
        return pa.Array.from_buffers(arrow, len(array), [bitmap], null_count=nulls, children=fields)

    return convert
