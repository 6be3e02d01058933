//! `wirestamp` as an external capture tool of Wireshark, extcap(4).
//!
//! Wireshark runs every program in its extcap folders with its own arguments. These are recognised
//! before the command line is parsed. `wirestamp extcap install` adds a link to such a folder.

mod capture;
mod describe;
mod dialog;
mod install;
mod request;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use wirestamp_capture::Filter;
use wirestamp_packet::LinkType;

use crate::usage::usage;
pub(crate) use install::{Arguments, Done, run};
use request::{Request, RequestKind};

/// Answers a request of Wireshark; none for other arguments. `arguments` are those of the process.
pub(crate) fn respond_to_wireshark(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<anyhow::Result<ExitCode>> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    // Only the first argument counts: later ones may belong to a command of `lab run`.
    let first = arguments.peek()?.to_str()?;
    let is_request = first.starts_with("--extcap-") || first == "--capture" || first == "--fifo";
    is_request.then(|| respond(&Request::read(arguments)?))
}

/// Prints the answer to a request, or runs the capture that it asks for.
fn respond(request: &Request) -> anyhow::Result<ExitCode> {
    let text = match request.kind {
        None => return Err(usage("no extcap request given; see extcap(4)")),
        Some(RequestKind::Version) => describe::version(),
        Some(RequestKind::Interfaces) => describe::interfaces(&wirestamp_capture::interfaces()?),
        Some(RequestKind::LinkTypes) => {
            describe::link_type(wirestamp_capture::link_type(request.interface()?)?).into()
        }
        Some(RequestKind::Options) => {
            request.interface().map(|_| dialog::options(request.reload.as_deref()))?
        }
        Some(RequestKind::Filter) => {
            filter_error(request.filter.as_deref().unwrap_or_default(), link_of(request))
        }
        Some(RequestKind::Capture) => {
            let Some(fifo) = &request.fifo else {
                return Err(usage("--capture needs --fifo PIPE"));
            };
            return capture::run(request.interface()?, fifo.as_ref(), request);
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The error of a filter for this link type in one line, or an empty text. Wireshark reads any output as the reason why a
/// filter is invalid.
fn filter_error(filter: &str, link: LinkType) -> String {
    match Filter::compile_for(filter, link) {
        Ok(_) => String::new(),
        Err(error) => format!("{error}\n"),
    }
}

/// How packets of the requested interface begin; without one, as with Ethernet.
fn link_of(request: &Request) -> LinkType {
    let link = request.interface().ok().and_then(|it| wirestamp_capture::link_type(it).ok());
    link.flatten().unwrap_or(LinkType::Ethernet)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> anyhow::Result<Request> {
        Request::read(line.split(' ').map(OsString::from))
    }

    #[test]
    fn only_the_first_argument_marks_a_request() {
        let is_request =
            |line: &str| respond_to_wireshark(line.split(' ').map(OsString::from)).is_some();
        assert!(is_request("wirestamp --extcap-version=4.0"));
        assert!(is_request("wirestamp --extcap-nonsense"));
        assert!(!is_request("wirestamp lab run tool --capture"));
        assert!(!is_request("wirestamp --version"));
        assert!(!is_request("wirestamp"));
    }

    #[test]
    fn version_and_filter_yield_to_other_requests() {
        let kind = |line| read(line).unwrap().kind;
        assert_eq!(kind("--extcap-version=4.0"), Some(RequestKind::Version));
        let asked = kind("--extcap-interfaces --extcap-version=4.0");
        assert_eq!(asked, Some(RequestKind::Interfaces));
        let asked = kind("--extcap-capture-filter udp --extcap-interface wirestamp-lo");
        assert_eq!(asked, Some(RequestKind::Filter));
        let asked = kind("--extcap-capture-filter udp --capture");
        assert_eq!(asked, Some(RequestKind::Capture));
    }

    #[test]
    fn other_arguments_are_capture_options() {
        let line = "--capture --extcap-interface wirestamp-eth0 --fifo /tmp/x --spin  --stamp raw";
        let request = read(line).unwrap();
        assert_eq!(request.interface().unwrap(), "eth0");
        assert_eq!(request.options, ["--spin", "--stamp", "raw"]);
    }

    #[test]
    fn invalid_request_fails_with_one_line() {
        for (line, hint) in [
            ("--extcap-nonsense", "--extcap-nonsense"),
            ("--extcap-interface", "needs a value"),
            ("--fifo /tmp/x", "no extcap request"),
            ("--extcap-dlts", "missing"),
            ("--extcap-config --extcap-interface eth0", "no interface eth0"),
            ("--capture --extcap-interface wirestamp-lo", "--fifo"),
        ] {
            let error = read(line).and_then(|request| respond(&request)).unwrap_err().to_string();
            assert!(error.contains(hint) && !error.contains('\n'), "{line}: {error}");
        }
    }

    #[test]
    fn invalid_filter_is_reported() {
        assert_eq!(filter_error("", LinkType::Ethernet), "");
        assert_eq!(filter_error("udp port 5000", LinkType::Ethernet), "");
        let wrong = filter_error("udp prot 5", LinkType::Ip);
        assert!(wrong.starts_with("cannot compile filter 'udp prot 5': "), "{wrong}");
        assert_ne!(filter_error("ether host 02:00:00:00:00:01", LinkType::Ip), "");
    }

    /// Arguments of Wireshark in any order, and others.
    fn word() -> impl Strategy<Value = OsString> {
        const KNOWN: &[&str] = &[
            "--extcap-interface",
            "--extcap-interface=wirestamp-lo",
            "--extcap-capture-filter",
            "--extcap-reload-option=cores",
            "--extcap-version=4.0",
            "--extcap-dlts",
            "--extcap-config",
            "--capture",
            "--fifo",
            "=",
        ];
        prop_oneof![
            prop::sample::select(KNOWN).prop_map(OsString::from),
            "--extcap-.{0,20}".prop_map(OsString::from),
            any::<Vec<u8>>().prop_map(OsString::from_vec),
        ]
    }

    proptest! {
        #[test]
        fn no_arguments_panic(words in prop::collection::vec(word(), 0..8)) {
            match Request::read(words) {
                Ok(request) => drop(request.interface()),
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
    }
}
