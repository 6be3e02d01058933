//! Collects the response of a collector and limits its size.

use tonic::Status;

use crate::v1::ResultRange;
use crate::v1::question::What;

/// Max bytes of a response. A thousand results take 1 MB, the newest results of a thousand tasks 20 MB.
const MAX_BYTES: usize = 64 << 20;

/// Rows received so far.
pub(super) struct Answer {
    rows: Vec<String>,
    most: usize,
    room: usize,
}

impl Answer {
    /// An empty response to a query.
    pub(super) fn to(what: &What) -> Self {
        let most = match what {
            What::Measured(ResultRange { most, .. })
            | What::Counted(ResultRange { most, .. })
            | What::ShardWindows(ResultRange { most, .. })
            | What::Flows(ResultRange { most, .. }) => usize::try_from(*most).unwrap_or(usize::MAX),
            // One row per task.
            What::Recent(_) | What::Stored(_) => usize::MAX,
            What::Newest(_)
            | What::SettledUntil(_)
            | What::Histograms(_)
            | What::Sum(_)
            | What::FlowCount(_) => 1,
        };
        Self { rows: Vec::new(), most, room: MAX_BYTES }
    }

    /// Adds rows.
    pub(super) fn add(&mut self, more: Vec<String>) -> Result<(), Status> {
        let bytes = more.iter().map(String::len).sum();
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            Status::resource_exhausted(format!("its response exceeds {} MiB", MAX_BYTES >> 20))
        })?;
        self.rows.extend(more);
        if self.rows.len() > self.most {
            return Err(Status::internal("it returned more rows than requested"));
        }
        Ok(())
    }

    /// All rows.
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
    fn more_rows_than_requested_are_rejected() {
        let (range, rows) =
            (ResultRange { most: 3, ..ResultRange::default() }, vec![String::new(); 2]);
        for (what, most) in [
            (What::Measured(range), 3),
            (What::Counted(range), 3),
            (What::Flows(range), 3),
            (What::Newest(Newest {}), 1),
        ] {
            let mut answer = Answer::to(&what);
            assert_eq!(answer.add(rows.clone()).is_ok(), most >= 2);
            assert_eq!(answer.add(rows.clone()).unwrap_err().code(), Code::Internal);
        }
    }

    #[test]
    fn response_size_is_limited() {
        let mut answer = Answer::to(&What::Recent(Recent::default()));
        let half = || vec!["x".repeat(MAX_BYTES / 4); 2];
        answer.add(half()).unwrap();
        answer.add(half()).unwrap();
        assert_eq!(answer.rows.len(), 4);
        let why = answer.add(vec!["x".to_owned()]).unwrap_err();
        assert_eq!(
            (why.code(), why.message()),
            (Code::ResourceExhausted, "its response exceeds 64 MiB")
        );
    }
}
