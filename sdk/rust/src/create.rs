//! Creating tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::clock::Moment;
use crate::core::{is_repeated, Call, Repeat};
use crate::envelope::Envelope;
use crate::errors::{ApiError, Error};
use crate::failure::LONGEST_DELAY;
use crate::logging::Level;
use crate::random;

/// How many creations one request may have.
const MOST_ITEMS: usize = 1000;
/// Below this timeout there is no room for one Retry-After.
const SHORT_TIMEOUT_MS: u64 = 3000;
/// What a server uses for an interval that is not given, and for a timeout.
const USUAL_INTERVAL_MS: u64 = 30_000;

/// A task to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewTask {
    /// Where it waits. None: it is dispatched at once, and its creation returns the envelope of its first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The kind of work. None: only a worker with a default handler runs it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Any JSON value for the handler.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    /// Makes creations with this key the same one for 24 hours. None: a new one is drawn at each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The time from the creation to the first claim at the earliest, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// How often a worker should send heartbeats, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval_ms: Option<u64>,
    /// How long an attempt may be silent, in milliseconds: at least twice the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// To find the task by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Any other field of `POST /v1/tasks`, such as retry or deadline, by its name there.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A task that was created.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Created {
    /// Its id.
    pub task_id: String,
    /// Its state: QUEUED, SCHEDULED or DISPATCHED.
    pub state: String,
    /// The envelope of its first attempt, if it was dispatched; for [`Client::track`].
    pub envelope: Option<Envelope>,
    /// The whole answer, for other fields.
    pub answer: Value,
}

impl NewTask {
    /// A task for a queue. A payload that is not JSON is an error.
    pub fn new(queue: &str, kind: &str, payload: &(impl Serialize + ?Sized)) -> Result<NewTask, Error> {
        let payload = serde_json::to_value(payload).map_err(|e| Error::Unsendable(format!("the payload is not JSON: {e}")))?;
        Ok(NewTask { queue: Some(queue.into()), kind: Some(kind.into()), payload, ..NewTask::default() })
    }

    /// The same, not claimed before this time, at most 366 days, has passed since the creation.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> NewTask {
        self.delay_ms = u64::try_from(delay.min(LONGEST_DELAY).as_millis()).ok();
        self
    }

    fn check(&self, client: &Client) -> Result<(), Error> {
        let interval = self.heartbeat_interval_ms.unwrap_or(USUAL_INTERVAL_MS);
        match self.heartbeat_timeout_ms {
            Some(timeout) if self.heartbeat_interval_ms.is_some() && timeout < 2 * interval => Err(Error::Usage(format!(
                "a heartbeat timeout of {timeout} ms is below twice the interval of {interval} ms: set heartbeat_timeout_ms to {} or more",
                2 * interval
            ))),
            Some(timeout) if timeout < SHORT_TIMEOUT_MS => {
                let core = &client.core;
                core.log(
                    Level::Warn,
                    format_args!("a heartbeat timeout of {timeout} ms leaves no room for one Retry-After: set 3000 or more"),
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Box<RawValue>>,
}

impl Client {
    /// Creates a task in a queue. The client's own repeats are safe.
    pub fn enqueue(&self, queue: &str, kind: &str, payload: &(impl Serialize + ?Sized)) -> Result<Created, Error> {
        self.create_task(&NewTask::new(queue, kind, payload)?)
    }

    /// Creates a task. The client's own repeats are safe; to repeat a call that failed, set the idempotency_key of the task.
    pub fn create_task(&self, task: &NewTask) -> Result<Created, Error> {
        self.create_tasks(std::slice::from_ref(task)).pop().unwrap_or_else(|| Err(Error::NoAnswer("an answer without a result".into())))
    }

    /// Creates any number of tasks, 1,000 in a request, and returns one result for each, in order. Creations that are answered 503 or 429
    /// are repeated, without the others, until the client's patience is over.
    pub fn create_tasks(&self, tasks: &[NewTask]) -> Vec<Result<Created, Error>> {
        tasks.chunks(MOST_ITEMS).flat_map(|batch| self.create_batch(batch)).collect()
    }

    fn create_batch(&self, tasks: &[NewTask]) -> Vec<Result<Created, Error>> {
        let keyed =
            |task: &NewTask| NewTask { idempotency_key: task.idempotency_key.clone().or_else(|| Some(random::id())), ..task.clone() };
        let keyed: Vec<NewTask> = tasks.iter().map(keyed).collect();
        let mut results: Vec<Result<Created, Error>> =
            keyed.iter().map(|task| task.check(self).and(Err(Error::NoAnswer("it was not sent".into())))).collect();
        let mut open: Vec<usize> = (0..keyed.len()).filter(|&i| matches!(results[i], Err(Error::NoAnswer(_)))).collect();
        let until = Moment::now() + self.core.patience;
        let wait = |pause: Duration| {
            let waits = pause < until.left() && !self.core.is_closed();
            if waits {
                std::thread::sleep(pause);
            }
            waits
        };
        let how = Repeat { interval: Duration::from_secs(60), longest_pause: Duration::from_secs(5), wait: &wait };
        let mut failures = 0;
        while !open.is_empty() {
            let body = serde_json::json!({ "tasks": open.iter().map(|&i| &keyed[i]).collect::<Vec<_>>() }).to_string();
            let answer =
                self.core.control(&Call::new("/v1/tasks:batch", body.as_bytes()), &how).and_then(|answer| answer.decode::<Results>());
            let answers = match answer {
                Ok(answers) if answers.results.len() == open.len() => answers.results,
                Ok(_) => vec![],
                Err(problem) => {
                    open.iter().for_each(|&i| results[i] = Err(problem.clone()));
                    break;
                }
            };
            let mut repeated = Vec::new();
            let mut pause = Duration::ZERO;
            for (&i, json) in open.iter().zip(&answers) {
                let (result, retry_after) = result(json.get());
                results[i] = result;
                if let Some(retry_after) = retry_after {
                    repeated.push(i);
                    pause = pause.max(retry_after);
                }
            }
            open = repeated;
            if open.is_empty() || !wait(pause + random::pause(failures, how.interval).min(how.longest_pause)) {
                break;
            }
            failures += 1;
        }
        results
    }
}

/// Reads one result, and after what pause its creation is repeated; None: it is not.
fn result(json: &str) -> (Result<Created, Error>, Option<Duration>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Status {
        status: u16,
        retry_after_ms: u64,
    }
    let status: Status = serde_json::from_str(json).unwrap_or_default();
    if !(200..300).contains(&status.status) {
        let refusal = ApiError::of(status.status, json.as_bytes());
        let again = is_repeated(status.status).then(|| Duration::from_millis(status.retry_after_ms));
        return (Err(Error::Refused(Box::new(refusal))), again);
    }
    let envelope: Envelope = serde_json::from_str(json).unwrap_or_default();
    let created = Created {
        task_id: envelope.task_id.clone(),
        state: envelope.state.clone(),
        envelope: Some(envelope).filter(|envelope| !envelope.task_token.is_empty()),
        answer: serde_json::from_str(json).unwrap_or_default(),
    };
    (Ok(created), None)
}
