//! What all calls of a client share: addresses, tokens, repeats.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::beater::Beater;
use crate::clock::Moment;
use crate::errors::Error;
use crate::logging::{write, Level, Logger};
use crate::outage::Outage;
use crate::random;
use crate::tokens::Tokens;
use crate::transport::{Answer, Transport};
use crate::watch::Watch;

/// How long a call may take, in addition to what it asks the server to wait.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What happens to the work while no server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// The work continues until an answer says that the attempt is over.
    Patient,
    /// The work ends with [`End::LeaseEnded`](crate::End::LeaseEnded) when no heartbeat was accepted for the heartbeat timeout: for effects
    /// that must never overlap.
    Strict,
}

pub(crate) struct Core {
    pub(crate) transport: Transport,
    pub(crate) urls: Vec<String>,
    /// The index of the address that answered last.
    pub(crate) good: AtomicUsize,
    pub(crate) tokens: Tokens,
    pub(crate) lease: Lease,
    pub(crate) logger: Logger,
    pub(crate) outage: Outage,
    pub(crate) beater: Beater,
    pub(crate) watch: Watch,
    pub(crate) closed: AtomicBool,
    /// How long a call of the program is repeated.
    pub(crate) patience: Duration,
}

pub(crate) struct Call<'a> {
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    /// The address to try first: an envelope's callbackBaseUrl.
    pub(crate) base: Option<&'a str>,
    pub(crate) timeout: Duration,
}

impl<'a> Call<'a> {
    pub(crate) fn new(path: &'a str, body: &'a [u8]) -> Call<'a> {
        Call { path, body, base: None, timeout: CALL_TIMEOUT }
    }
}

/// A call that is to be repeated: no response, or one that asks for a repeat.
pub(crate) struct Unanswered {
    pub(crate) why: String,
    /// The pause that the response requires; nothing if there was none.
    pub(crate) retry_after: Duration,
}

/// How a call is repeated.
pub(crate) struct Repeat<'a> {
    pub(crate) interval: Duration,
    pub(crate) longest_pause: Duration,
    /// Waits; false: the call is not repeated any more.
    pub(crate) wait: &'a dyn Fn(Duration) -> bool,
}

/// Whether an answer with this status is repeated.
pub(crate) fn is_repeated(status: u16) -> bool {
    matches!(status, 408 | 429 | 502 | 503 | 504)
}

impl Core {
    pub(crate) fn log(&self, level: Level, what: std::fmt::Arguments<'_>) {
        write(&self.logger, level, what);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Sends a call once; each failure before moves on to the next address.
    pub(crate) fn once(&self, call: &Call<'_>, token: &str, failures: u32) -> Result<Answer, Unanswered> {
        let good = self.good.load(Ordering::Relaxed);
        let own = (0..self.urls.len()).map(|i| (good + i) % self.urls.len());
        let mut all: Vec<(&str, Option<usize>)> = own.map(|i| (self.urls[i].as_str(), Some(i))).collect();
        if let Some(base) = call.base.map(|base| base.trim_end_matches('/')).filter(|base| !base.is_empty()) {
            all.retain(|(url, _)| *url != base);
            all.insert(0, (base, self.urls.iter().position(|url| url == base)));
        }
        let (url, index) = all[failures as usize % all.len()];
        let sent = Moment::now();
        let unanswered = match self.transport.post(&format!("{url}{}", call.path), token, call.body, call.timeout) {
            Ok(answer) if !is_repeated(answer.status) => {
                self.outage.answered(&self.logger, sent);
                if let Some(index) = index {
                    self.good.store(index, Ordering::Relaxed);
                }
                return Ok(answer);
            }
            Ok(answer) => Unanswered { why: answer.refusal().to_string(), retry_after: answer.retry_after },
            Err(why) => Unanswered { why, retry_after: Duration::ZERO },
        };
        // Without the id of a task or a worker: the line is about all of them.
        let name = call.path.rsplit('/').next().unwrap_or_default();
        self.outage.failed(&self.logger, sent, &format!("{name} at {url}"), &unanswered.why);
        Err(unanswered)
    }

    /// Sends a call until it is answered.
    pub(crate) fn repeat(&self, call: &Call<'_>, token: &dyn Fn() -> String, how: &Repeat<'_>) -> Result<Answer, Error> {
        let mut failures = 0;
        loop {
            match self.once(call, &token(), failures) {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => {
                    let pause = random::pause(failures, how.interval).min(how.longest_pause);
                    if !(how.wait)(unanswered.retry_after + pause) {
                        return Err(Error::NoAnswer(unanswered.why));
                    }
                    failures += 1;
                }
            }
        }
    }

    /// Sends a call with the control token until it is answered. A refused token is read again, once.
    pub(crate) fn control(&self, call: &Call<'_>, how: &Repeat<'_>) -> Result<Answer, Error> {
        let token = self.tokens.current();
        let answer = self.repeat(call, &|| token.clone(), how)?;
        if answer.status != 401 || !self.tokens.reread(&token) {
            return Ok(answer);
        }
        self.repeat(call, &|| self.tokens.current(), how)
    }
}
