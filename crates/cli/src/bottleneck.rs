//! Arguments of a test bed's bottleneck; shared by `wirestamp lab` and `wirestamp lab mesh`.

use clap::Args;
use wirestamp_lab::Impairments;

#[derive(Args)]
pub(crate) struct Bottleneck {
    /// Rate of the bottleneck in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: u64,
    /// Queue size of the bottleneck in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 50_000,
          value_parser = clap::value_parser!(u32).range(1514..))]
    queue: u32,
}

impl Bottleneck {
    pub(crate) fn impairments(&self) -> Impairments {
        Impairments::bottleneck(self.rate * 1_000_000, self.queue)
    }
}
