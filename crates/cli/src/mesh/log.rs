//! The log of a node, on standard error. What others cause must not fill the disk, so each kind of message is limited.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tracing::{Event, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::Output;

/// Max messages of a kind, which is a place in the source, per interval.
const MAX_MESSAGES: u32 = 20;
const INTERVAL: Duration = Duration::from_secs(60);

/// Sends the node's log to standard error.
pub(super) fn log(output: Output) {
    let max_level = match output {
        Output { quiet: true, .. } => LevelFilter::WARN,
        Output { verbose: true, .. } => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_filter(RateLimit::default());
    tracing_subscriber::registry().with(max_level).with(lines).init();
}

/// Leaves out messages of a kind beyond the limit, and states their number once the interval is over.
#[derive(Default)]
struct RateLimit(Mutex<HashMap<Kind, Interval>>);

/// File and line of a message in the source.
type Kind = (Option<&'static str>, Option<u32>);

/// Messages of a kind since the begin of an interval.
struct Interval {
    begin: Instant,
    messages: u32,
}

/// What happens to a message.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Shown,
    /// It is shown; this number of messages before it was left out.
    ShownAfter(u32),
    LeftOut,
}

impl Interval {
    fn decide(&mut self, now: Instant) -> Decision {
        let left_out = self.messages.saturating_sub(MAX_MESSAGES);
        if now.duration_since(self.begin) >= INTERVAL {
            *self = Self { begin: now, messages: 1 };
            return if left_out > 0 { Decision::ShownAfter(left_out) } else { Decision::Shown };
        }
        self.messages = self.messages.saturating_add(1);
        if self.messages > MAX_MESSAGES { Decision::LeftOut } else { Decision::Shown }
    }
}

impl<S> Filter<S> for RateLimit {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        // Errors of the client of Kafka are returned, too, and logged once.
        !metadata.target().starts_with("rskafka")
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let now = Instant::now();
        let Ok(mut kinds) = self.0.lock() else { return true };
        let new = || Interval { begin: now, messages: 0 };
        let kind = (event.metadata().file(), event.metadata().line());
        let decision = kinds.entry(kind).or_insert_with(new).decide(now);
        drop(kinds);
        if let Decision::ShownAfter(count) = decision {
            eprintln!("{count} more messages like the next one were left out");
        }
        decision != Decision::LeftOut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_the_limit_are_counted() {
        let begin = Instant::now();
        let mut interval = Interval { begin, messages: 0 };
        for _ in 0..MAX_MESSAGES {
            assert_eq!(interval.decide(begin), Decision::Shown);
        }
        assert_eq!(interval.decide(begin), Decision::LeftOut);
        assert_eq!(interval.decide(begin + INTERVAL / 2), Decision::LeftOut);
        assert_eq!(interval.decide(begin + INTERVAL), Decision::ShownAfter(2));
        assert_eq!(interval.decide(begin + 2 * INTERVAL), Decision::Shown);
    }
}
