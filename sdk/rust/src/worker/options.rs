//! The settings of a worker.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::shared::Shared;
use super::{identity, Worker};
use crate::client::Client;
use crate::complete::Outcome;
use crate::errors::Error;
use crate::failure::Failure;
use crate::task::Task;

/// Runs one attempt.
pub(crate) type Handler = Arc<dyn Fn(&Task) -> Result<Outcome, Failure> + Send + Sync>;

/// The orchestrator's grace period, unless it is known.
const USUAL_GRACE: Duration = Duration::from_secs(30);
/// How many tasks a worker may hold; each has a thread.
const MOST_PLACES: usize = 100_000;

pub(crate) struct Options {
    pub(crate) queue: String,
    pub(crate) concurrency: usize,
    pub(crate) name: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) soft_stop: Duration,
    pub(crate) hard_stop: Duration,
    pub(crate) task_timeout: Option<Duration>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) probe: Option<String>,
}

/// The settings of a [`Worker`], and its handlers.
pub struct WorkerBuilder {
    options: Options,
    soft_stop: Option<Duration>,
    hard_stop: Option<Duration>,
    client: Option<Client>,
    handlers: BTreeMap<String, Handler>,
    default_handler: Option<Handler>,
    problem: Option<String>,
}

impl WorkerBuilder {
    pub(super) fn new(queue: &str) -> WorkerBuilder {
        let options = Options {
            queue: queue.into(),
            concurrency: 10,
            name: None,
            machine: None,
            version: None,
            labels: identity::labels_found(),
            soft_stop: Duration::ZERO,
            hard_stop: Duration::ZERO,
            task_timeout: None,
            watchdog: None,
            probe: None,
        };
        let (handlers, default_handler) = (BTreeMap::new(), None);
        WorkerBuilder { options, soft_stop: None, hard_stop: None, client: None, handlers, default_handler, problem: None }
    }

    /// The function for the tasks of one type. Its result is the output; an error fails the attempt, by `?` or by one of the functions that
    /// make a [`Failure`]. Each attempt has its own thread.
    #[must_use]
    pub fn handle<T: Serialize>(
        mut self,
        kind: &str,
        handler: impl Fn(&Task) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> WorkerBuilder {
        if self.handlers.insert(kind.into(), encoded(handler)).is_some() {
            self.problem.get_or_insert(format!("two handlers for the type {kind}"));
        }
        self
    }

    /// The function for tasks without a type. It also runs those of types that have no handler, if the worker gets one.
    #[must_use]
    pub fn handle_default<T: Serialize>(mut self, handler: impl Fn(&Task) -> Result<T, Failure> + Send + Sync + 'static) -> WorkerBuilder {
        self.default_handler = Some(encoded(handler));
        self
    }

    /// The client to use; by default one with the settings of the environment.
    #[must_use]
    pub fn client(mut self, client: &Client) -> WorkerBuilder {
        self.client = Some(client.clone());
        self
    }

    /// How many tasks run at a time; 10 by default.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> WorkerBuilder {
        self.options.concurrency = concurrency;
        self
    }

    /// The worker's name; by default POD_NAME, or the program's.
    #[must_use]
    pub fn name(mut self, name: &str) -> WorkerBuilder {
        self.options.name = Some(name.into());
        self
    }

    /// The id of the machine, by which workers are drained; by default NODE_NAME, or the host's name.
    #[must_use]
    pub fn machine(mut self, id: &str) -> WorkerBuilder {
        self.options.machine = Some(id.into());
        self
    }

    /// The version of the program.
    #[must_use]
    pub fn version(mut self, version: &str) -> WorkerBuilder {
        self.options.version = Some(version.into());
        self
    }

    /// A label to select the worker by, in addition to those from the environment.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> WorkerBuilder {
        self.options.labels.insert(name.into(), value.into());
        self
    }

    /// How long after the begin of a stop handlers end; 20 s, or before the end of TERMINATION_GRACE_PERIOD_SECONDS.
    #[must_use]
    pub fn soft_stop(mut self, after: Duration) -> WorkerBuilder {
        self.soft_stop = Some(after);
        self
    }

    /// How long after the begin of a stop the remaining tasks return to the queue; 25 s, or before the end of
    /// TERMINATION_GRACE_PERIOD_SECONDS.
    #[must_use]
    pub fn hard_stop(mut self, after: Duration) -> WorkerBuilder {
        self.hard_stop = Some(after);
        self
    }

    /// The time limit of an attempt, also of tasks that have one; 5 minutes for those that have none.
    #[must_use]
    pub fn task_timeout(mut self, limit: Duration) -> WorkerBuilder {
        self.options.task_timeout = Some(limit);
        self
    }

    /// Fails attempts that report neither progress nor a checkpoint for this long; by default none.
    #[must_use]
    pub fn watchdog(mut self, time: Duration) -> WorkerBuilder {
        self.options.watchdog = Some(time);
        self
    }

    /// The address, as 0.0.0.0:8081, at which the worker answers the server's probe; by default none.
    #[must_use]
    pub fn probe(mut self, address: &str) -> WorkerBuilder {
        self.options.probe = Some(address.into());
        self
    }

    /// Checks the settings. It sends nothing.
    pub fn build(mut self) -> Result<Worker, Error> {
        let wrong = |what: String| Err(Error::Usage(what));
        if let Some(problem) = self.problem {
            return wrong(problem);
        }
        if self.handlers.is_empty() {
            return wrong("a worker needs a handler for a type: handle(type, function)".into());
        }
        if self.options.concurrency == 0 || self.options.concurrency > MOST_PLACES {
            return wrong(format!("a concurrency of {}: it is from 1 to {MOST_PLACES}", self.options.concurrency));
        }
        let grace =
            std::env::var("TERMINATION_GRACE_PERIOD_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        (self.options.soft_stop, self.options.hard_stop) = match limits(grace, self.soft_stop, self.hard_stop) {
            Ok(limits) => limits,
            Err(problem) => return wrong(problem),
        };
        let client = self.client.map_or_else(Client::from_env, Ok)?;
        let shared = Shared::new(client.core, self.options, self.handlers, self.default_handler);
        Ok(Worker { shared, started: Arc::new(AtomicBool::new(false)) })
    }
}

fn encoded<T: Serialize>(handler: impl Fn(&Task) -> Result<T, Failure> + Send + Sync + 'static) -> Handler {
    Arc::new(move |task| handler(task).map(|output| Outcome::of_output(&output)))
}

/// When handlers end and when the rest is returned, after the begin of a stop.
fn limits(grace: Option<Duration>, soft: Option<Duration>, hard: Option<Duration>) -> Result<(Duration, Duration), String> {
    let before = |end: Duration, part: u32| end - (end / part).min(Duration::from_secs(5));
    let hard_stop = hard.unwrap_or_else(|| before(grace.unwrap_or(USUAL_GRACE), 6));
    let soft_stop = soft.unwrap_or_else(|| before(hard_stop, 5));
    match grace {
        _ if soft_stop > hard_stop => Err(format!("soft_stop ({soft_stop:?}) is later than hard_stop ({hard_stop:?}): set both")),
        Some(grace) if hard_stop >= grace && hard.is_some() => Err(format!(
            "hard_stop ({hard_stop:?}) is not before the end of TERMINATION_GRACE_PERIOD_SECONDS ({grace:?}): set a shorter one"
        )),
        _ => Ok((soft_stop, hard_stop)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stops_follow_the_grace_period() {
        let ms = Duration::from_millis;
        assert_eq!(limits(None, None, None), Ok((ms(20_000), ms(25_000))));
        assert_eq!(limits(Some(ms(3_000)), None, None), Ok((ms(2_000), ms(2_500))));
        assert_eq!(limits(Some(ms(60_000)), None, None), Ok((ms(50_000), ms(55_000))));
        assert_eq!(limits(None, Some(ms(300)), Some(ms(1_000))), Ok((ms(300), ms(1_000))));
        assert!(limits(None, Some(ms(2_000)), Some(ms(1_000))).is_err());
        assert!(limits(Some(ms(3_000)), None, Some(ms(3_000))).is_err());
    }

    #[test]
    fn wrong_settings_are_refused_before_anything_is_sent() {
        let client = Client::builder().url("http://127.0.0.1:1").build().unwrap();
        let builder = || Worker::builder("q").client(&client);
        let problem = |builder: WorkerBuilder| builder.build().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(problem(builder()).contains("needs a handler"));
        assert!(problem(builder().handle("t", |_| Ok(())).handle("t", |_| Ok(()))).contains("two handlers for the type t"));
        assert!(problem(builder().handle("t", |_| Ok(())).concurrency(0)).contains("concurrency"));
        assert_eq!(problem(builder().handle("t", |_| Ok(()))), "");
    }
}
