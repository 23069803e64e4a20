//! Stores the state in SQLite.

use lowlat_node::{
    records::{Quote, Side},
    state::{OrderState, Position, Progress, QuoteState, State},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row, Transaction};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

/// Version of the tables (`PRAGMA user_version`).
const SCHEMA_VERSION: i64 = 2;
/// Identifies the file as ours (`PRAGMA application_id`): "LLC1".
const APPLICATION_ID: i64 = 0x4c4c_4331;
/// Order numbers of a strategy, the last ones, and runs whose finished orders are kept.
const NUMBERS_KEPT: u64 = 1000;
const RUNS_KEPT: i64 = 10;
/// Longest wait for another process's lock on the file.
const BUSY: Duration = Duration::from_secs(2);

const TABLES: &str = "
create table quotes (instrument integer primary key, sequence integer not null, generated_ns integer not null,
    scheduled_ns integer not null, bid integer not null, ask integer not null, last integer not null,
    bid_size integer not null, ask_size integer not null) strict;
create table orders (run integer not null, strategy integer not null, number integer not null, instrument integer not null,
    side text not null, price integer not null, quantity integer not null, filled integer not null,
    progress text not null, is_seen integer not null, primary key (run, strategy, number)) strict, without rowid;
create table positions (strategy text not null, instrument integer not null, quantity integer not null,
    cost text not null, primary key (strategy, instrument)) strict, without rowid;
create table strategies (run integer not null, strategy integer not null, name text not null,
    primary key (run, strategy)) strict, without rowid;
create table runs (run integer primary key) strict;
create table streams (name text primary key, sequence integer not null) strict, without rowid;
";

/// Error of the store. The state in memory is unchanged.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("cannot save to {}: the disk is full\nhint: free space; unsaved state is then saved", path.display())]
    Full { path: PathBuf },
    /// Another process has locked the file.
    #[error("cannot use {}: another process has locked it\nhint: end that process, or name another file", path.display())]
    Locked { path: PathBuf },
    /// It was damaged while it was in use.
    #[error("cannot use {}: it is damaged ({reason})\nhint: restart cached, which sets the file aside", path.display())]
    Corrupt { path: PathBuf, reason: String },
    /// Something else that its words explain.
    #[error("{0}")]
    Other(String),
}

#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens or creates a store. A damaged file is renamed, and its new path returned: the store is then new, and state
    /// is restored from the streams, as far as they still have it.
    pub fn open(path: &Path) -> Result<(Self, Option<PathBuf>), StoreError> {
        match Self::try_open(path, OpenFlags::default()) {
            Ok(store) => Ok((store, None)),
            Err(StoreError::Corrupt { .. }) => {
                let to = set_aside(path)?;
                Ok((Self::try_open(path, OpenFlags::default())?, Some(to)))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a store that another process writes, read-only.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        Self::try_open(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }

    fn try_open(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let wrong = |error| wrong(path, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
        connection.busy_timeout(BUSY).map_err(wrong)?;
        let store = Self { path: path.to_owned(), connection };
        let pragma = |name| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let version = pragma("user_version").map_err(wrong)?;
        let application = pragma("application_id").map_err(wrong)?;
        let tables: i64 = store
            .connection
            .query_row("select count(*) from sqlite_schema", [], |row| row.get(0))
            .map_err(wrong)?;
        match (application, version, tables) {
            (APPLICATION_ID, SCHEMA_VERSION, _) => {}
            (APPLICATION_ID, found, _) => {
                return Err(StoreError::Other(format!(
                    "cannot read {}: found tables of version {found}, expected {SCHEMA_VERSION}\nhint: use the lowlat version that wrote it, or another file",
                    path.display()
                )));
            }
            (0, 0, 0) if !flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) => store.make().map_err(wrong)?,
            _ => {
                return Err(StoreError::Other(format!(
                    "cannot use {}: it is the database of another program\nhint: name another file",
                    path.display()
                )));
            }
        }
        let verdict: String =
            store.connection.query_row("pragma quick_check(1)", [], |row| row.get(0)).map_err(wrong)?;
        if verdict != "ok" {
            return Err(StoreError::Corrupt { path: path.to_owned(), reason: verdict });
        }
        Ok(store)
    }

    fn make(&self) -> rusqlite::Result<()> {
        // Readers can continue while a batch is written, and a batch costs one write of the log.
        self.connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        self.connection.execute_batch(&format!(
            "begin immediate; {TABLES} pragma application_id = {APPLICATION_ID}; \
             pragma user_version = {SCHEMA_VERSION}; commit;"
        ))
    }

    /// Saves all changes in one transaction. A process that dies loses no saved batch; a host that loses power
    /// may lose the last ones, but none is torn.
    pub fn save(&mut self, state: &State) -> Result<(), StoreError> {
        self.write(state).map_err(|error| wrong(&self.path, &error))
    }

    fn write(&mut self, state: &State) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "synchronous", "normal")?;
        let batch = self.connection.transaction()?;
        {
            let mut quotes =
                batch.prepare_cached("insert or replace into quotes values (?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
            for (instrument, state) in changed(&state.changed.quotes, &state.quotes) {
                let QuoteState { sequence, generated_ns, quote } = state;
                let Quote { scheduled_ns, bid, ask, last, bid_size, ask_size, .. } = quote;
                let [sequence, generated, scheduled] =
                    [sequence, generated_ns, scheduled_ns].map(|value| value.cast_signed());
                quotes.execute((
                    instrument, sequence, generated, scheduled, bid, ask, last, bid_size, ask_size,
                ))?;
            }
            let mut orders = batch
                .prepare_cached("insert or replace into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
            for ((strategy, number), order) in changed(&state.changed.orders, &state.orders) {
                let OrderState { instrument, side, price, quantity, filled, progress, is_seen } = order;
                let (number, side, progress) = (number.cast_signed(), side.word(), progress_word(*progress));
                orders.execute((
                    state.run, strategy, number, instrument, side, price, quantity, filled, progress, is_seen,
                ))?;
            }
            forget(&batch, state)?;
            let mut positions =
                batch.prepare_cached("insert or replace into positions values (?, ?, ?, ?)")?;
            let mut moved =
                batch.prepare_cached("delete from positions where strategy = ? and instrument = ?")?;
            for place @ (strategy, instrument) in &state.changed.positions {
                match state.positions.get(place) {
                    Some(Position { quantity, cost }) => {
                        positions.execute((strategy, instrument, quantity, cost.to_string()))?
                    }
                    None => moved.execute((strategy, instrument))?,
                };
            }
            let mut names = batch.prepare_cached("insert or replace into strategies values (?, ?, ?)")?;
            for (strategy, name) in changed(&state.changed.names, &state.names) {
                names.execute((state.run, strategy, name))?;
            }
            batch.prepare_cached("insert or ignore into runs values (?)")?.execute([state.run])?;
            batch.prepare_cached("delete from streams")?.execute([])?;
            let mut streams = batch.prepare_cached("insert or replace into streams values (?, ?)")?;
            for (name, sequence) in &state.streams {
                streams.execute((name, sequence.cast_signed()))?;
            }
        }
        batch.commit()
    }

    /// The last saved state. It includes only those orders of the last run that may still change.
    pub fn load(&mut self) -> Result<State, StoreError> {
        read(&mut self.connection).map_err(|error| wrong(&self.path, &error))
    }

    /// The connection, for tests that make it fail.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Deletes finished orders that are neither of the last runs nor among the last of their strategy.
fn forget(batch: &Transaction<'_>, state: &State) -> rusqlite::Result<()> {
    batch.prepare_cached("delete from orders where run <= ?")?.execute([state.run - RUNS_KEPT])?;
    let mut old = batch.prepare_cached(
        "delete from orders where run = ? and strategy = ? and number <= ? and is_seen \
         and (progress in ('rejected', 'cancelled') or (progress = 'accepted' and filled >= quantity))",
    )?;
    // In the order of the numbers: the last one of a strategy counts.
    let last: BTreeMap<u32, u64> = state.changed.orders.iter().copied().collect();
    for (strategy, number) in last.into_iter().filter(|(_, number)| *number > NUMBERS_KEPT) {
        old.execute((state.run, strategy, (number - NUMBERS_KEPT).cast_signed()))?;
    }
    Ok(())
}

fn read(connection: &mut Connection) -> rusqlite::Result<State> {
    let mut state = State::default();
    // One transaction, so that all tables are from the same moment.
    let moment = connection.transaction()?;
    state.quotes = rows(&moment, "select * from quotes", [], |row| {
        let unsigned = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let quote = Quote {
            scheduled_ns: unsigned(3)?,
            bid: row.get(4)?,
            ask: row.get(5)?,
            last: row.get(6)?,
            bid_size: row.get(7)?,
            ask_size: row.get(8)?,
            ..Quote::default()
        };
        Ok((row.get(0)?, QuoteState { sequence: unsigned(1)?, generated_ns: unsigned(2)?, quote }))
    })?;
    let run = moment.query_row("select max(run) from runs", [], |row| row.get::<_, Option<i64>>(0))?;
    state.run = run.unwrap_or(0);
    let open = "select strategy, number, instrument, side, price, quantity, filled, progress, is_seen from orders where run = ? \
                and (progress in ('sent', 'unknown') or (progress = 'accepted' and filled < quantity) or is_seen = 0)";
    state.orders = rows(&moment, open, [state.run], |row| {
        let (side, progress): (String, String) = (row.get(3)?, row.get(7)?);
        let order = OrderState {
            instrument: row.get(2)?,
            side: if side == Side::Sell.word() { Side::Sell } else { Side::Buy },
            price: row.get(4)?,
            quantity: row.get(5)?,
            filled: row.get(6)?,
            progress: [Progress::Accepted, Progress::Rejected, Progress::Cancelled, Progress::Unknown]
                .into_iter()
                .find(|known| progress_word(*known) == progress)
                .unwrap_or(Progress::Sent),
            is_seen: row.get(8)?,
        };
        Ok(((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()), order))
    })?;
    state.positions = rows(&moment, "select * from positions", [], |row| {
        let cost: String = row.get(3)?;
        let cost = cost.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
        })?;
        Ok(((row.get(0)?, row.get(1)?), Position { quantity: row.get(2)?, cost }))
    })?;
    let names = "select strategy, name from strategies where run = ?";
    state.names = rows(&moment, names, [state.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    state.streams = rows(&moment, "select * from streams", [], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
    })?;
    Ok(state)
}

/// The rows of a query, each made into an entry.
fn rows<K: Ord, V>(
    moment: &Transaction<'_>,
    query: &str,
    parameters: impl Params,
    entry: impl FnMut(&Row<'_>) -> rusqlite::Result<(K, V)>,
) -> rusqlite::Result<BTreeMap<K, V>> {
    moment.prepare(query)?.query_map(parameters, entry)?.collect()
}

/// The changed entries of all.
fn changed<'a, K: Ord, V>(
    keys: &'a BTreeSet<K>,
    all: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    keys.iter().filter_map(|key| all.get_key_value(key))
}

fn progress_word(progress: Progress) -> &'static str {
    match progress {
        Progress::Sent => "sent",
        Progress::Accepted => "accepted",
        Progress::Rejected => "rejected",
        Progress::Cancelled => "cancelled",
        Progress::Unknown => "unknown",
    }
}

/// Renames a damaged file and SQLite's files beside it to the first free name.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let beside = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let free = (1..1000).map(|number| beside(path, &format!(".damaged-{number}"))).find(|to| !to.exists());
    let to = free.ok_or_else(|| unusable(path, "1,000 damaged files already exist beside it"))?;
    std::fs::rename(path, &to).map_err(|error| unusable(path, &format!("cannot be renamed: {error}")))?;
    for suffix in ["-wal", "-shm"] {
        std::fs::rename(beside(path, suffix), beside(&to, suffix)).ok();
    }
    Ok(to)
}

fn unusable(path: &Path, reason: &str) -> StoreError {
    StoreError::Other(format!(
        "cannot use {}: {reason}\nhint: check the path and the permissions of its directory",
        path.display()
    ))
}

fn wrong(at: &Path, error: &rusqlite::Error) -> StoreError {
    let path = at.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, reason: error.to_string() }
        }
        _ => unusable(at, &error.to_string()),
    }
}
