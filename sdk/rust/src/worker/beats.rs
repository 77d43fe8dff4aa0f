//! The worker's heartbeats: one request for all that it holds.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shared::{Session, Shared};
use crate::attempt::{Attempt, Phase};
use crate::beats::send;
use crate::clock::Moment;
use crate::core::{Call, Unanswered, CALL_TIMEOUT};
use crate::ends::End;
use crate::lock;
use crate::logging::Level;
use crate::random;
use crate::report::{Item, LARGEST_REPORTS};
use crate::transport::Answer;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    seq: u64,
    active_count: usize,
    completed_delta: u64,
    failed_delta: u64,
    /// None: this heartbeat is no inventory, and omits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Vec<Item>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    cancel_tasks: Vec<Named>,
    #[serde(default)]
    lost_tasks: Vec<Named>,
    should_drain: bool,
    drain_deadline: Option<String>,
    heartbeat_interval_ms: u64,
    heartbeat_timeout_ms: u64,
    worker_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    task_id: String,
    attempt: u64,
    reason: Option<String>,
    #[serde(default)]
    error: String,
}

/// The counts of one heartbeat, until it is accepted.
#[derive(Clone, Copy, Default)]
struct Counts {
    completed: u64,
    failed: u64,
}

/// Where the heartbeats of a registration are.
struct Place {
    session: u64,
    seq: u64,
    unconfirmed: Option<Counts>,
    due: Moment,
    failures: u32,
    fault_logged: bool,
}

impl Shared {
    /// Sends heartbeats, and registers again where that is needed, until the worker has ended.
    pub(crate) fn beat(&self) {
        let mut place = Place { session: 0, seq: 0, unconfirmed: None, due: Moment::now(), failures: 0, fault_logged: false };
        let mut registrations = vec![Moment::now()];
        while let Some(session) = self.session() {
            if session.number != place.session {
                self.begin(&mut place, &session);
            }
            let held = {
                let state = self.lock();
                if state.beats_over {
                    return;
                }
                let lost = state.lost == Some(session.number);
                let due = if place.failures == 0 { first_due(&state.held, place.due) } else { place.due };
                if !lost && !due.over() {
                    drop(self.wait(state, due.left()));
                    continue;
                }
                (!lost).then(|| state.held.clone())
            };
            match held {
                Some(held) => self.tick(&mut place, &session, &held),
                None => self.register_again(&mut registrations),
            }
        }
    }

    /// The numbers start again under a new registration; counts that are not confirmed are sent again.
    fn begin(&self, place: &mut Place, session: &Session) {
        if let Some(counts) = place.unconfirmed.take() {
            let mut state = self.lock();
            state.completed += counts.completed;
            state.failed += counts.failed;
        }
        // What the worker holds is listed at once under a registration that replaces another one.
        let wait = if session.number == 1 { random::spread(session.interval) } else { Duration::ZERO };
        *place = Place { session: session.number, seq: 0, due: session.registered + wait, failures: 0, fault_logged: false, ..*place };
    }

    fn tick(&self, place: &mut Place, session: &Session, held: &[Arc<Attempt>]) {
        self.lock().ticked = Some(Moment::now());
        // Those that an inventory has omitted before their completion was answered forbid another one.
        let omitted = |attempt: &Arc<Attempt>| {
            let state = attempt.lock();
            state.phase == Phase::Completing && state.completing_under == session.number && state.omitted
        };
        let mut named = Vec::new();
        let tasks = if held.iter().any(omitted) { None } else { Some(inventory(held, &mut named)) };
        let is_inventory = tasks.is_some();
        let counts = *place.unconfirmed.get_or_insert_with(|| {
            place.seq += 1;
            let mut state = self.lock();
            Counts { completed: std::mem::take(&mut state.completed), failed: std::mem::take(&mut state.failed) }
        });
        let active_count = held.iter().filter(|attempt| attempt.lock().phase == Phase::Running).count();
        let request = Request { seq: place.seq, active_count, completed_delta: counts.completed, failed_delta: counts.failed, tasks };
        let body = serde_json::to_vec(&request).unwrap_or_default();
        let path = format!("/v1/workers/{}/heartbeat", session.id);
        let call = Call { timeout: (session.lease / 3).min(CALL_TIMEOUT), ..Call::new(&path, &body) };
        let sent = Moment::now();
        let answer = self.core.once(&call, &session.token, place.failures);
        self.lock().ticked = Some(Moment::now());
        match answer {
            Ok(answer) if answer.status == 200 => {
                let own = held.iter().filter(|attempt| attempt.envelope.heartbeat_timeout_ms.is_some()).cloned().collect::<Vec<_>>();
                self.accepted(place, session, held, &named, is_inventory, &answer, sent);
                if !is_inventory && !own.is_empty() {
                    send(&self.core, &own); // no inventory keeps alive what has its own timeout
                }
            }
            Ok(answer) => {
                named.iter().for_each(|attempt| attempt.end_beat(None));
                self.refused(place, session, &answer);
            }
            Err(Unanswered { retry_after, .. }) => {
                named.iter().for_each(|attempt| attempt.end_beat(None));
                place.due = Moment::now() + retry_after + random::pause(place.failures, session.interval);
                place.failures += 1;
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn accepted(
        &self,
        place: &mut Place,
        session: &Session,
        held: &[Arc<Attempt>],
        named: &[Arc<Attempt>],
        is_inventory: bool,
        answer: &Answer,
        sent: Moment,
    ) {
        place.unconfirmed = None;
        place.failures = 0;
        let response: Response = match answer.decode() {
            Ok(response) => response,
            Err(problem) => {
                named.iter().for_each(|attempt| attempt.end_beat(Some(sent)));
                place.due = sent + random::spread(session.interval);
                return self.core.log(Level::Error, format_args!("The answer to a heartbeat: {problem}"));
            }
        };
        let interval = Duration::from_millis(response.heartbeat_interval_ms.max(1));
        if let Some(current) = lock(&self.session).as_mut().filter(|current| current.number == session.number) {
            current.interval = interval;
            current.lease = Duration::from_millis(response.heartbeat_timeout_ms);
            current.token = response.worker_token.unwrap_or_else(|| current.token.clone());
        }
        place.due = sent + random::spread(interval);
        named.iter().for_each(|attempt| attempt.end_beat(Some(sent)));
        if !is_inventory {
            // Those without their own timeout live as long as the worker.
            for attempt in held.iter().filter(|attempt| attempt.envelope.heartbeat_timeout_ms.is_none()) {
                let mut state = attempt.lock();
                if matches!(state.phase, Phase::Running | Phase::GivenBack) {
                    attempt.renew(&mut state, sent);
                }
            }
        }
        self.core.log(Level::Debug, format_args!("Heartbeat sent successfully, which extended the leases of {} tasks", named.len()));
        let find = |named: &Named| held.iter().find(|attempt| attempt.id() == named.task_id && attempt.envelope.attempt == named.attempt);
        for named in &response.cancel_tasks {
            if let Some(attempt) = find(named) {
                attempt.end(End::Cancelled { reason: named.reason.clone().unwrap_or_default() });
            }
        }
        for named in &response.lost_tasks {
            // The answer to a completion that was handed over decides about its attempt.
            if let Some(attempt) = find(named).filter(|attempt| attempt.lock().phase != Phase::Completing) {
                let status = if named.error == "task_expired" { 410 } else { 409 };
                attempt.end(End::of(status, &named.error, named.reason.as_deref().unwrap_or_default()).unwrap_or(End::Lost));
            }
        }
        self.forget_ended();
        let mut state = self.lock();
        state.drain_deadline = response.drain_deadline;
        if !response.should_drain {
            state.waiting = false;
        } else if !state.waiting {
            state.draining = true;
        }
        self.changed.notify_all();
    }

    fn refused(&self, place: &mut Place, session: &Session, answer: &Answer) {
        place.due = Moment::now() + random::spread(session.interval);
        let refusal = answer.refusal();
        if !self.lost(session, answer) && !std::mem::replace(&mut place.fault_logged, true) {
            self.core.log(Level::Error, format_args!("The worker's heartbeat was refused: {refusal}"));
        }
    }

    /// Whether a refusal to a heartbeat or a claim means that the registration is over, which this brings about.
    pub(crate) fn lost(&self, session: &Session, answer: &Answer) -> bool {
        let refusal = answer.refusal();
        match (refusal.status, refusal.code.as_str(), refusal.reason.as_deref()) {
            (410, "worker_offline", Some("FORCED_OFFLINE")) => self.force_offline(refusal.remedy, &session.id),
            (401, _, _) | (404, "worker_not_found", _) | (410, "worker_offline", _) => self.lose(session.number),
            _ => return false,
        }
        true
    }
}

/// When the next tick is due: the worker's, or earlier where an attempt with its own timeout needs it.
fn first_due(held: &[Arc<Attempt>], workers: Moment) -> Moment {
    let own = held.iter().filter(|attempt| attempt.envelope.heartbeat_timeout_ms.is_some()).filter_map(|attempt| {
        let state = attempt.lock();
        matches!(state.phase, Phase::Running | Phase::GivenBack).then_some(state.due)
    });
    own.fold(workers, Moment::min)
}

/// Lists what is held, with its reports, as far as there is room; what did not fit goes first. It marks what it omits.
fn inventory(held: &[Arc<Attempt>], named: &mut Vec<Arc<Attempt>>) -> Vec<Item> {
    let mut room = LARGEST_REPORTS;
    let mut sorted: Vec<&Arc<Attempt>> = held.iter().collect();
    sorted.sort_by_cached_key(|attempt| {
        let since = attempt.lock().unsent_since;
        (since.is_none(), since)
    });
    let mut items = Vec::new();
    for attempt in sorted {
        match attempt.begin_beat(true, &mut room) {
            Some(item) => {
                items.push(item);
                named.push(attempt.clone());
            }
            None => attempt.lock().omitted = true,
        }
    }
    items
}
