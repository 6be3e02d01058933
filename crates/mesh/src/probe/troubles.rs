//! Troubles in a report to the controller.

use crate::v1::Trouble;

/// Max troubles in a report, and max length of each text in characters: a controller accepts short reports only.
const MAX_TROUBLES: usize = 200;
const MAX_LENGTH: usize = 300;

/// The first troubles, each with the begin of its text, and the number of others.
pub(super) fn shortened(mut troubles: Vec<Trouble>) -> Vec<Trouble> {
    let others = troubles.split_off(troubles.len().min(MAX_TROUBLES));
    for trouble in &mut troubles {
        trouble.why = trouble.why.chars().take(MAX_LENGTH).collect();
    }
    let more = others.first().map(|first| Trouble {
        task: first.task,
        why: format!("this and {} other tasks fail", others.len() - 1),
    });
    troubles.extend(more);
    troubles
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn report_of_many_long_troubles_is_short() {
        let trouble = |task| Trouble { task, why: "x".repeat(70_000) };
        let troubles = shortened((0..760).map(trouble).collect());
        assert_eq!(troubles.len(), MAX_TROUBLES + 1);
        assert_eq!(troubles[MAX_TROUBLES].why, "this and 559 other tasks fail");
        let bytes: usize = troubles.iter().map(Message::encoded_len).sum();
        assert!(bytes < 64 << 10, "{bytes}");
        assert_eq!(shortened(vec![trouble(1)])[0].why.len(), MAX_LENGTH);
    }
}
