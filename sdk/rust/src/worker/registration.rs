//! The registration of a worker, and of what it found about itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shared::{Session, Shared};
use super::{claims, identity};
use crate::clock::Moment;
use crate::core::{Call, Repeat};
use crate::errors::Error;
use crate::lock;
use crate::logging::Level;
use crate::random;

/// The longest pause between repeats.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// More registrations than this within a minute are a trouble that needs pauses.
const MANY_REGISTRATIONS: usize = 3;
/// Below this timeout there is no room for one Retry-After.
const SHORT_LEASE: Duration = Duration::from_secs(3);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    queue: &'a str,
    types: Vec<&'a String>,
    runtimes: Vec<String>,
    name: &'a str,
    #[serde(skip_serializing_if = "String::is_empty")]
    machine_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hostname: String,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    max_concurrent: usize,
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_url: Option<String>,
    registration_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    worker_id: String,
    worker_token: String,
    heartbeat_interval_ms: u64,
    heartbeat_timeout_ms: u64,
    machine_id: String,
    #[serde(default)]
    should_drain: bool,
    #[serde(default)]
    capabilities: Vec<String>,
}

impl Shared {
    /// Registers, and repeats that until there is an answer. False: a stop came before.
    pub(crate) fn register(&self) -> Result<bool, Error> {
        let request = Request {
            queue: &self.options.queue,
            types: self.handlers.keys().collect(),
            runtimes: identity::runtimes_found(),
            name: &lock(&self.name).clone().unwrap_or_default(),
            machine_id: self.machine(),
            hostname: identity::hostname(),
            pid: std::process::id(),
            version: self.options.version.as_deref(),
            max_concurrent: self.options.concurrency,
            labels: &self.options.labels,
            probe_url: lock(&self.probe_url).clone(),
            registration_id: random::id(),
        };
        let body = serde_json::to_vec(&request).map_err(|e| Error::Usage(format!("the registration: {e}")))?;
        let stops = |state: &super::shared::State| state.stopping.is_some() || state.beats_over;
        let wait = |pause| self.pause(pause, &stops);
        // The interval is not known: the pauses grow to the longest one.
        let how = Repeat { interval: 4 * LONGEST_PAUSE, longest_pause: LONGEST_PAUSE, wait: &wait };
        let answer = match self.core.control(&Call::new("/v1/workers", &body), &how) {
            Err(Error::NoAnswer(_)) if stops(&self.lock()) => return Ok(false),
            answer => answer?,
        };
        let refusal = answer.refusal();
        if answer.status == 409 && refusal.code == "worker_held_offline" {
            let remedy = refusal.remedy.unwrap_or_else(|| format!("lubdub worker resume {}", lock(&self.name).clone().unwrap_or_default()));
            return Err(Error::ForcedOffline { remedy });
        }
        let response: Response = answer.decode()?;
        self.begin_session(response, answer.sent);
        Ok(true)
    }

    fn begin_session(&self, response: Response, sent: Moment) {
        let number = self.registration() + 1;
        let lease = Duration::from_millis(response.heartbeat_timeout_ms);
        *lock(&self.session) = Some(Session {
            number,
            id: response.worker_id.clone(),
            token: response.worker_token,
            interval: Duration::from_millis(response.heartbeat_interval_ms.max(1)),
            lease,
            exchanges: response.capabilities.iter().any(|name| name == "exchange"),
            registered: sent,
        });
        let waits = {
            let mut state = self.lock();
            state.lost = None;
            state.ticked = Some(sent);
            let waits = response.should_drain && !state.waiting;
            state.waiting = response.should_drain;
            waits
        };
        self.core.log(Level::Info, format_args!("Worker registered with ID: {}", response.worker_id));
        if waits {
            let machine = response.machine_id;
            self.core.log(Level::Info, format_args!("machine {machine} is drained; waiting until it is resumed"));
        }
        if number == 1 && lease < SHORT_LEASE {
            self.core.log(Level::Warn, format_args!("a heartbeat timeout of {lease:?} leaves no room for one Retry-After"));
        }
        self.changed.notify_all();
    }

    /// Registers again until that succeeds, or the worker stops or is forced offline. Earlier registrations are at these moments.
    pub(crate) fn register_again(&self, earlier: &mut Vec<Moment>) {
        let stops = |state: &super::shared::State| state.stopping.is_some() || state.beats_over;
        earlier.retain(|at| Moment::now().since(*at) < Duration::from_secs(60));
        let mut failures = 0;
        if earlier.len() > MANY_REGISTRATIONS {
            let pause = Duration::from_secs(1 << (earlier.len() - MANY_REGISTRATIONS - 1).min(6)).min(Duration::from_secs(60));
            if !self.pause(pause, &stops) {
                return;
            }
        }
        earlier.push(Moment::now());
        loop {
            match self.register() {
                Ok(_) => return,
                Err(Error::ForcedOffline { remedy }) => return self.force_offline(Some(remedy), ""),
                Err(problem) => {
                    if failures == 0 {
                        self.core.log(Level::Error, format_args!("The worker cannot register again: {problem}; it is repeated"));
                    }
                    let pause = random::pause(failures + 4, 4 * LONGEST_PAUSE).min(LONGEST_PAUSE);
                    if !self.pause(pause, &stops) {
                        return;
                    }
                    failures += 1;
                }
            }
        }
    }

    pub(crate) fn start_threads(self: &Arc<Shared>) {
        let (beats, claims) = (self.clone(), self.clone());
        crate::spawn("lubdub-heartbeats", move || {
            beats.beat();
            beats.lock().beats_ended = true;
            beats.changed.notify_all();
        });
        crate::spawn("lubdub-claims", move || {
            claims::claim(&claims);
            claims.lock().claims_ended = true;
            claims.changed.notify_all();
        });
        let exchange = self.clone();
        crate::spawn("lubdub-exchange", move || exchange.send_exchanges());
    }
}
