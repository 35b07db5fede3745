"""The few rules of the protocol buffers' wire format that writing a trace needs.

A message is a row of fields; a field is its number and kind as one integer, then its value: an
integer in groups of seven bits, lowest first, eight bytes, or a length and as many bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fixed64:
    """An unsigned integer that is written as eight bytes, as fields of type fixed64 are."""

    value: int


Value = int | str | bytes | Fixed64
VARINT, EIGHT_BYTES, BYTES = 0, 1, 2


def varint(value: int) -> bytes:
    """An unsigned integer (negative ones as 64 bits) in groups of seven bits."""
    value &= (1 << 64) - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def message(fields: Iterable[tuple[int, Value]]) -> bytes:
    """A message from (field number, value) pairs; text is UTF-8, messages are bytes already."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3 | VARINT) + varint(value))
            continue
        if isinstance(value, Fixed64):
            parts.append(varint(number << 3 | EIGHT_BYTES) + value.value.to_bytes(8, "little"))
            continue
        data = value.encode("utf-8", "replace") if isinstance(value, str) else value
        parts.append(varint(number << 3 | BYTES) + varint(len(data)) + data)
    return b"".join(parts)
