//! Claims of the papers and of this project, and their verdicts.

use serde::{Deserialize, Serialize};

use wirestamp_report::estimate::{Estimate, Sign};

use super::open;

/// Significance level of a contradiction, for all conditions together.
const SIGNIFICANCE: f64 = 0.05;

/// What documents of earlier versions have for every open verdict.
const OLDER_OPEN: &str = "not decided here, the data are too few or too noisy";

/// A finding of a paper, or a claim of this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// Who claims it.
    #[serde(default)]
    pub by: Claimant,
    /// The claim, as it follows "The paper finds that".
    pub claim: String,
    /// Whether this study confirms it.
    pub verdict: Verdict,
    /// Lead under each condition: positive where the claim holds. The
    /// unit is that of the study.
    #[serde(skip_deserializing)]
    pub lead: Vec<Option<Estimate>>,
    /// Claim, verdict and numbers in a sentence, and the cause of a contradiction.
    pub sentence: String,
    /// Why a claim does not hold here, by what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Who claims it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Claimant {
    /// The paper whose experiment the study repeats.
    #[default]
    Paper,
    /// This project.
    Project,
}

impl Claim {
    /// A claim of a paper, with its verdict from the lead under each condition. `numbers` are shown to the
    /// reader after a semicolon; empty if nothing was measured.
    #[must_use]
    pub fn of(claim: impl Into<String>, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        Self::by(Claimant::Paper, claim.into(), lead, numbers)
    }

    /// A claim of a paper that one value is larger than another, of which a difference below `relevant`, `in_words`, counts as
    /// none. It is also contradicted if under every condition the lead is below that, with 95 % confidence for each, even if
    /// it is above 0.
    #[must_use]
    pub fn difference(
        claim: impl Into<String>,
        lead: Vec<Option<Estimate>>,
        (relevant, in_words): (f64, &str),
        numbers: &str,
    ) -> Self {
        let found = Self::of(claim, lead, numbers);
        let is_below = |lead: &Option<Estimate>| {
            lead.is_some_and(|it| it.around(it.mean - relevant).sign() == Sign::Below)
        };
        let is_none = !found.lead.is_empty() && found.lead.iter().all(is_below);
        if found.verdict == Verdict::Contradicted || !is_none {
            return found;
        }
        let (before, contradicted) =
            (found.verdict.phrase(&found.lead), Verdict::Contradicted.words());
        let sentence = found.sentence.replacen(&before, contradicted, 1);
        let sentence = format!(
            "{}; a difference below {in_words} counts as none.",
            sentence.trim_end_matches('.')
        );
        Self { verdict: Verdict::Contradicted, sentence, ..found }
    }

    /// The same for a claim of this project.
    #[must_use]
    pub fn goal(claim: impl Into<String>, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        Self::by(Claimant::Project, claim.into(), lead, numbers)
    }

    /// A claim of a paper that this test bed cannot ask. `reason` says why, and `requirement` what it would take.
    #[must_use]
    pub fn not_the_same_question(
        claim: impl Into<String>,
        reason: &str,
        requirement: &str,
    ) -> Self {
        let (by, claim, verdict) = (Claimant::Paper, claim.into(), Verdict::NotTheSameQuestion);
        let sentence = format!(
            "{} that {claim}: {}, because {reason}; it would take {requirement}.",
            by.words(),
            verdict.words()
        );
        Self { by, claim, verdict, lead: Vec::new(), sentence, cause: None }
    }

    /// The claim with the cause, if it is contradicted. `cause` follows "Cause:", and has the numbers that show it; none if
    /// nothing shows it.
    #[must_use]
    pub fn caused_by(self, cause: impl FnOnce() -> Option<String>) -> Self {
        let applies = self.verdict == Verdict::Contradicted;
        self.with_cause(applies, cause)
    }

    /// The same if the claim is contradicted or open: what keeps it from being confirmed.
    #[must_use]
    pub fn prevented_by(self, cause: impl FnOnce() -> Option<String>) -> Self {
        let applies = matches!(self.verdict, Verdict::Contradicted | Verdict::Open);
        self.with_cause(applies, cause)
    }

    /// The claim of an older document with the reason of an open verdict, from its lead.
    pub(crate) fn with_reason(mut self) -> Self {
        if self.verdict == Verdict::Open {
            let phrase = self.verdict.phrase(&self.lead);
            self.sentence = self.sentence.replacen(OLDER_OPEN, &phrase, 1);
        }
        self
    }

    fn with_cause(mut self, applies: bool, cause: impl FnOnce() -> Option<String>) -> Self {
        if applies {
            self.cause = cause();
            if let Some(cause) = &self.cause {
                self.sentence += &format!(" Cause: {cause}.");
            }
        }
        self
    }

    fn by(by: Claimant, claim: String, lead: Vec<Option<Estimate>>, numbers: &str) -> Self {
        let verdict = Verdict::of(&lead);
        let words = verdict.phrase(&lead);
        let numbers = if numbers.is_empty() && !lead.iter().any(Option::is_some) {
            "nothing was measured"
        } else {
            numbers
        };
        let numbers = if numbers.is_empty() { String::new() } else { format!("; {numbers}") };
        let sentence = format!("{} that {claim}: {words}{numbers}.", by.words());
        Self { by, claim, verdict, lead, sentence, cause: None }
    }
}

impl Claimant {
    /// The beginning of the sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Paper => "The paper finds",
            Self::Project => "This project claims",
        }
    }
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds under every condition, with 95 % confidence for each.
    Confirmed,
    /// The contrary holds under one of them, with 95 % confidence for all together.
    Contradicted,
    /// Neither confirmed nor contradicted: values are missing, or an interval includes the limit of the claim. The sentence
    /// names the reason.
    Open,
    /// This test bed cannot ask the question.
    NotTheSameQuestion,
}

impl Verdict {
    /// Verdict from the lead under each condition, positive where the claim holds.
    ///
    /// A confirmation requires significance under every condition, so that it needs no correction for their number. A
    /// contradiction requires it under one of them, and is corrected by the method of Holm ("A simple sequentially
    /// rejective multiple test procedure", 1979): its first step compares the smallest probability, times the number of
    /// conditions, with the significance level.
    #[must_use]
    pub fn of(leads: &[Option<Estimate>]) -> Self {
        let conditions: f64 = leads.iter().map(|_| 1.0).sum();
        let contradicts = |lead: &Estimate| {
            lead.mean < 0.0 && lead.p_value().is_some_and(|p| p * conditions <= SIGNIFICANCE)
        };
        let is_above = |lead: &Option<Estimate>| lead.is_some_and(|it| it.sign() == Sign::Above);
        if leads.iter().flatten().any(contradicts) {
            Self::Contradicted
        } else if !leads.is_empty() && leads.iter().all(is_above) {
            Self::Confirmed
        } else {
            Self::Open
        }
    }

    /// In words that follow those of the claim.
    const fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed here",
            Self::Contradicted => "contradicted here",
            Self::Open => "not decided here",
            Self::NotTheSameQuestion => "not the same question here",
        }
    }

    /// The same, with the reason of an open verdict from the lead under each condition.
    fn phrase(self, leads: &[Option<Estimate>]) -> String {
        match (self, open::reason(leads)) {
            (Self::Open, Some(reason)) => format!("{}, because {reason}", self.words()),
            _ => self.words().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_confirmed_only_where_all_conditions_show_it() {
        let [above, open, below] =
            [1.0, 0.1, -1.0].map(|mean| Some(Estimate::new(mean, Some(0.5))));
        assert_eq!(Verdict::of(&[above, above]), Verdict::Confirmed);
        assert_eq!(Verdict::of(&[above, open]), Verdict::Open);
        assert_eq!(Verdict::of(&[above, None]), Verdict::Open);
        assert_eq!(Verdict::of(&[above, open, below]), Verdict::Contradicted);
        assert_eq!(Verdict::of(&[]), Verdict::Open);
    }

    #[test]
    fn a_contradiction_under_one_of_many_conditions_is_corrected_for_their_number() {
        // p is 0.04 or so.
        let below = Some(Estimate::new(-1.05, Some(1.0)));
        assert_eq!(Verdict::of(&[below]), Verdict::Contradicted);
        assert_eq!(Verdict::of(&[below, below]), Verdict::Open);
        let clearly = Some(Estimate::new(-2.0, Some(1.0)));
        assert_eq!(Verdict::of(&[below, clearly]), Verdict::Contradicted);
    }

    #[test]
    fn a_sentence_says_when_nothing_was_measured() {
        let claim = Claim::of("it rains", vec![None], "");
        assert_eq!(claim.verdict, Verdict::Open);
        assert!(claim.sentence.ends_with("not decided here; nothing was measured."));
    }

    #[test]
    fn open_verdict_has_its_reason() {
        let lead = |ci95| vec![Some(Estimate::new(1.0, ci95))];
        let once = Claim::of("it rains", lead(None), "2 mm");
        assert_eq!(
            once.sentence,
            "The paper finds that it rains: not decided here, because one repetition has no interval; 2 mm."
        );
        let noisy = Claim::of("it rains", lead(Some(2.0)), "2 mm").sentence;
        assert!(noisy.contains("because the 95 % interval includes the limit of the claim; 2 mm"));
        assert!(Claim::of("it rains", lead(Some(0.5)), "").sentence.ends_with("confirmed here."));
    }

    #[test]
    fn contradiction_has_its_cause() {
        let claim =
            |mean| Claim::of("it rains", vec![Some(Estimate::new(mean, Some(0.5)))], "0 mm");
        let cause = || Some("the humidity is 20 %".to_owned());
        let contradicted = claim(-1.0).caused_by(cause);
        assert!(contradicted.sentence.ends_with("; 0 mm. Cause: the humidity is 20 %."));
        assert_eq!(contradicted.cause, cause());
        assert_eq!(claim(1.0).caused_by(cause), claim(1.0));
        assert_eq!(claim(0.1).caused_by(cause), claim(0.1));
        assert_eq!(claim(0.1).prevented_by(cause).cause, cause());
        assert_eq!(claim(1.0).prevented_by(cause), claim(1.0));
    }

    #[test]
    fn a_difference_that_is_too_small_to_matter_contradicts() {
        let claim = |mean, ci95| {
            let lead = vec![Some(Estimate::new(mean, Some(ci95)))];
            Claim::difference("A is slower", lead, (10.0, "10 ns"), "5 ns against 4 ns")
        };
        let none = claim(1.0, 2.0);
        assert_eq!(none.verdict, Verdict::Contradicted);
        assert_eq!(
            none.sentence,
            "The paper finds that A is slower: contradicted here; 5 ns against 4 ns; a difference below 10 ns counts as none."
        );
        // Small and certain, large and certain, and too noisy for either.
        let verdicts = [(5.0, 2.0), (50.0, 2.0), (1.0, 20.0)].map(|(it, ci)| claim(it, ci).verdict);
        assert_eq!(verdicts, [Verdict::Contradicted, Verdict::Confirmed, Verdict::Open]);
    }

    #[test]
    fn a_question_that_cannot_be_asked_says_what_it_would_take() {
        let claim = Claim::not_the_same_question("it rains", "this is a cellar", "a window");
        assert_eq!((claim.by, claim.verdict), (Claimant::Paper, Verdict::NotTheSameQuestion));
        assert_eq!(
            claim.sentence,
            "The paper finds that it rains: not the same question here, because this is a cellar; it would take a \
             window."
        );
    }
}
