"""Opens the door from inside a network namespace, then becomes the command: DESCRIPTOR PORT ARGV…

Handed to a bare interpreter as text, so it stands alone. A socket belongs to the namespace that it
was made in: so the listener is made here, where the command will look for the proxy, and handed to
the host, which answers. Nothing of us stays inside.
"""

import os
import sys

# The bare module: `socket` takes longer to import than all the rest.
from _socket import AF_INET, AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket


def hand_out(descriptor: int, port: int) -> None:
    """Listen on the namespace's loopback and give the listener away."""
    listener = socket(AF_INET, SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    wire = socket(AF_UNIX, SOCK_STREAM, 0, descriptor)
    number = listener.fileno().to_bytes(4, sys.byteorder)
    wire.sendmsg([b"L"], [(SOL_SOCKET, SCM_RIGHTS, number)])
    wire.close()
    listener.close()


if __name__ == "__main__":
    hand_out(int(sys.argv[1]), int(sys.argv[2]))
    command = sys.argv[3:]
    try:
        os.execvp(command[0], command)  # noqa: S606 -- running it is what this program is for
    except OSError as error:
        os.write(2, f"sandbox: {command[0]}: {error.strerror}\n".encode())
        os._exit(127)
