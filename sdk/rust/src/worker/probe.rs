//! The listener that answers the server's probe.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use super::identity;
use super::shared::Shared;
use crate::clock::Moment;
use crate::errors::Error;
use crate::lock;

/// How long a caller may take for its request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers until it is dropped.
pub(super) struct Probe {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Shared {
    /// Opens the listener, if the settings have an address for it.
    pub(super) fn open_probe(self: &Arc<Shared>) -> Result<Option<Probe>, Error> {
        let wanted = match &self.options.probe {
            Some(wanted) => wanted,
            None => return Ok(None),
        };
        let listener = TcpListener::bind(wanted).map_err(|e| Error::Usage(format!("the probe's address {wanted}: {e}")))?;
        let address = listener.local_addr().map_err(|e| Error::Usage(format!("the probe's address {wanted}: {e}")))?;
        let host = if address.ip().is_unspecified() { identity::hostname() } else { address.ip().to_string() };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        *lock(&self.probe_url) = Some(format!("http://{host}:{}/", address.port()));
        let over = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (self.clone(), over.clone());
        crate::spawn("lubdub-probe", move || {
            for caller in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(caller) = caller {
                    let _ = shared.answer(caller); // it has gone away
                }
            }
        });
        Ok(Some(Probe { address, over }))
    }

    fn answer(&self, mut caller: TcpStream) -> std::io::Result<()> {
        caller.set_read_timeout(Some(PATIENCE))?;
        caller.set_write_timeout(Some(PATIENCE))?;
        let mut request = [0; 1024];
        let length = caller.read(&mut request)?;
        let status = match (request[..length].starts_with(b"GET "), self.is_on_time()) {
            (false, _) => "405 Method Not Allowed",
            (true, true) => "200 OK",
            (true, false) => "503 Service Unavailable",
        };
        write!(caller, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    /// Whether the last tick of the heartbeats is at most half of the heartbeat timeout ago.
    fn is_on_time(&self) -> bool {
        let lease = self.lease();
        self.lock().ticked.map_or(true, |at| Moment::now().since(at) <= lease / 2)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        let _ = TcpStream::connect_timeout(&own, PATIENCE); // wakes the listener
    }
}
