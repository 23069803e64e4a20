"""A strategy as a class: it buys and sells alternately, and counts. Arguments: SOCKET NUMBER INSTRUMENT..."""

import sys

import lowlat


class Desk:
    def __init__(self):
        self.quotes = self.orders = self.accepted = self.filled = self.begun = self.lost = 0
        self.last_answered = self.out_of_order = 0

    def on_begin(self, node):
        self.begun += 1

    def on_quote(self, node, quote):
        self.quotes += 1
        side, price = ("buy", quote.ask) if self.orders % 2 == 0 else ("sell", quote.bid)
        node.order(quote, side, price, 1)
        self.orders += 1

    def on_answer(self, node, answer):
        if answer.outcome == "filled":
            self.filled += answer.quantity
            return
        # td answers a strategy's orders in sequence.
        self.out_of_order += answer.order_number != self.last_answered + 1
        self.last_answered = answer.order_number
        self.accepted += answer.outcome == "accepted"

    def on_lost(self, node, lost):
        self.lost += lost.count


socket, number, *instruments = sys.argv[1:]
desk = Desk()
with lowlat.join(socket, "methods", number=int(number), instruments=list(map(int, instruments))) as node:
    node.run(desk)
print(
    f"quotes {desk.quotes} orders {desk.orders} accepted {desk.accepted} filled {desk.filled}"
    f" begun {desk.begun} lost {desk.lost} out-of-order {desk.out_of_order}"
)
