def run(self, strategy):
    """Calls the existing methods of `strategy` until the master stops the node or it has left.

    on_begin(node), on_quote(node, quote), on_answer(node, answer), on_order(node, order), on_record(node, record),
    on_lost(node, lost), on_timer(node, timer), on_command(node, command).
    """
    begin, record = (getattr(strategy, name, None) for name in ("on_begin", "on_record"))
    handlers = {kind: getattr(strategy, name, None) for kind, name in KINDS.items()}
    for event in self:
        if type(event) is Begin:
            if begin is not None:
                begin(self)
            continue
        handler = handlers.get(type(event), record)
        if handler is not None:
            handler(self, event)


async def __aiter__(self):
    """Iterates over the events in an asyncio task, which waits by the node's descriptor."""
    import asyncio

    ready, loop, descriptor = asyncio.Event(), asyncio.get_running_loop(), self.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        while not self.is_over:
            ready.clear()
            for event in self.poll():
                yield event
            if not self.is_over:
                await ready.wait()
    finally:
        loop.remove_reader(descriptor)
