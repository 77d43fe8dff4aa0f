//! What a handler gets: one attempt of a task.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::attempt::Attempt;
use crate::clock::parse_date;
use crate::ends::End;
use crate::envelope::Envelope;
use crate::errors::Error;
use crate::report::{self, Report};

/// One attempt of a task, for the code that works on it. Clones are the same attempt, for threads that help.
#[derive(Clone)]
pub struct Task(pub(crate) Arc<Attempt>);

impl Task {
    /// The task's id.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// The number of the attempt, from 1.
    pub fn attempt(&self) -> u64 {
        self.0.envelope.attempt
    }

    /// All that the server says about the attempt.
    pub fn envelope(&self) -> &Envelope {
        &self.0.envelope
    }

    /// The payload, decoded; null if the task has none. A payload of another shape is an error.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.0.envelope.payload).map_err(|e| Error::Usage(format!("the payload of task {}: {e}", self.id())))
    }

    /// The last checkpoint that an earlier attempt saved, decoded; None: there was none.
    pub fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let details = self.0.envelope.last_progress.as_ref().and_then(|progress| progress.details.as_ref());
        let decoded = details.filter(|value| !value.is_null()).map(T::deserialize).transpose();
        decoded.map_err(|e| Error::Usage(format!("the last checkpoint of task {}: {e}", self.id())))
    }

    /// The W3C trace context of the task's creation; None if it had none.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.envelope.traceparent.as_deref()
    }

    /// Until when a worker that drains should have finished, as a hint; None: it does not drain, or has no deadline.
    pub fn drain_deadline(&self) -> Option<SystemTime> {
        self.0.worker.as_ref().and_then(|worker| worker.drain_deadline()).as_deref().and_then(parse_date)
    }

    /// Reports progress: a percentage from 0 to 100, and a message, which is cut at 1,024 bytes. It never waits: the value goes with the
    /// next heartbeat, and replaces one that was not sent. Other percentages, and an attempt that is not this process's any more, are
    /// errors.
    pub fn progress(&self, percent: f64, message: &str) -> Result<(), Error> {
        self.0.report(Report { progress: Some(report::progress(percent, message)?), details: None })
    }

    /// Saves a checkpoint for the next attempt: any JSON value but null, of at most 16 KiB and 100 levels; others are errors. It goes as
    /// progress does, and replaces the one before.
    pub fn checkpoint<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Error> {
        self.0.report(Report { progress: None, details: Some(report::checkpoint(value)?) })
    }

    /// Fails with the reason if the work must end. Handlers return it, by `?`.
    pub fn check(&self) -> Result<(), End> {
        self.ended().map_or(Ok(()), Err)
    }

    /// Why the work must end; None: it continues.
    pub fn ended(&self) -> Option<End> {
        self.0.ended()
    }

    /// Waits for this long, or fails with the reason as soon as the work must end.
    pub fn wait(&self, time: Duration) -> Result<(), End> {
        self.0.wait(time)
    }

    /// Calls a function, once, when the work must end, on another thread, or at once if it must already. It must not wait: to interrupt a
    /// call that does.
    pub fn on_end(&self, call: impl FnOnce(&End) + Send + 'static) {
        let end = {
            let mut state = self.0.lock();
            match &state.end {
                Some(end) => end.clone(),
                None => {
                    state.on_end.push(Box::new(call));
                    return;
                }
            }
        };
        call(&end);
    }
}
