//! Random ids, and pauses with jitter.

use std::time::Duration;

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without the system's random numbers ids could repeat, and a repeated id means the same request.
    getrandom::getrandom(&mut bytes).expect("the system has random numbers");
    bytes
}

/// An id that no other process draws.
pub(crate) fn id() -> String {
    bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number from 0 to 1, evenly distributed.
fn fraction() -> f64 {
    f64::from(u32::from_le_bytes(bytes())) / f64::from(u32::MAX)
}

/// The pause before a repeat: after n failures drawn evenly from nothing to the smaller of a quarter of the interval and 100 ms × 2^n.
pub(crate) fn pause(failures: u32, interval: Duration) -> Duration {
    (interval / 4).min(Duration::from_millis(100) * 2u32.pow(failures.min(16))).mul_f64(fraction())
}

/// The interval less a random part of up to a tenth, so that a fleet that started together spreads.
pub(crate) fn spread(interval: Duration) -> Duration {
    interval.mul_f64(1.0 - fraction() / 10.0)
}
