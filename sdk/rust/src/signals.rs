//! SIGTERM and SIGINT, for all workers of the process.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock;

/// Gets the number of signals since it was subscribed.
type OnSignal = Arc<dyn Fn(usize) + Send + Sync>;

/// The end of the pipe into which the signal handler writes; -1: there is no pipe yet.
static PIPE: AtomicI32 = AtomicI32::new(-1);

static SUBSCRIBERS: Mutex<Subscribers> = Mutex::new(Subscribers { all: Vec::new(), next: 0, previous: None });

struct Subscribers {
    all: Vec<Subscriber>,
    next: u64,
    /// What the program did at each signal before.
    previous: Option<[libc::sigaction; 2]>,
}

struct Subscriber {
    number: u64,
    signals: usize,
    call: OnSignal,
}

const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// Calls until it is dropped.
pub(crate) struct Subscription(u64);

extern "C" fn on_signal(signal: libc::c_int) {
    // Only what is allowed in a signal handler: one write, of which the thread reads the signal.
    let byte = signal as u8;
    unsafe { libc::write(PIPE.load(Ordering::SeqCst), (&byte as *const u8).cast(), 1) };
}

/// Calls a function at each signal. A third signal ends the process, as without this.
pub(crate) fn subscribe(call: OnSignal) -> Subscription {
    let mut subscribers = lock(&SUBSCRIBERS);
    if PIPE.load(Ordering::SeqCst) < 0 {
        let mut ends = [0; 2];
        // Safe: the array has room for two descriptors.
        let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        assert_eq!(made, 0, "the system makes a pipe");
        PIPE.store(ends[1], Ordering::SeqCst);
        crate::spawn("lubdub-signals", move || read_signals(ends[0]));
    }
    if subscribers.previous.is_none() {
        // Safe: the structures are plain data that sigaction fills, and the handler does only what is allowed in one.
        unsafe {
            let mut previous: [libc::sigaction; 2] = std::mem::zeroed();
            let mut own: libc::sigaction = std::mem::zeroed();
            own.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
            own.sa_flags = libc::SA_RESTART;
            for (signal, before) in SIGNALS.iter().zip(previous.iter_mut()) {
                libc::sigaction(*signal, &own, before);
            }
            subscribers.previous = Some(previous);
        }
    }
    let number = subscribers.next;
    subscribers.next += 1;
    subscribers.all.push(Subscriber { number, signals: 0, call });
    Subscription(number)
}

fn read_signals(pipe: libc::c_int) {
    loop {
        let mut signal = 0u8;
        // Safe: there is room for one byte.
        let length = unsafe { libc::read(pipe, (&mut signal as *mut u8).cast(), 1) };
        if length != 1 {
            continue; // interrupted by a signal, which is read next
        }
        let mut subscribers = lock(&SUBSCRIBERS);
        subscribers.all.iter_mut().for_each(|subscriber| subscriber.signals += 1);
        let most = subscribers.all.iter().map(|subscriber| subscriber.signals).max();
        let calls: Vec<(usize, OnSignal)> =
            subscribers.all.iter().map(|subscriber| (subscriber.signals, subscriber.call.clone())).collect();
        drop(subscribers);
        if most >= Some(3) {
            // Safe: these calls have no conditions.
            unsafe {
                libc::signal(signal.into(), libc::SIG_DFL);
                libc::raise(signal.into());
            }
        }
        calls.into_iter().for_each(|(count, call)| call(count));
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut subscribers = lock(&SUBSCRIBERS);
        subscribers.all.retain(|subscriber| subscriber.number != self.0);
        if !subscribers.all.is_empty() {
            return;
        }
        if let Some(previous) = subscribers.previous.take() {
            // Safe: these are what sigaction returned.
            SIGNALS.iter().zip(&previous).for_each(|(signal, before)| unsafe {
                libc::sigaction(*signal, before, std::ptr::null_mut());
            });
        }
    }
}
