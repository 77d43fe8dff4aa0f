//! What the threads of a worker share.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::exchange::Exchange;
use super::identity::{self, Name};
use super::options::{Handler, Options};
use crate::attempt::{Attempt, Phase};
use crate::clock::Moment;
use crate::complete::{Completion, Outcome};
use crate::core::Core;
use crate::ends::End;
use crate::errors::Error;
use crate::lock;

pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) options: Options,
    pub(crate) handlers: BTreeMap<String, Handler>,
    pub(crate) default_handler: Option<Handler>,
    pub(crate) name: Mutex<Option<String>>,
    pub(crate) probe_url: Mutex<Option<String>>,
    /// No other lock is taken while this one is held.
    pub(crate) session: Mutex<Option<Session>>,
    /// While this lock is held, an attempt may be locked, but not be ended, which wakes the worker.
    state: Mutex<State>,
    pub(crate) changed: Condvar,
    pub(crate) exchange: Exchange,
}

/// One registration.
#[derive(Clone)]
pub(crate) struct Session {
    /// 1 for the first registration, and so on.
    pub(crate) number: u64,
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) interval: Duration,
    pub(crate) lease: Duration,
    pub(crate) exchanges: bool,
    pub(crate) registered: Moment,
}

#[derive(Default)]
pub(crate) struct State {
    /// What the inventory lists, and what is being completed.
    pub(crate) held: Vec<Arc<Attempt>>,
    /// Places of tasks whose threads run, and of the claim that is in progress.
    pub(crate) occupied: usize,
    pub(crate) reserved: usize,
    /// The registration that the server does not accept any more.
    pub(crate) lost: Option<u64>,
    /// The machine is drained: the worker waits until it is resumed.
    pub(crate) waiting: bool,
    /// Nothing more is claimed: the worker drains, stops or ends.
    pub(crate) draining: bool,
    pub(crate) drain_deadline: Option<String>,
    /// When the stop began, whether it is a hard one, and whether its drain was answered.
    pub(crate) stopping: Option<Moment>,
    pub(crate) hard: bool,
    pub(crate) drain_answered: bool,
    /// What forced the worker offline: the remedy.
    pub(crate) forced: Option<String>,
    /// With what error the worker ends.
    pub(crate) failure: Option<Error>,
    /// Ends that no heartbeat has counted.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// The last tick of the heartbeats.
    pub(crate) ticked: Option<Moment>,
    pub(crate) beats_over: bool,
    pub(crate) beats_ended: bool,
    pub(crate) claims_ended: bool,
    /// The worker has ended: what comes late is dropped.
    pub(crate) ended: bool,
}

impl Shared {
    pub(crate) fn new(
        core: Arc<Core>,
        options: Options,
        handlers: BTreeMap<String, Handler>,
        default_handler: Option<Handler>,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            core,
            options,
            handlers,
            default_handler,
            name: Mutex::new(None),
            probe_url: Mutex::new(None),
            session: Mutex::new(None),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            exchange: Exchange::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn session(&self) -> Option<Session> {
        lock(&self.session).clone()
    }

    pub(crate) fn token(&self) -> Option<String> {
        lock(&self.session).as_ref().map(|session| session.token.clone())
    }

    pub(crate) fn registration(&self) -> u64 {
        lock(&self.session).as_ref().map_or(0, |session| session.number)
    }

    pub(crate) fn lease(&self) -> Duration {
        lock(&self.session).as_ref().map_or(Duration::from_secs(90), |session| session.lease)
    }

    pub(crate) fn drain_deadline(&self) -> Option<String> {
        self.lock().drain_deadline.clone()
    }

    pub(crate) fn machine(&self) -> String {
        self.options.machine.clone().unwrap_or_else(identity::machine_found)
    }

    pub(crate) fn take_name(&self) -> Name {
        let wanted = self.options.name.clone().unwrap_or_else(identity::name_found);
        let name = Name::take(&self.options.queue, &self.machine(), &wanted);
        *lock(&self.name) = Some(name.as_str().to_string());
        name
    }

    /// Waits; false, and at once, when the condition holds.
    pub(crate) fn pause(&self, time: Duration, until: &dyn Fn(&State) -> bool) -> bool {
        let end = Moment::now() + time;
        let mut state = self.lock();
        loop {
            let left = end.left();
            if until(&state) {
                return false;
            } else if left.is_zero() {
                return true;
            }
            state = self.wait(state, left);
        }
    }

    /// Waits for a change of the state, for a second at most.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, time.min(Duration::from_secs(1)));
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// The server does not accept this registration any more: register again.
    pub(crate) fn lose(&self, number: u64) {
        let mut state = self.lock();
        if state.stopping.is_none() && self.registration() == number {
            state.lost = Some(number);
        }
        self.changed.notify_all();
    }

    /// An operator has forced the worker offline: all of its tasks are lost, and nothing more is sent.
    pub(crate) fn force_offline(&self, remedy: Option<String>, worker_id: &str) {
        let held = {
            let mut state = self.lock();
            if state.forced.is_some() || state.ended {
                return;
            }
            state.forced = Some(remedy.unwrap_or_else(|| format!("lubdub worker resume {worker_id}")));
            state.draining = true;
            state.beats_over = true;
            std::mem::take(&mut state.held)
        };
        held.iter().for_each(|attempt| attempt.end(End::Lost));
        self.wake();
    }

    /// The completion of an attempt was answered, or is not sent any more.
    pub(crate) fn settled(&self, attempt: &Arc<Attempt>, outcome: &Outcome, settled: &Result<Completion, Error>) {
        let mut state = self.lock();
        match (settled, outcome) {
            (Err(Error::NoAnswer(_)), _) => return, // it stays held, and is given back
            (Ok(_), Outcome::Succeeded(_)) => state.completed += 1,
            (Ok(_), Outcome::Failed(_)) => state.failed += 1,
            _ => {}
        }
        state.held.retain(|other| !Arc::ptr_eq(other, attempt));
        self.changed.notify_all();
    }

    /// Forgets attempts that are over.
    pub(crate) fn forget_ended(&self) {
        self.lock().held.retain(|attempt| attempt.lock().phase != Phase::Over);
    }
}
