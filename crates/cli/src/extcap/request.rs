//! A request of Wireshark, with its options.

use std::ffi::OsString;

use anyhow::bail;

use crate::usage::usage;

/// Prefix of interface names in Wireshark: they must differ from libpcap's.
pub(super) const PREFIX: &str = "wirestamp-";

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Version,
    Interfaces,
    LinkTypes,
    Options,
    /// Validation of a filter.
    Filter,
    Capture,
}

/// A request and its options.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) kind: Option<RequestKind>,
    pub(super) interface: Option<String>,
    pub(super) filter: Option<String>,
    pub(super) fifo: Option<String>,
    /// The option whose values are reloaded.
    pub(super) reload: Option<String>,
    /// Options chosen in the dialog: those of `wirestamp capture`.
    pub(super) options: Vec<String>,
}

impl Request {
    pub(super) fn read(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<Self> {
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

    /// Reads one argument, and its value from `rest` unless it follows a `=`.
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
            "--extcap-interfaces" => self.kind = Some(RequestKind::Interfaces),
            "--extcap-dlts" => self.kind = Some(RequestKind::LinkTypes),
            "--extcap-config" => self.kind = Some(RequestKind::Options),
            "--capture" => self.kind = Some(RequestKind::Capture),
            // Also sent with other requests, which take precedence.
            "--extcap-version" => self.kind = self.kind.or(Some(RequestKind::Version)),
            "--extcap-capture-filter" => {
                self.filter = value()?;
                self.kind = self.kind.or(Some(RequestKind::Filter));
            }
            "--extcap-interface" => self.interface = value()?,
            "--extcap-reload-option" => self.reload = value()?,
            "--fifo" => self.fifo = value()?,
            "--extcap-control-in" | "--extcap-control-out" => drop(value()?), // toolbar: not supported
            _ if name.starts_with("--extcap-") => {
                return Err(usage(format!("unknown extcap request {name}; see extcap(4)")));
            }
            // Some versions of Wireshark's dialog give a flag an empty value.
            "" => {}
            _ => self.options.push(argument),
        }
        Ok(())
    }

    /// The interface without the prefix.
    pub(super) fn interface(&self) -> anyhow::Result<&str> {
        let Some(name) = &self.interface else {
            return Err(usage("--extcap-interface NAME is missing"));
        };
        match name.strip_prefix(PREFIX) {
            Some(name) => Ok(name),
            None => bail!("no interface {name}; list the interfaces with --extcap-interfaces"),
        }
    }
}
