"""Buys one whenever the price has risen since the last quote. Arguments: SOCKET INSTRUMENT"""

import sys

import lowlat

quotes = orders = 0
last = None
with lowlat.join(sys.argv[1], "first-python", instruments=[int(sys.argv[2])]) as node:
    print("joined", flush=True)
    for event in node:
        if isinstance(event, lowlat.Quote):
            quotes += 1
            middle = (event.bid + event.ask) // 2
            if last is not None and middle > last:
                node.order(event, "buy", event.ask, 1)
                orders += 1
            last = middle
print(f"{quotes} quotes, {orders} orders")
