//! The SDK's log: through the `log` crate if the program has configured that, else warnings and notes on standard error.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::Arc;

pub use log::Level;

/// Receives the lines of the log.
pub(crate) type Logger = Arc<dyn Fn(Level, &str) + Send + Sync>;

pub(crate) fn usual() -> Logger {
    Arc::new(|level, line| {
        if log::max_level() != log::LevelFilter::Off {
            log::log!(target: "lubdub", level, "{line}");
        } else if level <= Level::Info {
            // A full disk stops no work, so that the error is dropped.
            let _ = writeln!(std::io::stderr(), "lubdub {level}: {line}");
        }
    })
}

/// Writes one line; line breaks in it become spaces.
pub(crate) fn write(logger: &Logger, level: Level, what: Arguments<'_>) {
    logger(level, &what.to_string().replace(['\n', '\r'], " "));
}
