//! Clock errors of two files.

use wirestamp_capture::file::Provenance;
use wirestamp_clock::Span;

/// Max clock error of a delay between any of these interfaces.
pub(super) fn clock_error(
    a: &[Option<&Provenance>],
    b: &[Option<&Provenance>],
) -> Result<Span, String> {
    let known = |used| Vec::from(used).into_iter().collect();
    let (Some::<Vec<&Provenance>>(a), Some::<Vec<_>>(b)) = (known(a), known(b)) else {
        return Err("a file does not say which clock made its stamps".into());
    };
    if !a.iter().all(|a| b.iter().all(|b| a.shares_clock_with(b))) {
        return Err("the files come from two machines, or two boots of one, whose clocks may \
                    differ by any amount"
            .into());
    }
    let worst = |used: Vec<&Provenance>| used.iter().map(|said| said.error_ns).max();
    match (worst(a), worst(b)) {
        (Some(a), Some(b)) => Ok(Span::from_nanos(a) + Span::from_nanos(b)),
        _ => Err("a file describes no interface".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance(boot_id: &str, error_ns: i64) -> Provenance {
        Provenance {
            method: "ring".into(),
            stamp: "raw".into(),
            clock: "tsc".into(),
            boot_id: boot_id.into(),
            error_ns,
            granularity_ns: Some(10),
            restamped: false,
        }
    }

    #[test]
    fn errors_of_both_files_add_up_on_one_machine_and_are_unknown_between_two() {
        let (a, b, far) = (provenance("x", 30), provenance("x", 12), provenance("y", 12));
        let [a, b, far] = [&a, &b, &far].map(|said| [Some(said)]);
        assert_eq!(clock_error(&a, &b), Ok(Span::from_nanos(42)));
        assert!(clock_error(&a, &far).unwrap_err().contains("two machines"));
        assert!(clock_error(&a, &[None]).unwrap_err().contains("does not say"));
        assert!(clock_error(&a, &[]).unwrap_err().contains("no interface"));
    }

    #[test]
    fn of_several_interfaces_the_worst_counts_and_all_have_to_share_the_clock() {
        let (a, worse, b) = (provenance("x", 30), provenance("x", 90), provenance("x", 12));
        let of_a = [Some(&a), Some(&worse)];
        assert_eq!(clock_error(&of_a, &[Some(&b)]), Ok(Span::from_nanos(102)));
        let far = provenance("y", 1);
        assert!(clock_error(&of_a, &[Some(&b), Some(&far)]).unwrap_err().contains("two machines"));
    }
}
