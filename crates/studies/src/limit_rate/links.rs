//! Rates in Mbit/s, and the SONET link whose line rate they reach: Figure 4-1 of the report.

use serde::Serialize;

use super::model::{Area, area};
use super::setting::Setting;
use super::sweeps::{FRAME_BYTES, Sweep};
use super::trials::Trial;
use crate::experiment::{Estimate, Runs};

/// Frame sizes in bytes: that of the searches, and those of Figure 4-1. The table for other sizes takes the same packets
/// a second, as section 2.1.1 of the report does.
const FRAMES: [u16; 3] = [FRAME_BYTES, 300, 1500];

/// Line rate of OC-1 in Mbit/s. OC-n has n times this rate (ANSI T1.105; OC-3 is STM-1 of ITU-T G.707).
const OC_1: f64 = 51.84;
/// The links.
const LINKS: [u16; 7] = [1, 3, 12, 24, 48, 192, 768];

/// A rate of frames of a size, in bits of layer 2 with check sequence, without preamble and gap: the bits that the report
/// counts (section 2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct BitRate {
    /// Bytes of a frame, check sequence included.
    pub(super) frame_bytes: u16,
    pub(super) megabits_per_second: Estimate,
    /// n of the fastest OC-n whose line rate this rate reaches, at the lower end of its interval. None below OC-1.
    pub(super) oc: Option<u16>,
}

impl BitRate {
    fn of(frame_bytes: u16, rate: Estimate) -> Self {
        let megabits_per_second = rate.times(f64::from(frame_bytes) * 8e-6);
        let at_least = megabits_per_second.mean - megabits_per_second.ci95.unwrap_or(0.0);
        Self { frame_bytes, megabits_per_second, oc: oc(at_least) }
    }

    /// A rate in frames a second with each frame size of the table.
    pub(super) fn of_each_size(rate: Estimate) -> Vec<Self> {
        FRAMES.iter().map(|bytes| Self::of(*bytes, rate)).collect()
    }
}

/// n of the fastest OC-n with at most this line rate, in Mbit/s.
fn oc(megabits_per_second: f64) -> Option<u16> {
    LINKS.into_iter().filter(|n| f64::from(*n) * OC_1 <= megabits_per_second).max()
}

/// The highest rate of a frame size at which the trials of a series had no loss above the tolerated one in the mean, on the whole
/// core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct RateWithoutLoss {
    pub(super) tasks: u8,
    /// Frames a second that were sent: a lower bound of the saturation point.
    pub(super) rate: Estimate,
    #[serde(flatten)]
    pub(super) bits: BitRate,
}

impl RateWithoutLoss {
    /// For each number of tasks and each frame size that a series has on the whole core.
    pub(super) fn of(series: &[(Sweep, Runs<Trial>)]) -> Vec<Self> {
        let mut highest: Vec<Self> = Vec::new();
        for (sweep, runs) in series {
            for (index, cell) in runs.design.cells().iter().enumerate() {
                let Some(Setting { frame_bytes, tasks, parts: 1, .. }) = sweep.of(cell) else {
                    continue;
                };
                let trials: Vec<_> = runs.of_cell(index).flatten().collect();
                let mean = |of: fn(&Trial) -> f64| {
                    Estimate::of(&trials.iter().map(|trial| of(trial)).collect::<Vec<_>>())
                };
                let loss = mean(Trial::loss_percent).filter(|it| area(it.mean) == Area::NoLoss);
                let Some((rate, _)) = mean(Trial::rate).zip(loss) else { continue };
                let found = Self { tasks, rate, bits: BitRate::of(frame_bytes, rate) };
                let same = |it: &&mut Self| (it.tasks, it.bits.frame_bytes) == (tasks, frame_bytes);
                match highest.iter_mut().find(same) {
                    Some(before) if before.rate.mean >= rate.mean => (),
                    Some(before) => *before = found,
                    None => highest.push(found),
                }
            }
        }
        highest.sort_by_key(|it| (it.tasks, it.bits.frame_bytes));
        highest
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Published {
        limit: f64,
        links: Vec<Link>,
    }

    #[derive(Deserialize)]
    struct Link {
        frame_bytes: u16,
        megabits_per_second: f64,
        oc: Option<u16>,
    }

    #[test]
    fn figure_4_1_follows_from_the_limits() {
        let published: Vec<Published> =
            serde_json::from_str(include_str!("published.json")).unwrap();
        for Published { limit, links } in published {
            for Link { frame_bytes, megabits_per_second, oc } in links {
                let found = BitRate::of(frame_bytes, Estimate::new(limit, None));
                assert!((found.megabits_per_second.mean - megabits_per_second).abs() < 1e-9);
                assert_eq!(found.oc, oc);
            }
        }
    }

    #[test]
    fn link_is_reached_at_the_lower_end_of_the_interval() {
        // 155.52 Mbit/s are 64,800 frames of 300 bytes a second.
        let oc = |rate, ci95| BitRate::of(300, Estimate::new(rate, ci95)).oc;
        assert_eq!(oc(64_801.0, None), Some(3));
        assert_eq!(oc(64_801.0, Some(10.0)), Some(1));
        assert_eq!((oc(64_799.0, None), oc(21_599.0, None), oc(0.0, None)), (Some(1), None, None));
        assert_eq!(super::oc(1e9), Some(768));
    }
}
