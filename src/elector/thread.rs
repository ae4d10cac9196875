//! The OS thread on which electors live.

use std::{
    future::pending,
    io,
    sync::{Mutex, PoisonError},
    thread,
};

use tokio::runtime::{Builder, Handle};

/// A runtime of tenure's own, started when it is first needed: one thread per process, shared by all electors.
///
/// An application that blocks all of its workers delays every timer and every socket of its runtime; neither renewals
/// nor their connections may be among them. No user code runs here.
pub(super) fn handle() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    // Nothing can panic while it is locked; a poisoned one holds what it held.
    let mut started = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*started {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("tenure-elector".into())
        .spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(started.insert(handle).clone())
}
