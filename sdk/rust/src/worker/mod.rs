//! The worker: it claims the tasks of a queue, and runs a handler for each.

mod beats;
mod claims;
mod exchange;
mod identity;
mod job;
mod options;
mod probe;
mod registration;
pub(crate) mod shared;
mod stop;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::errors::Error;
use crate::signals;
use shared::Shared;

pub use options::WorkerBuilder;

/// How long an attempt may take if neither the worker nor its task has a limit.
pub(crate) const USUAL_TASK_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A worker of one queue. Clones are the same worker, for threads that stop it.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
    started: Arc<AtomicBool>,
}

impl Worker {
    /// The settings of a new worker of this queue.
    pub fn builder(queue: &str) -> WorkerBuilder {
        WorkerBuilder::new(queue)
    }

    /// Runs until the worker is closed or drained, and all of its tasks have ended or were returned to the queue; these are an error.
    /// Handlers that ignore their end still run then, and end with the process. A worker runs once.
    pub fn run(&self) -> Result<(), Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::Usage("a worker runs once: build another one".into()));
        }
        let shared = &self.shared;
        let _name = shared.take_name();
        let probe = shared.open_probe()?;
        let first = shared.register();
        let result = match first {
            Ok(true) => {
                shared.start_threads();
                shared.supervise();
                shared.finish()
            }
            Ok(false) => Ok(()), // it was closed before a server answered
            Err(problem) => Err(problem),
        };
        drop(probe);
        result
    }

    /// Runs like [`run`](Worker::run), and stops at SIGTERM and SIGINT: the first begins to stop, a second skips to the hard stop, a third
    /// ends the process as without a handler for the signal.
    pub fn run_until_signal(&self) -> Result<(), Error> {
        let worker = self.clone();
        let _signals = signals::subscribe(Arc::new(move |count| worker.shared.stop(count >= 2)));
        self.run()
    }

    /// Begins to stop: the worker announces that it drains, claims nothing more, and sends heartbeats while handlers finish. After the soft
    /// stop they end with [`End::Stopping`](crate::End::Stopping). It returns at once; [`run`](Worker::run) returns at the end.
    pub fn close(&self) {
        self.shared.stop(false);
    }

    /// The client of this worker, to create tasks with.
    pub fn client(&self) -> Client {
        Client { core: self.shared.core.clone() }
    }
}
