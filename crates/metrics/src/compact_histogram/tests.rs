use proptest::collection::vec;
use proptest::prelude::*;
use wirestamp_clock::Span;

use super::*;

fn distribution(values: &[i64]) -> Distribution {
    let mut distribution = Distribution::new();
    values.iter().for_each(|value| distribution.record(Span::from_nanos(*value)));
    distribution
}

fn histogram(values: &[i64]) -> CompactHistogram {
    CompactHistogram::from(&distribution(values))
}

#[test]
fn empty_histogram_has_no_bytes() {
    let empty = histogram(&[]);
    assert_eq!((empty.count(), empty.percentiles(), empty.encode().len()), (0, None, 0));
    assert_eq!(CompactHistogram::decode(&[]), Ok(empty));
}

#[test]
fn bucket_widths_match_the_documentation() {
    let buckets: Vec<_> = histogram(&[-200, -1, 0, 127, 128, 129, 8_000_000]).buckets().collect();
    let [a, b, c, d] = [-201, -1, 0, 127].map(|from| (from, from + 1));
    let bounds: Vec<_> = buckets.iter().map(|it| (it.from, it.until)).collect();
    assert_eq!(bounds, [(a.0, -199), b, c, d, (128, 130), (7_995_392, 8_060_928)]);
    assert_eq!(buckets.iter().map(|it| it.count).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 1]);
}

#[test]
fn range_limits_are_accepted() {
    let ends = histogram(&[i64::MIN, i64::MAX]);
    assert_eq!(CompactHistogram::decode(&ends.encode()), Ok(ends.clone()));
    let buckets: Vec<_> = ends.buckets().collect();
    assert_eq!((buckets[0].count, buckets[1].until), (1, i64::MAX));
}

/// Fifty packets with delays of 8 to 12 ms, and their variation.
#[test]
fn fifty_packets_take_less_than_200_bytes() {
    let delays: Vec<i64> = (0..50).map(|it| 8_000_000 + it * it % 47 * 85_000).collect();
    let variations: Vec<_> = delays.windows(2).map(|two| two[1] - two[0]).collect();
    let [delays, variations] = [delays, variations].map(|it| histogram(&it).encode().len());
    assert!(delays + variations < 150, "{delays} + {variations}");
}

#[test]
fn malformed_bytes_are_rejected() {
    let beyond = u64::from(FIRST.unsigned_abs()) * 2;
    let mut bytes = Vec::new();
    push(&mut bytes, beyond << 1);
    let too_many = [[1].as_slice(), &[0xff; 9], &[1]].concat();
    for bytes in [&[0x80][..], &[1], &[0x80; 11], &bytes, &too_many] {
        assert_eq!(CompactHistogram::decode(bytes), Err(MalformedHistogram), "{bytes:?}");
    }
}

fn values() -> impl Strategy<Value = Vec<i64>> {
    vec((any::<i64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift), 0..200)
}

proptest! {
    #[test]
    fn encoding_round_trips(values in values()) {
        let histogram = histogram(&values);
        prop_assert_eq!(CompactHistogram::decode(&histogram.encode()), Ok(histogram));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        if let Ok(histogram) = CompactHistogram::decode(&bytes) {
            prop_assert!(histogram.buckets().all(|it| it.from < it.until));
            prop_assert!(histogram.percentiles().is_some() || bytes.is_empty());
        }
    }

    #[test]
    fn merge_equals_recording_together(one in values(), other in values()) {
        let mut merged = histogram(&one);
        merged.merge(&histogram(&other));
        prop_assert_eq!(merged, histogram(&[one, other].concat()));
    }

    #[test]
    fn percentiles_are_within_the_error(mut values in vec(-1_000_000_000..10_000_000_000_i64, 1..300)) {
        let found = histogram(&values).percentiles().unwrap();
        values.sort_unstable();
        for (found, quantile) in found.into_iter().zip(CompactHistogram::QUANTILES) {
            let rank = nearest_rank(quantile, values.len() as u64);
            let truth = values[usize::try_from(rank).unwrap() - 1];
            let off = crate::numeric::nanos_to_f64(found - truth).abs();
            let bound = crate::numeric::nanos_to_f64(truth).abs() * CompactHistogram::ERROR;
            prop_assert!(off <= bound, "{} for {}", found, truth);
        }
    }

    #[test]
    fn each_value_is_in_its_bucket(value: i64) {
        let bucket = histogram(&[value]).buckets().next().unwrap();
        prop_assert!(bucket.from <= value.max(i64::MIN + 2) && value < bucket.until || value == i64::MAX);
    }
}
