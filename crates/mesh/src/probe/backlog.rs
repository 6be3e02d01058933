//! Batches that the spool could not store yet, for example because its disk is full.

use std::collections::VecDeque;

use super::ChannelName;
use super::tap::Batches;
use crate::spool::Batch;

/// Max bytes of batches in memory.
const MEMORY: usize = 64 << 20;

/// Bytes of batches that are stored together: a part is stored if there is no room for all.
const PART: usize = 1 << 20;

/// Batches in the order in which they are to be stored. Of dropped ones, the times and the number of packets remain, merged
/// into one entry for each channel.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Of each channel at most one.
    dropped: Batches,
    kept: VecDeque<(ChannelName, Batch)>,
    /// Of those that are kept.
    bytes: usize,
}

/// Memory that a batch takes.
fn bytes(batch: &Batch) -> usize {
    batch.body.len() + size_of::<(ChannelName, Batch)>()
}

impl Backlog {
    /// Adds batches.
    pub(super) fn push(&mut self, batches: Batches) {
        self.bytes += batches.iter().map(|(_, batch)| bytes(batch)).sum::<usize>();
        self.kept.extend(batches);
    }

    /// Drops the oldest batches beyond [`MEMORY`], while they cannot be stored.
    pub(super) fn limit(&mut self) {
        while self.bytes > MEMORY {
            self.drop_oldest();
        }
    }

    /// Stores all batches with `append`, in parts. What it has stored is removed.
    ///
    /// # Errors
    /// The first error of `append`.
    pub(super) fn store<E>(
        &mut self,
        mut append: impl FnMut(&[(ChannelName, Batch)]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.dropped.is_empty() {
            append(&self.dropped)?;
            self.dropped.clear();
        }
        loop {
            let mut size = 0;
            let fits = |(_, batch): &&(ChannelName, Batch)| {
                size += bytes(batch);
                size <= PART
            };
            let kept = self.kept.make_contiguous();
            let count = kept.iter().take_while(fits).count().max(1).min(kept.len());
            let Some(part) = kept.get(..count).filter(|part| !part.is_empty()) else {
                return Ok(());
            };
            append(part)?;
            self.bytes -= part.iter().map(|(_, batch)| bytes(batch)).sum::<usize>();
            self.kept.drain(..count);
        }
    }

    /// Drops all batches.
    pub(super) fn drop_all(&mut self) {
        while !self.kept.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((channel, oldest)) = self.kept.pop_front() else { return };
        self.bytes -= bytes(&oldest);
        let oldest = oldest.dropped();
        let earlier = self.dropped.iter_mut().find(|(of, _)| *of == channel);
        let Some((_, earlier)) = earlier else { return self.dropped.push((channel, oldest)) };
        earlier.items = earlier.items.saturating_add(oldest.items);
        let end = oldest.times.end().max(earlier.times.end());
        earlier.times = *earlier.times.start()..=*end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ChannelName = ChannelName { task: 1, point: 0 };
    const OTHER: ChannelName = ChannelName { task: 2, point: 0 };

    /// A batch of a little less than a quarter of the memory.
    fn batch(number: i64) -> Batch {
        let times = number * 10..=number * 10 + 9;
        Batch { items: 7, times, body: vec![1; MEMORY / 4 - 1000] }
    }

    /// Channel, whether it was dropped, and times.
    type Stored = Vec<(ChannelName, bool, i64, i64)>;

    fn stored(backlog: &mut Backlog) -> Stored {
        let mut stored = Stored::new();
        let result = backlog.store(|part| {
            let of = |(channel, batch): &(ChannelName, Batch)| {
                (*channel, batch.is_dropped(), *batch.times.start(), *batch.times.end())
            };
            stored.extend(part.iter().map(of));
            Ok::<_, ()>(())
        });
        assert_eq!((result, backlog.bytes, backlog.kept.len()), (Ok(()), 0, 0));
        stored
    }

    #[test]
    fn oldest_batches_are_dropped_when_memory_is_full() {
        let mut backlog = Backlog::default();
        backlog.push(vec![(ONE, batch(0)), (OTHER, batch(1)), (ONE, batch(2))]);
        backlog.push(vec![(OTHER, batch(3))]);
        backlog.limit();
        assert!(backlog.dropped.is_empty());
        backlog.push(vec![(ONE, batch(4)), (ONE, batch(5)), (OTHER, batch(6))]);
        backlog.limit();
        let expected = [
            (ONE, true, 0, 29),
            (OTHER, true, 10, 19),
            (OTHER, false, 30, 39),
            (ONE, false, 40, 49),
            (ONE, false, 50, 59),
            (OTHER, false, 60, 69),
        ];
        assert_eq!(stored(&mut backlog), expected);
        backlog.push(vec![(ONE, batch(7)), (ONE, batch(8))]);
        backlog.drop_all();
        assert_eq!(stored(&mut backlog), [(ONE, true, 70, 89)]);
    }

    #[test]
    fn no_batch_is_dropped_where_all_can_be_stored() {
        let mut backlog = Backlog::default();
        backlog.push((0..9).map(|number| (ONE, batch(number))).collect());
        let stored = stored(&mut backlog);
        assert!(stored.len() == 9 && stored.iter().all(|(_, is_dropped, ..)| !is_dropped));
    }

    #[test]
    fn part_is_stored_where_there_is_no_room_for_all() {
        let mut backlog = Backlog::default();
        backlog.push((0..4).map(|number| (ONE, batch(number))).collect());
        let mut room = 2;
        let result = backlog.store(|part| {
            room -= part.len();
            if room == 0 { Err("full") } else { Ok(()) }
        });
        assert_eq!((result, backlog.kept.len()), (Err("full"), 3));
        assert_eq!(stored(&mut backlog).len(), 3);
    }
}
