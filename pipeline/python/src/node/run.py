def run(self, strategy):
    """Calls the existing methods of `strategy` until the master stops the node or it has left.

    on_begin(node), on_quote(node, quote), on_answer(node, answer), on_order(node, order), on_record(node, record),
    on_lost(node, lost), on_command(node, command).
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
