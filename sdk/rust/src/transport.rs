//! One request, to one address.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use crate::clock::Moment;
use crate::errors::{ApiError, Error};

/// No answer is larger: a claim has at most 100 tasks.
const LARGEST_ANSWER: u64 = 64 << 20;

pub(crate) struct Transport {
    agent: ureq::Agent,
    user_agent: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// What its Retry-After requires; nothing if it has none.
    pub(crate) retry_after: Duration,
    /// When the request was sent.
    pub(crate) sent: Moment,
}

impl Answer {
    pub(crate) fn refusal(&self) -> ApiError {
        ApiError::of(self.status, &self.body)
    }

    /// Decodes the body of a success; any other answer is a refusal.
    pub(crate) fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        if !(200..300).contains(&self.status) {
            return Err(Error::Refused(Box::new(self.refusal())));
        }
        serde_json::from_slice(&self.body).map_err(|e| Error::NoAnswer(format!("the answer is not what this SDK knows: {e}")))
    }
}

impl Transport {
    /// authorities is a file with the certificate authorities to trust, in PEM form; None: the system's.
    pub(crate) fn new(program: Option<&str>, authorities: Option<&Path>) -> Result<Transport, Error> {
        let mut tls = native_tls::TlsConnector::builder();
        if let Some(path) = authorities {
            let wrong = |why: String| Error::Usage(format!("the certificate authorities in {}: {why}", path.display()));
            let pem = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
            let begin = "-----BEGIN CERTIFICATE-----";
            for certificate in pem.split(begin).skip(1) {
                let certificate = native_tls::Certificate::from_pem(format!("{begin}{certificate}").as_bytes());
                tls.add_root_certificate(certificate.map_err(|e| wrong(e.to_string()))?);
            }
            if !pem.contains(begin) {
                return Err(wrong("no certificate in PEM form".into()));
            }
            tls.disable_built_in_roots(true);
        }
        let tls = tls.build().map_err(|e| Error::Usage(format!("TLS: {e}")))?;
        let agent = ureq::AgentBuilder::new()
            .tls_connector(std::sync::Arc::new(tls))
            .redirects(0) // a token goes only to its intended host
            .max_idle_connections(256)
            .max_idle_connections_per_host(64)
            .build();
        let own = concat!("lubdub-rust/", env!("CARGO_PKG_VERSION"));
        Ok(Transport { agent, user_agent: program.map_or(own.into(), |program| format!("{program} {own}")) })
    }

    /// Sends a POST. An error says why there is no answer.
    pub(crate) fn post(&self, url: &str, token: &str, body: &[u8], timeout: Duration) -> Result<Answer, String> {
        let mut request = self.agent.post(url).timeout(timeout).set("User-Agent", &self.user_agent).set("Accept", "application/json");
        if !body.is_empty() {
            request = request.set("Content-Type", "application/json");
        }
        if !token.is_empty() {
            request = request.set("Authorization", &format!("Bearer {token}"));
        }
        let sent = Moment::now();
        let response = match request.send_bytes(body) {
            Ok(response) | Err(ureq::Error::Status(_, response)) => response,
            Err(ureq::Error::Transport(problem)) => return Err(describe(&problem)),
        };
        let status = response.status();
        let retry_after =
            response.header("Retry-After").and_then(|value| value.trim().parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        let mut body = Vec::new();
        response.into_reader().take(LARGEST_ANSWER).read_to_end(&mut body).map_err(|e| e.to_string())?;
        Ok(Answer { status, body, retry_after, sent })
    }
}

/// What has happened, without the URL, which names a task or a worker.
fn describe(problem: &ureq::Transport) -> String {
    let mut text = problem.kind().to_string();
    let message = problem.message().map(String::from);
    let cause = std::error::Error::source(problem).map(|cause| cause.to_string());
    [message, cause].into_iter().flatten().for_each(|part| text = format!("{text}: {part}"));
    text
}
