//! The connection of a program to Lubdub.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::core::{Core, Lease};
use crate::errors::Error;
use crate::logging::{self, Level, Logger};
use crate::tokens::Tokens;
use crate::transport::Transport;

/// A connection to Lubdub; create one for the whole program. Clones are the same one.
#[derive(Clone)]
pub struct Client {
    pub(crate) core: Arc<Core>,
}

/// The settings of a [`Client`]. What is not set comes from the environment: LUBDUB_URL (several addresses with commas), LUBDUB_TOKEN,
/// LUBDUB_TOKEN_FILE.
pub struct ClientBuilder {
    urls: Vec<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    authorities: Option<PathBuf>,
    lease: Lease,
    plain_http: bool,
    program: Option<String>,
    logger: Option<Logger>,
    patience: Duration,
}

impl ClientBuilder {
    /// An address of a server, such as https://lubdub.example.com. Call it for each one; a call that fails at one continues at the next.
    #[must_use]
    pub fn url(mut self, url: &str) -> ClientBuilder {
        self.urls.push(url.into());
        self
    }

    /// The control token. A worker needs the role enroll, a program that creates tasks submitter.
    #[must_use]
    pub fn token(mut self, token: &str) -> ClientBuilder {
        self.token = Some(token.into());
        self
    }

    /// The file that has the control token. It is read again when the token is refused.
    #[must_use]
    pub fn token_file(mut self, path: impl AsRef<Path>) -> ClientBuilder {
        self.token_file = Some(path.as_ref().into());
        self
    }

    /// A file with the certificate authorities to trust, in PEM form, instead of the system's.
    #[must_use]
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> ClientBuilder {
        self.authorities = Some(path.as_ref().into());
        self
    }

    /// What happens to the work while no server answers; patient by default.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> ClientBuilder {
        self.lease = lease;
        self
    }

    /// Allows http to other hosts than this one. Everyone on the way can read the token then.
    #[must_use]
    pub fn allow_http(mut self) -> ClientBuilder {
        self.plain_http = true;
        self
    }

    /// The program's name and version for the header User-Agent, as mailer/1.2.
    #[must_use]
    pub fn program(mut self, name: &str) -> ClientBuilder {
        self.program = Some(name.into());
        self
    }

    /// Receives the lines of the log. By default they go to the `log` crate if the program has configured that, else to standard error.
    #[must_use]
    pub fn logger(mut self, logger: impl Fn(Level, &str) + Send + Sync + 'static) -> ClientBuilder {
        self.logger = Some(Arc::new(logger));
        self
    }

    /// How long a creation is repeated while it gets no answer; a minute by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> ClientBuilder {
        self.patience = patience;
        self
    }

    /// Checks the settings. It sends nothing.
    pub fn build(self) -> Result<Client, Error> {
        let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let tokens = match (self.token, self.token_file, setting("LUBDUB_TOKEN"), setting("LUBDUB_TOKEN_FILE")) {
            (Some(_), Some(_), _, _) => return Err(Error::Usage("set token or token_file, not both".into())),
            (Some(token), _, _, _) | (None, None, Some(token), _) => Tokens::fixed(token)?,
            (None, Some(file), _, _) => Tokens::in_file(file)?,
            (None, None, None, Some(file)) => Tokens::in_file(file.into())?,
            (None, None, None, None) => Tokens::fixed(String::new())?,
        };
        let mut urls = self.urls;
        if urls.is_empty() {
            let from = setting("LUBDUB_URL").ok_or_else(|| Error::Usage("no address: set url, or the variable LUBDUB_URL".into()))?;
            urls = from.split(',').map(|url| url.trim().to_string()).collect();
        }
        let urls = urls.iter().map(|url| address(url, self.plain_http || tokens.current().is_empty())).collect::<Result<_, _>>()?;
        let core = Core {
            transport: Transport::new(self.program.as_deref(), self.authorities.as_deref())?,
            urls,
            good: AtomicUsize::new(0),
            tokens,
            lease: self.lease,
            logger: self.logger.unwrap_or_else(logging::usual),
            outage: Default::default(),
            beater: Default::default(),
            watch: Default::default(),
            closed: AtomicBool::new(false),
            patience: self.patience,
        };
        Ok(Client { core: Arc::new(core) })
    }
}

/// Checks an address, and removes a slash at its end.
fn address(text: &str, http_allowed: bool) -> Result<String, Error> {
    let wrong = |why: &str| Err(Error::Usage(format!("the address {why}: it is like https://lubdub.example.com")));
    let url = match url::Url::parse(text) {
        Ok(url) => url,
        Err(_) => return wrong("is not a URL"), // which may contain a password: it is not in the message
    };
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("contains credentials; set the token instead");
    }
    let local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if local || http_allowed => {}
        "http" => return wrong("is http, by which others can read the token; use https, or allow_http"),
        _ => return wrong("is neither http nor https"),
    }
    Ok(text.trim_end_matches('/').to_string())
}

impl Client {
    /// A client with the settings of the environment.
    pub fn from_env() -> Result<Client, Error> {
        Client::builder().build()
    }

    /// The settings of a new client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            urls: Vec::new(),
            token: None,
            token_file: None,
            authorities: None,
            lease: Lease::Patient,
            plain_http: false,
            program: None,
            logger: None,
            patience: Duration::from_secs(60),
        }
    }

    /// Ends the heartbeats and repeats of this client. Attempts that it still tracks are lost after their heartbeat timeout.
    pub fn close(&self) {
        self.core.closed.store(true, Ordering::SeqCst);
        self.core.beater.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for (text, problem) in [
            ("https://lubdub.example.com/", None),
            ("http://127.0.0.1:8080", None),
            ("http://[::1]:8080", None),
            ("http://lubdub.example.com", Some("allow_http")),
            ("ftp://lubdub.example.com", Some("neither http nor https")),
            ("https://me:secret@lubdub.example.com", Some("credentials")),
            ("lubdub", Some("not a URL")),
        ] {
            let answer = address(text, false);
            match problem {
                None => assert_eq!(answer, Ok(text.trim_end_matches('/').to_string())),
                Some(problem) => {
                    let message = answer.unwrap_err().to_string();
                    assert!(message.contains(problem) && !message.contains("secret"), "{text}: {message}");
                }
            }
        }
        assert!(address("http://lubdub.example.com", true).is_ok());
    }
}
