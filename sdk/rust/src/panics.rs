//! Panics of handlers become failures with their stack.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::failure::{Category, Failed};

thread_local! {
    /// While a handler runs on this thread: the stack of its panic.
    static STACK: RefCell<Option<String>> = RefCell::new(None);
}

static HOOK: Once = Once::new();

/// Calls a handler. Its panic is a failure. The program's own panic hook is called, too.
pub(crate) fn catch<T>(handler: impl FnOnce() -> T) -> Result<T, Failed> {
    HOOK.call_once(|| {
        let programs = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            STACK.with(|stack| {
                if let Ok(mut stack) = stack.try_borrow_mut() {
                    if stack.is_some() {
                        let place = info.location().map(|at| format!("panicked at {at}\n")).unwrap_or_default();
                        *stack = Some(format!("{place}{:?}", backtrace::Backtrace::new()));
                    }
                }
            });
            programs(info);
        }));
    });
    STACK.with(|stack| *stack.borrow_mut() = Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(handler));
    let stack = STACK.with(|stack| stack.borrow_mut().take()).filter(|stack| !stack.is_empty());
    result.map_err(|panic| Failed { stack, ..Failed::new(Category::UserCode, message(panic.as_ref())) })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("with a value that is not text"))
}
