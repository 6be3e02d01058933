//! The options of Wireshark's dialog, in the format of extcap(4): those of `wirestamp capture`, with
//! its names, defaults and bounds.

use wirestamp_capture::{Config, PAIRS, Pair};

/// The options. Limits of the capture are among them because with tshark's own limits, the capture's
/// statistics do not reach the file.
const DIALOG: &str = include_str!("dialog.txt");

/// The options of the dialog, or only the option `only`, by its call.
pub(super) fn options(only: Option<&str>) -> String {
    let Pair { method, stamp, .. } = PAIRS[0];
    let Config { snaplen, ring_bytes, .. } = Config::new("", method, stamp);
    let all = DIALOG
        .replace("METHODS\n", &methods())
        .replace("STAMPS\n", &stamps())
        .replace("SNAPLEN", &snaplen.to_string())
        .replace("BUFFER_KIB", &(ring_bytes / 1024).to_string());
    let Some(only) = only else { return all };
    let call = format!("{{call=--{}}}", only.trim_matches('-'));
    let number =
        all.lines().filter(|line| line.starts_with("arg ")).position(|it| it.contains(&call));
    let Some(number) = number else { return String::new() };
    let ours = [format!("arg {{number={number}}}"), format!("value {{arg={number}}}")];
    let lines = all.split_inclusive('\n');
    lines.filter(|line| ours.iter().any(|start| line.starts_with(start))).collect()
}

/// The values of `--method`, each with its limits. The first is the default.
fn methods() -> String {
    let pairs = PAIRS.iter().filter(|pair| pair.stamp == pair.method.default_stamp());
    let value = |(index, pair): (usize, &Pair)| {
        let Pair { method, limits, .. } = pair;
        let limits = if limits.is_empty() { String::new() } else { format!(" ({limits})") };
        let default = index == 0;
        format!(
            "value {{arg=0}}{{value={method}}}{{display={method}{limits}}}{{default={default}}}\n"
        )
    };
    pairs.enumerate().map(value).collect()
}

/// The values of `--stamp`, each with the methods that support it. They follow the empty value, which
/// Wireshark does not pass on, so that the method's default applies.
fn stamps() -> String {
    let mut text = String::new();
    for (index, Pair { stamp, .. }) in PAIRS.iter().enumerate() {
        if PAIRS[..index].iter().all(|known| known.stamp != *stamp) {
            let has_it = PAIRS.iter().filter(|other| other.stamp == *stamp);
            let methods: Vec<_> = has_it.map(|pair| pair.method.name()).collect();
            let shown = format!("{} (with {})", stamp.name(), methods.join(", "));
            text += &format!(
                "value {{arg=1}}{{value={}}}{{display={shown}}}{{default=false}}\n",
                stamp.name()
            );
        }
    }
    text
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
            assert_eq!(again.lines().count(), 4, "{again}");
            assert!(all.contains(&again), "{again}");
        }
        assert_eq!(options(Some("no-such-option")), "");
    }
}
