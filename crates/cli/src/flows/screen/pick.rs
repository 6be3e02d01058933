//! The filter that is typed: which flows are shown.

use std::net::IpAddr;

use wirestamp_metrics::flow::FlowReport;

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
const PROTOCOLS: [(&str, u8); 4] = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmp6", 58)];

/// A choice of flows: those of which all words hold. Words are `host A`, `src A`, `dst A`, `port N`, `tcp`,
/// `udp`, `icmp`, `icmp6` and `rtp`, as in pcap-filter(7) as far as it has them, and anything else that
/// is in the addresses, the codec or the source of a stream. `not` is of the word after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pick {
    text: String,
    words: Vec<(bool, Word)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Host(String),
    Source(String),
    Destination(String),
    Port(u16),
    Protocol(u8),
    Rtp,
    Text(String),
}

impl Pick {
    /// Reads what was typed. A word that is not whole yet, such as `port`, means nothing.
    pub(super) fn parse(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut tokens = lower.split_whitespace();
        let (mut words, mut wanted) = (Vec::new(), true);
        while let Some(token) = tokens.next() {
            let word = match token {
                "and" | "&&" => continue,
                "not" | "!" => {
                    wanted = !wanted;
                    continue;
                }
                "host" => tokens.next().map(|it| Word::Host(it.to_owned())),
                "src" => tokens.next().map(|it| Word::Source(it.to_owned())),
                "dst" => tokens.next().map(|it| Word::Destination(it.to_owned())),
                "port" => tokens.next().and_then(|it| it.parse().ok()).map(Word::Port),
                "rtp" => Some(Word::Rtp),
                other => {
                    let protocol = PROTOCOLS.iter().find(|(name, _)| *name == other);
                    let text = || Word::Text(other.to_owned());
                    Some(protocol.map_or_else(text, |(_, number)| Word::Protocol(*number)))
                }
            };
            words.extend(word.map(|word| (wanted, word)));
            wanted = true;
        }
        Self { text: text.to_owned(), words }
    }

    /// What was typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the flow is shown.
    pub(super) fn takes(&self, report: &FlowReport) -> bool {
        self.words.iter().all(|(wanted, word)| word.holds(report) == *wanted)
    }
}

impl Word {
    fn holds(&self, report: &FlowReport) -> bool {
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

/// Whether `host` is the address, or how it begins.
fn is(host: &str, address: IpAddr) -> bool {
    match host.parse::<IpAddr>() {
        Ok(host) => host == address,
        Err(_) => address.to_string().starts_with(host),
    }
}

/// All that can be looked for in a flow.
fn describe(report: &FlowReport) -> String {
    let mut text = report.flow().to_string();
    if let Some(rtp) = &report.rtp {
        text += &format!(" 0x{:08x} {}", rtp.ssrc, rtp.codec.as_deref().unwrap_or_default());
    }
    text.to_lowercase()
}
