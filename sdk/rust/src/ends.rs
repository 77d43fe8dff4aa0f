//! Why the work on an attempt must end.

use std::error::Error;
use std::fmt;

/// Why the work on an attempt must end: what [`Task::check`](crate::Task::check) fails with. A handler cleans up and returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// A cancel was requested, with this reason, which may be empty.
    Cancelled {
        /// As the canceller gave it.
        reason: String,
    },
    /// The attempt is no longer this process's: the task has ended otherwise, or was given to another worker.
    Lost,
    /// A newer attempt of the task exists.
    Superseded,
    /// Lubdub has ended the attempt, as after a heartbeat timeout.
    Expired {
        /// The server's code, such as HEARTBEAT_TIMEOUT; may be empty.
        reason: String,
    },
    /// The task's deadline has passed.
    DeadlineExceeded,
    /// No heartbeat was accepted for the length of the lease, with [`Lease::Strict`](crate::Lease::Strict).
    LeaseEnded,
    /// The worker stops: a result still counts, a failure gives the task back.
    Stopping,
    /// The attempt has reached its time limit.
    TaskTimeout,
    /// The watchdog saw no progress for its time.
    Stuck,
}

impl End {
    /// Whether nothing is sent about the attempt any more.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, End::Cancelled { .. } | End::Stopping | End::TaskTimeout | End::Stuck)
    }

    /// The end that a refusal of an attempt's call means; None if the attempt continues.
    pub(crate) fn of(status: u16, code: &str, reason: &str) -> Option<End> {
        match (status, code, reason) {
            (409, "attempt_mismatch", _) => Some(End::Superseded),
            (409, "task_already_terminal", _) => Some(End::Lost),
            (410, "task_expired", "DEADLINE_EXCEEDED") => Some(End::DeadlineExceeded),
            (410, "task_expired", reason) => Some(End::Expired { reason: reason.to_string() }),
            _ => None,
        }
    }

    /// The end in an error or in one of its causes.
    pub(crate) fn in_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a End> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(end) = error.downcast_ref() {
                return Some(end);
            }
            // An I/O error is the error that was put into it, not its cause.
            let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        }
        None
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Cancelled { reason } if reason.is_empty() => write!(f, "the task was cancelled"),
            End::Cancelled { reason } => write!(f, "the task was cancelled: {reason}"),
            End::Lost => write!(f, "the attempt is no longer this process's"),
            End::Superseded => write!(f, "a newer attempt of the task exists"),
            End::Expired { reason } if reason.is_empty() => write!(f, "Lubdub has ended the attempt"),
            End::Expired { reason } => write!(f, "Lubdub has ended the attempt: {reason}"),
            End::DeadlineExceeded => write!(f, "the task's deadline has passed"),
            End::LeaseEnded => write!(f, "no heartbeat was accepted for the length of the lease"),
            End::Stopping => write!(f, "the worker stops"),
            End::TaskTimeout => write!(f, "the attempt has reached its time limit"),
            End::Stuck => write!(f, "the attempt reported no progress"),
        }
    }
}

impl Error for End {}
