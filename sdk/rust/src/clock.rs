//! The clock of leases and timeouts, which counts the time during which the machine is suspended, and dates of the server.

use std::ops::Add;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment on that clock; only differences have a meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Moment {
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Safe: the pointer is valid during the call. CLOCK_BOOTTIME exists since Linux 2.6.39, and the call has no other errors.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut at) };
        Moment(Duration::new(at.tv_sec as u64, at.tv_nsec as u32))
    }

    /// The larger of the wall clock's and the monotonic clock's advance.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Moment {
        use std::sync::Mutex;
        use std::time::Instant;
        static START: Mutex<Option<(Instant, SystemTime)>> = Mutex::new(None);
        let mut start = crate::lock(&START);
        let (instant, wall) = start.get_or_insert_with(|| (Instant::now(), SystemTime::now()));
        Moment(instant.elapsed().max(wall.elapsed().unwrap_or_default()))
    }

    /// The time since an earlier moment; nothing if it is later.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        self.0.checked_sub(earlier.0).unwrap_or_default()
    }

    /// How long it is until this moment; nothing if it is over.
    pub(crate) fn left(self) -> Duration {
        self.since(Moment::now())
    }

    pub(crate) fn over(self) -> bool {
        self <= Moment::now()
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, by: Duration) -> Moment {
        Moment(self.0.saturating_add(by))
    }
}

/// Reads an RFC 3339 date in UTC, as the server writes them; None if it is not a date.
pub(crate) fn parse_date(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Days since 1970 of a calendar whose years begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()?;
    let fraction = format!("0.{fraction}").parse::<f64>().ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_secs_f64(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        let seconds = |text| parse_date(text).map(|at| at.duration_since(UNIX_EPOCH).unwrap().as_secs_f64());
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(seconds("2024-02-29T12:34:56.5Z"), Some(1_709_210_096.5));
        assert_eq!(seconds("2000-03-01T00:00:00Z"), Some(951_868_800.0));
        assert_eq!(seconds("tomorrow"), None);
        assert_eq!(seconds("2024-02-29T12:34:56+01:00"), None);
    }
}
