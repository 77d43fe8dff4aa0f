//! An attempt that was dispatched to this process.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::attempt::Attempt;
use crate::client::Client;
use crate::complete::{complete, Completion, Outcome};
use crate::ends::End;
use crate::envelope::Envelope;
use crate::errors::{ApiError, Error};
use crate::failure::Failure;
use crate::panics;
use crate::task::Task;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartedRequest<'a> {
    attempt: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct StartedResponse {
    should_cancel: bool,
    cancel_reason: Option<String>,
}

/// Reports that the work begins, which starts the lease. A refusal is an error: it must not begin. A cancel that was requested ends it.
pub(crate) fn report_start(attempt: &Attempt, worker_id: Option<&str>) -> Result<(), Error> {
    let body = serde_json::to_vec(&StartedRequest { attempt: attempt.envelope.attempt, worker_id }).unwrap_or_default();
    let answer = attempt.call("started", &body)?;
    if answer.status != 200 {
        let refusal = ApiError::of(answer.status, &answer.body);
        return Err(refusal.end().map_or_else(|| Error::Refused(Box::new(refusal)), Error::Ended));
    }
    {
        let mut state = attempt.lock();
        attempt.renew(&mut state, answer.sent);
    }
    let started: StartedResponse = serde_json::from_slice(&answer.body).unwrap_or_default();
    if started.should_cancel {
        attempt.end(End::Cancelled { reason: started.cancel_reason.unwrap_or_default() });
    }
    Ok(())
}

/// An attempt that this process works on: the [`Task`], and its end. Heartbeats go out until one of the methods that end it is called, or
/// it is dropped: then Lubdub finds after the heartbeat timeout that it is lost.
pub struct Tracked(Task);

impl Client {
    /// Reports that the work on this attempt begins, and sends heartbeats for it from now on. It waits until a server has answered; a
    /// refusal is an error, and the work must not begin.
    pub fn track(&self, envelope: Envelope) -> Result<Tracked, Error> {
        if envelope.task_id.is_empty() || envelope.task_token.is_empty() {
            return Err(Error::Usage("this is not an envelope: it is the answer to a creation without a queue".into()));
        }
        let attempt = Attempt::new(self.core.clone(), None, envelope);
        report_start(&attempt, None)?;
        {
            let mut state = attempt.lock();
            state.begun = Some(crate::clock::Moment::now());
            state.due = crate::clock::Moment::now();
        }
        self.core.beater.add(&attempt);
        self.core.watch.add(&attempt);
        Ok(Tracked(Task(attempt)))
    }

    /// Tracks an attempt while a function works on it, and completes it with what the function returns. A panic is a failure with its
    /// stack, and goes no further.
    pub fn run<T: Serialize>(&self, envelope: Envelope, work: impl FnOnce(&Task) -> Result<T, Failure>) -> Result<Completion, Error> {
        let tracked = self.track(envelope)?;
        match panics::catch(|| work(&tracked)) {
            Ok(Ok(output)) => tracked.complete(&output),
            Ok(Err(failure)) => tracked.fail(failure),
            Err(failed) => tracked.end(Outcome::Failed(failed)),
        }
    }
}

impl Tracked {
    /// Completes the attempt as SUCCEEDED with this output, any JSON value, and returns the server's answer. Output that is not JSON, or
    /// too large, fails the attempt without another one, and is an error. An attempt that is over is an error, too: nothing is sent.
    pub fn complete<T: Serialize + ?Sized>(self, output: &T) -> Result<Completion, Error> {
        self.end(Outcome::of_output(output))
    }

    /// Completes the attempt as FAILED, or as the failure says: [`snooze`](crate::snooze), [`cancelled`](crate::cancelled),
    /// [`stopped`](crate::stopped); after a cancel, a failure that is its [`End`] is CANCELLED.
    pub fn fail(self, failure: impl Into<Failure>) -> Result<Completion, Error> {
        let end = self.0.ended();
        match Outcome::of_failure(failure.into(), end.as_ref()) {
            Some(outcome) => self.end(outcome),
            None => Err(Error::Ended(End::Stopping)),
        }
    }

    fn end(self, outcome: Outcome) -> Result<Completion, Error> {
        self.0 .0.lock().returned = true;
        let result = complete(&self.0 .0, outcome);
        self.0 .0.core.watch.wake();
        result
    }
}

impl Deref for Tracked {
    type Target = Task;
    fn deref(&self) -> &Task {
        &self.0
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0 .0.lock().returned = true;
        self.0 .0.close();
    }
}
