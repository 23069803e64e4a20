"""Orders that rest, change and trade in td's simulated book, whose quotes this script publishes. Arguments: SOCKET"""

import copy
import pickle
import struct
import sys
import time

import lowlat

QUOTE, TICK = 1, lowlat.PRICE_SCALE
DEADLINE = time.monotonic() + 45


def quote(bid, ask, size):
    payload = struct.pack("<QqqqIIQQQ", lowlat.now_ns(), bid * TICK, ask * TICK, bid * TICK, size, size, 0, 0, 0)
    md.publish(payload, kind=QUOTE, schema=1)


def read(kind, count=1):
    """The next events of a kind."""
    events = []
    while len(events) < count:
        assert time.monotonic() < DEADLINE, events
        md.poll()
        events += [event for event in node.poll(0.01) if isinstance(event, kind)]
    assert len(events) == count, events
    return events


def answers(number, *expected):
    """Checks the next answers: outcome, reason, price and quantity."""
    found = read(lowlat.Answer, len(expected))
    assert [(it.outcome, it.reason, it.price // TICK, it.quantity) for it in found] == list(expected), found
    assert {(it.order_number, it.instrument, it.strategy) for it in found} == {(number, 0, node.strategy)}, found
    again = pickle.loads(pickle.dumps(found))
    assert again == found and [it.reason for it in again] == [it.reason for it in found]
    return found[-1]


def check(orders, positions):
    """Checks what the ledger has, which follows td's answers."""
    wanted = [lowlat.OpenOrder(number, 0, side, price * TICK, *rest) for number, side, price, *rest in orders]
    while (node.open_orders(), node.positions()) != (wanted, positions):
        assert time.monotonic() < DEADLINE, (node.open_orders(), node.positions())
    for order in wanted:
        assert copy.copy(order) == order


md = lowlat.join_node(sys.argv[1], "md", role="md", writes="md", keys=8)
node = lowlat.join(sys.argv[1], "rests", instruments=[0])
# Before its first order td may not have opened its ledger.
assert (node.open_orders(), node.positions()) == ([], {})
for each in md, node:
    while not any(isinstance(event, lowlat.Begin) for event in each.poll(1)):
        assert time.monotonic() < DEADLINE
quote(99, 101, 10)
first = read(lowlat.Quote)[0]

# A limit order rests, is replaced and cancelled.
low = node.order(first, "buy", 97 * TICK, 5)
answers(low, ("accepted", None, 97, 5))
high = node.order(first, "sell", 105 * TICK, 3, type="limit")
answers(high, ("accepted", None, 105, 3))
check([(low, "buy", 97, 5, 0), (high, "sell", 105, 3, 0)], {})
node.replace(0, low, 98 * TICK, 7, cause=first)
assert answers(low, ("replaced", None, 98, 7)).side == "buy"
check([(low, "buy", 98, 7, 0), (high, "sell", 105, 3, 0)], {})
node.cancel(0, high)
assert answers(high, ("cancelled", None, 105, 3)).side == "sell"
check([(low, "buy", 98, 7, 0)], {})

# There is no such order any more, or it has another instrument.
node.cancel(0, high, cause=first)
answers(high, ("not changed", "unknown order", 0, 0))
node.replace(0, high, 106 * TICK, 3)
answers(high, ("not changed", "unknown order", 106, 3))
node.replace(0, low, 98 * TICK, 0)
answers(low, ("not changed", "bad quantity", 98, 0))

# What is offered is filled, and only a limit order rests.
swift = node.order(None, "buy", 101 * TICK, 14, instrument=0, type="ioc")
answers(swift, ("accepted", None, 101, 14), ("filled", None, 101, 10), ("cancelled", None, 101, 4))
missed = node.order(None, "buy", 100 * TICK, 2, instrument=0, type="ioc")
answers(missed, ("accepted", None, 100, 2), ("cancelled", None, 100, 2))
market = node.order(first, "sell", 0, 4, type="market")
answers(market, ("accepted", None, 0, 4), ("filled", None, 99, 4))
check([(low, "buy", 98, 7, 0)], {0: 6})

# The market reaches the order, with less than it wants.
quote(96, 98, 2)
answers(low, ("filled", None, 98, 2))
check([(low, "buy", 98, 7, 2)], {0: 8})

# Another process of the strategy finds the same.
node.leave()
node = lowlat.join(sys.argv[1], "rests", instruments=[0])
check([(low, "buy", 98, 7, 2)], {0: 8})
node.replace(0, low, 97 * TICK, 2)
answers(low, ("not changed", "bad quantity", 97, 2))
node.cancel(0, low)
answers(low, ("cancelled", None, 98, 5))
check([], {0: 8})
node.leave()
md.leave()
print("done")
