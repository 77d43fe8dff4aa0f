//! Heartbeats of single attempts, alone or many in one request, and their answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attempt::Attempt;
use crate::clock::{parse_date, Moment};
use crate::core::{is_repeated, Call, Core, Repeat, CALL_TIMEOUT};
use crate::ends::End;
use crate::logging::Level;
use crate::random;
use crate::report::{Item, LARGEST_REPORTS};

/// How many attempts one request may name.
const MOST_ITEMS: usize = 1000;
/// How long unsent progress is repeated before an attempt is given back.
const FLUSH_TIME: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Request {
    heartbeats: Vec<Item>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Answer>,
}

/// The answer to a heartbeat of an attempt, with the status that it would have got on its own.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    error: String,
    message: String,
    reason: Option<String>,
    next_heartbeat_ms: Option<u64>,
    should_cancel: bool,
    cancel_reason: Option<String>,
    task_token: Option<String>,
    token_expires_at: Option<String>,
    retry_after_ms: u64,
}

impl Attempt {
    /// The answer to a heartbeat that began with begin_beat, which this ends.
    pub(crate) fn answered(&self, answer: &Answer, sent: Moment) {
        if answer.status == 200 {
            self.accepted(answer, sent);
            return;
        }
        self.end_beat(None);
        let end = End::of(answer.status, &answer.error, answer.reason.as_deref().unwrap_or_default());
        if let Some(end) = end {
            self.end(end);
        } else if is_repeated(answer.status) {
            self.again(Duration::from_millis(answer.retry_after_ms));
        } else {
            let mut state = self.lock();
            state.due = sent + random::spread(state.interval);
            if !std::mem::replace(&mut state.fault_logged, true) {
                let why = format!("{} {} {}", answer.status, answer.error, answer.message);
                self.core.log(Level::Error, format_args!("{}: the heartbeat was refused: {why}", self.name()));
            }
        }
    }

    fn accepted(&self, answer: &Answer, sent: Moment) {
        {
            let mut state = self.lock();
            if let Some(next) = answer.next_heartbeat_ms {
                state.interval = Duration::from_millis(next.max(1));
            }
            if let Some(token) = &answer.task_token {
                state.token = token.clone();
                state.expires = answer.token_expires_at.as_deref().and_then(parse_date);
            }
        }
        self.end_beat(Some(sent));
        if answer.should_cancel {
            self.end(End::Cancelled { reason: answer.cancel_reason.clone().unwrap_or_default() });
        }
    }

    /// The next heartbeat is a repeat, after a pause.
    fn again(&self, retry_after: Duration) {
        let mut state = self.lock();
        state.due = Moment::now() + retry_after + random::pause(state.failures, state.interval);
        state.failures += 1;
    }

    /// Sends what no heartbeat has sent before the completion, and repeats it like that. The answer may end the attempt.
    pub(crate) fn flush(&self) {
        if let Some(answer) = self.take_unsent().and_then(|body| self.call("heartbeat", &body).ok()) {
            self.flushed(&answer);
        }
    }

    /// The same with the worker's token, before the attempt is given back; it is repeated for at most two seconds.
    pub(crate) fn flush_given_back(&self) {
        let token = self.worker.as_ref().and_then(|worker| worker.token()).unwrap_or_default();
        let until = Moment::now() + FLUSH_TIME;
        let wait = |pause| {
            let waits = pause < until.left();
            if waits {
                std::thread::sleep(pause);
            }
            waits
        };
        let how = Repeat { interval: self.lock().interval, longest_pause: FLUSH_TIME, wait: &wait };
        if let Some(body) = self.take_unsent() {
            let path = self.path("heartbeat");
            let call = Call { path: &path, body: &body, base: Some(&self.envelope.callback_base_url), timeout: FLUSH_TIME };
            if let Ok(answer) = self.core.repeat(&call, &|| token.clone(), &how) {
                self.flushed(&answer);
            }
        }
    }

    /// The body of a heartbeat with what is unsent; None: nothing is.
    fn take_unsent(&self) -> Option<Vec<u8>> {
        let report = std::mem::take(&mut self.lock().unsent);
        if report.is_empty() {
            return None;
        }
        serde_json::to_vec(&Item::new(None, self.envelope.attempt, report)).ok()
    }

    fn flushed(&self, answer: &crate::transport::Answer) {
        let mut parsed: Answer = serde_json::from_slice(&answer.body).unwrap_or_default();
        parsed.status = answer.status;
        self.answered(&parsed, answer.sent);
    }
}

/// Sends heartbeats of attempts with their own tokens, in as few requests as possible.
pub(crate) fn send(core: &Core, attempts: &[Arc<Attempt>]) {
    let mut by_address: BTreeMap<&str, Vec<&Arc<Attempt>>> = BTreeMap::new();
    for attempt in attempts {
        by_address.entry(&attempt.envelope.callback_base_url).or_default().push(attempt);
    }
    for (address, mut of_address) in by_address {
        // What did not fit goes first.
        of_address.sort_by_key(|attempt| {
            let since = attempt.lock().unsent_since;
            (since.is_none(), since)
        });
        of_address.chunks(MOST_ITEMS).for_each(|chunk| send_chunk(core, address, chunk));
    }
}

fn send_chunk(core: &Core, address: &str, chunk: &[&Arc<Attempt>]) {
    let mut room = LARGEST_REPORTS;
    let mut named = Vec::new();
    let mut heartbeats = Vec::new();
    for attempt in chunk {
        if let Some(mut item) = attempt.begin_beat(true, &mut room) {
            item.task_token = Some(attempt.lock().token.clone());
            heartbeats.push(item);
            named.push(*attempt);
        }
    }
    if named.is_empty() {
        return;
    }
    let body = serde_json::to_vec(&Request { heartbeats }).unwrap_or_default();
    let lease = named.iter().map(|attempt| attempt.lease()).min().unwrap_or(CALL_TIMEOUT);
    let failures = named.iter().map(|attempt| attempt.lock().failures).max().unwrap_or(0);
    let call = Call { path: "/v1/heartbeats", body: &body, base: Some(address), timeout: (lease / 3).min(CALL_TIMEOUT) };
    let sent = Moment::now();
    match core.once(&call, "", failures) {
        Ok(answer) => {
            let results = answer.decode::<Results>().map(|answers| answers.results).unwrap_or_default();
            for (i, attempt) in named.iter().enumerate() {
                let refused = || {
                    let refusal = answer.refusal();
                    Answer { status: answer.status.max(400), error: refusal.code, message: refusal.message, ..Answer::default() }
                };
                attempt.answered(&results.get(i).cloned().unwrap_or_else(refused), sent);
            }
        }
        Err(unanswered) => {
            for attempt in named {
                attempt.end_beat(None);
                attempt.again(unanswered.retry_after);
            }
        }
    }
}
