//! Claims of a paper, and their verdicts.

use serde::Serialize;

use wirestamp_report::estimate::{Estimate, Sign};

/// A finding of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim, as it follows "The paper finds that".
    pub claim: String,
    /// Whether this study confirms it.
    pub verdict: Verdict,
    /// Lead under each condition: positive where the claim holds. The
    /// unit is that of the study.
    pub lead: Vec<Option<Estimate>>,
    /// Claim, verdict and numbers in a sentence.
    pub sentence: String,
}

impl Claim {
    /// A claim of a paper, with its verdict from the lead under each condition. `numbers` are shown to the
    /// reader after a semicolon; empty if nothing was measured.
    #[must_use]
    pub fn of(claim: impl Into<String>, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        Self::by("The paper finds", claim.into(), lead, numbers)
    }

    /// The same for a claim of this project.
    #[must_use]
    pub fn goal(claim: impl Into<String>, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        Self::by("This project claims", claim.into(), lead, numbers)
    }

    fn by(who: &str, claim: String, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        let signs = lead.iter().map(|lead| lead.map_or(Sign::Open, |lead| lead.sign()));
        let verdict = Verdict::of(&signs.collect::<Vec<_>>());
        let numbers = if numbers.is_empty() { "nothing was measured" } else { numbers };
        let is_measured = lead.iter().any(Option::is_some);
        let words = if is_measured { verdict.words() } else { "not decided here" };
        let sentence = format!("{who} that {claim}: {words}; {numbers}.");
        Self { claim, verdict, lead, sentence }
    }
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds under every condition, with 95 % confidence for each.
    Confirmed,
    /// The contrary holds under one of them.
    Contradicted,
    /// Neither confirmed nor contradicted.
    Open,
}

impl Verdict {
    /// Verdict from the signs of all conditions.
    #[must_use]
    pub fn of(signs: &[Sign]) -> Self {
        if signs.contains(&Sign::Below) {
            Self::Contradicted
        } else if signs.is_empty() || signs.contains(&Sign::Open) {
            Self::Open
        } else {
            Self::Confirmed
        }
    }

    /// In words that follow those of the claim.
    const fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed here",
            Self::Contradicted => "contradicted here",
            Self::Open => "not decided here, the data are too few or too noisy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_confirmed_only_where_all_conditions_show_it() {
        use Sign::{Above, Below, Open};
        assert_eq!(Verdict::of(&[Above, Above]), Verdict::Confirmed);
        assert_eq!(Verdict::of(&[Above, Open]), Verdict::Open);
        assert_eq!(Verdict::of(&[Above, Open, Below]), Verdict::Contradicted);
        assert_eq!(Verdict::of(&[]), Verdict::Open);
    }

    #[test]
    fn a_sentence_says_when_nothing_was_measured() {
        let claim = Claim::of("it rains", vec![None], "");
        assert_eq!(claim.verdict, Verdict::Open);
        assert!(claim.sentence.ends_with("not decided here; nothing was measured."));
    }
}
