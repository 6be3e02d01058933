//! What a collector answers: no more than it was asked for, and than there is room for.

use tonic::Status;

use crate::v1::Stretch;
use crate::v1::question::What;

/// Bytes of an answer. A thousand results are one million, and the newest of a thousand tasks twenty.
const ROOM: usize = 64 << 20;

/// Rows that have come.
pub(super) struct Answer {
    rows: Vec<String>,
    most: usize,
    room: usize,
}

impl Answer {
    /// To a question, of which nothing has come yet.
    pub(super) fn to(what: &What) -> Self {
        let most = match what {
            What::Measured(Stretch { most, .. })
            | What::Counted(Stretch { most, .. })
            | What::Flows(Stretch { most, .. }) => usize::try_from(*most).unwrap_or(usize::MAX),
            // One for each of its tasks.
            What::Recent(_) => usize::MAX,
            What::Newest(_)
            | What::SettledUntil(_)
            | What::Histograms(_)
            | What::Sum(_)
            | What::FlowCount(_) => 1,
        };
        Self { rows: Vec::new(), most, room: ROOM }
    }

    /// More has come.
    pub(super) fn add(&mut self, more: Vec<String>) -> Result<(), Status> {
        let bytes = more.iter().map(String::len).sum();
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            Status::resource_exhausted(format!("its answer has more than {} MiB", ROOM >> 20))
        })?;
        self.rows.extend(more);
        if self.rows.len() > self.most {
            return Err(Status::internal("it answers more than it was asked for"));
        }
        Ok(())
    }

    /// All of it.
    pub(super) fn rows(self) -> Vec<String> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::v1::{Newest, Recent};

    #[test]
    fn nobody_answers_more_than_was_asked_for() {
        let (stretch, rows) = (Stretch { most: 3, ..Stretch::default() }, vec![String::new(); 2]);
        for (what, most) in [
            (What::Measured(stretch), 3),
            (What::Counted(stretch), 3),
            (What::Flows(stretch), 3),
            (What::Newest(Newest {}), 1),
        ] {
            let mut answer = Answer::to(&what);
            assert_eq!(answer.add(rows.clone()).is_ok(), most >= 2);
            assert_eq!(answer.add(rows.clone()).unwrap_err().code(), Code::Internal);
        }
    }

    #[test]
    fn an_answer_has_no_more_than_there_is_room_for() {
        let mut answer = Answer::to(&What::Recent(Recent::default()));
        let half = || vec!["x".repeat(ROOM / 4); 2];
        answer.add(half()).unwrap();
        answer.add(half()).unwrap();
        assert_eq!(answer.rows.len(), 4);
        let why = answer.add(vec!["x".to_owned()]).unwrap_err();
        assert_eq!(
            (why.code(), why.message()),
            (Code::ResourceExhausted, "its answer has more than 64 MiB")
        );
    }
}
