"""What a confined process tries, by name; prints what came of it. Run through `confined`."""

import ctypes
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path


def read(path):
    return Path(path).read_text()


def write(path):
    Path(path).write_text("written")
    return "written"


def compiled(item):
    """How often compiled code was found and how often it was made, for one small function."""
    import numpy as np

    from placement.schedule.order_compiled import push

    push(np.zeros(2), np.zeros(2, dtype=np.int64), 0, 1.0, int(item))
    return f"{push.stats.cache_hits.total()} found, {push.stats.cache_misses.total()} made"


def connect(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5):
        return "connected"


def listen(port):
    with socket.create_server(("127.0.0.1", int(port))):
        return "listening"


def speak(path):
    """To whoever listens at a path, as a session bus does."""
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(path)
    return "connected"


def send(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.sendto(b"a secret", ("127.0.0.1", int(port)))
    return "sent"


def pair(text):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(text.encode())
        return other.recv(100).decode()


def type_in(text):
    """Put a letter into the input of a terminal; what is none would refuse it for that."""
    import fcntl

    fcntl.ioctl(0, 0x5412, text.encode()[:1])
    return "typed"


def ring(entries):
    """The interface by which the kernel itself would open sockets."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    if call(425, int(entries), ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "no ring")
    return "made"


def end(pid):
    os.kill(int(pid), signal.SIGTERM)
    return "sent"


def allocate(num_bytes):
    return str(len(bytearray(int(num_bytes))))


def spin(seconds):
    until = time.process_time() + float(seconds)
    while time.process_time() < until:
        pass
    return "spun"


def hang(limit_s):
    from profiling.sandbox.confinement import deadline

    print("hangs", flush=True)
    with deadline(float(limit_s)):
        # A native call that holds the interpreter's lock.
        ctypes.PyDLL(None).sleep(60)
    return "woke"


def after_reading(num_bytes):
    from profiling.sandbox.confinement import file_is_read

    file_is_read(int(num_bytes))
    return allocate(num_bytes)


def far_too_much(num_bytes):
    from profiling.sandbox.confinement import file_is_read

    file_is_read(int(num_bytes))
    return allocate(2**32)


def crash(number):
    os.write(2, b"native log\n")
    os.kill(os.getpid(), int(number))


def log(text):
    os.write(2, f"native {text}\n".encode())
    print(f"ours {text}", file=sys.stderr)
    return "logged"


def outcome(what, value):
    try:
        return globals()[what](value)
    except (OSError, MemoryError) as error:
        return type(error).__name__


def each(attempts):
    """A line for each of several attempts, which are a list in JSON."""
    return "\n".join(outcome(*attempt) for attempt in json.loads(attempts))


if __name__ == "__main__":
    print(outcome(*sys.argv[1:]))
