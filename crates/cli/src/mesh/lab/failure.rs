//! The failure of a collector in the middle of a run.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::nodes::Nodes;
use crate::output::Output;

/// Time after which the tasks of the killed collector move to others.
pub(super) const MOVE_AFTER: Duration = Duration::from_secs(2);

/// Kills the first collector at a time, and starts it again after its tasks have moved.
pub(super) struct Failure {
    collector: String,
    at: Instant,
    state: State,
}

enum State {
    Running,
    Killed { at: Instant },
    StartedAgain { moved_after: Duration },
}

impl Failure {
    /// Plans the failure after a time from now on; none without a time.
    pub(super) fn after(time: Option<Duration>, nodes: &Nodes) -> anyhow::Result<Option<Self>> {
        let Some(time) = time else { return Ok(None) };
        let collector = nodes.first_collector().context("there is no separate collector")?;
        Ok(Some(Self { collector, at: Instant::now() + time, state: State::Running }))
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, nodes: &mut Nodes, output: Output) -> anyhow::Result<()> {
        let collector = &self.collector;
        match self.state {
            State::Running if Instant::now() >= self.at => {
                nodes.kill(collector)?;
                output.remark(format_args!("killed {collector}"));
                self.state = State::Killed { at: Instant::now() };
            }
            State::Killed { at } if nodes.has_moved(collector) => {
                let moved_after = at.elapsed();
                nodes.start_again(collector)?;
                output.remark(format_args!(
                    "the tasks of {collector} have moved after {:.1} s; started it again",
                    moved_after.as_secs_f64()
                ));
                self.state = State::StartedAgain { moved_after };
            }
            _ => {}
        }
        Ok(())
    }

    /// The collector that was killed and replaced, and the time from the kill until the controller had moved its tasks
    /// (with the polling interval); none if this did not happen.
    pub(super) fn replaced(self) -> Option<(String, Duration)> {
        match self.state {
            State::StartedAgain { moved_after } => Some((self.collector, moved_after)),
            State::Running | State::Killed { .. } => None,
        }
    }
}
