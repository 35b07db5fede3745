"""What a node starts as a worker: it asks the template for a copy, and ends when that has ended.

A script of its own that imports next to nothing, for it is started for every worker.
"""

import json
import os
import socket
import sys

# The variable that names the template's socket.
TEMPLATE = "TESTS_HOSTS_TEMPLATE"


def main() -> None:
    asked = {
        "words": sys.argv[1:],
        "variables": dict(os.environ),
        "folder": os.getcwd(),
        "niceness": os.nice(0),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ[TEMPLATE])
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(asked).encode())
        connection.shutdown(socket.SHUT_WR)
        # The copy has the other end for as long as it lives.
        connection.recv(1)


if __name__ == "__main__":
    main()
