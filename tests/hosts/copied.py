"""What nodes start as workers and agents: it asks the template for a copy, and ends with that.

A script of its own that imports next to nothing, for it is started for each of them.
"""

import json
import os
import socket
import sys

# The variable that names the socket for workers, and what the name of that for agents has besides.
TEMPLATE, AGENTS = "TESTS_HOSTS_TEMPLATE", ".agents"


def main() -> None:
    words, path = sys.argv[1:], os.environ[TEMPLATE]
    if words[0] == AGENTS:
        path += words.pop(0)
    asked = {
        "words": words,
        "variables": dict(os.environ),
        "folder": os.getcwd(),
        "niceness": os.nice(0),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(asked).encode())
        connection.shutdown(socket.SHUT_WR)
        # The copy has the other end for as long as it lives.
        connection.recv(1)


if __name__ == "__main__":
    main()
