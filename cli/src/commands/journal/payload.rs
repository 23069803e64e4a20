//! Payloads of the pipeline as columns.

use lowlat_journal::{
    export::{Cell, ColumnKind, ExportColumn, PayloadDecoder, decimal, hex_of, instant},
    read::Record,
};
use lowlat_node::records::{Answer, Order, Origin, Quote, SCHEMA, kind};

/// Decodes quotes, orders and answers of the pipeline, by kind and schema.
#[derive(Debug, Clone, Default)]
pub struct TradeDecoder {
    /// Names of the instruments by number.
    pub symbols: Vec<String>,
}

/// Columns of quotes, orders and answers; columns that a kind lacks stay empty.
const COLUMNS: [ExportColumn; 19] = [
    column("record", ColumnKind::Text),
    column("symbol", ColumnKind::Text),
    column("packet_ns", ColumnKind::Unsigned),
    column("feed_sequence", ColumnKind::Unsigned),
    column("scheduled_ns", ColumnKind::Unsigned),
    column("received_ns", ColumnKind::Unsigned),
    column("bid", ColumnKind::TenThousandths),
    column("ask", ColumnKind::TenThousandths),
    column("last", ColumnKind::TenThousandths),
    column("bid_size", ColumnKind::Unsigned),
    column("ask_size", ColumnKind::Unsigned),
    column("order_number", ColumnKind::Unsigned),
    column("side", ColumnKind::Text),
    column("price", ColumnKind::TenThousandths),
    column("quantity", ColumnKind::Unsigned),
    column("action", ColumnKind::Text),
    column("order_type", ColumnKind::Text),
    column("outcome", ColumnKind::Text),
    column("order_instrument", ColumnKind::Unsigned),
];

const fn column(name: &'static str, kind: ColumnKind) -> ExportColumn {
    ExportColumn { name, kind }
}

/// The schema of the pipeline's streams. A stream without a schema name is checked by kind and
/// version too.
pub const NAME: &str = "lowlat-trade";

impl PayloadDecoder for TradeDecoder {
    fn columns(&self) -> &'static [ExportColumn] {
        &COLUMNS
    }

    fn decode(&self, stream_schema: &str, record: &Record, payload: &[u8], cells: &mut [Cell]) -> bool {
        let stamp = &record.record.stamp;
        if !is_known(stream_schema, record) {
            return false;
        }
        let fields = match stamp.kind {
            kind::QUOTE => Quote::decode(payload).map(|quote| (stamp.instrument, quote_fields(&quote))),
            kind::ORDER => Order::decode(payload).map(|order| (stamp.instrument, order_fields(&order))),
            kind::ANSWER => Answer::decode(payload).map(|answer| (answer.instrument, answer_fields(&answer))),
            _ => return false,
        };
        let Ok((instrument, mut fields)) = fields else { return false };
        let number = usize::try_from(instrument).ok();
        fields.extend(number.and_then(|at| self.symbols.get(at)).map(|symbol| ("symbol", word(symbol))));
        for (name, value) in fields {
            let at = COLUMNS.iter().position(|column| column.name == name);
            if let Some(cell) = at.and_then(|at| cells.get_mut(at)) {
                *cell = value;
            }
        }
        true
    }
}

/// Parses a kind of records: its name in exports, or its number.
pub fn kind(text: &str) -> Result<u16, String> {
    match text {
        "quote" => Ok(kind::QUOTE),
        "order" => Ok(kind::ORDER),
        "answer" => Ok(kind::ANSWER),
        _ => text.parse().map_err(|_| format!("\"{text}\": expected quote, order, answer or a number")),
    }
}

/// True if a record has this version of the pipeline's schema.
fn is_known(stream_schema: &str, record: &Record) -> bool {
    record.record.stamp.schema == SCHEMA && (stream_schema.is_empty() || stream_schema == NAME)
}

/// The instrument of a record. The stamp of the pipeline's answers has the strategy instead.
pub fn instrument(stream_schema: &str, record: &Record, payload: &[u8]) -> u32 {
    let stamp = &record.record.stamp;
    let is_answer = stamp.kind == kind::ANSWER && is_known(stream_schema, record);
    let answer = is_answer.then(|| Answer::decode(payload).ok()).flatten();
    answer.map_or(stamp.instrument, |answer| answer.instrument)
}

type Fields = Vec<(&'static str, Cell)>;

/// Fields of the packet that a quote came in; empty if there was none.
fn origin_fields(origin: &Origin) -> Fields {
    let found = [("packet_ns", origin.packet_ns), ("feed_sequence", origin.sequence)];
    found
        .into_iter()
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| (name, Cell::Unsigned(value)))
        .collect()
}

fn quote_fields(quote: &Quote) -> Fields {
    let fields = vec![
        ("record", word("quote")),
        ("scheduled_ns", Cell::Unsigned(quote.scheduled_ns)),
        ("bid", Cell::TenThousandths(quote.bid)),
        ("ask", Cell::TenThousandths(quote.ask)),
        ("last", Cell::TenThousandths(quote.last)),
        ("bid_size", Cell::Unsigned(quote.bid_size.into())),
        ("ask_size", Cell::Unsigned(quote.ask_size.into())),
    ];
    [fields, origin_fields(&quote.origin)].concat()
}

fn order_fields(order: &Order) -> Fields {
    let fields = vec![
        ("record", word("order")),
        ("scheduled_ns", Cell::Unsigned(order.scheduled_ns)),
        ("received_ns", Cell::Unsigned(order.received_ns)),
        ("order_number", Cell::Unsigned(order.number)),
        ("side", word(order.side.word())),
        ("price", Cell::TenThousandths(order.price)),
        ("quantity", Cell::Unsigned(order.quantity.into())),
        ("action", word(order.action.word())),
        ("order_type", word(order.order_type.word())),
    ];
    [fields, origin_fields(&order.origin)].concat()
}

fn answer_fields(answer: &Answer) -> Fields {
    vec![
        ("record", word("answer")),
        ("received_ns", Cell::Unsigned(answer.received_ns)),
        ("order_number", Cell::Unsigned(answer.order_number)),
        ("side", word(answer.side.word())),
        ("price", Cell::TenThousandths(answer.price)),
        ("quantity", Cell::Unsigned(answer.quantity.into())),
        ("outcome", Cell::Text(answer.outcome.text())),
        ("order_instrument", Cell::Unsigned(answer.instrument.into())),
    ]
}

fn word(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// Names and values of a payload's fields, or its bytes if it cannot be decoded.
pub fn fields(stream_schema: &str, record: &Record, payload: &[u8]) -> Vec<(&'static str, String)> {
    let mut cells = vec![Cell::Empty; COLUMNS.len()];
    if !TradeDecoder::default().decode(stream_schema, record, payload, &mut cells) {
        return vec![("payload", hex_of(payload))];
    }
    let shown = |cell| match cell {
        Cell::Empty => None,
        Cell::Unsigned(value) => Some(value.to_string()),
        Cell::Instant(ns) => instant(ns.into()),
        Cell::TenThousandths(value) => Some(decimal(value)),
        Cell::Text(text) => Some(text),
    };
    let named = COLUMNS.iter().zip(cells).filter_map(|(column, cell)| Some((column.name, shown(cell)?)));
    named.collect()
}
