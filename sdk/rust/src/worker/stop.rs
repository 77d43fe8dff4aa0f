//! The stop of a worker: drain, soft stop, hard stop, and what remains.

use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

use super::shared::{Shared, State};
use crate::attempt::{Attempt, Phase};
use crate::clock::Moment;
use crate::core::{Call, Repeat};
use crate::ends::End;
use crate::errors::Error;
use crate::logging::Level;

/// How long a claim, a drain, a heartbeat or a completion that is in progress is awaited at the end.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long deregister is repeated.
const LAST_ANSWER: Duration = Duration::from_secs(3);
/// How long progress of what is given back is awaited: slightly longer than it is repeated.
const LAST_REPORTS: Duration = Duration::from_millis(2500);

enum Next {
    Wait(Duration),
    Drain,
    SoftStop(Vec<Arc<Attempt>>),
    End,
}

impl Shared {
    /// Begins to stop; hard: at once.
    pub(crate) fn stop(&self, hard: bool) {
        let mut state = self.lock();
        state.stopping.get_or_insert_with(Moment::now);
        state.draining = true;
        state.hard |= hard;
        self.changed.notify_all();
    }

    /// Waits until the worker has nothing more to do, or must end.
    pub(crate) fn supervise(self: &Arc<Shared>) {
        let (mut drain_sent, mut soft) = (false, false);
        loop {
            let next = {
                let state = self.lock();
                let next = self.next(&state, drain_sent, soft);
                if let Next::Wait(time) = next {
                    drop(self.wait(state, time));
                    continue;
                }
                next
            };
            match next {
                Next::Drain => {
                    drain_sent = true;
                    let shared = self.clone();
                    crate::spawn("lubdub-drain", move || shared.send_drain());
                }
                Next::SoftStop(held) => {
                    soft = true;
                    held.iter().for_each(|attempt| attempt.end(End::Stopping));
                }
                Next::End | Next::Wait(_) => return,
            }
        }
    }

    fn next(&self, state: &State, drain_sent: bool, soft: bool) -> Next {
        // What was forced offline waits for its handlers as at a stop.
        let stopping = state.stopping.or_else(|| state.forced.as_ref().and(state.ticked));
        if state.stopping.is_some() && !drain_sent && state.forced.is_none() {
            return Next::Drain;
        }
        let claims_ended = state.claims_ended || stopping.map_or(false, |since| (since + LAST_CALLS).over());
        if state.draining && state.occupied == 0 && claims_ended {
            return Next::End;
        }
        match stopping {
            Some(since) if state.hard || (since + self.options.hard_stop).over() => Next::End,
            Some(since) if !soft && (since + self.options.soft_stop).over() => Next::SoftStop(state.held.clone()),
            Some(since) => Next::Wait((since + if soft { self.options.hard_stop } else { self.options.soft_stop }).left()),
            None => Next::Wait(Duration::from_secs(1)),
        }
    }

    /// Announces that the worker drains, which also ends a claim that waits.
    fn send_drain(&self) {
        let over = |state: &State| state.beats_over;
        self.workers_call("drain", &|pause| self.pause(pause, &over));
        self.lock().drain_answered = true;
        self.changed.notify_all();
    }

    /// Sends a call about the worker; whether it was answered.
    fn workers_call(&self, name: &str, wait: &dyn Fn(Duration) -> bool) -> bool {
        let session = match self.session() {
            Some(session) => session,
            None => return false,
        };
        let path = format!("/v1/workers/{}/{name}", session.id);
        let how = Repeat { interval: session.interval, longest_pause: Duration::from_secs(1), wait };
        let call = Call { timeout: LAST_ANSWER, ..Call::new(&path, b"{}") };
        match self.core.repeat(&call, &|| self.token().unwrap_or_default(), &how) {
            Ok(answer) if answer.status == 200 => true,
            Ok(answer) => {
                self.core.log(Level::Warn, format_args!("{name}: {}", answer.refusal()));
                true
            }
            Err(_) => false,
        }
    }

    /// Ends the worker: nothing is started or completed any more, and what remains is given back.
    pub(crate) fn finish(self: &Arc<Shared>) -> Result<(), Error> {
        let held = {
            let mut state = self.lock();
            state.hard = true;
            state.draining = true;
            state.held.clone()
        };
        held.iter().for_each(|attempt| attempt.stop_hard());
        let completing = |attempt: &Arc<Attempt>| attempt.lock().phase == Phase::Completing;
        self.pause(LAST_CALLS, &|state| !state.held.iter().any(completing));
        let (given_back, forced) = {
            let mut state = self.lock();
            state.ended = true;
            state.beats_over = true;
            state.held.retain(|attempt| attempt.lock().phase != Phase::Over);
            (std::mem::take(&mut state.held), state.forced.clone())
        };
        self.changed.notify_all();
        given_back.iter().for_each(|attempt| attempt.seal());
        self.end_exchanges();
        if let Some(remedy) = forced {
            return Err(Error::ForcedOffline { remedy });
        }
        self.pause(LAST_CALLS, &|state| state.beats_ended && (state.stopping.is_none() || state.drain_answered));
        self.flush(&given_back);
        let until = Moment::now() + LAST_ANSWER;
        let wait = |pause: Duration| {
            let waits = pause < until.left();
            if waits {
                std::thread::sleep(pause);
            }
            waits
        };
        let confirmed = self.workers_call("deregister", &wait);
        given_back.iter().for_each(|attempt| attempt.close());
        if !given_back.is_empty() {
            let tasks = given_back.iter().map(|attempt| attempt.id().to_string()).collect();
            return Err(Error::Unfinished { tasks, confirmed });
        }
        if !confirmed {
            self.core.log(
                Level::Warn,
                format_args!("The server did not answer deregister: it finds after the heartbeat timeout that this worker is gone"),
            );
        }
        let failure = self.lock().failure.take();
        failure.map_or(Ok(()), Err)
    }

    /// Sends what attempts have not sent that are given back.
    fn flush(&self, given_back: &[Arc<Attempt>]) {
        let (done, awaited) = channel::<()>();
        for attempt in given_back.iter().filter(|attempt| !attempt.lock().unsent.is_empty()) {
            let (attempt, done) = (attempt.clone(), done.clone());
            crate::spawn("lubdub-reports", move || {
                attempt.flush_given_back();
                drop(done);
            });
        }
        drop(done);
        // It fails as soon as all have ended.
        let _ = awaited.recv_timeout(LAST_REPORTS);
    }
}

impl Attempt {
    /// It is not completed any more, unless that has begun, and its work ends.
    fn stop_hard(&self) {
        self.end(End::Stopping);
        let mut state = self.lock();
        if state.phase == Phase::Running {
            state.phase = Phase::GivenBack;
        }
    }

    /// Its calls are not repeated any more, except for its last report.
    fn seal(&self) {
        let mut state = self.lock();
        state.sealed = state.phase == Phase::Completing;
        self.changed.notify_all();
    }
}
