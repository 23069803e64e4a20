"""Trades two instruments against each other. Arguments: SOCKET signal FIRST SECOND, or SOCKET pairs FIRST SECOND

The node "signal" reads the quotes of both and publishes on its stream "spread" how far the difference of their prices is from
its average. The strategy "pairs" reads that stream beside the quotes. Where the spread is wide it sells what is dear and buys
what is cheap, and it closes both when the spread has come back.
"""

import collections
import struct
import sys

import lowlat

KIND = 1001
DEVIATION = struct.Struct("<q")  # In units of 1/lowlat.PRICE_SCALE.
ENTRY = 3 * lowlat.PRICE_SCALE // 100
EXIT = lowlat.PRICE_SCALE // 100
SMOOTHING = 64
SIZE = 1
SIGNS = {"buy": 1, "sell": -1}


def signal(socket, first, second):
    middles, average = {}, None
    with lowlat.join_node(socket, "signal", writes="spread", reads=[("md", [first, second], "conflate")]) as node:
        for event in node:
            if not isinstance(event, lowlat.Quote):
                continue
            middles[event.instrument] = (event.bid + event.ask) // 2
            if len(middles) == 2:
                spread = middles[first] - middles[second]
                average = spread if average is None else average + (spread - average) / SMOOTHING
                node.publish(DEVIATION.pack(round(spread - average)), kind=KIND, cause_sequence=event.sequence)


class Pairs:
    def __init__(self, node, first, second):
        self.first, self.second = first, second
        self.quotes = {}
        self.waits = set()  # Numbers of orders without an end: a market order is filled or cancelled at once.
        self.positions = collections.Counter(node.positions())
        self.trades = 0

    def on_quote(self, node, quote):
        self.quotes[quote.instrument] = quote

    def on_record(self, node, record):
        (deviation,) = DEVIATION.unpack(record.payload)
        held = self.positions[self.first]
        if abs(deviation) >= ENTRY:
            target = -SIZE if deviation > 0 else SIZE
        elif abs(deviation) <= EXIT:
            target = 0
        else:
            target = held
        if held * target < 0:
            target = 0  # Closed first: a market order of the double size may find half of it.
        if not self.waits and len(self.quotes) == 2:
            self.trade(node, self.first, target)
            self.trade(node, self.second, -target)

    def trade(self, node, instrument, target):
        change = target - self.positions[instrument]
        if change:
            quote = self.quotes[instrument]
            side, price = ("buy", quote.ask) if change > 0 else ("sell", quote.bid)
            self.waits.add(node.order(quote, side, price, abs(change), type="market"))
            self.trades += 1

    def on_answer(self, node, answer):
        if answer.outcome == "filled":
            self.positions[answer.instrument] += SIGNS[answer.side] * answer.quantity
        if answer.outcome in ("filled", "rejected", "cancelled"):
            self.waits.discard(answer.order_number)


socket, role, *instruments = sys.argv[1:]
first, second = map(int, instruments)
if role == "signal":
    signal(socket, first, second)
else:
    reads = [("spread", None, "conflate")]
    with lowlat.join(socket, "pairs", instruments=[first, second], reads=reads, overrun="conflate") as node:
        pairs = Pairs(node, first, second)
        node.run(pairs)
    print(f"{pairs.trades} orders, positions {pairs.positions[first]} and {pairs.positions[second]}")
