"""Mutation: files that are almost right, made from ones that are.

Every case is made from a random generator alone, so that its number brings it back. Bytes of any
file change; where a file has an inner form (JSON, protocol buffers, members of a zip), parts of
that change too, so that the mutation gets past the first check.
"""

import copy
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

BIG = 20_000
# Texts that stand for what `json.dumps` cannot write.
RAW = {
    '"@deep@"': "[" * 100_000 + "]" * 100_000,
    '"@digits@"': "9" * 5_000,
    '"@nan@"': "NaN",
    '"@infinity@"': "-Infinity",
    '"@overflow@"': "1e999",
    '"@surrogate@"': '"\\ud800"',
}
EXTREMES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 1.5, -0.0, 1e308, -1e308, 5e-324, 1e19, 10**30, -(10**30), 2**31, 2**63, 2**64),
    *(True, False, None, "", "a", "0", "1", "null", "\x00", "\n", "a\nb", "../..", "é" * 50),
    *([], {}, [[]], [None], {"": None}, [[1, 2, 3]], {"a": {"b": [1]}}),
    *("@deep@", "@digits@", "@nan@", "@infinity@", "@overflow@", "@surrogate@"),
)
HUGE: tuple[Callable[[], Any], ...] = (
    lambda: [f"name{i}" for i in range(200_000)],
    lambda: list(range(BIG)),
    lambda: {f"name{i}": i for i in range(BIG)},
    lambda: "a" * 1_000_000,
)
NUMBERS = (b"0", b"-1", b"1", b"255", b"4294967296", b"18446744073709551616", b"99999999999999")

Mutate = Callable[[Random, Sequence[bytes]], bytes]


def mutated(rng: Random, seeds: Sequence[bytes], by_field: Mutate | None) -> bytes:
    """One of the files, changed a few times by its bytes or by its fields."""
    if by_field is not None and rng.random() < 0.6:
        return by_field(rng, seeds)
    return by_bytes(rng, seeds)


def by_bytes(rng: Random, seeds: Sequence[bytes]) -> bytes:
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        rng.choice(BYTE_CHANGES)(rng, data, seeds)
    return bytes(data)


def _flip(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _insert(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at:at] = rng.randbytes(rng.choice((1, 2, 8, 100)))


def _delete(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    del data[at : at + rng.choice((1, 2, 8, 100))]


def _cut(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _splice(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    at, begin = rng.randint(0, len(data)), rng.randint(0, len(other))
    data[at : rng.randint(at, len(data))] = other[begin : rng.randint(begin, len(other))]


def _number(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """Another number in place of one that stands there in digits."""
    found = list(re.finditer(rb"\d+", data))
    if found:
        match = rng.choice(found)
        data[match.start() : match.end()] = rng.choice(NUMBERS)


BYTE_CHANGES = (_flip, _flip, _set, _insert, _delete, _cut, _splice, _number)


def by_json(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A JSON file with other values at a few places."""
    try:
        content = json.loads(rng.choice(seeds))
    except (ValueError, RecursionError):
        return by_bytes(rng, seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = _json_changed(rng, content)
    text = json.dumps(content)
    for mark, raw in RAW.items():
        text = text.replace(mark, raw)
    return text.encode()


def _json_changed(rng: Random, content: Any) -> Any:
    places = list(_places(content))
    if not places:
        return _other_value(rng, content)
    holder, key = rng.choice(places)
    old = holder[key]
    how = rng.randrange(10)
    if how == 0:
        del holder[key]
    elif how == 1:
        other, other_key = rng.choice(places)
        holder[key] = copy.deepcopy(other[other_key])
    elif how == 2 and isinstance(holder, list):
        times = BIG if rng.random() < 0.05 else rng.choice((1, 2, 20))
        holder[key:key] = [copy.deepcopy(old) for _ in range(times)]
    elif how == 2:
        holder[rng.choice(("", "id", "name", f"{key}x", str(old)[:50]))] = holder.pop(key)
    elif how == 3 and isinstance(holder, list):
        rng.shuffle(holder)
    else:
        holder[key] = _other_value(rng, old)
    return content


def _other_value(rng: Random, old: Any) -> Any:
    if isinstance(old, int | float) and not isinstance(old, bool) and rng.random() < 0.3:
        return rng.choice((-old, old + 1, old - 1, old * 1e9, str(old), [old], bool(old)))
    if isinstance(old, list | dict | str) and rng.random() < 0.2:
        return rng.choice(([old], {"a": old}, len(old), list(old)))
    return rng.choice(HUGE)() if rng.random() < 0.04 else copy.deepcopy(rng.choice(EXTREMES))


def _places(content: Any) -> Any:
    """Every place of a value inside: what holds it, and its key there."""
    left = [content] if isinstance(content, dict | list) else []
    while left:
        holder = left.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                left.append(holder[key])


def by_onnx(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """An ONNX model with other values in a few fields of its messages."""
    import onnx
    from google.protobuf.message import DecodeError, EncodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            _message_changed(rng, rng.choice(list(_messages(model))))
        return model.SerializeToString(deterministic=True)
    except (DecodeError, EncodeError):
        return by_bytes(rng, seeds)


def _messages(message: Any) -> Any:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else (value,):
                yield from _messages(part)


def _message_changed(rng: Random, message: Any) -> None:
    """Change one field of a message: one that it has, or now and then any that it may have."""
    present = [field for field, _ in message.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.8 else message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if rng.random() < 0.15:
        message.ClearField(field.name)
    elif field.message_type is not None and field.is_repeated:
        _parts_changed(rng, value)
    elif field.message_type is not None:
        value.SetInParent()
    elif not field.is_repeated:
        setattr(message, field.name, _of_field(rng, field, value))
    elif value and rng.random() < 0.7:
        value[rng.randrange(len(value))] = _of_field(rng, field, value[0])
    else:
        more = 20_000 if rng.random() < 0.05 else 1
        value.extend([_of_field(rng, field, value[0] if value else None)] * more)


def _parts_changed(rng: Random, parts: Any) -> None:
    """Change a list of messages: one more, one less, one twice, or in another order."""
    how = rng.randrange(4)
    if not parts or how == 0:
        parts.add()
    elif how == 1:
        del parts[rng.randrange(len(parts))]
    elif how == 2:
        one = copy.deepcopy(rng.choice(parts))
        parts.extend([one] * rng.choice((1, 2, 50)))
    else:
        every = [copy.deepcopy(part) for part in parts]
        rng.shuffle(every)
        del parts[:]
        parts.extend(every)


def _of_field(rng: Random, field: Any, old: Any) -> Any:
    kinds = type(field)
    if field.type == kinds.TYPE_STRING:
        return rng.choice(("", "a", "\n", "../..", "x" * 5_000, f"{old or ''}x"))
    if field.type == kinds.TYPE_BYTES:
        data = bytearray(old or b"")
        rng.choice(BYTE_CHANGES)(rng, data, [bytes(old or b"")])
        return bytes(data)
    if field.type in (kinds.TYPE_FLOAT, kinds.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    if field.type == kinds.TYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    small = (0, 1, 2, 3, 7, 16, -1, 2**31 - 1)
    large = (2**40, 2**62, 2**63 - 1, -(2**63)) if field.type == kinds.TYPE_INT64 else small
    return (
        rng.choice((*small, *large)) if field.type != kinds.TYPE_UINT64 else rng.choice(small[:6])
    )


def by_members(inner: Mutate) -> Mutate:
    """Mutates zips: members are dropped, named anew, doubled, resized, swapped, changed inside."""

    def change(rng: Random, seeds: Sequence[bytes]) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(rng.choice(seeds))) as archive:
                members = [(name, archive.read(name)) for name in archive.namelist()]
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError):
            return by_bytes(rng, seeds)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            members = _members_changed(rng, members, inner)
        packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        return zipped(members, packing)

    return change


Members = list[tuple[str, bytes]]


def _members_changed(rng: Random, members: Members, inner: Mutate) -> Members:
    if not members:
        return [("a", b"")]
    at = rng.randrange(len(members))
    name, data = members[at]
    how = rng.randrange(9)
    if how == 0:
        return members[:at] + members[at + 1 :]
    if how == 1:
        return [*members, members[at]]
    if how == 2:
        names = ("", "a", "../a", "/a", "a\nb", f"{name}x", name.upper(), rng.choice(members)[0])
        return [*members[:at], (rng.choice(names), data), *members[at + 1 :]]
    if how == 3:
        sizes = (data[: len(data) // 2], data * 2, b"", data + b"\0" * 1_000_000)
        return [*members[:at], (name, rng.choice(sizes)), *members[at + 1 :]]
    if how == 4:
        return [*members[:at], (name, rng.choice(members)[1]), *members[at + 1 :]]
    return [*members[:at], (name, inner(rng, [data])), *members[at + 1 :]]


def zipped(members: Members, packing: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of members as they come, twice where they are there twice; the same at any time."""
    import warnings

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return buffer.getvalue()
