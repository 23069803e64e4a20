"""Reads a recording of the running pipeline to its end, and goes on in the live stream. Arguments: SOCKET RECORDING"""

import sys

import lowlat

socket, recording = sys.argv[1:]
seen = [event.sequence for event in lowlat.Journal(recording, "quotes") if isinstance(event, lowlat.Record)]
reads = [("quotes", None, "gap", ("after", seen[-1]))]
with lowlat.join_node(socket, "late", reads=reads) as node:
    for event in node:
        if isinstance(event, lowlat.Record):
            seen.append(event.sequence)
        elif isinstance(event, lowlat.Lost):
            print("lost", event.count)
print(len(seen), "in order" if seen == list(range(1, len(seen) + 1)) else seen)
