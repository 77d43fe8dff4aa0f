//! How a handler ends an attempt in another way than with a result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::ends::End;

/// The longest delay that a server accepts: 366 days.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(366 * 86_400);

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Category {
    /// The handler's own; the default.
    UserCode,
    /// The data is wrong.
    DataQuality,
    /// A service, the network or the machine failed.
    Infrastructure,
    /// A setting is missing or wrong.
    Configuration,
    /// It took too long.
    Timeout,
    /// The work was not wanted any more.
    Cancelled,
}

/// What a handler returns as its error. Any error becomes a failure with the category [`Category::UserCode`] by `?`; the task's retry
/// policy decides whether there is another attempt. [`snooze`], [`retry_after`], [`permanent`], [`cancelled`] and [`stopped`] make other
/// ends.
pub struct Failure(pub(crate) Kind);

pub(crate) enum Kind {
    Failed(Failed),
    Snooze(Duration),
    Cancelled(String),
    Stopped {
        phase: String,
        partial: Value,
    },
    /// The handler gave up since its work must end.
    GaveUp(End),
}

pub(crate) struct Failed {
    /// None: the default.
    pub(crate) category: Option<Category>,
    pub(crate) message: String,
    pub(crate) retryable: Option<bool>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) stack: Option<String>,
}

impl Failed {
    pub(crate) fn new(category: Category, message: String) -> Failed {
        Failed { category: Some(category), message, retryable: None, retry_after: None, stack: None }
    }
}

impl Failure {
    /// A failure with this message. An error that is given here is only text: `?` and `into` recognise a handler that gave up.
    pub fn new(message: impl fmt::Display) -> Failure {
        Failure(Kind::Failed(Failed { category: None, ..Failed::new(Category::UserCode, message.to_string()) }))
    }

    /// The same with a category; of another end than a failure it changes nothing.
    #[must_use]
    pub fn category(self, category: Category) -> Failure {
        self.change(|failed| failed.category = Some(category))
    }

    /// The same, and whether another attempt may help, which else follows from the category.
    #[must_use]
    pub fn retryable(self, retryable: bool) -> Failure {
        self.change(|failed| failed.retryable = Some(retryable))
    }

    /// The same with a time, at most 366 days, after which another attempt may help.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Failure {
        self.change(|failed| {
            failed.retry_after = Some(delay.min(LONGEST_DELAY));
            failed.retryable = Some(true);
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Failed)) -> Failure {
        if let Kind::Failed(failed) = &mut self.0 {
            change(failed);
        }
        self
    }
}

/// A failure after which the next attempt, if the retry policy allows one, starts after this delay, at most 366 days, instead of after the
/// policy's backoff: for a service that says when to come back. The attempt counts as failed.
pub fn retry_after(delay: Duration, message: impl fmt::Display) -> Failure {
    Failure::new(message).retry_after(delay)
}

/// Returns the task to its queue for this long, at most 366 days: what it waits for is not there yet. The attempt does not count.
pub fn snooze(delay: Duration) -> Failure {
    Failure(Kind::Snooze(delay.min(LONGEST_DELAY)))
}

/// A failure that no other attempt can help.
pub fn permanent(message: impl fmt::Display) -> Failure {
    Failure::new(message).retryable(false)
}

/// Ends the task as CANCELLED, with a reason: its work is not wanted any more.
pub fn cancelled(reason: impl fmt::Display) -> Failure {
    Failure(Kind::Cancelled(reason.to_string()))
}

/// The end after a cancel: the phase that it interrupted, empty if unknown, and what was done until then, null if unknown.
pub fn stopped(phase: impl fmt::Display, partial_progress: Value) -> Failure {
    Failure(Kind::Stopped { phase: phase.to_string(), partial: partial_progress })
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        if let Some(end) = End::in_error(&error) {
            return Failure(Kind::GaveUp(end.clone()));
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        Failure::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(failed) => f.write_str(&failed.message),
            Kind::Snooze(delay) => write!(f, "snoozed for {delay:?}"),
            Kind::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            Kind::Stopped { phase, .. } => write!(f, "stopped during {phase}"),
            Kind::GaveUp(end) => end.fmt(f),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_become_failures_and_ends_are_recognised() {
        let failure = |f: fn() -> Result<(), Failure>| f().unwrap_err();
        let plain = failure(|| Err(std::io::Error::new(std::io::ErrorKind::Other, "the disk is full"))?);
        assert!(matches!(plain.0, Kind::Failed(failed) if failed.message == "the disk is full" && failed.retryable.is_none()));
        let wrapped = failure(|| Err(std::io::Error::new(std::io::ErrorKind::Other, End::Stopping))?);
        assert!(matches!(wrapped.0, Kind::GaveUp(End::Stopping)), "{wrapped}");
        let own = failure(|| Err(crate::Error::Ended(End::Lost))?);
        assert!(matches!(own.0, Kind::GaveUp(End::Lost)));
        assert!(matches!(snooze(Duration::MAX).0, Kind::Snooze(LONGEST_DELAY)));
    }
}
