//! What a call can fail with.

use std::fmt;

use serde::Deserialize;

use crate::ends::End;

/// A refusal by the server.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The code, such as task_not_found; empty if the answer had none.
    #[serde(rename = "error")]
    pub code: String,
    /// What happened and what to do about it.
    pub message: String,
    /// The field that is wrong, as a path such as retry.maxAttempts.
    pub field: Option<String>,
    /// Why the attempt has ended, or why the worker is OFFLINE.
    pub reason: Option<String>,
    /// The command that lifts the hold on a worker or machine.
    pub remedy: Option<String>,
    /// The task's state.
    pub state: Option<String>,
}

impl ApiError {
    pub(crate) fn of(status: u16, body: &[u8]) -> ApiError {
        let mut refusal: ApiError = serde_json::from_slice(body).unwrap_or_default();
        refusal.status = status;
        refusal
    }

    pub(crate) fn end(&self) -> Option<End> {
        End::of(self.status, &self.code, self.reason.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status, self.code, self.message)?;
        self.field.iter().try_for_each(|field| write!(f, " (field {field})"))
    }
}

/// What a call can fail with. It contains no token.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The arguments, settings or environment are wrong: what, and how to mend it.
    Usage(String),
    /// The server refused.
    Refused(Box<ApiError>),
    /// No server answered, or each said that it cannot, until the call gave up: the last problem.
    NoAnswer(String),
    /// The attempt's work must end.
    Ended(End),
    /// The output, payload or checkpoint cannot be sent: why.
    Unsendable(String),
    /// An operator forced the worker offline.
    ForcedOffline {
        /// The command that resumes it.
        remedy: String,
    },
    /// The worker has stopped, and these tasks were returned to the queue.
    Unfinished {
        /// Their ids.
        tasks: Vec<String>,
        /// Whether the server has confirmed that; if not, others get the tasks after the worker's heartbeat timeout.
        confirmed: bool,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(what) | Error::Unsendable(what) => f.write_str(what),
            Error::Refused(refusal) => refusal.fmt(f),
            Error::NoAnswer(why) => write!(f, "no answer from Lubdub: {why}"),
            Error::Ended(end) => end.fmt(f),
            Error::ForcedOffline { remedy } => write!(f, "an operator forced this worker offline; to resume it: {remedy}"),
            Error::Unfinished { tasks, confirmed: true } => write!(f, "tasks were returned to the queue: {}", tasks.join(", ")),
            Error::Unfinished { tasks, confirmed: false } => write!(
                f,
                "the server did not confirm the end of this worker: others get its tasks after its heartbeat timeout: {}",
                tasks.join(", ")
            ),
        }
    }
}

/// As a program prints that returns it from `main`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Ended(end) => Some(end),
            _ => None,
        }
    }
}
