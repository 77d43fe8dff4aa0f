//! Completions that are ready at the same time, sent together.

use std::collections::VecDeque;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::shared::Shared;
use crate::attempt::Attempt;
use crate::core::{is_repeated, Call};
use crate::lock;
use crate::random;

/// How many completions one request may have.
const MOST_ENTRIES: usize = 100;
/// How many bytes one request has at most, unless its first completion is larger.
const LARGEST_REQUEST: usize = 1 << 20;

/// The result of one completion: its status and answer, or the pause after which it is to be sent alone.
type Result = std::result::Result<(u16, Vec<u8>), Duration>;

#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    ended: bool,
}

struct Entry {
    json: String,
    interval: Duration,
    reply: SyncSender<Result>,
}

#[derive(Deserialize)]
struct Response {
    completed: Vec<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EntryResult {
    status: u16,
    retry_after_ms: u64,
}

impl Shared {
    /// Sends a completion in the next exchange. None: the server has no exchanges, or the worker ends, and it is sent alone.
    pub(crate) fn exchange(&self, attempt: &Attempt, body: &[u8]) -> Option<Result> {
        if !self.session().map_or(false, |session| session.exchanges) {
            return None;
        }
        let completion = std::str::from_utf8(body).ok()?.strip_prefix('{')?;
        let json = format!("{{\"taskId\":\"{}\",{completion}", attempt.id());
        let (reply, result) = sync_channel(1);
        let interval = attempt.lock().interval;
        {
            let mut state = lock(&self.exchange.state);
            if state.ended {
                return None;
            }
            state.entries.push_back(Entry { json, interval, reply });
            self.exchange.changed.notify_all();
        }
        result.recv().ok()
    }

    /// Ends the exchanges; what waits is not sent.
    pub(crate) fn end_exchanges(&self) {
        let mut state = lock(&self.exchange.state);
        state.ended = true;
        state.entries.clear();
        self.exchange.changed.notify_all();
    }

    /// Sends exchanges, one at a time, until they are ended.
    pub(crate) fn send_exchanges(&self) {
        while let Some(entries) = self.exchange.next() {
            self.send_exchange(&entries);
        }
    }

    fn send_exchange(&self, entries: &[Entry]) {
        let bodies: Vec<&str> = entries.iter().map(|entry| entry.json.as_str()).collect();
        let body = format!("{{\"completed\":[{}]}}", bodies.join(","));
        let again = |entry: &Entry, retry_after| {
            let _ = entry.reply.send(Err(retry_after + random::pause(0, entry.interval)));
            // the receiver may be gone
        };
        let session = match self.session() {
            Some(session) => session,
            None => return,
        };
        let path = format!("/v1/workers/{}/exchange", session.id);
        match self.core.once(&Call::new(&path, body.as_bytes()), &session.token, 0) {
            Ok(answer) => {
                let results = answer.decode::<Response>().map(|response| response.completed).unwrap_or_default();
                for (i, entry) in entries.iter().enumerate() {
                    let json = results.get(i).map_or("null", |result| result.get());
                    match serde_json::from_str::<EntryResult>(json).unwrap_or_default() {
                        // Alone it has the token of its task, which may prove more than the worker's.
                        EntryResult { status: 0 | 401 | 403, .. } => {
                            let _ = entry.reply.send(Err(Duration::ZERO));
                        }
                        result if is_repeated(result.status) => again(entry, Duration::from_millis(result.retry_after_ms)),
                        result => {
                            let _ = entry.reply.send(Ok((result.status, json.as_bytes().to_vec())));
                        }
                    }
                }
            }
            Err(unanswered) => entries.iter().for_each(|entry| again(entry, unanswered.retry_after)),
        }
    }
}

impl Exchange {
    /// Waits for completions, and returns those of the next request; None: the exchanges have ended.
    fn next(&self) -> Option<Vec<Entry>> {
        let mut state = lock(&self.state);
        while state.entries.is_empty() {
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let mut size = 0;
        let fits = |entry: &&Entry| {
            size += entry.json.len() + 1;
            size <= LARGEST_REQUEST
        };
        let count = state.entries.iter().take(MOST_ENTRIES).take_while(fits).count().max(1);
        Some(state.entries.drain(..count).collect())
    }
}
