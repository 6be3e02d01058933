//! The options of Wireshark's dialog, in the format of extcap(4): those of `wirestamp capture`, with
//! its names, defaults and bounds.

use std::fmt::Write as _;

use wirestamp_capture::{Config, PAIRS, Pair};

/// An option of the dialog.
struct DialogOption {
    call: &'static str,
    display: &'static str,
    tooltip: String,
    group: &'static str,
    kind: Kind,
}

enum Kind {
    /// Pairs of value and label. The first is the default.
    Selector(Vec<(&'static str, String)>),
    Number {
        min: u32,
        max: u32,
        default: usize,
    },
    /// An optional number.
    Limit,
    Flag,
}

/// The options of the dialog, or only the option `only`, by its call.
pub(super) fn options(only: Option<&str>) -> String {
    let wanted =
        |call: &str| only.is_none_or(|only| only.trim_matches('-') == call.trim_matches('-'));
    let groups = [stamping(), selecting(), ending(), buffering()];
    let numbered = groups.into_iter().flatten().enumerate();
    numbered
        .filter(|(_, option)| wanted(option.call))
        .map(|(number, option)| option.sentences(number))
        .collect()
}

impl DialogOption {
    fn sentences(&self, number: usize) -> String {
        let Self { call, display, tooltip, group, kind } = self;
        let kind_and_default = match kind {
            Kind::Selector(_) => "{type=selector}".into(),
            Kind::Number { min, max, default } => {
                format!("{{type=unsigned}}{{range={min},{max}}}{{default={default}}}")
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
fn stamping() -> Vec<DialogOption> {
    let group = "Stamps";
    let flag = |call, display, tooltip: &str| DialogOption {
        call,
        display,
        tooltip: tooltip.into(),
        group,
        kind: Kind::Flag,
    };
    vec![
        DialogOption {
            call: "--method",
            display: "Method",
            tooltip: "Capture method".into(),
            group,
            kind: Kind::Selector(methods().map(|pair| (pair.method.name(), shown(pair))).collect()),
        },
        DialogOption {
            call: "--stamp",
            display: "Stamp",
            tooltip: "Stamp source; not every method supports every stamp".into(),
            group,
            kind: Kind::Selector(stamps()),
        },
        flag(
            "--spin",
            "Spin",
            "Poll for packets without pause: better raw stamps, at the cost of one core",
        ),
        flag(
            "--realtime",
            "Real time",
            "Real-time priority for the stamping thread; not with Spin",
        ),
    ]
}

/// Which packets are captured, and how much of them.
fn selecting() -> Vec<DialogOption> {
    let group = "Packets";
    let directions = [("inout", "incoming and outgoing"), ("in", "incoming only")];
    let snaplen = defaults().snaplen;
    vec![
        DialogOption {
            call: "--direction",
            display: "Direction",
            tooltip: "Which packets are captured".into(),
            group,
            kind: Kind::Selector(directions.map(|(value, shown)| (value, shown.into())).into()),
        },
        DialogOption {
            call: "--snaplen",
            display: "Snap length",
            tooltip: "Max bytes of each packet to save".into(),
            group,
            kind: Kind::Number { min: 1, max: snaplen, default: snaplen as usize },
        },
    ]
}

/// Limits of the capture. Unlike with tshark's own limits, the capture's statistics reach the file.
fn ending() -> Vec<DialogOption> {
    let limit = |call, display, tooltip: &str| DialogOption {
        call,
        display,
        tooltip: tooltip.into(),
        group: "End",
        kind: Kind::Limit,
    };
    vec![
        limit("--count", "Packets", "End after this many packets"),
        limit("--duration", "Seconds", "End after this many seconds"),
    ]
}

/// Performance at high packet rates.
fn buffering() -> Vec<DialogOption> {
    let group = "Performance";
    let kib = defaults().ring_bytes / 1024;
    vec![
        DialogOption {
            call: "--buffer-size",
            display: "Buffer (KiB)",
            tooltip: "Memory between the kernel and the capture".into(),
            group,
            kind: Kind::Number { min: 64, max: 4_194_304, default: kib },
        },
        DialogOption {
            call: "--threads",
            display: "Threads",
            tooltip: "Number of acquiring threads".into(),
            group,
            kind: Kind::Number { min: 1, max: 64, default: 1 },
        },
    ]
}

/// The configuration of a capture without options.
fn defaults() -> Config {
    let Pair { method, stamp, .. } = PAIRS[0];
    Config::new("", method, stamp)
}

/// Each method with its default stamp.
fn methods() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| is_default(pair))
}

fn is_default(pair: &Pair) -> bool {
    pair.stamp == pair.method.default_stamp()
}

/// The label of a method.
fn shown(pair: &Pair) -> String {
    let limits = if pair.limits.is_empty() { String::new() } else { format!(" ({})", pair.limits) };
    format!("{}{limits}", pair.method)
}

/// The stamps, each with the methods that support it. Wireshark does not pass on the empty value, so
/// that the method's default applies.
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
    fn every_method_and_stamp_is_offered() {
        let text = options(None);
        for pair in PAIRS {
            for name in [pair.method.name(), pair.stamp.name()] {
                assert!(text.contains(&format!("{{value={name}}}")), "{name}: {text}");
            }
        }
    }

    #[test]
    fn reloaded_option_keeps_its_number() {
        let all = options(None);
        for name in ["direction", "--direction"] {
            let again = options(Some(name));
            assert_eq!(again.lines().count(), 3, "{again}");
            assert!(all.contains(&again), "{again}");
        }
        assert_eq!(options(Some("no-such-option")), "");
    }
}
