//! Progress and checkpoints on their way to the server.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::errors::Error;

/// How many bytes of JSON a checkpoint may have.
const LARGEST_CHECKPOINT: usize = 16 << 10;
/// How many levels of arrays and objects a checkpoint may have.
const DEEPEST_CHECKPOINT: usize = 100;
/// How many bytes a message is cut at.
const LONGEST_MESSAGE: usize = 1024;

/// What one request may have of reports.
pub(crate) const LARGEST_REPORTS: usize = 1 << 20;

/// Progress and a checkpoint that no heartbeat has sent.
#[derive(Clone, Default)]
pub(crate) struct Report {
    pub(crate) progress: Option<(f64, String)>,
    pub(crate) details: Option<Box<RawValue>>,
}

impl Report {
    pub(crate) fn is_empty(&self) -> bool {
        self.progress.is_none() && self.details.is_none()
    }

    /// How many bytes it has in a request, at most: each byte of a message may be escaped.
    pub(crate) fn size(&self) -> usize {
        self.progress.as_ref().map_or(0, |(_, message)| 64 + 6 * message.len())
            + self.details.as_ref().map_or(0, |json| 16 + json.get().len())
    }

    /// Takes from an older report what this one does not replace.
    pub(crate) fn over(&mut self, older: Report) {
        self.progress = self.progress.take().or(older.progress);
        self.details = self.details.take().or(older.details);
    }
}

/// An attempt in a heartbeat: the worker's, one of many, or one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    attempt: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
}

impl Item {
    /// Without task_id the request names the task.
    pub(crate) fn new(task_id: Option<&str>, attempt: u64, report: Report) -> Item {
        let (progress_pct, message) = report.progress.map_or((None, None), |(percent, message)| (Some(percent), Some(message)));
        Item { task_id: task_id.map(String::from), attempt, task_token: None, progress_pct, message, details: report.details }
    }
}

pub(crate) fn progress(percent: f64, message: &str) -> Result<(f64, String), Error> {
    if !(0.0..=100.0).contains(&percent) {
        return Err(Error::Usage(format!("progress of {percent} %: it is from 0 to 100")));
    }
    let mut end = message.len().min(LONGEST_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    Ok((percent, message[..end].to_string()))
}

/// Encodes a checkpoint.
pub(crate) fn checkpoint<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, Error> {
    let wrong = |why: String| Err(Error::Unsendable(format!("this checkpoint cannot be saved: {why}")));
    let json = match serde_json::to_string(value) {
        Ok(json) => json,
        Err(e) => return wrong(e.to_string()),
    };
    let levels = levels(&json);
    if json == "null" {
        return wrong("it is null".into());
    } else if json.len() > LARGEST_CHECKPOINT {
        return wrong(format!("it has {} bytes of JSON, more than {LARGEST_CHECKPOINT}", json.len()));
    } else if levels > DEEPEST_CHECKPOINT {
        return wrong(format!("it has {levels} levels, more than {DEEPEST_CHECKPOINT}"));
    }
    RawValue::from_string(json).or_else(|e| wrong(e.to_string()))
}

/// How deep the arrays and objects of this JSON are.
fn levels(json: &str) -> usize {
    let (mut level, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' if !in_string => level -= 1,
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_that_a_server_would_refuse_are_errors() {
        let nested = |levels: usize| serde_json::from_str::<serde_json::Value>(&("[".repeat(levels) + &"]".repeat(levels))).unwrap();
        assert_eq!(checkpoint(&serde_json::json!({"a": "]\"}"})).unwrap().get(), r#"{"a":"]\"}"}"#);
        assert!(checkpoint(&nested(100)).is_ok());
        assert!(checkpoint(&nested(101)).is_err());
        assert!(checkpoint(&"x".repeat(LARGEST_CHECKPOINT - 2)).is_ok());
        assert!(checkpoint(&"x".repeat(LARGEST_CHECKPOINT - 1)).is_err());
        assert!(checkpoint(&()).is_err());
        assert!(checkpoint(&std::collections::HashMap::from([((1, 2), 3)])).is_err());
    }

    #[test]
    fn progress_is_checked_and_its_message_cut_between_characters() {
        assert!(progress(100.1, "").is_err() && progress(-0.1, "").is_err() && progress(f64::NAN, "").is_err());
        assert_eq!(progress(100.0, &"é".repeat(600)).unwrap().1, "é".repeat(512));
        assert_eq!(progress(0.0, &format!("x{}", "é".repeat(600))).unwrap().1.len(), 1023);
    }
}
