"""Quotes both sides of its instruments and follows the market. Arguments: SOCKET INSTRUMENT...

It starts from its open orders and positions in td's ledger, so a restarted process continues where the last one ended.
"""

import collections
import dataclasses
import sys

import lowlat

SIZE = 10
# At this position or a larger one, it does not quote the side that would add to it.
POSITION_MAX = 20
SIGNS = {"buy": 1, "sell": -1}


@dataclasses.dataclass
class Resting:
    number: int
    price: int
    quantity: int
    filled: int


class MarketMaker:
    def __init__(self, node):
        self.waits = {}  # Instrument and side of each order number that has a request without an answer.
        self.requests = 0
        self.look(node)
        print(f"starts with {len(self.resting)} orders, positions {dict(self.positions)}", flush=True)

    def look(self, node):
        """Takes the state from the ledger; again if an answer has arrived, because the ledger may have it or not."""
        while True:
            self.resting = {
                (order.instrument, order.side): Resting(order.number, order.price, order.quantity, order.filled)
                for order in node.open_orders()
            }
            self.positions = collections.Counter(node.positions())
            if not any(isinstance(event, lowlat.Answer) for event in node.poll()):
                return

    def on_quote(self, node, quote):
        for side, price in ("buy", quote.bid), ("sell", quote.ask):
            if (quote.instrument, side) not in self.waits.values():
                self.follow(node, quote, side, price)

    def follow(self, node, quote, side, price):
        key = quote.instrument, side
        order = self.resting.get(key)
        is_wanted = price > 0 and SIGNS[side] * self.positions[quote.instrument] < POSITION_MAX
        if order is None and is_wanted:
            number = node.order(quote, side, price, SIZE)
        elif order is not None and not is_wanted:
            number = order.number
            node.cancel(quote.instrument, number, cause=quote)
        elif order is not None and order.price != price:
            number = order.number
            node.replace(quote.instrument, number, price, order.quantity, cause=quote)
        else:
            return
        self.waits[number] = key
        self.requests += 1

    def on_answer(self, node, answer):
        key, number = (answer.instrument, answer.side), answer.order_number
        if answer.outcome == "filled":
            self.positions[answer.instrument] += SIGNS[answer.side] * answer.quantity
        else:
            self.waits.pop(number, None)
        if answer.outcome == "accepted":
            self.resting[key] = Resting(number, answer.price, answer.quantity, 0)
        order = self.resting.get(key)
        if order is None or order.number != number:
            return
        if answer.outcome == "replaced":
            order.price = answer.price
        elif answer.outcome == "filled":
            order.filled += answer.quantity
        if answer.outcome == "cancelled" or order.filled == order.quantity:
            del self.resting[key]

    def on_lost(self, node, lost):
        if lost.stream == "td":
            self.waits.clear()
            self.look(node)


socket, *instruments = sys.argv[1:]
with lowlat.join(socket, "maker", instruments=[int(i) for i in instruments], overrun="conflate") as node:
    maker = MarketMaker(node)
    node.run(maker)
print(f"{maker.requests} requests, positions {dict(maker.positions)}")
