"""Random values of variants, and what JSON makes of them."""

from __future__ import annotations

import datetime
import uuid
from decimal import Context, Decimal

_WIDE = Context(prec=60)
TEXTS = ("", "a", "x" * 63, "x" * 64, "日本語😀", 'quote " \\ / \n \t \x01 \x7f \u2028', "é" * 40)
KEYS = ("a", "b", "c", "", "a b", "a.b", "x[0]", "it's", "中", "😀", "\uffff", "key", "K" * 40)


def json_value(rng, depth: int = 0):
    """A value that JSON has: what `json.dumps` with texts of numbers makes of it is in `json_text`."""
    kinds = 9 if depth < 4 else 6
    kind = rng.randrange(kinds)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind == 1:
        bits = rng.choice((7, 8, 15, 16, 31, 32, 63))
        return rng.choice((rng.randrange(-(1 << bits), 1 << bits), (1 << bits) - 1, -(1 << bits), 0))
    if kind == 2:
        digits = rng.choice((1, 4, 9, 10, 18, 19, 38))
        scale = rng.randrange(1, digits + 1)
        return Decimal(rng.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale, context=_WIDE)
    if kind == 3:
        return rng.choice((0.0, 1.5, -2.5e-10, 1e300, 1e22, 123456.789, rng.random() * 10 ** rng.randrange(-20, 20)))
    if kind in (4, 5):
        return rng.choice((*TEXTS, f"text {rng.randrange(9)}"))
    if kind == 6:
        return [json_value(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 5, 300 if depth == 0 and rng.random() < 0.05 else 3)))]
    keys = rng.sample(KEYS, rng.randrange(min(5, len(KEYS))))
    return {key: json_value(rng, depth + 1) for key in keys}


def value(rng, depth: int = 0):
    """A value of any kind that variants have."""
    if rng.random() < 0.15:
        return rng.choice((
            datetime.date(2024, 5, 14), datetime.date(1, 1, 1), datetime.datetime(2024, 5, 14, 1, 2, 3, 456789), b"", b"\0bytes",
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc), uuid.UUID(int=rng.randrange(1 << 128)),
        ))  # fmt: skip
    made = json_value(rng, 3 if depth else 2)
    if depth < 2 and rng.random() < 0.4:
        return {key: value(rng, depth + 1) for key in rng.sample(KEYS, 3)}
    return made


def json_text(made) -> str:
    """The JSON of a value: decimals with all their digits, floats with an exponent."""
    import json

    if isinstance(made, dict):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {json_text(item)}" for key, item in made.items()) + "}"
    if isinstance(made, list):
        return "[" + ", ".join(map(json_text, made)) + "]"
    if isinstance(made, Decimal):
        return f"{made:f}"
    if isinstance(made, float):
        text = repr(made)
        return text if "e" in text else text + "e0"
    return json.dumps(made, ensure_ascii=False)


