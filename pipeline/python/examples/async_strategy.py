"""A strategy as an asyncio task, beside another one. Arguments: SOCKET INSTRUMENT..."""

import asyncio
import sys

import lowlat


async def trade(node):
    quotes = 0
    async for event in node:
        if isinstance(event, lowlat.Quote):
            quotes += 1
            node.order(event, "buy", event.ask, 1)
    return quotes


async def tick(counts):
    while True:
        await asyncio.sleep(0.001)
        counts["ticks"] += 1


async def main(socket, instruments):
    counts = {"ticks": 0}
    beside = asyncio.create_task(tick(counts))
    with lowlat.join(socket, "async", instruments=instruments) as node:
        quotes = await trade(node)
    beside.cancel()
    print(f"{quotes} quotes, the other task ran {'on' if counts['ticks'] else 'never'}")


asyncio.run(main(sys.argv[1], [int(instrument) for instrument in sys.argv[2:]]))
