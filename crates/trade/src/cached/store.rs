//! The state in SQLite.

use super::{OrderState, Position, Progress, QuoteState, state::State};
use crate::records::{Quote, Side};
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

/// Version of the tables (`PRAGMA user_version`).
const SCHEMA_VERSION: i64 = 1;
/// Marks the file as ours (`PRAGMA application_id`): "LLC1".
const APPLICATION_ID: i64 = 0x4c4c_4331;
/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(2);

const TABLES: &str = "
create table quotes (instrument integer primary key, sequence integer not null, generated_ns integer not null,
    scheduled_ns integer not null, bid integer not null, ask integer not null, last integer not null,
    bid_size integer not null, ask_size integer not null) strict;
create table orders (run integer not null, strategy integer not null, number integer not null, instrument integer not null,
    side text not null, price integer not null, quantity integer not null, filled integer not null,
    progress text not null, primary key (run, strategy, number)) strict, without rowid;
create table positions (strategy integer not null, instrument integer not null, quantity integer not null,
    cost text not null, primary key (strategy, instrument)) strict, without rowid;
create table runs (run integer primary key) strict;
create table streams (name text primary key, sequence integer not null) strict, without rowid;
";

/// Why the store does not do what it is asked to. What is in memory is as before.
#[derive(Debug, Error)]
pub enum StoreError {
    /// No room.
    #[error("{}: the disk is full; free some of it: what was not saved is saved then", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has it.
    #[error("{}: another process holds the file locked; end it, or give this one another file", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a later lowlat.
    #[error(
        "{}: found tables of version {found}, expected {SCHEMA_VERSION} at most; use the lowlat that wrote it, or another file",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A database of something else.
    #[error("{}: found the database of another program, expected one of lowlat; name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Damaged while it was in use.
    #[error("{}: the file is damaged ({reason}); start cached again: it sets the file aside", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// Something else.
    #[error("{}: {reason}; check the path, its folder and who may write there", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// What was found when a store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A store of before.
    Found,
    /// Nothing; it is new.
    Made,
    /// A damaged file, which was renamed; the store is new. State comes again from the streams as far as they hold it.
    SetAside {
        /// Where the damaged file is now.
        to: PathBuf,
    },
}

/// A store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens a store, or makes it. A file that is damaged is set aside.
    pub fn open(path: &Path) -> Result<(Self, Opened), StoreError> {
        let was_there = path.metadata().is_ok_and(|found| found.len() > 0);
        match Self::try_open(path, OpenFlags::default()) {
            Ok(store) => Ok((store, if was_there { Opened::Found } else { Opened::Made })),
            Err(StoreError::Corrupt { .. }) => {
                let to = set_aside(path)?;
                Ok((Self::try_open(path, OpenFlags::default())?, Opened::SetAside { to }))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a store that another process writes, only to read what it had saved.
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
                return Err(StoreError::Version { path: path.to_owned(), found });
            }
            (0, 0, 0) if !flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) => store.make().map_err(wrong)?,
            _ => return Err(StoreError::Foreign { path: path.to_owned() }),
        }
        let verdict: String =
            store.connection.query_row("pragma quick_check(1)", [], |row| row.get(0)).map_err(wrong)?;
        if verdict != "ok" {
            return Err(StoreError::Corrupt { path: path.to_owned(), reason: verdict });
        }
        Ok(store)
    }

    fn make(&self) -> rusqlite::Result<()> {
        // Readers go on while a batch is written, and a batch costs one write of the log.
        self.connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        self.connection.execute_batch(&format!(
            "begin immediate; {TABLES} pragma application_id = {APPLICATION_ID}; \
             pragma user_version = {SCHEMA_VERSION}; commit;"
        ))
    }

    /// Saves what changed, as one transaction: all of it or nothing. A process that dies loses no batch that was saved; a
    /// host that loses its power may lose the last ones, and never tears one.
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
                let Quote { scheduled_ns, bid, ask, last, bid_size, ask_size } = quote;
                let [sequence, generated_ns, scheduled_ns] =
                    [sequence, generated_ns, scheduled_ns].map(|value| value.cast_signed());
                quotes.execute(params![
                    instrument,
                    sequence,
                    generated_ns,
                    scheduled_ns,
                    bid,
                    ask,
                    last,
                    bid_size,
                    ask_size
                ])?;
            }
            let mut orders =
                batch.prepare_cached("insert or replace into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
            for ((strategy, number), order) in changed(&state.changed.orders, &state.orders) {
                let OrderState { instrument, side, price, quantity, filled, progress } = order;
                orders.execute(params![
                    state.run,
                    strategy,
                    number.cast_signed(),
                    instrument,
                    side_word(*side),
                    price,
                    quantity,
                    filled,
                    progress_word(*progress)
                ])?;
            }
            let mut positions =
                batch.prepare_cached("insert or replace into positions values (?, ?, ?, ?)")?;
            for ((strategy, instrument), position) in changed(&state.changed.positions, &state.positions) {
                let Position { quantity, cost } = position;
                positions.execute(params![strategy, instrument, quantity, cost.to_string()])?;
            }
            batch.prepare_cached("insert or ignore into runs values (?)")?.execute([state.run])?;
            batch.prepare_cached("delete from streams")?.execute([])?;
            let mut streams = batch.prepare_cached("insert or replace into streams values (?, ?)")?;
            for (name, sequence) in &state.streams {
                streams.execute(params![name, sequence.cast_signed()])?;
            }
        }
        batch.commit()
    }

    /// The state that was saved last. Of orders those of the last run that are open.
    pub fn load(&mut self) -> Result<State, StoreError> {
        self.read("and (progress = 'sent' or (progress = 'accepted' and filled < quantity))")
    }

    /// The same with all orders of the last run.
    pub fn load_all(&mut self) -> Result<State, StoreError> {
        self.read("")
    }

    fn read(&mut self, which_orders: &str) -> Result<State, StoreError> {
        read(&mut self.connection, which_orders).map_err(|error| wrong(&self.path, &error))
    }

    /// The connection, for tests that make it fail.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

fn read(connection: &mut Connection, which_orders: &str) -> rusqlite::Result<State> {
    let mut state = State::default();
    // One transaction, so that all tables are of one moment.
    let moment = connection.transaction()?;
    let mut statement = moment.prepare("select * from quotes")?;
    let quotes = statement.query_map([], |row| {
        let unsigned = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let quote = Quote {
            scheduled_ns: unsigned(3)?,
            bid: row.get(4)?,
            ask: row.get(5)?,
            last: row.get(6)?,
            bid_size: row.get(7)?,
            ask_size: row.get(8)?,
        };
        Ok((row.get(0)?, QuoteState { sequence: unsigned(1)?, generated_ns: unsigned(2)?, quote }))
    })?;
    state.quotes = quotes.collect::<rusqlite::Result<_>>()?;
    let run = moment.query_row("select max(run) from runs", [], |row| row.get::<_, Option<i64>>(0))?;
    state.run = run.unwrap_or(0);
    let columns = "strategy, number, instrument, side, price, quantity, filled, progress";
    let mut statement =
        moment.prepare(&format!("select {columns} from orders where run = ? {which_orders}"))?;
    let orders = statement.query_map([state.run], |row| {
        let (side, progress): (String, String) = (row.get(3)?, row.get(7)?);
        let order = OrderState {
            instrument: row.get(2)?,
            side: if side == side_word(Side::Sell) { Side::Sell } else { Side::Buy },
            price: row.get(4)?,
            quantity: row.get(5)?,
            filled: row.get(6)?,
            progress: [Progress::Accepted, Progress::Rejected]
                .into_iter()
                .find(|known| progress_word(*known) == progress)
                .unwrap_or(Progress::Sent),
        };
        Ok(((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()), order))
    })?;
    state.orders = orders.collect::<rusqlite::Result<_>>()?;
    let mut statement = moment.prepare("select * from positions")?;
    let positions = statement.query_map([], |row| {
        let cost: String = row.get(3)?;
        let cost = cost.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
        })?;
        Ok(((row.get(0)?, row.get(1)?), Position { quantity: row.get(2)?, cost }))
    })?;
    state.positions = positions.collect::<rusqlite::Result<_>>()?;
    let mut statement = moment.prepare("select * from streams")?;
    let streams = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    state.streams = streams.collect::<rusqlite::Result<_>>()?;
    Ok(state)
}

/// The changed ones of all.
fn changed<'a, K: Ord, V>(
    keys: &'a std::collections::BTreeSet<K>,
    all: &'a std::collections::BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    keys.iter().filter_map(|key| all.get_key_value(key))
}

fn side_word(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

fn progress_word(progress: Progress) -> &'static str {
    match progress {
        Progress::Sent => "sent",
        Progress::Accepted => "accepted",
        Progress::Rejected => "rejected",
    }
}

/// Renames a damaged file, with what SQLite keeps beside it, to the first free name.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let beside = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let free = (1..1000).map(|number| beside(path, &format!(".damaged-{number}"))).find(|to| !to.exists());
    let other = |reason: String| StoreError::Other { path: path.to_owned(), reason };
    let to = free.ok_or_else(|| other("1,000 damaged files stand beside it".to_owned()))?;
    std::fs::rename(path, &to).map_err(|error| other(format!("cannot be renamed: {error}")))?;
    for suffix in ["-wal", "-shm"] {
        std::fs::rename(beside(path, suffix), beside(&to, suffix)).ok();
    }
    Ok(to)
}

fn wrong(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, reason: error.to_string() }
        }
        _ => StoreError::Other { path, reason: error.to_string() },
    }
}
