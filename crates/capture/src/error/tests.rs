//! Tests of the messages of errors.

use std::error::Error as _;

use super::*;

#[test]
fn message_has_cause_once_and_next_step() {
    let cause = io::Error::from_raw_os_error(libc::ENOMEM);
    let words = cause.to_string();
    let error = Error::system("set up the ring", "eth0", "cap_net_raw", cause);
    assert_eq!(
        error.to_string(),
        format!("cannot set up the ring on eth0: {words}; use a smaller ring with --buffer-size")
    );
    assert!(error.source().is_none());
}

#[test]
fn full_disk_message_counts_readable_packets() {
    let message = |packets| {
        let cause = io::ErrorKind::StorageFull.into();
        Error::writing("x".into(), packets, cause).to_string()
    };
    assert!(message(0).contains("free some space") && !message(0).contains("readable"));
    assert!(
        message(7).contains("free some space") && message(7).contains("its 7 packets are readable")
    );
}

#[test]
fn missing_privilege_message_has_setcap_command() {
    let denied = io::Error::from_raw_os_error(libc::EPERM);
    let message = Error::system("see all packets", "lo", "cap_net_raw", denied).to_string();
    let program = std::env::current_exe().unwrap();
    assert!(message.starts_with("cannot see all packets on lo without privileges: "), "{message}");
    assert!(
        message.ends_with(&format!("`setcap cap_net_raw+ep {}`", program.display())),
        "{message}"
    );
}

#[test]
fn only_closed_pipe_is_broken_pipe() {
    let written = |kind: io::ErrorKind| Error::Write { path: "-".into(), cause: kind.into() };
    assert!(written(io::ErrorKind::BrokenPipe).is_broken_pipe());
    assert!(!written(io::ErrorKind::StorageFull).is_broken_pipe());
}
