"""A strategy that buys whenever the spread is narrow. Arguments: SOCKET INSTRUMENT..."""

import sys

import lowlat

socket, *instruments = sys.argv[1:]
with lowlat.join(socket, "example", instruments=[int(i) for i in instruments]) as node:
    for event in node:
        if isinstance(event, lowlat.Quote) and event.ask - event.bid < lowlat.PRICE_SCALE:
            node.order(event, "buy", event.ask, 1)
