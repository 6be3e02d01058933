//! The collector: turns observations of probes into results.

mod answers;
mod archive;
mod channel;
mod coverage;
mod epochs;
mod flow;
mod group_store;
#[cfg(feature = "kafka")]
pub(crate) mod kafka;
mod kafka_stats;
pub mod node;
mod observed;
mod ongoing;
mod opening;
mod pair;
mod placements;
mod processor;
mod receiver;
mod recent;
mod refused;
mod removal;
mod reported;
mod results;
mod return_path;
mod service;
mod settled;
mod single_point;
mod synchronisation;
mod window;

use wirestamp_clock::Span;
use wirestamp_metrics::Point;

pub use archive::{Archive, ArchiveCounts, ArchiveError, Keep};
pub use channel::Channel;
pub use epochs::Opened;
pub use flow::{Flow, NoFlow};
pub use kafka_stats::KafkaStats;
pub use observed::{BatchInHours, ObservedBatch, ObservedContent};
pub use opening::SpoolOrigin;
pub use pair::{Pair, Timing};
pub use placements::{AllBegun, EarlierDelivery, TaskEpoch, TaskEpochs};
pub use receiver::Collector;
pub use recent::Recent;
pub use refused::Refused;
pub use reported::{ExporterStats, Listener};
pub use results::{
    Begun, Brief, Counted, Delivered, EpochBegin, Handover, Histograms, Hour, Measured,
    MeasuredReturn, Missing, MosUnavailable, NoTimes, NotReported, PointBegin, Progress,
    ResultRange, Results, Spread, Step, Sum,
};
pub use return_path::ReturnPath;
pub use settled::{Delivery, PointResults, Settled};
pub use single_point::SinglePoint;
pub use synchronisation::NotSynchronised;
pub use window::Window;

pub(crate) use answers::rows;
pub(crate) use archive::{is_delivered, maintain};
pub(crate) use flow::{FlowReport, flow_reports};
pub(crate) use receiver::of_task;
pub(crate) use results::{ShardWindow, StoredRow, merge_shards, merged, merged_shard};
pub(crate) use service::Service;

/// Length of a result window.
pub(crate) const WINDOW: Span = Span::from_secs(1);

/// Index of a point in arrays of both.
fn side(point: Point) -> usize {
    usize::from(point == Point::B)
}
