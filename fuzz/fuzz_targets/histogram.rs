//! Histograms of a file of results, with any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_metrics::CompactHistogram;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(histogram) = CompactHistogram::decode(bytes) {
        assert!(histogram.buckets().all(|it| it.from < it.until && it.count > 0));
        assert_eq!(histogram.percentiles().is_none(), bytes.is_empty());
        assert_eq!(CompactHistogram::decode(&histogram.encode()), Ok(histogram));
    }
});
