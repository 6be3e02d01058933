//! The display filter typed on the screen.

use std::net::IpAddr;

use wirestamp_metrics::flow::FlowReport;

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
const PROTOCOLS: [(&str, u8); 4] = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmp6", 58)];

/// A display filter: selects flows that match all its terms.
///
/// Terms as in pcap-filter(7): `host A`, `src A`, `dst A`, `port N`, `tcp`, `udp`, `icmp`, `icmp6`, also
/// `rtp`. Any other word matches a part of the addresses, the codec or the SSRC. `not` negates the next
/// term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DisplayFilter {
    text: String,
    terms: Vec<(bool, Term)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Host(String),
    Source(String),
    Destination(String),
    Port(u16),
    Protocol(u8),
    Rtp,
    Text(String),
}

impl DisplayFilter {
    /// Parses a filter. An incomplete term, such as `port`, is ignored.
    pub(super) fn parse(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut tokens = lower.split_whitespace();
        let (mut terms, mut wanted) = (Vec::new(), true);
        while let Some(token) = tokens.next() {
            let term = match token {
                "and" | "&&" => continue,
                "not" | "!" => {
                    wanted = !wanted;
                    continue;
                }
                "host" => tokens.next().map(|it| Term::Host(it.to_owned())),
                "src" => tokens.next().map(|it| Term::Source(it.to_owned())),
                "dst" => tokens.next().map(|it| Term::Destination(it.to_owned())),
                "port" => tokens.next().and_then(|it| it.parse().ok()).map(Term::Port),
                "rtp" => Some(Term::Rtp),
                other => {
                    let protocol = PROTOCOLS.iter().find(|(name, _)| *name == other);
                    let text = || Term::Text(other.to_owned());
                    Some(protocol.map_or_else(text, |(_, number)| Term::Protocol(*number)))
                }
            };
            terms.extend(term.map(|term| (wanted, term)));
            wanted = true;
        }
        Self { text: text.to_owned(), terms }
    }

    /// The typed text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the flow matches.
    pub(super) fn matches(&self, report: &FlowReport) -> bool {
        self.terms.iter().all(|(wanted, term)| term.matches(report) == *wanted)
    }
}

impl Term {
    fn matches(&self, report: &FlowReport) -> bool {
        match self {
            Self::Host(host) => is(host, report.src) || is(host, report.dst),
            Self::Source(host) => is(host, report.src),
            Self::Destination(host) => is(host, report.dst),
            Self::Port(port) => report.sport == *port || report.dport == *port,
            Self::Protocol(number) => report.protocol == *number,
            Self::Rtp => report.rtp.is_some(),
            Self::Text(text) => describe(report).contains(text),
        }
    }
}

/// Whether `host` is the address, or a prefix of its text.
fn is(host: &str, address: IpAddr) -> bool {
    match host.parse::<IpAddr>() {
        Ok(host) => host == address,
        Err(_) => address.to_string().starts_with(host),
    }
}

/// The searchable text of a flow.
fn describe(report: &FlowReport) -> String {
    let mut text = report.flow().to_string();
    if let Some(rtp) = &report.rtp {
        text += &format!(" 0x{:08x} {}", rtp.ssrc, rtp.codec.as_deref().unwrap_or_default());
    }
    text.to_lowercase()
}
