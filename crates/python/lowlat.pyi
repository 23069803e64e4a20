"""Nodes of a lowlat pipeline, and recordings.

    with lowlat.join(socket, "mine", instruments=[3]) as node:
        for event in node:
            if isinstance(event, lowlat.Quote):
                node.order(event, "buy", event.ask, 1)

Prices are whole numbers of 1/PRICE_SCALE. Times are nanoseconds of CLOCK_MONOTONIC. One thread uses a node at a time.
"""

import os
import pathlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Optional, Union, final

__version__: str
PRICE_SCALE: int
"""So many make one of the instrument's currency."""

class LowlatError(Exception):
    """What went wrong, and what to do next."""

class JoinError(LowlatError):
    """The master could not be joined."""

class PublishError(LowlatError):
    """A record or an order was not published."""

class Fenced(LowlatError):
    """The master gave this process up, and another may have its place: start again."""

class Refused(LowlatError):
    """The master refused the node after it had joined."""

class MasterGone(LowlatError):
    """The master died without stopping its nodes, and they stop with it."""

class Forked(LowlatError):
    """The node belongs to the process that this one was forked from: join in this process."""

class BusyError(LowlatError):
    """Another thread uses the node or the journal at this moment."""

class JournalError(LowlatError):
    """A recording cannot be read."""

def now_ns() -> int:
    """Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC."""

def socket_of(name: str) -> pathlib.Path:
    """The socket of the master of that name, where it usually is."""

def join(
    socket: Union[str, os.PathLike[str]],
    name: str,
    *,
    instruments: Sequence[int],
    number: Optional[int] = None,
    wait: Literal["parked", "fast", "adaptive"] = "parked",
    capacity_bytes: int = 1048576,
) -> Node:
    """Joins the master that listens at `socket` as a strategy.

    The master gives it a number that no other strategy has, and the same one when it restarts under its name. `number`
    asks for one below 1024, and is refused when another strategy has it.

    The node reads the quotes of `instruments` and the answers to its orders, and writes "orders.NAME". `wait`: sleep until
    woken, spin, or spin for as long as that pays. Raises JoinError, ValueError.
    """

def join_node(
    socket: Union[str, os.PathLike[str]],
    name: str,
    *,
    role: str = "node",
    writes: Optional[str] = None,
    keys: int = 1,
    reads: Sequence[tuple[str, Union[None, Literal["own"], Sequence[int]]]] = (),
    wait: Literal["parked", "fast", "adaptive"] = "parked",
    capacity_bytes: int = 1048576,
) -> Node:
    """Joins the master that listens at `socket` as any node.

    `writes` names the stream that it writes, whose instruments are below `keys`. `reads` are pairs of streams ("md",
    "orders.*") and what of them: None for all, a list of instruments, or "own" for what has the node's number.
    Raises JoinError, ValueError.
    """

class Record:
    """A record of a stream: what stands beside its payload, and that."""

    @property
    def stream(self) -> str:
        """The stream: "md", "td", "orders.NAME", ..."""
    @property
    def sequence(self) -> int:
        """Its number in the stream."""
    @property
    def kind(self) -> int:
        """What the payload is: 1 a quote, 2 an order, 3 an answer, or a kind of somebody's own."""
    @property
    def schema(self) -> int:
        """Version of the payload's shape."""
    @property
    def instrument(self) -> int:
        """The instrument, by which readers are chosen."""
    @property
    def source(self) -> int:
        """Who made it: of an order the strategy's number, else the node's."""
    @property
    def generated_ns(self) -> int:
        """When it was written."""
    @property
    def trigger_ns(self) -> int:
        """When the record that caused it was written."""
    @property
    def cause_sequence(self) -> int:
        """The sequence of the record that caused it; 0 without one."""
    @property
    def received_ns(self) -> Optional[int]:
        """When this process had read it; None in a recording."""
    @property
    def payload(self) -> bytes:
        """Its payload."""

@final
class Quote(Record):
    """Best bid and offer of an instrument. Prices in 1/PRICE_SCALE."""

    @property
    def scheduled_ns(self) -> int:
        """When it was due by its schedule."""
    @property
    def bid(self) -> int:
        """Best bid."""
    @property
    def ask(self) -> int:
        """Best offer."""
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
    """An order of a strategy. Its source is the strategy's number."""

    @property
    def number(self) -> int:
        """The strategy's number for it, never used twice."""
    @property
    def scheduled_ns(self) -> int:
        """When the quote that caused it was due."""
    @property
    def quote_received_ns(self) -> int:
        """When the strategy had read that quote."""
    @property
    def price(self) -> int:
        """Limit price in 1/PRICE_SCALE."""
    @property
    def quantity(self) -> int:
        """How many."""
    @property
    def side(self) -> Literal["buy", "sell"]:
        """Which way it goes."""

@final
class Answer(Record):
    """td's word on an order. Each order gets exactly one that is accepted or rejected; fills follow."""

    @property
    def order_number(self) -> int:
        """The order's number."""
    @property
    def outcome(self) -> Literal["accepted", "rejected", "filled"]:
        """What became of it."""
    @property
    def reason(self) -> Optional[str]:
        """Why it is rejected; else None."""
    @property
    def order_received_ns(self) -> int:
        """When td had read the order."""
    @property
    def price(self) -> int:
        """Price of the fill; of other answers that of the order."""
    @property
    def quantity(self) -> int:
        """Quantity of the fill; of other answers that of the order."""
    @property
    def instrument(self) -> int:
        """The order's instrument."""
    @property
    def side(self) -> Literal["buy", "sell"]:
        """The order's side."""
    @property
    def strategy(self) -> int:
        """The number of the strategy that it is for."""

@final
class Lost:
    """Records of a stream that are lost: the node was too slow, or, of a recording, they are not in it."""

    @property
    def stream(self) -> str:
        """The stream."""
    @property
    def count(self) -> int:
        """How many."""
    @property
    def why(self) -> Optional[str]:
        """Why they are not in the recording; else None."""

@final
class Damage:
    """What is damaged in a recording. Reading goes on behind it."""

    @property
    def text(self) -> str:
        """File, offset, and what is wrong."""

@final
class Command:
    """A word of the master's user."""

    @property
    def text(self) -> str:
        """The word."""

@final
class Begin:
    """All nodes are there: publishing may begin."""

@final
class Node:
    """A node of the pipeline: an iterator of its events.

    Iteration ends when the master stops the node, as it does at the end of a run, and when a thread calls leave.
    Iterating and polling raise MasterGone when the master died, Fenced when it gave this process up, and Refused when it
    refused the node after it had joined. Waiting releases the interpreter lock, and Ctrl-C ends it.

    A node is used by one thread at a time; only leave may be called by any. It belongs to the process that joined: in a
    process forked from it everything raises Forked, but leaving, which does nothing there.
    """

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def number(self) -> int:
        """Its number: the same over restarts of the same name."""
    @property
    def strategy(self) -> Optional[int]:
        """The number of its strategy, by which its orders and answers are known. None for a node of join_node."""
    @property
    def epoch(self) -> int:
        """How many processes of this name there were, this one counted."""
    @property
    def is_over(self) -> bool:
        """Whether the master has stopped it, or it has left."""
    def poll(self, timeout_s: Optional[float] = 0.0) -> list[Union[Record, Lost, Command, Begin]]:
        """The events that are there; when there are none, those that come within `timeout_s` (None: without end).

        An empty list says that the time is over, or, with is_over, that the node is.
        """
    def order(
        self,
        cause: Optional[Record],
        side: Literal["buy", "sell"],
        price: int,
        quantity: int,
        *,
        instrument: Optional[int] = None,
    ) -> int:
        """Sends an order and gives back its number, by which answers name it.

        `cause` is the Quote or Answer that it is sent because of: it has that one's instrument unless `instrument` says
        otherwise, and tick-to-order latency counts from it. Raises PublishError, Fenced, ValueError.
        """
    def publish(
        self,
        payload: bytes,
        *,
        kind: int,
        instrument: int = 0,
        schema: int = 0,
        source: Optional[int] = None,
        trigger_ns: Optional[int] = None,
        cause_sequence: int = 0,
    ) -> int:
        """Appends a record to the node's stream and gives back its number there.

        Readers are chosen by `instrument`; before the event Begin not all of them may be there. `kind` is below 0xff00.
        `source` is the node's number unless given, `trigger_ns` now. Raises PublishError, Fenced.
        """
    def run(self, strategy: Any) -> None:
        """Calls the methods that `strategy` has, until the master stops the node or it has left.

        on_begin(node), on_quote(node, quote), on_answer(node, answer), on_order(node, order), on_record(node, record),
        on_lost(node, lost), on_command(node, command).
        """
    def leave(self) -> None:
        """Leaves the master. Any thread may call it.

        While another thread waits in the node, its wait ends within 100 ms, and so does its iteration. The node can not be
        used after it. In a process forked from the one that joined it does nothing.
        """
    def __iter__(self) -> Node: ...
    def __next__(self) -> Union[Record, Lost, Command, Begin]: ...
    def __enter__(self) -> Node: ...
    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None: ...

@final
class Journal:
    """The recording in a folder: an iterator of its records by time, with Lost and Damage where some are missing."""

    def __new__(
        cls,
        folder: Union[str, os.PathLike[str]],
        streams: str = "*",
        from_ns: Optional[int] = None,
    ) -> Journal:
        """Opens the recording in a folder.

        `streams` is a stream's name, or the beginning of some and a star ("orders.*"). With `from_ns` it begins with the
        records that were written at that time or later. Raises JournalError.
        """
    @property
    def folder(self) -> pathlib.Path:
        """The folder."""
    @property
    def streams(self) -> list[str]:
        """The names of the recording's streams, chosen or not."""
    def __iter__(self) -> Journal: ...
    def __next__(self) -> Union[Record, Lost, Damage]: ...
