//! Synchronisation with the stream: TR 101 290 indicator 1.1.

/// Incorrect sync bytes in a row that lose the synchronisation, and correct ones that acquire it again (section 5.2.1).
const MAX_INCORRECT: u32 = 1;
const MIN_CORRECT: u32 = 5;

/// The synchronisation, with the hysteresis of TR 101 290.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Synchronisation {
    pub(super) is_lost: bool,
    /// Sync bytes in a row that contradict the state.
    opposite: u32,
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncChange {
    Lost,
    Acquired,
}

impl Synchronisation {
    /// Records the sync byte of the next packet.
    pub(super) fn record(&mut self, is_correct: bool) -> Option<SyncChange> {
        if is_correct != self.is_lost {
            self.opposite = 0;
            return None;
        }
        self.opposite += 1;
        let (enough, change) = if self.is_lost {
            (MIN_CORRECT, SyncChange::Acquired)
        } else {
            (MAX_INCORRECT + 1, SyncChange::Lost)
        };
        if self.opposite < enough {
            return None;
        }
        *self = Self { is_lost: !self.is_lost, opposite: 0 };
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_incorrect_lose_and_five_correct_acquire() {
        let changes = |bytes: &str| {
            let mut sync = Synchronisation::default();
            let found = bytes.bytes().map(|byte| sync.record(byte == b'G')).enumerate();
            found.filter_map(|(place, change)| Some((place, change?))).collect::<Vec<_>>()
        };
        assert_eq!(changes("GGxGGxGG"), []);
        assert_eq!(changes("GxxxxGGGG"), [(2, SyncChange::Lost)]);
        assert_eq!(changes("xxGGGGGGG"), [(1, SyncChange::Lost), (6, SyncChange::Acquired)]);
        let again = [(1, SyncChange::Lost), (9, SyncChange::Acquired), (11, SyncChange::Lost)];
        assert_eq!(changes("xxGGxGGGGGxx")[..1], again[..1]);
        assert_eq!(changes("xxGGxGGGGGxx"), again);
    }
}
