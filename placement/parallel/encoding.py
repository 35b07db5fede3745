"""Values of ours as bytes and back: MessagePack, with arrays as their type, shape and content.

What is read is checked against the type that is expected, all the way down, and nothing in it runs.
"""

from types import MappingProxyType
from typing import IO, Any


def encoded(value: object) -> bytes:
    """The bytes of a value of ours."""
    import msgspec

    return msgspec.msgpack.encode(value, enc_hook=_plain)


def decoded(content: bytes, kind: Any) -> Any:
    """The value of a type in some bytes, its arrays writable; a ValueError where there is none."""
    import msgspec

    try:
        return msgspec.msgpack.decode(content, type=kind, dec_hook=_array)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, SyntaxError) as error:
        raise ValueError(str(error)) from None


def read_whole(stream: IO[bytes], num_bytes: int) -> bytes:
    """So many bytes, fewer only at the end of a stream."""
    pieces, missing = list[bytes](), num_bytes
    while missing:
        piece = stream.read(min(missing, 2**20))
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _plain(value: object) -> object:
    import numpy as np

    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"A {type(value).__name__} cannot be sent.")


def _array(kind: Any, content: Any) -> Any:
    """An array of numbers, the only type of ours that msgspec does not know."""
    import numpy as np

    dtype, shape, data = content
    if np.dtype(dtype).kind not in "fib":
        raise ValueError(f"an array of {dtype}")
    # What is compiled would be compiled anew for arrays that may not be written.
    return np.frombuffer(bytearray(data), np.dtype(dtype)).reshape(shape)
