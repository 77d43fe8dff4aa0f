//! One claimed attempt, from the claim to its end.

use std::sync::Arc;
use std::thread::Builder;

use serde_json::Value;

use super::options::Handler;
use super::shared::Shared;
use crate::attempt::{Attempt, Phase};
use crate::clock::Moment;
use crate::complete::{complete, Outcome};
use crate::ends::End;
use crate::errors::Error;
use crate::failure::{Category, Failed};
use crate::logging::Level;
use crate::panics;
use crate::task::Task;
use crate::track::report_start;

/// Runs the attempt on a new thread.
pub(super) fn start(shared: &Arc<Shared>, attempt: &Arc<Attempt>) {
    let (worker, own) = (shared.clone(), attempt.clone());
    let started = Builder::new().name("lubdub-handler".into()).spawn(move || {
        run(&worker, &own);
        worker.free_place(&own);
    });
    if let Err(problem) = started {
        let failed = Failed::new(Category::Infrastructure, format!("the worker cannot start a thread: {problem}"));
        let _ = complete(attempt, Outcome::Failed(failed)); // its end is logged
        shared.free_place(attempt);
    }
}

fn run(shared: &Arc<Shared>, attempt: &Arc<Attempt>) {
    if attempt.envelope.state != "RUNNING" {
        let id = shared.session().map(|session| session.id);
        match report_start(attempt, id.as_deref()) {
            Ok(()) => {}
            Err(Error::NoAnswer(_)) => return give_back(attempt), // the worker stops, or its token has expired
            Err(problem) => {
                shared.core.log(Level::Info, format_args!("{}: not started: {problem}", attempt.name()));
                attempt.close();
                return shared.forget_ended();
            }
        }
    }
    let stopping = shared.lock().hard;
    match attempt.ended() {
        Some(End::Cancelled { .. }) => {
            let _ = complete(attempt, Outcome::Cancelled { reason: None, phase: None, partial: Value::Null });
            return;
        }
        Some(_) => return give_back(attempt),
        None if stopping => return give_back(attempt),
        None => {}
    }
    attempt.lock().begun = Some(Moment::now());
    shared.core.watch.add(attempt);
    let outcome = match shared.handler(attempt) {
        None => Some(Outcome::Failed(Failed::new(Category::Configuration, "this worker has no handler for the task's type".into()))),
        Some(handler) => match panics::catch(|| handler(&Task(attempt.clone()))) {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(failure)) => Outcome::of_failure(failure, attempt.ended().as_ref()),
            Err(_) if attempt.ended() == Some(End::Stopping) => None,
            Err(failed) => Some(Outcome::Failed(failed)),
        },
    };
    attempt.lock().returned = true;
    match outcome {
        // What the answer says is logged, and counted.
        Some(outcome) => drop(complete(attempt, outcome)),
        None => give_back(attempt),
    }
}

/// The worker stops: the attempt stays in the inventory until deregister gives it back.
fn give_back(attempt: &Attempt) {
    let mut state = attempt.lock();
    if state.phase == Phase::Running {
        state.phase = Phase::GivenBack;
    }
}

impl Shared {
    fn handler(&self, attempt: &Attempt) -> Option<&Handler> {
        let kind = attempt.envelope.kind.as_ref();
        kind.and_then(|kind| self.handlers.get(kind)).or(self.default_handler.as_ref())
    }

    /// The thread of an attempt has ended.
    fn free_place(&self, attempt: &Attempt) {
        attempt.lock().returned = true;
        self.lock().occupied -= 1;
        self.changed.notify_all();
        self.core.watch.wake();
    }

    /// Completes an attempt whose handler is over a limit, and may never return.
    pub(crate) fn complete_apart(&self, attempt: &Arc<Attempt>, outcome: Outcome) {
        attempt.lock().apart = true;
        let attempt = attempt.clone();
        crate::spawn("lubdub-completion", move || drop(complete(&attempt, outcome)));
    }
}
