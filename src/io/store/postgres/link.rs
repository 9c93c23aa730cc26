//! The connection: made where there is none, and spoken through from a thread that waits.
//!
//! Its reading and writing have a thread and a runtime of their own, so that the store can be called from anywhere, even
//! from within another runtime.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use crate::io::store::BadRow;

/// How each connection is set up: nobody waits long for another, or keeps others waiting who has gone away.
const SETTINGS: &str = "SET search_path = persxfer; SET lock_timeout = '20s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET default_transaction_isolation = 'read committed'; \
     SET client_encoding = 'UTF8'";

/// What goes wrong within a call.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection could be made.
    Connect(String),
    /// The database.
    Sql(Error),
    /// What stands in it.
    Row(BadRow),
    /// Something else was written meanwhile: the same once more.
    Again,
    /// The connection was lost while it was committed.
    Unknown,
    /// This machine's clock is not the server's.
    Clock(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<BadRow> for Fault {
    fn from(bad: BadRow) -> Self {
        Self::Row(bad)
    }
}

impl Fault {
    /// Is the connection gone?
    pub(super) fn is_lost(&self) -> bool {
        let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT];
        match self {
            Self::Sql(error) => match error.code() {
                Some(code) => ended.contains(code),
                None => error.is_closed() || std::error::Error::source(error).is_some_and(|e| e.is::<std::io::Error>()),
            },
            _ => false,
        }
    }

    /// May the same succeed now?
    pub(super) fn is_passing(&self) -> bool {
        let passing = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        match self {
            Self::Again => true,
            Self::Sql(error) => error.code().is_some_and(|code| passing.contains(code)),
            _ => false,
        }
    }
}

/// What the server or the system said, all of it.
pub(super) fn said(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        let more = db.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{more}", db.message());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// A connection.
pub(super) struct Link {
    client: Option<Client>,
    statements: HashMap<String, Statement>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Connects.
    pub(super) fn new(config: &Config) -> Result<Self, Fault> {
        let (tell, told) = mpsc::sync_channel(1);
        let config = config.clone();
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(e) => return drop(tell.send(Err(Fault::Connect(e.to_string())))),
            };
            runtime.block_on(async {
                match config.connect(NoTls).await {
                    Ok((client, connection)) => {
                        if tell.send(Ok(client)).is_ok() {
                            // How it ends is told to whoever asks next.
                            let _ = connection.await;
                        }
                    }
                    Err(e) => drop(tell.send(Err(Fault::Connect(said(&e))))),
                }
            });
        };
        let system = |e: std::io::Error| Fault::Connect(e.to_string());
        let thread = thread::Builder::new().name("persxfer-ledger".to_owned()).spawn(work).map_err(system)?;
        let client = told.recv().map_err(|e| Fault::Connect(e.to_string()))??;
        let link = Self { client: Some(client), statements: HashMap::new(), thread: Some(thread) };
        link.batch(SETTINGS)?;
        Ok(link)
    }

    /// Is it known to be gone?
    pub(super) fn is_closed(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_closed)
    }

    fn client(&self) -> Result<&Client, Fault> {
        self.client.as_ref().ok_or_else(|| Fault::Connect("there is no connection".to_owned()))
    }

    /// Statements without parameters or answers.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(wait(self.client()?.batch_execute(sql))?)
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, Fault> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = wait(self.client()?.prepare(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The rows that a statement answers.
    pub(super) fn query(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepared(sql)?;
        Ok(wait(self.client()?.query(&statement, params))?)
    }

    /// How many rows a statement changed.
    pub(super) fn execute(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, Fault> {
        let statement = self.prepared(sql)?;
        Ok(wait(self.client()?.execute(&statement, params))?)
    }

    /// The one number that a statement answers.
    pub(super) fn number(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Option<i64>, Fault> {
        match self.query(sql, params)?.first() {
            Some(row) => Ok(row.try_get(0)?),
            None => Ok(None),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The connection says goodbye once nobody uses it any more.
        self.statements.clear();
        self.client = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for what the connection's own thread brings about.
fn wait<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
