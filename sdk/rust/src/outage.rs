//! An outage is one line in the log when it begins, and one when it is over.

use std::sync::Mutex;

use crate::clock::Moment;
use crate::lock;
use crate::logging::{write, Level, Logger};

#[derive(Default)]
pub(crate) struct Outage {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    began: Option<Moment>,
    over: Option<Moment>,
}

impl Outage {
    /// A call failed. One that was sent before the last outage was over belongs to that.
    pub(crate) fn failed(&self, logger: &Logger, sent: Moment, call: &str, why: &str) {
        let mut state = lock(&self.state);
        if state.began.is_none() && state.over.map_or(true, |over| sent > over) {
            state.began = Some(Moment::now());
            write(logger, Level::Warn, format_args!("No answer from Lubdub: {call}: {why}; repeated until there is one"));
        }
    }

    /// A call was answered. One that was sent before the outage began shows nothing.
    pub(crate) fn answered(&self, logger: &Logger, sent: Moment) {
        let mut state = lock(&self.state);
        if let Some(began) = state.began.filter(|began| sent > *began) {
            *state = State { began: None, over: Some(Moment::now()) };
            write(logger, Level::Warn, format_args!("Lubdub answers again, after {:.1} s", Moment::now().since(began).as_secs_f64()));
        }
    }
}
