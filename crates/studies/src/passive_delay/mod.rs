//! How precisely passive one-way delay and loss are measured: the tests of 6QM's report on OpenIMP,
//! sections 3.3 to 3.6, made again on this machine.
//!
//! A sender fills a bottleneck with UDP over IPv6; two captures before and behind it go to a correlator,
//! as those of `wirestamp delay` do. What they say of the shortest, the mean and the longest delay and of
//! loss is compared with what the ends of the path know. [`DEVIATIONS`] tells where this departs from the
//! report.
//!
//! | file | what it does |
//! |---|---|
//! | `setting.rs` | what a run sends, over what bottleneck |
//! | `measurements.rs` | what each section varies |
//! | `bed.rs`, `over_mesh.rs` | makes one run: with captures of its own, or with a mesh |
//! | `witness.rs` | sees the packets where they leave for the taps |
//! | `measured.rs` | what a run brings: a row of the raw results |
//! | `findings.rs`, `claims.rs` | what is computed of the runs |
//! | `paper.rs` | what the report measured |
//! | `tables.rs`, `figures.rs`, `account.rs` | how all that is shown |

mod account;
mod bed;
mod claims;
mod figures;
mod findings;
mod measured;
mod measurements;
mod over_mesh;
mod paper;
mod setting;
mod tables;
mod witness;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::mesh::{BringUp, Kept};
use crate::studies::Options;
use findings::Findings;
use measurements::{Measurements, Size};
use paper::Question;

pub(crate) use bed::{attend, join};
pub(crate) use measured::summary;
pub(crate) use paper::PAPER;
pub(crate) use setting::Bottleneck;

/// How the true delay is known, with a mesh and without one.
const WHAT_IS_TRUE: (&str, &str) = (
    "What is true",
    "In the report the tester stamps its own packets, to 0.1 us, at ports one switch away from the probes. \
     Here the true delay of a packet is the time from when it left the sender's interface for tap A to when \
     it left the last router's for tap B. Neither interface has a queue, and a program is the last that runs \
     there before the driver has the packet; it reads the clock when it is done with all else. The kernel \
     stamps the packet where it arrives, at the tap: that is what is measured with. From one to the other \
     takes a packet some tenths of a microsecond, most of it the same at both taps. What is not the same \
     counts as error here, though no stamp is wrong: where a timer of the bottleneck interrupts the sender \
     just then, the packet truly arrives some 15 us later. At a full queue that falls oftener on the packets \
     that pass than on others, because it is this timer that makes room. So this truth is good to about 1 us \
     in the mean at full load with short frames, and to some tenths of that otherwise.",
);

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 9] = [
    WHAT_IS_TRUE,
    (
        "What is lost",
        "The packets that the sender handed to its kernel, less the different ones that the receiving \
         socket got. The bottleneck's own count of all it dropped is in the raw results. A run in which \
         the sockets or the witnesses missed something has no truth, and is told of and left out.",
    ),
    (
        "Clocks",
        "The probes of the report were two machines, up to 464 us apart by NTP; that is most of its \
         error. Here both taps are on one machine and have one clock. What the clocks of two hosts would \
         add is not in these numbers: it is what wirestamp gives as the clocks' error beside a delay.",
    ),
    (
        "Frames",
        "The shortest have 98 bytes with check sequence instead of 84: a test packet over IPv6 carries \
         32 bytes of numbers.",
    ),
    (
        "Routers",
        "The first has the bottleneck and the second only forwards; in the report it is the other way \
         round. The bottleneck is a token bucket with the rate of the report's 10 Mbit/s and a queue of as \
         many packets as the report's longest delays tell. The two tests of the report in which less came out (300 and 600 bytes at 40 %) are \
         not imitated, nor is that the tests of section 3.3 differ: all are like its first.",
    ),
    (
        "Tasks",
        "One task is passive delay. Four are: volume, which every capture counts; traffic, a meter of \
         flows at each tap that follows every packet; passive delay; and active delay, for which the \
         sender emits the report's flow, 300 bytes of payload 1,000 times a second, that the same \
         correlator follows. Both taps do all tasks in one capture each.",
    ),
    (
        "Design",
        "The report has four tasks at a load of its own (20 %), one task at the others. Here every \
         combination is measured, so that one influence is not taken for another.",
    ),
    (
        "Duration",
        "The report sends for 60 s in each test, and for up to 600 s where it varies the duration. Here \
         it is 4 s for the frame sizes and a third of the report's durations, so that everything can be \
         repeated: it says of most numbers one test only.",
    ),
    (
        "Machine",
        "Sender, routers, receiver, captures and the witnesses share this machine's cores.",
    ),
];

/// The same where a mesh measures: what is not as without one.
const DEVIATIONS_OF_MESH: [(&str, &str); 6] = [
    (
        "The mesh",
        "The report's probes are machines, and so is what manages them. Here a controller and the probes \
         `roof`, before the bottleneck, and `cellar`, behind it, are processes of their own in namespaces, \
         as `wirestamp controller` and `wirestamp probe` start them, which the controller tells what to \
         measure and which report to the collector beside it. All share this machine's cores, its clock \
         and its kernel with sender, receiver and witnesses. What is not told of here is as in the study \
         without a mesh.",
    ),
    WHAT_IS_TRUE,
    (
        "What is lost",
        "The packets that the sender handed to its kernel, less the different ones that the receiving \
         socket got. A run in which the sockets or the witnesses missed something has no truth, and is \
         told of and left out.",
    ),
    (
        "Tasks",
        "One task is `passive-delay`, of all packets of the test. With four, the probe before the \
         bottleneck has `volume`, `traffic` and `active-delay` too, and sends 1,000 packets a second with \
         300 bytes behind UDP's header to the other.",
    ),
    (
        "Figures of the mesh",
        "The collector tells least, mean and longest delay of each second, which are put together here: \
         there is no error of a single packet. Delays below zero are counted by the second.",
    ),
    (
        "Size",
        "The shortest frames have 98 bytes instead of 84 and the longest 1,500, of the report's frames and \
         loads the ends are measured, and runs last seconds: each mesh takes eight to come and go.",
    ),
];

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// For want of privileges, when the lab cannot be built, or when the folder cannot be used or holds the
/// results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let size = if options.quick { Size::QUICK } else { Size::FULL };
    measure(size, None, options, stop, progress)
}

/// The same, measured by the probes and the controller of a mesh.
///
/// # Errors
/// As of [`run`], or when there is no mesh to be had.
pub(crate) fn run_over_mesh(
    bring_up: BringUp,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let size = if options.quick { Size::QUICK_OF_MESH } else { Size::FULL_OF_MESH };
    let mut kept = Kept::new(bring_up);
    let account = measure(size, Some(&mut kept), options, stop, progress)?;
    kept.end()?;
    let title = "How precisely a mesh measures one-way delay and loss";
    Ok(Account { title, deviations: &DEVIATIONS_OF_MESH, ..account })
}

fn measure(
    size: Size,
    mut mesh: Option<&mut Kept>,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { folder, seed, .. } = options;
    let mut runs = |question| {
        let mut measurements = Measurements::new(question, size, mesh.as_deref_mut())?;
        experiment::run(&mut measurements, folder.as_deref(), *seed, stop, progress)
    };
    let runs = [runs(Question::Precision)?, runs(Question::Frames)?, runs(Question::Duration)?];
    account::account(&runs, size, &Findings::of(&runs, size))
}

#[cfg(test)]
mod tests;
