//! The steps of a handler.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lubdub::{Category, End, Failure, Task};
use serde::Serialize;
use serde_json::{json, Map, Value};

use crate::{name, write, Runner};

/// What a handler returns.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Output {
    Json(Value),
    /// JSON has no objects with such keys.
    NotJson(HashMap<(i32, i32), i32>),
}

/// Writes that the attempt has ended: when it ends, or before the handler does anything after it noticed.
#[derive(Clone)]
struct Ended {
    task: Task,
    written: Arc<Mutex<bool>>,
}

impl Ended {
    fn write(&self, end: &End) {
        let mut written = self.written.lock().expect("nothing panics with this lock");
        if !std::mem::replace(&mut *written, true) {
            let (reason, detail) = name(end);
            let mut fields = json!({ "reason": reason });
            if !detail.is_empty() {
                fields["detail"] = detail.into();
            }
            event(&self.task, "ended", fields);
        }
    }

    /// Fails as soon as the attempt has ended.
    fn check(&self) -> Result<(), End> {
        self.task.check().map_err(|end| self.noticed(end))
    }

    fn wait(&self, ms: u64) -> Result<(), End> {
        self.task.wait(Duration::from_millis(ms)).map_err(|end| self.noticed(end))
    }

    fn noticed(&self, end: End) -> End {
        self.write(&end);
        end
    }
}

fn event(task: &Task, event: &str, fields: Value) {
    let mut line = json!({"event": event, "task": task.id(), "attempt": task.attempt()});
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
        line.extend(fields);
    }
    write(line);
}

/// Runs the steps of an attempt.
pub fn run(runner: &Arc<Runner>, task: &Task) -> Result<Output, Failure> {
    event(task, "begun", begun(task));
    let ended = Ended { task: task.clone(), written: Arc::default() };
    let own = ended.clone();
    task.on_end(move |end| own.write(end));
    let result = runner.steps(task.id(), task.attempt(), task.envelope().kind.as_deref()).iter().find_map(|step| {
        let (what, value) = step.as_object().and_then(|step| step.iter().next()).expect("a step has one field");
        one(runner, task, &ended, what, value).transpose()
    });
    event(task, "returned", json!({}));
    result.unwrap_or(Ok(Output::Json(Value::Null)))
}

fn begun(task: &Task) -> Value {
    let mut fields = Map::new();
    if let Some(traceparent) = task.traceparent() {
        fields.insert("traceparent".into(), traceparent.into());
    }
    if let Some(progress) = &task.envelope().last_progress {
        if let Some(percent) = progress.progress_pct {
            fields.insert("lastProgress".into(), json!({"progressPct": percent, "message": progress.message}));
        }
    }
    if let Ok(Some(checkpoint)) = task.last_checkpoint::<Value>() {
        fields.insert("checkpoint".into(), checkpoint);
    }
    Value::Object(fields)
}

/// Runs one step; Some: it ends the handler.
fn one(runner: &Runner, task: &Task, ended: &Ended, what: &str, value: &Value) -> Result<Option<Output>, Failure> {
    let ms = value.as_u64().unwrap_or_default();
    match what {
        "progress" => task.progress(value[0].as_f64().unwrap_or_default(), value[1].as_str().unwrap_or_default())?,
        "checkpoint" => task.checkpoint(value)?,
        "gate" => runner.wait_for(value.as_str().unwrap_or_default()),
        "untilEnded" => while ended.wait(60_000).is_ok() {},
        "sleep" => ended.wait(ms)?,
        "spin" => {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(ms) {
                std::hint::spin_loop();
            }
        }
        "work" => work(task, ended, ms)?,
        "say" => event(task, "said", json!({ "what": value })),
        "return" => return Ok(Some(Output::Json(value.clone()))),
        "returnBig" => return Ok(Some(Output::Json("x".repeat(ms as usize).into()))),
        "returnNotJSON" => return Ok(Some(Output::NotJson(HashMap::from([((1, 2), 3)])))),
        "fail" => return Err(failure(value)),
        "snooze" => return Err(lubdub::snooze(Duration::from_millis(ms))),
        "cancelled" => return Err(lubdub::cancelled(value.as_str().unwrap_or_default())),
        "panic" => {
            event(task, "returned", json!({}));
            panic!("{}", value.as_str().unwrap_or_default());
        }
        "stopped" => return Err(lubdub::stopped(value["phase"].as_str().unwrap_or_default(), value["partial"].clone())),
        "giveUp" => ended.check()?,
        _ => panic!("an unknown step: {what}"),
    }
    Ok(None)
}

fn work(task: &Task, ended: &Ended, ms: u64) -> Result<(), End> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let from = now();
    let (mut until, mut result) = (from, Ok(()));
    while until < from + ms {
        let record = now();
        result = ended.check();
        if result.is_err() {
            break;
        }
        until = record;
        std::thread::sleep(Duration::from_millis(10));
    }
    event(task, "worked", json!({"from": from, "until": until}));
    result
}

fn failure(value: &Value) -> Failure {
    let mut failure = Failure::new(value["message"].as_str().unwrap_or_default());
    if let Some(category) = value["category"].as_str() {
        failure = failure.category(match category {
            "DATA_QUALITY" => Category::DataQuality,
            "INFRASTRUCTURE" => Category::Infrastructure,
            "CONFIGURATION" => Category::Configuration,
            "TIMEOUT" => Category::Timeout,
            "CANCELLED" => Category::Cancelled,
            _ => Category::UserCode,
        });
    }
    if let Some(ms) = value["retryAfterMs"].as_u64() {
        failure = failure.retry_after(Duration::from_millis(ms));
    }
    match value["retryable"].as_bool() {
        Some(retryable) => failure.retryable(retryable),
        None => failure,
    }
}
