//! The options that Wireshark's dialog offers, in the sentences of extcap(4). They are options of
//! `wirestamp capture`, with its names, defaults and bounds.

use std::fmt::Write as _;

use wirestamp_capture::{Config, PAIRS, Pair};

/// An option of `wirestamp capture` that the dialog offers.
struct Choice {
    call: &'static str,
    display: &'static str,
    tooltip: String,
    group: &'static str,
    kind: Kind,
}

enum Kind {
    /// The value and what is shown for it. The first is the default.
    Selector(Vec<(&'static str, String)>),
    Number {
        least: u32,
        most: u32,
        default: usize,
    },
    /// A number that is not given by default.
    Limit,
    Flag,
}

/// The options of the dialog; only those of the option `only`, by its call, if there is one.
pub(super) fn options(only: Option<&str>) -> String {
    let wanted =
        |call: &str| only.is_none_or(|only| only.trim_matches('-') == call.trim_matches('-'));
    let choices = [stamping(), selecting(), ending(), buffering()];
    let numbered = choices.into_iter().flatten().enumerate();
    numbered
        .filter(|(_, choice)| wanted(choice.call))
        .map(|(number, choice)| choice.sentences(number))
        .collect()
}

impl Choice {
    fn sentences(&self, number: usize) -> String {
        let Self { call, display, tooltip, group, kind } = self;
        let kind_and_default = match kind {
            Kind::Selector(_) => "{type=selector}".into(),
            Kind::Number { least, most, default } => {
                format!("{{type=unsigned}}{{range={least},{most}}}{{default={default}}}")
            }
            Kind::Limit => "{type=unsigned}{placeholder=no limit}{validation=^[1-9][0-9]*$}".into(),
            Kind::Flag => "{type=boolflag}{default=false}".into(),
        };
        let mut text = format!(
            "arg {{number={number}}}{{call={call}}}{{display={display}}}{{tooltip={tooltip}}}\
             {kind_and_default}{{group={group}}}\n"
        );
        if let Kind::Selector(values) = kind {
            for (index, (value, display)) in values.iter().enumerate() {
                let default = index == 0;
                let _ = writeln!(
                    text,
                    "value {{arg={number}}}{{value={value}}}{{display={display}}}{{default={default}}}"
                );
            }
        }
        text
    }
}

/// How packets are stamped.
fn stamping() -> Vec<Choice> {
    let group = "Stamps";
    let flag = |call, display, tooltip: &str| Choice {
        call,
        display,
        tooltip: tooltip.into(),
        group,
        kind: Kind::Flag,
    };
    vec![
        Choice {
            call: "--method",
            display: "Method",
            tooltip: "How packets are received".into(),
            group,
            kind: Kind::Selector(methods().map(|pair| (pair.method.name(), shown(pair))).collect()),
        },
        Choice {
            call: "--stamp",
            display: "Stamp",
            tooltip: "Which clock stamps them; not every method has every stamp".into(),
            group,
            kind: Kind::Selector(stamps()),
        },
        flag(
            "--spin",
            "Spin",
            "Look for packets without pause: better raw stamps, for a whole core",
        ),
        flag(
            "--realtime",
            "Real time",
            "Real-time priority for the stamping thread; not with Spin",
        ),
    ]
}

/// Which packets are captured, and how much of them.
fn selecting() -> Vec<Choice> {
    let group = "Packets";
    let directions = [("inout", "incoming and outgoing"), ("in", "incoming only")];
    let snaplen = defaults().snaplen;
    vec![
        Choice {
            call: "--direction",
            display: "Direction",
            tooltip: "Which packets are captured".into(),
            group,
            kind: Kind::Selector(directions.map(|(value, shown)| (value, shown.into())).into()),
        },
        Choice {
            call: "--snaplen",
            display: "Snap length",
            tooltip: "Bytes of each packet to keep".into(),
            group,
            kind: Kind::Number { least: 1, most: snaplen, default: snaplen as usize },
        },
    ]
}

/// When the capture ends by itself. Then its statistics are sure to come through: Wireshark's stop
/// button waits for them too, but tshark's own limits end the reading of the pipe first.
fn ending() -> Vec<Choice> {
    let limit = |call, display, tooltip: &str| Choice {
        call,
        display,
        tooltip: tooltip.into(),
        group: "End",
        kind: Kind::Limit,
    };
    vec![
        limit("--count", "Packets", "End after so many packets"),
        limit("--duration", "Seconds", "End after so many seconds"),
    ]
}

/// What keeps up with many packets.
fn buffering() -> Vec<Choice> {
    let group = "Performance";
    let kib = defaults().ring_bytes / 1024;
    vec![
        Choice {
            call: "--buffer-size",
            display: "Buffer (KiB)",
            tooltip: "Memory between the kernel and the capture".into(),
            group,
            kind: Kind::Number { least: 64, most: 4_194_304, default: kib },
        },
        Choice {
            call: "--threads",
            display: "Threads",
            tooltip: "Share the packets among so many acquiring threads".into(),
            group,
            kind: Kind::Number { least: 1, most: 64, default: 1 },
        },
    ]
}

/// What a capture is without options.
fn defaults() -> Config {
    let Pair { method, stamp, .. } = PAIRS[0];
    Config::new("", method, stamp)
}

/// Each method once, with the stamp that it has by default.
fn methods() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| is_default(pair))
}

fn is_default(pair: &Pair) -> bool {
    pair.stamp == pair.method.default_stamp()
}

/// A method as the dialog shows it.
fn shown(pair: &Pair) -> String {
    let limits = if pair.limits.is_empty() { String::new() } else { format!(" ({})", pair.limits) };
    format!("{}{limits}", pair.method)
}

/// The stamps, each with the methods that have it. The empty value is one that Wireshark does not
/// pass on, which leaves the choice to the method.
fn stamps() -> Vec<(&'static str, String)> {
    let mut stamps = vec![("", "the method's own".to_owned())];
    for pair in PAIRS {
        let stamp = pair.stamp.name();
        if stamps.iter().all(|(known, _)| *known != stamp) {
            let has_it = PAIRS.iter().filter(|other| other.stamp == pair.stamp);
            let methods: Vec<_> = has_it.map(|pair| pair.method.name()).collect();
            stamps.push((stamp, format!("{stamp} (with {})", methods.join(", "))));
        }
    }
    stamps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_and_stamp_can_be_chosen() {
        let text = options(None);
        for pair in PAIRS {
            for name in [pair.method.name(), pair.stamp.name()] {
                assert!(text.contains(&format!("{{value={name}}}")), "{name}: {text}");
            }
        }
    }

    #[test]
    fn one_option_can_be_asked_for_again_with_the_number_it_had() {
        let all = options(None);
        for name in ["direction", "--direction"] {
            let again = options(Some(name));
            assert_eq!(again.lines().count(), 3, "{again}");
            assert!(all.contains(&again), "{again}");
        }
        assert_eq!(options(Some("no-such-option")), "");
    }
}
