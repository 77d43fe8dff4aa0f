//! The thread that sends the heartbeats of tracked attempts, many in one request.

use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use crate::attempt::{Attempt, Phase};
use crate::beats;
use crate::clock::Moment;
use crate::core::Core;
use crate::lock;

#[derive(Default)]
pub(crate) struct Beater {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    attempts: Vec<Weak<Attempt>>,
    running: bool,
}

/// How long the thread sleeps at most: the clock of its wait may not count suspended time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Beater {
    /// Sends heartbeats of an attempt from now on, the first at once.
    pub(crate) fn add(&self, attempt: &Arc<Attempt>) {
        let mut state = lock(&self.state);
        state.attempts.push(Arc::downgrade(attempt));
        self.changed.notify_all();
        if !std::mem::replace(&mut state.running, true) {
            let core = Arc::downgrade(&attempt.core);
            crate::spawn("lubdub-beats", move || while core.upgrade().map_or(false, |core| core.beater.tick(&core)) {});
        }
    }

    pub(crate) fn wake(&self) {
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    /// Waits until a heartbeat is due, or for a second, and sends it; false: there is no attempt any more.
    fn tick(&self, core: &Core) -> bool {
        let due = {
            let mut state = lock(&self.state);
            let live: Vec<(Moment, Duration, Arc<Attempt>)> = state.attempts.iter().filter_map(Weak::upgrade).filter_map(next).collect();
            state.attempts = live.iter().map(|(_, _, attempt)| Arc::downgrade(attempt)).collect();
            if live.is_empty() || core.is_closed() {
                state.running = false;
                return false;
            }
            let first = live.iter().map(|(due, _, _)| *due).min().unwrap_or_else(Moment::now);
            if !first.over() {
                drop(self.changed.wait_timeout(state, first.left().min(LONGEST_SLEEP)));
                return true;
            }
            // All that would be due before the next tick go along, but none whose pause after a failure is not over.
            let interval = live.iter().filter(|(due, _, _)| due.over()).map(|(_, interval, _)| *interval).min().unwrap_or_default();
            let next_tick = Moment::now() + interval;
            let goes = |due: Moment, attempt: &Attempt| due.over() || (due < next_tick && attempt.lock().failures == 0);
            live.into_iter().filter(|(due, _, attempt)| goes(*due, attempt)).map(|(_, _, attempt)| attempt).collect::<Vec<_>>()
        };
        beats::send(core, &due);
        true
    }
}

/// When the attempt's next heartbeat is due, and its interval; None: it gets none any more.
fn next(attempt: Arc<Attempt>) -> Option<(Moment, Duration, Arc<Attempt>)> {
    let (phase, due, interval) = {
        let state = attempt.lock();
        (state.phase, state.due, state.interval)
    };
    (phase == Phase::Running).then(|| (due, interval, attempt))
}
