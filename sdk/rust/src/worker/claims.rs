//! The claims of a worker.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job;
use super::shared::{Session, Shared};
use crate::attempt::Attempt;
use crate::clock::Moment;
use crate::core::{Call, Lease, Repeat, CALL_TIMEOUT};
use crate::envelope::Envelope;
use crate::errors::Error;
use crate::logging::Level;
use crate::random;
use crate::transport::Answer;

/// How long a claim asks the server to wait for a task.
const WAIT: Duration = Duration::from_secs(30);
/// The most tasks that a claim may ask for.
const MOST_TASKS: usize = 100;
/// The longest pause between claims, and between repeats of one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    max: usize,
    wait_ms: u128,
    claim_id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    start: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<Vec<&'a String>>,
}

#[derive(Deserialize)]
struct Response {
    tasks: Vec<Envelope>,
}

/// Claims until the worker drains.
pub(crate) fn claim(shared: &Arc<Shared>) {
    let mut empty = 0;
    while let Some((session, places)) = shared.reserve() {
        let sent = Moment::now();
        let answer = shared.claim_once(&session, places);
        let claimed = shared.take(&session, answer);
        if claimed > 0 {
            empty = 0;
        } else if Moment::now().since(sent) < WAIT / 2 {
            // An answer that did not wait, or a refusal: not at once again.
            let pause = Duration::from_millis(50) + random::pause(empty, 4 * LONGEST_PAUSE);
            empty += 1;
            shared.pause(pause.min(LONGEST_PAUSE), &|state| state.draining);
        }
    }
}

impl Shared {
    /// Waits for free places, and takes them for a claim; None: nothing more is claimed.
    fn reserve(&self) -> Option<(Session, usize)> {
        let mut state = self.lock();
        loop {
            if state.draining || state.ended {
                return None;
            }
            let free = self.options.concurrency.saturating_sub(state.occupied);
            match self.session() {
                Some(session) if free > 0 && !state.waiting && state.lost.is_none() => {
                    state.reserved = free.min(MOST_TASKS);
                    return Some((session, state.reserved));
                }
                _ => state = self.wait(state, Duration::from_secs(1)),
            }
        }
    }

    /// Sends one claim until it is answered.
    fn claim_once(&self, session: &Session, places: usize) -> Result<Answer, Error> {
        let types = self.default_handler.is_none().then(|| self.handlers.keys().collect());
        // A strict lease begins when a start was sent, which a claim that waits does not tell.
        let start = self.core.lease == Lease::Patient;
        let request = Request { max: places, wait_ms: WAIT.as_millis(), claim_id: random::id(), start, types };
        let body = serde_json::to_vec(&request).unwrap_or_default();
        let path = format!("/v1/queues/{}/claim", self.options.queue);
        let call = Call { timeout: CALL_TIMEOUT + WAIT, ..Call::new(&path, &body) };
        let token = || self.session().filter(|now| now.number == session.number).map_or(session.token.clone(), |now| now.token);
        let over = |state: &super::shared::State| state.draining || state.lost.is_some();
        let how = Repeat { interval: 4 * LONGEST_PAUSE, longest_pause: LONGEST_PAUSE, wait: &|pause| self.pause(pause, &over) };
        self.core.repeat(&call, &token, &how)
    }

    /// Takes the tasks of an answer, and starts them; returns how many.
    fn take(self: &Arc<Shared>, session: &Session, answer: Result<Answer, Error>) -> usize {
        let mut attempts = Vec::new();
        match answer {
            Ok(answer) if answer.status == 200 => match answer.decode::<Response>() {
                Ok(response) => {
                    attempts = response.tasks.into_iter().map(|task| Attempt::new(self.core.clone(), Some(self.clone()), task)).collect();
                }
                Err(problem) => self.core.log(Level::Error, format_args!("The answer to a claim: {problem}")),
            },
            Ok(answer) if self.lost(session, &answer) => {}
            Ok(answer) => {
                let refusal = answer.refusal();
                let mut state = self.lock();
                state.draining = true;
                if refusal.code != "worker_draining" {
                    state.failure = Some(Error::Refused(Box::new(refusal)));
                }
            }
            Err(_) => {} // the worker drains, or registers again
        }
        {
            let mut state = self.lock();
            state.reserved = 0;
            if state.ended || state.forced.is_some() {
                return 0;
            }
            // They are in the inventory from now on, whatever the handlers do.
            for attempt in &attempts {
                let mut own = attempt.lock();
                own.due = Moment::now() + random::spread(own.interval);
            }
            state.held.extend(attempts.iter().cloned());
            state.occupied += attempts.len();
            self.changed.notify_all();
        }
        attempts.iter().for_each(|attempt| job::start(self, attempt));
        attempts.len()
    }
}
