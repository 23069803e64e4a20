"""Questions from node to node: a server doubles numbers. Arguments: SOCKET server, or SOCKET NAME NUMBER...

A question is a record of the stream "ask.NAME", and names its sender. The server's stream "told" is keyed by the numbers of
nodes: each reads what has its own. A question's sequence number tells which answer belongs to it.
"""

import struct
import sys

import lowlat

KIND = 1000
NODES_MAX = 1024


def serve(socket):
    with lowlat.join_node(socket, "server", writes="told", keys=NODES_MAX, reads=[("ask.*", None)]) as node:
        for event in node:
            if isinstance(event, lowlat.Record):
                (number,) = struct.unpack("<q", event.payload)
                node.publish(
                    struct.pack("<q", 2 * number),
                    kind=KIND,
                    instrument=event.source,
                    cause_sequence=event.sequence,
                )


def ask(node, number, patience_s=10.0):
    question = node.publish(struct.pack("<q", number), kind=KIND)
    node.set_timer(lowlat.now_ns() + int(patience_s * 1e9))
    for event in node:
        if isinstance(event, lowlat.Record) and event.cause_sequence == question:
            return struct.unpack("<q", event.payload)[0]
        if isinstance(event, lowlat.Timer):
            raise TimeoutError(f"no answer within {patience_s} s")
    raise EOFError("the run has ended")


socket, name, *numbers = sys.argv[1:]
if name == "server":
    serve(socket)
else:
    with lowlat.join_node(socket, name, writes=f"ask.{name}", reads=[("told", "own")]) as node:
        print(*(ask(node, int(number)) for number in numbers))
