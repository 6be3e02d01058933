//! `netring-capture IF FILE MIB`: writes packets received on IF to FILE, until SIGINT.
//!
//! Set up according to netring's guide (docs/TUNING_GUIDE.md of the crate): default blocks of 4 MiB, as many as fit into
//! the requested memory, no receive hashes, and batches of whole blocks. The file is written by the crate's own writer,
//! through a buffer of 64 KiB.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netring::Capture;
use netring::pcap::CaptureWriter;
use signal_hook::consts::SIGINT;

const BLOCK: usize = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, path, mebibytes] = arguments.as_slice() else {
        return Err("usage: netring-capture IF FILE MIB".into());
    };
    let blocks = (mebibytes.parse::<usize>()? << 20) / BLOCK;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    let mut capture = Capture::builder()
        .interface(interface)
        .promiscuous(true)
        .block_size(BLOCK)
        .block_count(blocks)
        .fill_rxhash(false)
        .build()?;
    // The crate's writer does not return its file, so the buffer is kept outside of it.
    let mut file = BufWriter::with_capacity(64 << 10, File::create(path)?);
    let mut writer = CaptureWriter::create(&mut file)?;
    eprintln!("capturing on {interface}");
    while !stop.load(Ordering::Relaxed) {
        let Some(batch) = capture.next_batch_blocking(Duration::from_millis(100))? else {
            continue;
        };
        for packet in &batch {
            writer.write_packet(&packet)?;
        }
    }
    file.flush()?;
    eprintln!("{}", capture.stats()?);
    Ok(())
}
