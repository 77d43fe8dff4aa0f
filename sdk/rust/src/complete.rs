//! The end of an attempt: its completion, and the answer to that.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{to_raw_value, RawValue};
use serde_json::Value;

use crate::attempt::Attempt;
use crate::core::{Call, Repeat, CALL_TIMEOUT};
use crate::ends::End;
use crate::errors::{ApiError, Error};
use crate::failure::{Category, Failed, Failure, Kind};
use crate::logging::Level;
use crate::transport::Answer;

/// How many bytes the body of a completion may have.
const LARGEST_BODY: usize = 256 << 10;
/// How many bytes a stack or a message is cut at.
const LONGEST_TEXT: usize = 16 << 10;

/// How an attempt ended.
pub(crate) enum Outcome {
    Succeeded(Box<RawValue>),
    Failed(Failed),
    Snoozed(Duration),
    Cancelled { reason: Option<String>, phase: Option<String>, partial: Value },
}

/// The server's answer to the end of an attempt.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Completion {
    /// The attempt's outcome: SUCCEEDED, FAILED, CANCELLED or SNOOZED.
    pub final_state: String,
    /// Whether another attempt follows.
    pub will_retry: bool,
    /// Its number; None: there is no other one, or it is not known yet.
    pub next_attempt: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    attempt: u64,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_during_phase: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    partial_progress: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody<'a> {
    category: Category,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_trace: Option<&'a str>,
}

impl Outcome {
    /// A result. One that cannot be sent is a failure of the handler that no other attempt can help.
    pub(crate) fn of_output<T: Serialize + ?Sized>(output: &T) -> Outcome {
        to_raw_value(output).map_or_else(|e| unsendable(format!("the output is not JSON: {e}")), Outcome::Succeeded)
    }

    /// The end of an attempt whose handler returned this error. None: it is not completed, since its worker stops.
    pub(crate) fn of_failure(failure: Failure, end: Option<&End>) -> Option<Outcome> {
        let cancelled = || Outcome::Cancelled { reason: None, phase: None, partial: Value::Null };
        Some(match (failure.0, end) {
            (Kind::Snooze(delay), _) => Outcome::Snoozed(delay),
            (Kind::Cancelled(reason), _) => Outcome::Cancelled { reason: Some(reason), phase: None, partial: Value::Null },
            (Kind::Stopped { phase, partial }, end) if end != Some(&End::Stopping) => {
                Outcome::Cancelled { reason: None, phase: Some(phase).filter(|phase| !phase.is_empty()), partial }
            }
            (_, Some(End::Stopping)) => return None,
            (Kind::GaveUp(_), Some(End::Cancelled { .. })) => cancelled(),
            (Kind::GaveUp(_), Some(end @ End::TaskTimeout)) => Outcome::Failed(Failed::new(Category::Timeout, end.to_string())),
            // One that says nothing about itself is taken for the consequence.
            (Kind::Failed(failed), Some(end @ End::TaskTimeout)) if failed.category.is_none() && failed.retryable.is_none() => {
                Outcome::Failed(Failed::new(Category::Timeout, format!("{end}: {}", failed.message)))
            }
            (Kind::Failed(failed), _) => Outcome::Failed(failed),
            (gave_up, _) => Outcome::Failed(Failed::new(Category::UserCode, Failure(gave_up).to_string())),
        })
    }

    fn body(&self, attempt: u64) -> Vec<u8> {
        // Rounded up: a shorter time could be too early.
        let milliseconds = |time: &Duration| u64::try_from((*time + Duration::from_nanos(999_999)).as_millis()).unwrap_or(u64::MAX);
        let none = &Value::Null;
        let empty =
            Body { attempt, outcome: "", output: None, error: None, delay_ms: None, cancelled_during_phase: None, partial_progress: none };
        let body = match self {
            Outcome::Succeeded(output) => Body { outcome: "SUCCEEDED", output: Some(output), ..empty },
            Outcome::Snoozed(delay) => Body { outcome: "SNOOZED", delay_ms: Some(milliseconds(delay)), ..empty },
            Outcome::Failed(failed) => {
                let error = ErrorBody {
                    category: failed.category.unwrap_or(Category::UserCode),
                    message: cut(&failed.message),
                    retryable: failed.retryable,
                    retry_after_ms: failed.retry_after.as_ref().map(milliseconds),
                    stack_trace: failed.stack.as_deref().map(cut),
                };
                Body { outcome: "FAILED", error: Some(error), ..empty }
            }
            Outcome::Cancelled { reason, phase, partial } => {
                let error = reason.as_deref().map(|reason| ErrorBody {
                    category: Category::Cancelled,
                    message: cut(reason),
                    retryable: None,
                    retry_after_ms: None,
                    stack_trace: None,
                });
                Body { outcome: "CANCELLED", error, cancelled_during_phase: phase.as_deref(), partial_progress: partial, ..empty }
            }
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }
}

fn unsendable(why: String) -> Outcome {
    Outcome::Failed(Failed { retryable: Some(false), ..Failed::new(Category::UserCode, why) })
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Completes an attempt: sends what is unsent, and then the outcome until it is answered. An outcome that the server would refuse for its
/// size is replaced by a failure.
pub(crate) fn complete(attempt: &Arc<Attempt>, mut outcome: Outcome) -> Result<Completion, Error> {
    if !attempt.begin_completion() {
        let end = attempt.lock().final_end.clone();
        return Err(end.map_or_else(|| Error::Usage(format!("{} was completed before", attempt.name())), Error::Ended));
    }
    attempt.flush();
    let mut body = outcome.body(attempt.envelope.attempt);
    if body.len() > LARGEST_BODY {
        outcome = unsendable(format!(
            "the output is too large: with the rest of the completion it has {} bytes, more than {LARGEST_BODY}",
            body.len()
        ));
        body = outcome.body(attempt.envelope.attempt);
    }
    let answer = if attempt.pause(Duration::ZERO) { send(attempt, &body) } else { Err(Error::NoAnswer("it is not sent any more".into())) };
    let end = attempt.lock().final_end.clone();
    let settled = match (end, answer) {
        (Some(end), _) => Err(Error::Ended(end)),
        (None, Err(problem)) => {
            if !attempt.lock().sealed {
                attempt.core.log(Level::Warn, format_args!("{}: no answer to its completion: {problem}", attempt.name()));
            }
            Err(problem)
        }
        (None, Ok((200, body))) => Ok(serde_json::from_slice::<Completion>(&body).unwrap_or_default()),
        (None, Ok((status, body))) => {
            let refusal = ApiError::of(status, &body);
            attempt.core.log(Level::Warn, format_args!("{}: its completion was refused: {refusal}", attempt.name()));
            Err(refusal.end().map_or_else(|| Error::Refused(Box::new(refusal)), Error::Ended))
        }
    };
    if let (Ok(completion), Outcome::Failed(failed)) = (&settled, &outcome) {
        let next = if completion.will_retry { "it will be retried" } else { "it will not be retried" };
        attempt.core.log(Level::Warn, format_args!("{} failed: {}; {next}", attempt.name(), cut(&failed.message)));
    }
    if let Some(worker) = &attempt.worker {
        worker.settled(attempt, &outcome, &settled);
    }
    attempt.close();
    settled
}

/// Sends a completion until it is answered: with others of the worker, if its server has exchanges, or alone.
fn send(attempt: &Attempt, body: &[u8]) -> Result<(u16, Vec<u8>), Error> {
    if let Some(worker) = &attempt.worker {
        match worker.exchange(attempt, body) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(pause)) if !attempt.pause(pause) => return Err(Error::NoAnswer("the exchange was not answered".into())),
            _ => {}
        }
    }
    let answer = attempt.call("completed", body)?;
    Ok((answer.status, answer.body))
}

impl Attempt {
    /// Sends a call of the attempt until it is answered, with its own token, or the worker's if that is refused.
    pub(crate) fn call(&self, name: &str, body: &[u8]) -> Result<Answer, Error> {
        let path = self.path(name);
        let call = Call { path: &path, body, base: Some(&self.envelope.callback_base_url), timeout: CALL_TIMEOUT };
        let how = Repeat {
            interval: self.lock().interval,
            longest_pause: (self.lease() / 12).min(Duration::from_secs(5)),
            wait: &|pause| self.pause(pause),
        };
        let answer = self.core.repeat(&call, &|| self.lock().token.clone(), &how)?;
        match self.worker.as_ref().filter(|worker| answer.status == 401 && worker.token().is_some()) {
            Some(worker) => self.core.repeat(&call, &|| worker.token().unwrap_or_default(), &how),
            None => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{cancelled, permanent, snooze, stopped};

    /// What the end of an attempt makes of the error of its handler.
    fn body(failure: Failure, end: Option<End>) -> Option<Value> {
        Outcome::of_failure(failure, end.as_ref()).map(|outcome| serde_json::from_slice(&outcome.body(2)).unwrap())
    }

    #[test]
    fn the_end_decides_what_an_error_means() {
        let cancel = || Some(End::Cancelled { reason: "r".into() });
        let error = || Failure::new("m");
        let outcome = |failure, end| body(failure, end).map(|body| body["outcome"].as_str().unwrap().to_string());
        let category = |failure, end| body(failure, end).map(|body| body["error"]["category"].as_str().unwrap().to_string());
        assert_eq!(category(error(), None).as_deref(), Some("USER_CODE"));
        assert_eq!(outcome(error(), cancel()).as_deref(), Some("FAILED"));
        assert_eq!(outcome(End::Lost.into(), cancel()).as_deref(), Some("CANCELLED"));
        assert_eq!(category(error(), Some(End::TaskTimeout)).as_deref(), Some("TIMEOUT"));
        assert_eq!(category(permanent("m"), Some(End::TaskTimeout)).as_deref(), Some("USER_CODE"));
        assert_eq!(category(End::TaskTimeout.into(), Some(End::TaskTimeout)).as_deref(), Some("TIMEOUT"));
        // A worker that stops gives back what fails, but not what its handler has decided.
        for failure in [error(), permanent("m"), End::Stopping.into(), stopped("p", Value::Null)] {
            assert!(body(failure, Some(End::Stopping)).is_none());
        }
        assert_eq!(outcome(snooze(Duration::ZERO), Some(End::Stopping)).as_deref(), Some("SNOOZED"));
        assert_eq!(outcome(cancelled("r"), Some(End::Stopping)).as_deref(), Some("CANCELLED"));
    }

    #[test]
    fn delays_are_rounded_up() {
        assert_eq!(body(snooze(Duration::from_micros(1_001)), None).unwrap()["delayMs"], 2);
        assert_eq!(body(snooze(Duration::MAX), None).unwrap()["delayMs"], 31_622_400_000u64);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut(&"é".repeat(LONGEST_TEXT)).len(), LONGEST_TEXT);
        assert_eq!(cut(&format!("x{}", "é".repeat(LONGEST_TEXT))).len(), LONGEST_TEXT - 1);
    }
}
