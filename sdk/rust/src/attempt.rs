//! One attempt in this process: what its handler, its heartbeats and its completion share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use crate::clock::{parse_date, Moment};
use crate::core::{Core, Lease};
use crate::ends::End;
use crate::envelope::Envelope;
use crate::errors::Error;
use crate::lock;
use crate::logging::Level;
use crate::random;
use crate::report::{Item, Report};
use crate::worker::shared::Shared;

/// A user's function that is called when the work must end.
pub(crate) type OnEnd = Box<dyn FnOnce(&End) + Send>;

pub(crate) struct Attempt {
    pub(crate) envelope: Envelope,
    pub(crate) core: Arc<Core>,
    /// The worker that has claimed it; None for a tracked one.
    pub(crate) worker: Option<Arc<Shared>>,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Heartbeats name it.
    Running,
    /// The same; it is not completed any more, since its worker stops and gives it back.
    GivenBack,
    /// Its completion was handed over, and is not answered.
    Completing,
    /// Nothing is sent about it any more.
    Over,
}

pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) token: String,
    /// When the token expires, by the server's clock; None: unknown.
    pub(crate) expires: Option<SystemTime>,
    /// Why the work must end: the first reason, and the final one, after which nothing is sent.
    pub(crate) end: Option<End>,
    pub(crate) final_end: Option<End>,
    pub(crate) ended_at: Option<Moment>,
    pub(crate) on_end: Vec<OnEnd>,
    pub(crate) unsent: Report,
    pub(crate) unsent_since: Option<Moment>,
    /// The report in the heartbeat that is in progress; Some, even if empty, while there is one.
    pub(crate) in_progress: Option<Report>,
    /// When the last accepted heartbeat was sent: the local lease runs from there.
    pub(crate) accepted: Option<Moment>,
    pub(crate) interval: Duration,
    pub(crate) due: Moment,
    pub(crate) failures: u32,
    pub(crate) fault_logged: bool,
    /// When its handler began and last reported progress, and whether it has returned.
    pub(crate) begun: Option<Moment>,
    pub(crate) progressed: Option<Moment>,
    pub(crate) returned: bool,
    pub(crate) deafness_logged: bool,
    /// Another thread than its handler's completes it, since it is over a limit.
    pub(crate) apart: bool,
    /// Since its completion was handed over, under which registration of the worker that was, and whether an inventory has omitted it.
    pub(crate) completing_under: u64,
    pub(crate) omitted: bool,
    /// The worker stops: its completion is not repeated any more.
    pub(crate) sealed: bool,
}

impl Attempt {
    pub(crate) fn new(core: Arc<Core>, worker: Option<Arc<Shared>>, envelope: Envelope) -> Arc<Attempt> {
        let interval = Duration::from_millis(envelope.heartbeat_interval_ms.max(1));
        let state = State {
            phase: Phase::Running,
            token: envelope.task_token.clone(),
            expires: parse_date(&envelope.token_expires_at),
            end: None,
            final_end: None,
            ended_at: None,
            on_end: Vec::new(),
            unsent: Report::default(),
            unsent_since: None,
            in_progress: None,
            accepted: None,
            interval,
            due: Moment::now(),
            failures: 0,
            fault_logged: false,
            begun: None,
            progressed: None,
            returned: false,
            deafness_logged: false,
            apart: false,
            completing_under: 0,
            omitted: false,
            sealed: false,
        };
        Arc::new(Attempt { envelope, core, worker, state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn id(&self) -> &str {
        &self.envelope.task_id
    }

    pub(crate) fn path(&self, call: &str) -> String {
        format!("/v1/tasks/{}/{call}", self.envelope.task_id)
    }

    /// How it is named in the log.
    pub(crate) fn name(&self) -> String {
        let kind = self.envelope.kind.as_deref().map(|kind| format!("type {kind}, ")).unwrap_or_default();
        format!("Task {} ({kind}attempt {})", self.envelope.task_id, self.envelope.attempt)
    }

    /// How long it lives after an accepted heartbeat.
    pub(crate) fn lease(&self) -> Duration {
        let own = self.envelope.heartbeat_timeout_ms.map(Duration::from_millis);
        own.or_else(|| self.worker.as_ref().map(|worker| worker.lease())).unwrap_or(Duration::from_secs(90))
    }

    /// Whether its token has expired by this machine's clock.
    pub(crate) fn token_expired(&self) -> bool {
        self.lock().expires.map_or(false, |at| at <= SystemTime::now())
    }

    /// Ends the work, with the first reason that comes. After a final end nothing is sent about the attempt.
    pub(crate) fn end(&self, end: End) {
        let callbacks = {
            let mut state = self.lock();
            if state.phase == Phase::Over || (state.phase == Phase::Completing && !end.is_final()) {
                return;
            }
            if end.is_final() {
                state.phase = Phase::Over;
                state.final_end = Some(end.clone());
                state.unsent = Report::default();
            }
            let first = state.end.is_none();
            if first {
                state.end = Some(end.clone());
                state.ended_at = Some(Moment::now());
            }
            self.changed.notify_all();
            if first {
                std::mem::take(&mut state.on_end)
            } else {
                Vec::new()
            }
        };
        callbacks.into_iter().for_each(|call| call(&end));
        if end.is_final() {
            self.core.log(Level::Warn, format_args!("{} is lost: {end}", self.name()));
        }
        self.core.watch.wake();
        self.wake_worker();
    }

    pub(crate) fn wake_worker(&self) {
        if let Some(worker) = &self.worker {
            worker.wake();
        }
    }

    /// Until when the strict lease lasts; None: no lease runs, as for a completion that was handed over.
    pub(crate) fn lease_until(&self) -> Option<Moment> {
        if self.core.lease == Lease::Patient {
            return None;
        }
        let lease = self.lease();
        let state = self.lock();
        state.accepted.filter(|_| matches!(state.phase, Phase::Running | Phase::GivenBack)).map(|accepted| accepted + lease)
    }

    /// Ends the work if its strict lease is over. It comes before anything else after a wake-up.
    pub(crate) fn check_lease(&self) {
        if self.lease_until().map_or(false, Moment::over) {
            self.end(End::LeaseEnded);
        }
    }

    pub(crate) fn ended(&self) -> Option<End> {
        self.check_lease();
        self.lock().end.clone()
    }

    /// Waits for at most this long, and no longer than until the work must end, which is the error.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), End> {
        let until = Moment::now() + time;
        loop {
            if let Some(end) = self.ended() {
                return Err(end);
            }
            let left = until.left();
            if left.is_zero() {
                return Ok(());
            }
            let state = self.lock();
            if state.end.is_none() {
                // Not longer than a second: the clock of the wait may not count suspended time.
                drop(self.changed.wait_timeout(state, left.min(Duration::from_secs(1))));
            }
        }
    }

    /// Replaces what is unsent.
    pub(crate) fn report(&self, report: Report) -> Result<(), Error> {
        self.check_lease();
        let mut state = self.lock();
        if let Some(end) = &state.final_end {
            return Err(Error::Ended(end.clone()));
        }
        if matches!(state.phase, Phase::Completing | Phase::Over) {
            return Err(Error::Usage(format!("{} has ended, and reports nothing any more", self.name())));
        }
        let older = std::mem::replace(&mut state.unsent, report);
        state.unsent.over(older);
        state.unsent_since = state.unsent_since.or_else(|| Some(Moment::now()));
        state.progressed = Some(Moment::now());
        Ok(())
    }

    /// Takes part in a heartbeat, with its unsent report if there is room for it; None: it must not be named.
    pub(crate) fn begin_beat(&self, task_id: bool, room: &mut usize) -> Option<Item> {
        self.check_lease();
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Running | Phase::GivenBack) || state.in_progress.is_some() {
            return None;
        }
        let size = state.unsent.size();
        let report = if size <= *room { std::mem::take(&mut state.unsent) } else { Report::default() };
        if size <= *room {
            *room -= size;
            state.unsent_since = None;
        }
        state.in_progress = Some(report.clone());
        Some(Item::new(task_id.then(|| self.id()), self.envelope.attempt, report))
    }

    /// The heartbeat is over; accepted: when it was sent, if it was accepted.
    pub(crate) fn end_beat(&self, accepted: Option<Moment>) {
        let mut state = self.lock();
        let report = state.in_progress.take().unwrap_or_default();
        match accepted {
            Some(sent) => self.renew(&mut state, sent),
            None if !report.is_empty() && state.phase != Phase::Over => {
                state.unsent.over(report);
                state.unsent_since = state.unsent_since.or_else(|| Some(Moment::now()));
            }
            None => {}
        }
        self.changed.notify_all();
    }

    /// A heartbeat that keeps the attempt alive was accepted.
    pub(crate) fn renew(&self, state: &mut State, sent: Moment) {
        state.accepted = state.accepted.max(Some(sent));
        state.failures = 0;
        state.due = sent + random::spread(state.interval);
    }

    /// Hands the completion over: from now on no heartbeat names the attempt, and one in progress is awaited. False: it is not to be
    /// completed, or another thread does that.
    pub(crate) fn begin_completion(&self) -> bool {
        self.check_lease();
        let under = self.worker.as_ref().map_or(0, |worker| worker.registration());
        let mut state = self.lock();
        if state.phase != Phase::Running {
            return false;
        }
        state.phase = Phase::Completing;
        state.completing_under = under;
        while state.in_progress.is_some() {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.phase == Phase::Completing
    }

    /// Nothing is sent about it any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.phase = Phase::Over;
        state.unsent = Report::default();
        self.changed.notify_all();
    }

    /// Waits before a repeat of its calls; false: they are not repeated any more.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let until = Moment::now() + time;
        loop {
            self.check_lease();
            let state = self.lock();
            if matches!(state.phase, Phase::Over | Phase::GivenBack) || state.sealed || self.core.is_closed() {
                return false;
            }
            let left = until.left();
            if left.is_zero() {
                drop(state);
                return !self.token_expired();
            }
            drop(self.changed.wait_timeout(state, left.min(Duration::from_secs(1))));
        }
    }
}
