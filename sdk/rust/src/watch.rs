//! The thread that enforces the limits of attempts, however busy their handlers are: strict leases, time limits and the watchdog.

use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use crate::attempt::{Attempt, Phase};
use crate::clock::Moment;
use crate::complete::Outcome;
use crate::core::Lease;
use crate::ends::End;
use crate::failure::{Category, Failed};
use crate::lock;
use crate::logging::Level;

/// After what time a handler that ignores its end is logged.
const DEAF_AFTER: Duration = Duration::from_secs(10);
/// A strict lease is checked at least as often, since the clock of a wait may not count suspended time.
const LEASE_CHECK: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    attempts: Vec<Weak<Attempt>>,
    running: bool,
    woken: bool,
}

impl Watch {
    pub(crate) fn add(&self, attempt: &Arc<Attempt>) {
        let mut state = lock(&self.state);
        state.attempts.push(Arc::downgrade(attempt));
        state.woken = true;
        self.changed.notify_all();
        if !std::mem::replace(&mut state.running, true) {
            let core = Arc::downgrade(&attempt.core);
            crate::spawn("lubdub-limits", move || while core.upgrade().map_or(false, |core| core.watch.round()) {});
        }
    }

    pub(crate) fn wake(&self) {
        lock(&self.state).woken = true;
        self.changed.notify_all();
    }

    /// Checks all attempts, and waits until the next check; false: there is no attempt any more.
    fn round(&self) -> bool {
        let attempts: Vec<Arc<Attempt>> = {
            let mut state = lock(&self.state);
            state.woken = false;
            state.attempts.iter().filter_map(Weak::upgrade).collect()
        };
        let checked: Vec<(Arc<Attempt>, Moment)> =
            attempts.into_iter().filter_map(|attempt| attempt.enforce().map(|at| (attempt, at))).collect();
        let next = checked.iter().map(|(_, at)| *at).min();
        let mut state = lock(&self.state);
        state.attempts.retain(|weak| weak.upgrade().map_or(false, |attempt| attempt.is_watched()));
        if state.attempts.is_empty() {
            state.running = false;
            return false;
        }
        drop(checked);
        if !state.woken {
            let time = next.map_or(LEASE_CHECK, Moment::left);
            drop(self.changed.wait_timeout(state, time));
        }
        true
    }
}

impl Attempt {
    /// Whether its handler runs, or it may still need an end.
    fn is_watched(&self) -> bool {
        let state = self.lock();
        !state.returned || (state.phase == Phase::GivenBack && self.core.lease == Lease::Strict)
    }

    /// Enforces what is due, and returns when to look again; None: never.
    fn enforce(self: &Arc<Attempt>) -> Option<Moment> {
        if !self.is_watched() {
            return None;
        }
        let now = Moment::now();
        self.check_lease();
        let mut next = now + Duration::from_secs(3600);
        if let Some(until) = self.lease_until() {
            next = next.min(until).min(now + LEASE_CHECK);
        }
        let (begun, progressed, end, ended_at, phase, deafness_logged) = {
            let state = self.lock();
            if state.returned || state.apart {
                return Some(next);
            }
            (state.begun, state.progressed, state.end.clone(), state.ended_at, state.phase, state.deafness_logged)
        };
        if let Some(ended_at) = ended_at.filter(|_| !deafness_logged) {
            let at = ended_at + DEAF_AFTER;
            if at.over() {
                self.lock().deafness_logged = true;
                let why = end.as_ref().map(End::to_string).unwrap_or_default();
                self.core.log(Level::Warn, format_args!("{}: its handler has not returned {DEAF_AFTER:?} after: {why}", self.name()));
            } else {
                next = next.min(at);
            }
        }
        if let (Phase::Running, Some(worker), Some(begun)) = (phase, &self.worker, begun) {
            let own = self.envelope.run_timeout_ms.is_some();
            let limit = worker.options.task_timeout.or_else(|| (!own).then(|| crate::worker::USUAL_TASK_TIMEOUT));
            let grace = Duration::from_millis(self.envelope.cancel_grace_period_ms);
            let mut expire = |at: Moment, end: Option<End>, without_handler: Option<String>| {
                if !at.over() {
                    next = next.min(at);
                    return;
                }
                end.into_iter().for_each(|end| self.end(end));
                if let Some(message) = without_handler {
                    worker.complete_apart(self, Outcome::Failed(Failed::new(Category::Timeout, message)));
                }
            };
            if let Some(limit) = limit {
                match end {
                    None => expire(begun + limit, Some(End::TaskTimeout), None),
                    Some(End::TaskTimeout) => {
                        let message = format!("the attempt ran for longer than {limit:?}, and its handler did not end");
                        expire(ended_at.unwrap_or(begun) + grace, None, Some(message));
                    }
                    Some(_) => {}
                }
            }
            if let (None, Some(time)) = (&end, worker.options.watchdog) {
                let at = progressed.unwrap_or(begun).max(begun) + time;
                expire(at, Some(End::Stuck), Some(format!("no progress for {time:?}")));
            }
        }
        Some(next)
    }
}
