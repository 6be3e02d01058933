//! Why a claim is neither confirmed nor contradicted.

use wirestamp_report::estimate::{Estimate, Sign};
use wirestamp_report::format::length;

/// The reasons of an open verdict, from the lead under each condition; none if nothing was measured.
pub(super) fn reason(leads: &[Option<Estimate>]) -> Option<String> {
    let found: Vec<_> = leads.iter().flatten().collect();
    if found.is_empty() {
        return None;
    }
    let all = length(leads);
    let count = |is: &dyn Fn(&&&Estimate) -> bool| {
        u64::try_from(found.iter().filter(is).count()).unwrap_or(u64::MAX)
    };
    let missing = all - length(&found);
    let once = count(&|lead| lead.ci95.is_none());
    let uncertain = count(&|lead| lead.ci95.is_some() && lead.sign() == Sign::Open);
    let contrary = count(&|lead| lead.sign() == Sign::Below);
    let reasons = [
        (missing, "there is no value".to_owned()),
        (once, "one repetition has no interval".to_owned()),
        (uncertain, "the 95 % interval includes the limit of the claim".to_owned()),
        (
            contrary,
            format!(
                "the contrary has 95 % confidence for one condition alone, but not for all {all} together"
            ),
        ),
    ];
    let reasons = reasons.into_iter().filter(|(number, _)| *number > 0);
    let in_words = |(number, reason): (u64, String)| match all {
        1 => reason,
        _ => format!("{reason} (in {number} of {all} conditions)"),
    };
    let reasons: Vec<_> = reasons.map(in_words).collect();
    (!reasons.is_empty()).then(|| reasons.join(", and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_conditions() {
        let [above, noisy, below] =
            [1.0, 0.1, -0.6].map(|mean| Some(Estimate::new(mean, Some(0.5))));
        let once = Some(Estimate::new(1.0, None));
        let of = |leads: &[Option<Estimate>]| reason(leads).unwrap_or_default();
        assert_eq!(of(&[noisy]), "the 95 % interval includes the limit of the claim");
        assert_eq!(of(&[above, None]), "there is no value (in 1 of 2 conditions)");
        assert_eq!(of(&[once, once]), "one repetition has no interval (in 2 of 2 conditions)");
        assert!(
            of(&[above, below, noisy])
                .contains("but not for all 3 together (in 1 of 3 conditions)")
        );
        assert_eq!((reason(&[]), reason(&[None]), reason(&[above])), (None, None, None));
    }
}
