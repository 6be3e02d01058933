//! The option `--match`.

use std::str::FromStr;

use wirestamp_packet::MatchRule;

/// Value of `--match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matching {
    /// [`MatchRule::Packet`]; if it recognises hardly any packet, other rules: in files those that may help, and live all.
    Auto,
    By(MatchRule),
}

impl Matching {
    /// The rule with which a measurement begins.
    pub(super) fn first(self) -> MatchRule {
        match self {
            Self::Auto => MatchRule::default(),
            Self::By(rule) => rule,
        }
    }
}

impl FromStr for Matching {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        let rule = name.parse::<MatchRule>();
        rule.map(Self::By).map_err(|error| format!("{error}, or auto to choose one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_and_others_listed() {
        assert_eq!("auto".parse(), Ok(Matching::Auto));
        assert_eq!("rtp".parse(), Ok(Matching::By(MatchRule::Rtp)));
        let error = "magic".parse::<Matching>().unwrap_err();
        assert!(error.contains("payload") && error.contains("auto"), "{error}");
    }
}
