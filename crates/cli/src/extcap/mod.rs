//! `wirestamp` as one of Wireshark's external captures, extcap(4): which request it is, and who
//! answers it. Wireshark runs every program in its extcap folders with arguments of its own, so
//! these are told apart from ours before those are parsed; `wirestamp extcap` puts us there.

mod capture;
mod describe;
mod dialog;
mod install;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use wirestamp_capture::Filter;

use crate::usage::usage;
pub(crate) use install::{Arguments, run};

/// Wireshark's name of an interface is this and ours: it must differ from what libpcap calls it.
const PREFIX: &str = "wirestamp-";

/// Answers what Wireshark asks, if it is Wireshark that asks. `arguments` are those of the process.
pub(crate) fn answer(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<anyhow::Result<ExitCode>> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    // Only the first argument can tell: later ones may be those of a command that we shall run.
    let first = arguments.peek()?.to_str()?;
    let asked = first.starts_with("--extcap-") || first == "--capture" || first == "--fifo";
    asked.then(|| Request::read(arguments)?.answer())
}

/// What Wireshark wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Version,
    Interfaces,
    LinkTypes,
    Options,
    /// Whether a filter is understood.
    Filter,
    Capture,
}

/// A question, and what comes with it.
#[derive(Debug, Default)]
struct Request {
    question: Option<Question>,
    interface: Option<String>,
    filter: Option<String>,
    fifo: Option<String>,
    /// The option whose values are wanted anew.
    reload: Option<String>,
    /// What the user chose in the dialog: options of `wirestamp capture`.
    options: Vec<String>,
}

impl Request {
    fn read(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<Self> {
        let mut request = Self::default();
        let mut arguments = arguments.into_iter().map(|argument| {
            let strange = |argument| usage(format!("{argument:?} is not UTF-8"));
            argument.into_string().map_err(strange)
        });
        while let Some(argument) = arguments.next().transpose()? {
            request.take(argument, &mut arguments)?;
        }
        Ok(request)
    }

    /// Takes one argument, and its value from `rest` if it has one that is not behind a `=`.
    fn take(
        &mut self,
        argument: String,
        rest: &mut dyn Iterator<Item = anyhow::Result<String>>,
    ) -> anyhow::Result<()> {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let value = || {
            let next =
                || rest.next().unwrap_or_else(|| Err(usage(format!("{name} needs a value"))));
            value.map_or_else(next, Ok).map(Some)
        };
        match name {
            "--extcap-interfaces" => self.question = Some(Question::Interfaces),
            "--extcap-dlts" => self.question = Some(Question::LinkTypes),
            "--extcap-config" => self.question = Some(Question::Options),
            "--capture" => self.question = Some(Question::Capture),
            // Comes with other questions too, which count.
            "--extcap-version" => self.question = self.question.or(Some(Question::Version)),
            "--extcap-capture-filter" => {
                self.filter = value()?;
                self.question = self.question.or(Some(Question::Filter));
            }
            "--extcap-interface" => self.interface = value()?,
            "--extcap-reload-option" => self.reload = value()?,
            "--fifo" => self.fifo = value()?,
            "--extcap-control-in" | "--extcap-control-out" => drop(value()?), // of a toolbar: none
            _ if name.starts_with("--extcap-") => {
                return Err(usage(format!("no extcap request is known as {name}; see extcap(4)")));
            }
            // Some versions of Wireshark's dialog give a flag an empty value.
            "" => {}
            _ => self.options.push(argument),
        }
        Ok(())
    }

    fn answer(self) -> anyhow::Result<ExitCode> {
        let text = match self.question {
            None => return Err(usage("an extcap request is missing; see extcap(4)")),
            Some(Question::Version) => describe::version(),
            Some(Question::Interfaces) => describe::interfaces(&wirestamp_capture::interfaces()?),
            Some(Question::LinkTypes) => self.interface().map(|_| describe::LINK_TYPES.into())?,
            Some(Question::Options) => {
                self.interface().map(|_| dialog::options(self.reload.as_deref()))?
            }
            Some(Question::Filter) => complaint(self.filter.as_deref().unwrap_or_default()),
            Some(Question::Capture) => {
                let Some(fifo) = &self.fifo else {
                    return Err(usage("--capture needs --fifo and the name of a pipe"));
                };
                return capture::run(self.interface()?, fifo.as_ref(), &self);
            }
        };
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The interface by our name.
    fn interface(&self) -> anyhow::Result<&str> {
        let Some(name) = &self.interface else {
            return Err(usage("--extcap-interface and a name are missing"));
        };
        match name.strip_prefix(PREFIX) {
            Some(name) => Ok(name),
            None => bail!("there is no interface {name}; --extcap-interfaces lists them"),
        }
    }
}

/// What is wrong with a filter: nothing if it is understood, and one line otherwise. Wireshark takes
/// anything on standard output for the reason why it is not.
fn complaint(filter: &str) -> String {
    match Filter::compile(filter) {
        Ok(_) => String::new(),
        Err(error) => format!("{error}\n"),
    }
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
    fn only_the_first_argument_makes_it_a_request() {
        let is_request = |line: &str| answer(line.split(' ').map(OsString::from)).is_some();
        assert!(is_request("wirestamp --extcap-version=4.0"));
        assert!(is_request("wirestamp --extcap-nonsense"));
        assert!(!is_request("wirestamp lab run tool --capture"));
        assert!(!is_request("wirestamp --version"));
        assert!(!is_request("wirestamp"));
    }

    #[test]
    fn a_question_counts_more_than_the_version_or_filter_that_comes_with_it() {
        let question = |line| read(line).unwrap().question;
        assert_eq!(question("--extcap-version=4.0"), Some(Question::Version));
        let asked = question("--extcap-interfaces --extcap-version=4.0");
        assert_eq!(asked, Some(Question::Interfaces));
        let asked = question("--extcap-capture-filter udp --extcap-interface wirestamp-lo");
        assert_eq!(asked, Some(Question::Filter));
        let asked = question("--extcap-capture-filter udp --capture");
        assert_eq!(asked, Some(Question::Capture));
    }

    #[test]
    fn what_is_not_wiresharks_goes_to_the_capture() {
        let line = "--capture --extcap-interface wirestamp-eth0 --fifo /tmp/x --spin  --stamp raw";
        let request = read(line).unwrap();
        assert_eq!(request.interface().unwrap(), "eth0");
        assert_eq!(request.options, ["--spin", "--stamp", "raw"]);
    }

    #[test]
    fn a_request_that_makes_no_sense_is_told_in_one_line() {
        for (line, hint) in [
            ("--extcap-nonsense", "--extcap-nonsense"),
            ("--extcap-interface", "needs a value"),
            ("--fifo /tmp/x", "missing"),
            ("--extcap-dlts", "missing"),
            ("--extcap-config --extcap-interface eth0", "no interface eth0"),
            ("--capture --extcap-interface wirestamp-lo", "--fifo"),
        ] {
            let error = read(line).and_then(Request::answer).unwrap_err().to_string();
            assert!(error.contains(hint) && !error.contains('\n'), "{line}: {error}");
        }
    }

    #[test]
    fn a_filter_is_complained_of_or_not() {
        assert_eq!(complaint(""), "");
        assert_eq!(complaint("udp port 5000"), "");
        assert!(complaint("udp prot 5").starts_with("filter 'udp prot 5': "));
    }

    /// Words that Wireshark uses, in any order, and others.
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
        fn no_arguments_lead_astray(words in prop::collection::vec(word(), 0..8)) {
            match Request::read(words) {
                Ok(request) => drop(request.interface()),
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
    }
}
