//! Error codes, and the error message of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Return value of a function: 0 on success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Error {
    /// Success.
    None = 0,
    /// A required pointer is NULL.
    NullPointer = 1,
    /// There is no counter with this name.
    UnknownSource = 2,
    /// The counter with this name is not usable or not trusted on this machine, or the process stamps with another
    /// one already.
    UnusableSource = 3,
    /// The clock cannot be started: its counter does not run correctly, or no thread can be created.
    NotStarted = 4,
    /// An error in this library. Standard error has details.
    Internal = 5,
    /// The value of the counter at that time is not known.
    UnknownRaw = 6,
}

impl Error {
    const ALL: [Self; 7] = [
        Self::None,
        Self::NullPointer,
        Self::UnknownSource,
        Self::UnusableSource,
        Self::NotStarted,
        Self::Internal,
        Self::UnknownRaw,
    ];

    const fn text(self) -> &'static CStr {
        match self {
            Self::None => c"no error",
            Self::NullPointer => c"a pointer is NULL that must not be",
            Self::UnknownSource => c"there is no counter of that name",
            Self::UnusableSource => c"that counter cannot be used in this process",
            Self::NotStarted => c"the clock cannot be started",
            Self::UnknownRaw => c"the value of the counter at that time is not known",
            Self::Internal => c"internal error of libwirestamp_clock",
        }
    }
}

/// An error with its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) message: String,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of the function `function`. Catches panics, and stores failures for [`wirestamp_clock_last_error`].
#[inline]
pub(crate) fn guarded<T>(
    function: &str,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Error> {
    // Unwind safe: values that a body changes are replaced as a whole, or dropped.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(remember(function, failure)),
        Err(_) => Err(remember(
            function,
            Failure {
                error: Error::Internal,
                message: "an error in the library; please report what it said on standard error"
                    .into(),
            },
        )),
    }
}

/// As [`guarded`], for a function that returns only an error code.
#[inline]
pub(crate) fn outcome(function: &str, body: impl FnOnce() -> Result<(), Failure>) -> Error {
    guarded(function, body).err().unwrap_or(Error::None)
}

/// The parameter `name`, which must not be null.
#[inline]
pub(crate) fn given<T>(pointer: Option<T>, name: &str) -> Result<T, Failure> {
    pointer.ok_or_else(|| null(name))
}

#[cold]
fn null(name: &str) -> Failure {
    Failure { error: Error::NullPointer, message: format!("{name} is NULL, and must not be") }
}

#[cold]
fn remember(function: &str, failure: Failure) -> Error {
    // One line, also if names from outside contain line breaks.
    let message = format!("{function}: {}", failure.message).replace(char::is_control, " ");
    // On a thread that is ending, no caller can read it any more.
    let _ = LAST.try_with(|last| last.replace(CString::new(message).unwrap_or_default()));
    failure.error
}

/// Short description of an error, for every value of `error`. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_strerror(error: c_int) -> *const c_char {
    let known = Error::ALL.into_iter().find(|&known| known as c_int == error);
    known.map_or(c"unknown error", Error::text).as_ptr()
}

/// Message of the last failed function on the calling thread, in one line: the action, the object, the cause and
/// often the next step. Empty if none failed. Successful functions do not change it. The text is valid until a
/// function fails on the same thread, or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The text at a pointer of this library, as C reads it.
    pub(crate) fn text(pointer: *const c_char) -> String {
        // SAFETY: the library returns texts that end with a zero byte, and this one is copied before it could be
        // replaced.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
    }

    pub(crate) fn last_error() -> String {
        text(wirestamp_clock_last_error())
    }

    #[test]
    fn all_numbers_have_an_error_text() {
        for (number, error) in (0..).zip(Error::ALL) {
            assert_eq!(error as c_int, number);
            assert_eq!(text(wirestamp_clock_strerror(number)), error.text().to_str().unwrap());
        }
        for number in [-1, 7, c_int::MIN, c_int::MAX] {
            assert_eq!(text(wirestamp_clock_strerror(number)), "unknown error");
        }
    }

    #[test]
    fn panic_is_returned_as_an_error() {
        assert_eq!(outcome("f", || panic!("on purpose")), Error::Internal);
        assert!(last_error().starts_with("f: an error in the library"));
    }

    #[test]
    fn error_message_is_one_line_per_thread() {
        let fail = || Err(Failure { error: Error::NotStarted, message: "a\nb\0c".to_owned() });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(last_error(), "", "nothing failed on this thread");
                assert_eq!(outcome("f", fail), Error::NotStarted);
                assert_eq!(outcome("g", || Ok(())), Error::None);
                assert_eq!(last_error(), "f: a b c");
            });
        });
        assert!(!last_error().contains("a b c"));
    }
}
