"""Ends while a daemon thread waits in a node, or works in a method that the node has called. Arguments: SOCKET KIND"""

import sys
import threading
import time

import lowlat

node = lowlat.join_node(sys.argv[1], "daemon")


class Worker:
    """Never comes back from its first event."""

    def on_begin(self, _):
        started.set()
        while True:
            time.sleep(0.001)


def iterate():
    list(node)


def poll():
    while True:
        node.poll(0.001)


def work():
    node.run(Worker())


started = threading.Event()
threading.Thread(target={"iterate": iterate, "poll": poll, "work": work}[sys.argv[2]], daemon=True).start()
if sys.argv[2] == "work":
    assert started.wait(60)
else:
    time.sleep(0.05)
sys.exit(7)
