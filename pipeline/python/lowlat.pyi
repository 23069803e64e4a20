"""Nodes of a lowlat pipeline, and recordings.

    with lowlat.join(socket, "mine", instruments=[3]) as node:
        for event in node:
            if isinstance(event, lowlat.Quote):
                node.order(event, "buy", event.ask, 1)

Prices are whole numbers of 1/PRICE_SCALE. Times are nanoseconds of CLOCK_MONOTONIC. One thread uses a node at a time.
"""

import os
import pathlib
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Literal, Optional, Union, final

from typing_extensions import Buffer, TypeAlias, disjoint_base

_Overrun: TypeAlias = Union[Literal["gap", "conflate", "credit"], tuple[Literal["evict"], int]]
_Wanted: TypeAlias = Union[None, Literal["own"], Sequence[int]]
_Start: TypeAlias = Union[Literal["head", "oldest"], tuple[Literal["after"], int]]
_Reads: TypeAlias = Sequence[
    Union[tuple[str, _Wanted], tuple[str, _Wanted, _Overrun], tuple[str, _Wanted, _Overrun, _Start]]
]
_Side: TypeAlias = Literal["buy", "sell"]
_Type: TypeAlias = Literal["limit", "market", "ioc"]
_Event: TypeAlias = Union[Record, Lost, Timer, Command, Begin]

__all__ = [
    "Answer", "Batches", "Begin", "BusyError", "Command", "Damage", "Fenced", "Forked", "JoinError", "Journal",
    "JournalError", "Lost", "LowlatError", "MasterGone", "NoCredit", "Node", "OpenOrder", "Order",
    "PRICE_SCALE", "PublishError", "Quote", "Record", "Refused", "Timer", "__version__", "_record", "join",
    "join_node", "now_ns", "socket_of",
]
__version__: str
PRICE_SCALE: int
"""Prices are whole numbers in units of 1/PRICE_SCALE of the instrument's currency."""

class LowlatError(Exception):
    """Base class: what went wrong, and what to do about it."""

class JoinError(LowlatError):
    """Joining the master failed."""

class PublishError(LowlatError):
    """A record or an order was not published."""

class NoCredit(PublishError):
    """A reader that must not lose records has no room: retry once it has read."""

class Fenced(LowlatError):
    """The master dropped this process, and another may have replaced it: restart the program."""

class Refused(JoinError):
    """The master refused the node after it had joined: what it asked for does not fit what came later."""

class MasterGone(LowlatError):
    """The master died without stopping its nodes, and they stop with it."""

class Forked(LowlatError):
    """The node belongs to the process that this one was forked from: join again in this process."""

class BusyError(LowlatError):
    """Another thread is using the node or the journal, or td is changing its ledger."""

class JournalError(LowlatError):
    """A recording cannot be read."""

def _record(
    stream: str,
    sequence: int,
    kind: int,
    schema: int,
    instrument: int,
    source: int,
    generated_ns: int,
    trigger_ns: int,
    cause_sequence: int,
    received_ns: Optional[int],
    payload: bytes,
) -> Record: ...
def now_ns() -> int:
    """Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC, or of the recording in a run over one.

    A process has the clock of the run that it joined last.
    """

def socket_of(name: str) -> pathlib.Path:
    """Default socket of the master with that name."""

def join(
    socket: Union[str, os.PathLike[str]],
    name: str,
    *,
    instruments: Sequence[int],
    number: Optional[int] = None,
    reads: _Reads = (),
    overrun: _Overrun = "gap",
    start: _Start = "head",
    wait: Literal["parked", "fast", "adaptive"] = "parked",
    capacity_bytes: int = 1048576,
) -> Node:
    """Joins the master that listens at `socket` as a strategy.

    The master assigns an unused strategy number, which stays the same when the node restarts under its name. `number`
    requests one below 16384, which is refused if another strategy has it.

    The node reads the quotes of `instruments`, the answers to its orders and the streams of `reads` (see join_node), and
    writes "orders.NAME".

    `overrun` is the policy for quotes that it is too slow for: "gap" (they are lost, and it gets a Lost), "conflate" (it
    gets the latest of each instrument), "credit" (the publisher is refused, where it supports that) or ("evict", N): with
    more than N pending it loses all of them. `wait`: sleep until woken, spin, or spin as long as that pays.

    `start` is the first quote that it gets: "head" (the first one after it has joined), "oldest" (the oldest one that the
    stream's ring has kept) or ("after", sequence): the one after the last that it has read in a recording of the same run.
    What is not kept any more is a Lost. Raises JoinError, ValueError, TypeError.
    """

def join_node(
    socket: Union[str, os.PathLike[str]],
    name: str,
    *,
    role: str = "node",
    writes: Optional[str] = None,
    keys: int = 1,
    gives_credit: bool = False,
    reads: _Reads = (),
    wait: Literal["parked", "fast", "adaptive"] = "parked",
    capacity_bytes: int = 1048576,
) -> Node:
    """Joins the master that listens at `socket` as any node.

    `writes` names the stream that it writes, with instruments below `keys`. With `gives_credit`, publishing raises NoCredit
    while a reader that asked for "credit" has no room. `reads` are tuples of a stream ("md", "orders.*"), a selection (None
    for all, a list of instruments, or "own" for the node's number) and, if wanted, a policy and a start as `overrun` and
    `start` in join. Raises JoinError, ValueError, TypeError.
    """

@disjoint_base
class Record:
    """A record of a stream: its header fields and payload."""

    @property
    def stream(self) -> str:
        """The stream: "md", "td", "orders.NAME", ..."""
    @property
    def sequence(self) -> int:
        """Its sequence number in the stream."""
    @property
    def kind(self) -> int:
        """Kind of the payload: 1 a quote, 2 an order, 3 an answer, or a custom kind."""
    @property
    def schema(self) -> int:
        """Version of the payload's format."""
    @property
    def instrument(self) -> int:
        """The instrument, which selects the readers."""
    @property
    def source(self) -> int:
        """Source: the strategy's number for an order, else the node's."""
    @property
    def generated_ns(self) -> int:
        """When it was written."""
    @property
    def trigger_ns(self) -> int:
        """When the record that caused it was written."""
    @property
    def cause_sequence(self) -> int:
        """Sequence of the record that caused it; 0 without a cause."""
    @property
    def received_ns(self) -> Optional[int]:
        """When this process had read it; None in a recording."""
    @property
    def payload(self) -> bytes:
        """Its payload."""
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Quote(Record):
    """Best bid and offer of an instrument. Prices in 1/PRICE_SCALE."""

    @property
    def scheduled_ns(self) -> int:
        """When it was due in its schedule."""
    @property
    def bid(self) -> int:
        """Best bid; 0: none."""
    @property
    def ask(self) -> int:
        """Best offer; 0: none."""
    @property
    def last(self) -> int:
        """Last trade."""
    @property
    def bid_size(self) -> int:
        """Size at the bid."""
    @property
    def ask_size(self) -> int:
        """Size at the offer."""

@final
class Order(Record):
    """A request of a strategy: a new order, or a change of one. Its source is the strategy's number."""

    @property
    def number(self) -> int:
        """The strategy's number of the order, never reused. A change has its order's."""
    @property
    def action(self) -> Literal["new", "cancel", "replace"]:
        """What it asks for."""
    @property
    def type(self) -> _Type:
        """Type of the order; without effect in a change."""
    @property
    def scheduled_ns(self) -> int:
        """When the quote that caused it was due."""
    @property
    def quote_received_ns(self) -> int:
        """When the strategy had read that quote."""
    @property
    def price(self) -> int:
        """Limit price in 1/PRICE_SCALE; without effect in a cancel."""
    @property
    def quantity(self) -> int:
        """The whole quantity, with what is filled; without effect in a cancel."""
    @property
    def side(self) -> _Side:
        """Side of the order; without effect in a change."""

@final
class Answer(Record):
    """td's answer to a request.

    Each order gets exactly one that is accepted or rejected, each change one that is cancelled, replaced or not changed.
    Fills follow, and cancelled for what a market or ioc order leaves.
    """

    @property
    def order_number(self) -> int:
        """The order's number."""
    @property
    def outcome(self) -> Literal["accepted", "rejected", "filled", "cancelled", "replaced", "not changed"]:
        """Outcome of the request."""
    @property
    def reason(self) -> Optional[str]:
        """Why it was rejected or not changed; else None."""
    @property
    def order_received_ns(self) -> int:
        """When td had read the order."""
    @property
    def price(self) -> int:
        """Price of the fill; in other answers that of the order."""
    @property
    def quantity(self) -> int:
        """Quantity of the fill, or what was cancelled; in other answers that of the order."""
    @property
    def instrument(self) -> int:
        """The order's instrument."""
    @property
    def side(self) -> _Side:
        """The order's side; without meaning if nothing was changed."""
    @property
    def strategy(self) -> int:
        """Number of the strategy that it is for."""

@final
class OpenOrder:
    """An open order of the strategy: accepted, and neither filled nor cancelled."""

    def __new__(
        cls, number: int, instrument: int, side: _Side, price: int, quantity: int, filled: int
    ) -> OpenOrder: ...
    def __getnewargs__(self) -> tuple[int, int, str, int, int, int]: ...
    def __hash__(self) -> int: ...

    @property
    def number(self) -> int:
        """The strategy's number of it."""
    @property
    def instrument(self) -> int:
        """Its instrument."""
    @property
    def side(self) -> _Side:
        """Its side."""
    @property
    def price(self) -> int:
        """Limit price in 1/PRICE_SCALE."""
    @property
    def quantity(self) -> int:
        """The whole quantity, with what is filled."""
    @property
    def filled(self) -> int:
        """Filled quantity."""

@final
class Lost:
    """Lost records of a stream: the node was too slow, or they are missing from the recording."""

    def __new__(cls, stream: str, count: int, why: Optional[str] = None) -> Lost: ...
    def __getnewargs__(self) -> tuple[str, int, Optional[str]]: ...
    def __hash__(self) -> int: ...

    @property
    def stream(self) -> str:
        """The stream."""
    @property
    def count(self) -> int:
        """Number of records."""
    @property
    def why(self) -> Optional[str]:
        """Why they are missing from the recording; None for a node."""

@final
class Damage:
    """Damage of a recording. Reading continues after it."""

    def __new__(cls, text: str) -> Damage: ...
    def __getnewargs__(self) -> tuple[str]: ...
    def __hash__(self) -> int: ...

    @property
    def text(self) -> str:
        """File, offset and problem."""

@final
class Command:
    """A command of the master's user."""

    def __new__(cls, text: str) -> Command: ...
    def __getnewargs__(self) -> tuple[str]: ...
    def __hash__(self) -> int: ...

    @property
    def text(self) -> str:
        """The text."""

@final
class Begin:
    """All nodes have joined: publishing may start."""

    def __new__(cls) -> Begin: ...
    def __hash__(self) -> int: ...

@final
class Timer:
    """The time set with Node.set_timer has come."""

    def __new__(cls, due_ns: int) -> Timer: ...
    def __getnewargs__(self) -> tuple[int]: ...
    def __hash__(self) -> int: ...
    @property
    def due_ns(self) -> int:
        """That time."""

@final
class Node:
    """A node of the pipeline: an iterator of its events.

    Iteration ends when the master stops the node, as it does at the end of a run, or when a thread calls leave.
    Iterating and polling raise MasterGone if the master died, Fenced if it dropped this process, and Refused if it
    refused the node after it had joined. Waiting releases the interpreter lock, and Ctrl-C interrupts it.

    A node is used by one thread at a time; only leave may be called by any thread. It belongs to the process that joined:
    in a forked process everything raises Forked, except leave, which does nothing there.
    """

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def number(self) -> int:
        """Its number: the same after a restart under the same name."""
    @property
    def strategy(self) -> Optional[int]:
        """Number of its strategy, which identifies its orders and answers. None for a node of join_node."""
    @property
    def epoch(self) -> int:
        """Number of processes under this name, including this one."""
    @property
    def is_over(self) -> bool:
        """Whether the master has stopped it, or it has left."""
    def poll(self, timeout_s: Optional[float] = 0.0) -> list[_Event]:
        """Returns the available events, or waits for some up to `timeout_s` (None: without limit).

        An empty list means a timeout or, with is_over, the end of the node.
        """
    def order(
        self,
        cause: Optional[Record],
        side: _Side,
        price: int,
        quantity: int,
        *,
        instrument: Optional[int] = None,
        type: _Type = "limit",
    ) -> int:
        """Sends an order and returns its number, which answers refer to.

        `cause` is the Quote or Answer that caused it: its instrument is used unless `instrument` is given, and
        tick-to-order latency is measured from it. `type`: what is left of a "limit" order rests in the book; what is left
        of a "market" order (at any price) or an "ioc" order (immediate or cancel) is cancelled. Raises PublishError,
        Fenced, ValueError, TypeError.
        """
    def cancel(self, instrument: int, number: int, *, cause: Optional[Record] = None) -> None:
        """Asks to cancel what is left of an order: its number is the one that order returned.

        The answer is "cancelled" or "not changed". `cause` is the Quote or Answer that caused it. Raises PublishError,
        Fenced, ValueError, TypeError.
        """
    def replace(
        self,
        instrument: int,
        number: int,
        price: int,
        quantity: int,
        *,
        cause: Optional[Record] = None,
    ) -> None:
        """Asks to change the price and the quantity of an order. `quantity` is the whole one, with what is filled.

        The answer is "replaced" or "not changed". The order keeps its number, and its place in the queue if the price
        stays and the quantity does not grow. `cause` and exceptions as in cancel.
        """
    def open_orders(self) -> list[OpenOrder]:
        """Returns the strategy's open orders, by number, from td's ledger: also those that a previous process has sent.

        The ledger has an order soon after its answer was published. Each call reads the orders of all strategies; use it
        at the start, and follow the answers from then on. Raises LowlatError if the run has no ledger, BusyError (try
        again), ValueError.
        """
    def positions(self) -> dict[int, int]:
        """Returns the strategy's positions that are not 0, by instrument, from td's ledger; a sold one is negative.

        Costs and raises what open_orders does.
        """
    def publish(
        self,
        payload: Buffer,
        *,
        kind: int,
        instrument: int = 0,
        schema: int = 0,
        source: Optional[int] = None,
        trigger_ns: Optional[int] = None,
        cause_sequence: int = 0,
    ) -> int:
        """Appends a record to the node's stream and returns its sequence number.

        `instrument` selects the readers; before the event Begin some may be missing. `kind` is below 0xff00.
        `source` defaults to the node's number, `trigger_ns` to now. Raises PublishError (an instrument that is not below the
        stream's keys, a payload that is too long), NoCredit, Fenced, ValueError, TypeError.
        """
    def set_timer(self, at_ns: Optional[int]) -> None:
        """From this time on (now_ns), a poll or the iteration returns a Timer, once.

        Replaces the time set before; None sets none.
        """
    def fileno(self) -> int:
        """A descriptor that is readable while a poll may find something, for selectors and event loops.

        Each time it is readable, call poll; it is readable now and then without an event, too. It is valid until the node leaves. `async for` over the node uses it.
        """
    def run(self, strategy: Any) -> None:
        """Calls the existing methods of `strategy` until the master stops the node or it has left.

        on_begin(node), on_quote(node, quote), on_answer(node, answer), on_order(node, order), on_record(node, record),
        on_lost(node, lost), on_timer(node, timer), on_command(node, command).
        """
    def leave(self) -> None:
        """Leaves the master. Any thread may call it.

        If another thread waits in the node, its wait ends within 100 ms, and so does its iteration. The node cannot be
        used afterwards. Does nothing in a forked process.
        """
    def __iter__(self) -> Node: ...
    def __next__(self) -> _Event: ...
    def __aiter__(self) -> AsyncIterator[_Event]:
        """Iterates over the events in an asyncio task, which waits by the node's descriptor."""
    def __enter__(self) -> Node: ...
    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None: ...

@final
class Journal:
    """The recording in a directory: an iterator of its records in order of time, with Lost and Damage where some are missing."""

    def __new__(
        cls,
        folder: Union[str, os.PathLike[str]],
        streams: str = "*",
        from_ns: Optional[int] = None,
    ) -> Journal:
        """Opens the recording in a directory.

        `streams` is a stream's name, or a prefix and a star ("orders.*"). `from_ns` skips records written before that
        time. Raises JournalError.
        """
    @property
    def folder(self) -> pathlib.Path:
        """The directory."""
    @property
    def streams(self) -> list[str]:
        """Names of all streams of the recording, selected or not."""
    @property
    def realtime_offset_ns(self) -> Optional[int]:
        """What to add to a record's times for the time of day, ns since 1970 in UTC; None if the recording has no clock."""
    @property
    def symbols(self) -> list[str]:
        """Names of instruments 0, 1, ...; empty if the recording has none."""
    def batches(self, kind: Optional[Literal["quote", "order", "answer"]] = None) -> Batches:
        """Returns the selected records in columns, from the first one on, whatever was iterated.

        With a kind, only its records, with the columns of their payloads; without one all records, with payloads as
        bytes. Raises ValueError.
        """
    def __iter__(self) -> Journal: ...
    def __next__(self) -> Union[Record, Lost, Damage]: ...

@final
class Batches:
    """Records of a recording in columns, for pyarrow, pandas, polars, duckdb and whatever else takes Arrow streams.

    Each use reads the recording again. Columns and units are those of `lowlat journal export` as Parquet.
    """

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """A stream of record batches by Arrow's C interface. A requested schema is ignored."""
    @property
    def missing(self) -> list[Union[Lost, Damage]]:
        """Lost and Damage in place of records in the last use so far; the first 10,000."""
