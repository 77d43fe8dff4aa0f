//! The description of one attempt, as the server writes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What describes one attempt of a task: the answer to a creation without a queue, or an item of a claim. Times are dates of RFC 3339.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Envelope {
    /// The task.
    pub task_id: String,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    /// The kind of work; None if the task has no type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// None for a task that was dispatched.
    pub queue: Option<String>,
    /// As given at the creation; null if none was.
    pub payload: Value,
    /// As given at the creation.
    pub labels: BTreeMap<String, String>,
    /// As given at the creation.
    pub resources: Value,
    /// The caller's name for the work.
    pub task_key: Option<String>,
    /// The group of the task.
    pub run_id: String,
    /// When the task fails if it has not finished.
    pub deadline: Option<String>,
    /// How long an attempt has to end after a cancel.
    pub cancel_grace_period_ms: u64,
    /// The time limit of an attempt; None: it has none.
    pub run_timeout_ms: Option<u64>,
    /// The W3C trace context of the creation.
    pub traceparent: Option<String>,
    /// What earlier attempts reported last; None if they reported nothing.
    pub last_progress: Option<Progress>,
    pub(crate) state: String,
    pub(crate) heartbeat_interval_ms: u64,
    pub(crate) heartbeat_timeout_ms: Option<u64>,
    pub(crate) callback_base_url: String,
    pub(crate) task_token: String,
    pub(crate) token_expires_at: String,
}

/// What earlier attempts of a task reported last.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Progress {
    /// 0 to 100; None if only checkpoints were reported.
    pub progress_pct: Option<f64>,
    /// None if the report had none.
    pub message: Option<String>,
    /// The last checkpoint; None if there was none.
    pub details: Option<Value>,
}

/// Without the token.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").field("task_id", &self.task_id).field("attempt", &self.attempt).field("type", &self.kind).finish()
    }
}
