"""Batches of a recording, by each library that is installed. Arguments: RECORDING ROUNDS

The recording has a quote, an order and an answer per round, and no record of every tenth. Prints the names of libraries
that are not installed.
"""

import importlib
import sys

import lowlat

folder, rounds = sys.argv[1], int(sys.argv[2])
kept = [number for number in range(rounds) if number % 10 != 9]
journal = lowlat.Journal(folder)
COMMON = [
    "stream", "epoch", "position_bytes", "sequence", "kind", "schema", "instrument", "source", "generated_ns",
    "generated_at", "trigger_ns", "cause_sequence",
]


def by_pyarrow(pyarrow):
    quotes = lowlat.Journal(folder, "md").batches("quote")
    table = pyarrow.table(quotes)
    assert table.column_names == COMMON + [
        "scheduled_ns", "bid", "ask", "last", "bid_size", "ask_size", "packet_ns", "feed_sequence",
    ], table.column_names
    columns = table.to_pydict()
    assert columns["sequence"] == kept
    assert set(columns["stream"]) == {"md"} and set(columns["kind"]) == {1} and set(columns["bid_size"]) == {7}
    assert columns["bid"] == [(number - 5) / 1e4 for number in kept]
    assert columns["packet_ns"] == [number % 2 or None for number in kept]
    assert columns["generated_ns"] == [1000 * number + 1 for number in kept]
    offset = journal.realtime_offset_ns
    assert table["generated_at"].cast("int64").to_pylist() == [1000 * number + 1 + offset for number in kept]
    # The last one is no gap, because nothing follows.
    missing = quotes.missing
    assert missing[0].why and set(missing) == {lowlat.Lost("md", 1, missing[0].why)}, missing[0]
    assert len(missing) == rounds // 10 - 1, len(missing)

    answers = pyarrow.table(lowlat.Journal(folder, "td", from_ns=1000 * kept[100]).batches("answer")).to_pydict()
    assert answers["order_number"] == kept[100:]
    assert answers["outcome"] == ["rejected: over limit" if number % 3 == 0 else "filled" for number in kept[100:]]
    assert set(answers["side"]) == {"sell"} and set(answers["order_instrument"]) == {4}

    # Batch by batch, and in the order of the iteration.
    reader = pyarrow.RecordBatchReader.from_stream(journal.batches())
    assert reader.schema.names == COMMON + ["payload"]
    batches = list(reader)
    assert len(batches) > 2 and sum(batch.num_rows for batch in batches) == 3 * len(kept)
    records = (event for event in lowlat.Journal(folder) if isinstance(event, lowlat.Record))
    for row, record in zip(pyarrow.Table.from_batches(batches[-1:]).to_pylist()[-9:], list(records)[-9:]):
        assert (row["stream"], row["sequence"], row["payload"]) == (record.stream, record.sequence, record.payload)


def by_pandas(pandas):
    frame = pandas.DataFrame.from_arrow(journal.batches("order"))
    assert list(frame.order_number) == kept and set(frame.order_type) == {"limit"}
    assert str(frame.generated_at.dtype) == "datetime64[ns, UTC]"


def by_polars(polars):
    frame = polars.DataFrame(journal.batches("answer"))
    assert frame["sequence"].to_list() == kept
    assert dict(frame["outcome"].value_counts().iter_rows())["filled"] == sum(number % 3 != 0 for number in kept)


def by_duckdb(duckdb):
    quotes = journal.batches("quote")
    assert duckdb.sql("select count(*), max(bid) from quotes").fetchall() == [(len(kept), (kept[-1] - 5) / 1e4)]


for use in by_pyarrow, by_pandas, by_polars, by_duckdb:
    library = use.__name__[3:]
    try:
        module = importlib.import_module(library)
    except ImportError:
        print(library)
    else:
        use(module)

try:
    journal.batches("quotes")
except ValueError as error:
    assert "expected" in str(error), error
else:
    raise AssertionError("an unknown kind is accepted")
