//! Workers, tasks and heartbeats with Lubdub: a [`Worker`] runs handlers for the tasks of a queue, a [`Client`] creates tasks and tracks
//! attempts that were dispatched to this process. All of it uses threads that block; heartbeats go out from threads that no handler delays.
//!
//! ```no_run
//! # fn send(_: String) -> Result<u32, std::io::Error> { Ok(1) }
//! let worker = lubdub::Worker::builder("mail") // connects to LUBDUB_URL with LUBDUB_TOKEN
//!     .concurrency(10)
//!     .handle("send_email", |task| Ok(send(task.payload()?)?))
//!     .build()?;
//! worker.run_until_signal()?;
//! # Ok::<(), lubdub::Error>(())
//! ```

#![deny(missing_docs)]

mod attempt;
mod beater;
mod beats;
mod client;
mod clock;
mod complete;
mod core;
mod create;
mod ends;
mod envelope;
mod errors;
mod failure;
mod logging;
mod outage;
mod panics;
mod random;
mod report;
mod signals;
mod task;
mod tokens;
mod track;
mod transport;
mod watch;
mod worker;

pub use crate::core::Lease;
pub use client::{Client, ClientBuilder};
pub use complete::Completion;
pub use create::{Created, NewTask};
pub use ends::End;
pub use envelope::{Envelope, Progress};
pub use errors::{ApiError, Error};
pub use failure::{cancelled, permanent, retry_after, snooze, stopped, Category, Failure};
pub use logging::Level;
pub use task::Task;
pub use track::Tracked;
pub use worker::{Worker, WorkerBuilder};

/// The examples in the README, which are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::sync::{Mutex, MutexGuard};

/// Locks. A thread that panicked while it held the lock has changed nothing halfway: no user's code runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts a thread. Without threads there are no heartbeats, so that a machine that has none left ends the caller.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.into()).spawn(run).expect("the system starts a thread");
}
