"""A node that works long on each record. Arguments: SOCKET COUNT"""

import sys
import time

import lowlat

socket, count = sys.argv[1], int(sys.argv[2])
with lowlat.join_node(socket, "slow", reads=[("numbers", None)]) as node:
    for event in node:
        if isinstance(event, lowlat.Record):
            time.sleep(0.05)
            count -= 1
        if count == 0:
            break
