//! The conformance runner of the Rust SDK; sdk/conformance/README.md describes what it does.

mod steps;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use lubdub::{Client, End, Envelope, Error, Lease, NewTask, Worker, WorkerBuilder};
use serde::Deserialize;
use serde_json::{json, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    mode: String,
    urls: Vec<String>,
    token: Option<String>,
    token_file: Option<String>,
    ca_file: Option<String>,
    lease: Option<String>,
    #[serde(default)]
    queue: String,
    #[serde(default)]
    types: Vec<String>,
    concurrency: Option<usize>,
    name: Option<String>,
    soft_stop_ms: Option<u64>,
    hard_stop_ms: Option<u64>,
    task_timeout_ms: Option<u64>,
    watchdog_ms: Option<u64>,
    #[serde(default)]
    handlers: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    default: bool,
    workers: Option<usize>,
    #[serde(default)]
    envelopes: Vec<Envelope>,
    #[serde(default)]
    creations: Vec<NewTask>,
}

#[derive(Deserialize)]
struct Command {
    #[serde(rename = "do")]
    what: String,
    #[serde(default)]
    gate: String,
}

/// What the steps of all handlers share.
pub struct Runner {
    handlers: BTreeMap<String, Vec<Value>>,
    gates: Mutex<Vec<String>>,
    opened: Condvar,
}

impl Runner {
    fn gates(&self) -> MutexGuard<'_, Vec<String>> {
        self.gates.lock().expect("no step panics with this lock")
    }

    fn release(&self, gate: String) {
        self.gates().push(gate);
        self.opened.notify_all();
    }

    pub fn wait_for(&self, gate: &str) {
        let mut gates = self.gates();
        while !gates.iter().any(|open| open == gate) {
            gates = self.opened.wait(gates).expect("no step panics with this lock");
        }
    }

    /// The steps of an attempt.
    pub fn steps(&self, task: &str, attempt: u64, kind: Option<&str>) -> Vec<Value> {
        let keys = [format!("{task}/{attempt}"), task.to_string(), format!("type:{}", kind.unwrap_or_default())];
        keys.iter().find_map(|key| self.handlers.get(key)).cloned().unwrap_or_default()
    }
}

/// Writes one line.
pub fn write(line: Value) {
    let mut out = std::io::stdout().lock();
    // Without a reader there is nothing to report to.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn main() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a first line");
    let start: Start = serde_json::from_str(&line).expect("a first line in the form that the README describes");
    let runner = Arc::new(Runner { handlers: start.handlers.clone(), gates: Mutex::new(Vec::new()), opened: Condvar::new() });
    let workers: Arc<Mutex<Vec<Worker>>> = Arc::default();
    {
        let (runner, workers) = (runner.clone(), workers.clone());
        std::thread::spawn(move || read_commands(&runner, &workers));
    }
    let result = client(&start).and_then(|client| match start.mode.as_str() {
        "worker" => work(start, &client, &runner, &workers),
        "track" => track(start, &client, &runner),
        _ => create(&start, &client),
    });
    let unfinished = result.unwrap_or_else(|problem| {
        write(json!({"event": "error", "message": problem.to_string()}));
        write(json!({"event": "exit", "unfinished": []}));
        std::process::exit(1);
    });
    write(json!({"event": "exit", "unfinished": unfinished}));
    std::process::exit(i32::from(!unfinished.is_empty()));
}

fn read_commands(runner: &Runner, workers: &Mutex<Vec<Worker>>) {
    for line in std::io::stdin().lock().lines() {
        let command: Command = match line.map(|line| serde_json::from_str(&line)) {
            Ok(Ok(command)) => command,
            _ => break,
        };
        match command.what.as_str() {
            "release" => runner.release(command.gate),
            "close" => workers.lock().expect("nothing panics with this lock").iter().for_each(Worker::close),
            _ => {}
        }
    }
    std::process::exit(1);
}

fn client(start: &Start) -> Result<Client, Error> {
    let mut builder = start.urls.iter().fold(Client::builder(), |builder, url| builder.url(url));
    if let Some(token) = &start.token {
        builder = builder.token(token);
    }
    if let Some(file) = &start.token_file {
        builder = builder.token_file(file);
    }
    if let Some(file) = &start.ca_file {
        builder = builder.ca_file(file);
    }
    if start.lease.as_deref() == Some("strict") {
        builder = builder.lease(Lease::Strict);
    }
    builder.build()
}

fn work(start: Start, client: &Client, runner: &Arc<Runner>, workers: &Mutex<Vec<Worker>>) -> Result<Vec<String>, Error> {
    let build = || {
        let mut builder = Worker::builder(&start.queue).client(client);
        for kind in &start.types {
            let runner = runner.clone();
            builder = builder.handle(kind, move |task| steps::run(&runner, task));
        }
        if start.default {
            let runner = runner.clone();
            builder = builder.handle_default(move |task| steps::run(&runner, task));
        }
        if let Some(places) = start.concurrency {
            builder = builder.concurrency(places);
        }
        if let Some(name) = &start.name {
            builder = builder.name(name);
        }
        type Setter = fn(WorkerBuilder, Duration) -> WorkerBuilder;
        let times: [(Option<u64>, Setter); 4] = [
            (start.soft_stop_ms, WorkerBuilder::soft_stop),
            (start.hard_stop_ms, WorkerBuilder::hard_stop),
            (start.task_timeout_ms, WorkerBuilder::task_timeout),
            (start.watchdog_ms, WorkerBuilder::watchdog),
        ];
        for (ms, set) in times {
            if let Some(ms) = ms {
                builder = set(builder, Duration::from_millis(ms));
            }
        }
        builder.build()
    };
    let all = (0..start.workers.unwrap_or(1)).map(|_| build()).collect::<Result<Vec<Worker>, Error>>()?;
    *workers.lock().expect("nothing panics with this lock") = all.clone();
    let threads: Vec<_> = all.into_iter().map(|worker| std::thread::spawn(move || worker.run_until_signal())).collect();
    let mut unfinished = Vec::new();
    let mut problem = None;
    for thread in threads {
        match thread.join().expect("a worker does not panic") {
            Err(Error::Unfinished { tasks, .. }) => unfinished.extend(tasks),
            Err(other) => problem = Some(other),
            Ok(()) => {}
        }
    }
    problem.map_or(Ok(unfinished), Err)
}

fn track(start: Start, client: &Client, runner: &Arc<Runner>) -> Result<Vec<String>, Error> {
    let threads: Vec<_> = start
        .envelopes
        .into_iter()
        .map(|envelope| {
            let (client, runner) = (client.clone(), runner.clone());
            std::thread::spawn(move || track_one(&client, &runner, envelope))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a tracked attempt does not panic");
    }
    client.close();
    Ok(Vec::new())
}

fn track_one(client: &Client, runner: &Arc<Runner>, envelope: Envelope) {
    let (id, attempt) = (envelope.task_id.clone(), envelope.attempt);
    let mut begun = false;
    let result = client.run(envelope, |task| {
        begun = true;
        steps::run(runner, task)
    });
    let mut line = match &result {
        Ok(done) => json!({"event": "settled", "finalState": done.final_state, "willRetry": done.will_retry}),
        Err(problem) if begun => json!({"event": "settled", "failure": reason(problem).0}),
        Err(problem) => json!({"event": "refused", "reason": reason(problem).0}),
    };
    if let Some(next) = result.ok().and_then(|done| done.next_attempt) {
        line["nextAttempt"] = next.into();
    }
    line["task"] = id.into();
    line["attempt"] = attempt.into();
    write(line);
}

fn create(start: &Start, client: &Client) -> Result<Vec<String>, Error> {
    let results = client.create_tasks(&start.creations);
    let drawn =
        start.creations.iter().zip(&start.creations).filter(|(before, after)| before.idempotency_key != after.idempotency_key).count();
    let tasks: Vec<String> = results.into_iter().map(|result| result.map_or_else(|_| String::new(), |created| created.task_id)).collect();
    write(json!({"event": "created", "tasks": tasks, "drawn": drawn}));
    Ok(Vec::new())
}

/// The harness's name of why an attempt has ended.
fn reason(problem: &Error) -> (&'static str, String) {
    match problem {
        Error::Ended(end) => name(end),
        _ => ("Refused", String::new()),
    }
}

/// A name for each reason.
pub fn name(end: &End) -> (&'static str, String) {
    match end {
        End::Cancelled { reason } => ("Cancelled", reason.clone()),
        End::Lost => ("Lost", String::new()),
        End::Superseded => ("Superseded", String::new()),
        End::Expired { reason } => ("Expired", reason.clone()),
        End::DeadlineExceeded => ("DeadlineExceeded", String::new()),
        End::LeaseEnded => ("LeaseEnded", String::new()),
        End::Stopping => ("Stopping", String::new()),
        End::TaskTimeout => ("TaskTimeout", String::new()),
        End::Stuck => ("Stuck", String::new()),
        _ => ("Unknown", String::new()),
    }
}
