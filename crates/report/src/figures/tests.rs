use plotters::prelude::*;

use super::frame::{GRID, LOST};
use super::*;
use crate::report::Stream;

const SIZE: (u32, u32) = (1000, 300);

fn stream(delays: Vec<(f64, i64)>) -> Stream {
    let gaps = delays.iter().map(|(_, delay)| *delay).collect();
    let interarrival = vec![("at tap A".to_owned(), gaps), ("at tap B".to_owned(), vec![])];
    Stream { delays, interarrival, ..Stream::default() }
}

fn all(stream: &Stream) -> Vec<Figure> {
    let kinds = [delay_over_time, delay_histogram, interarrival];
    kinds.iter().filter_map(|figure| figure(stream, "f", SIZE)).collect()
}

#[test]
fn no_samples_make_no_figures() {
    let lost = Stream { lost_at: vec![0.5, f64::NAN], ..Stream::default() };
    assert!(all(&lost).is_empty());
    assert!(all(&Stream::default()).is_empty());
}

#[test]
fn any_samples_make_all_figures() {
    let samples: [Vec<(f64, i64)>; 7] = [
        vec![(0.0, 0)],
        vec![(0.0, 31_000)],
        vec![(0.5, 20_000_000); 300],
        vec![(0.0, -500), (1.0, 700)],
        vec![(0.0, -900), (1.0, -800)],
        vec![(0.0, i64::MIN), (1e300, i64::MAX)],
        vec![(f64::NAN, 5), (f64::NEG_INFINITY, 6)],
    ];
    for delays in samples {
        let mut stream = stream(delays);
        for lost_at in [vec![], vec![0.25, f64::INFINITY]] {
            stream.lost_at = lost_at;
            let figures = all(&stream);
            assert_eq!(figures.len(), 3, "{:?}", stream.delays);
            for figure in figures {
                assert!(figure.svg.0.starts_with("<svg "), "{}", figure.svg.0);
                assert!(figure.svg.0.trim_end().ends_with("</svg>"));
                assert!(!figure.svg.0.contains("NaN"), "{:?}", stream.delays);
            }
        }
    }
}

#[test]
fn a_figure_of_many_packets_stays_small() {
    for packets in [1_000, 200_000] {
        let delays = (0..packets).map(|i| (f64::from(i) * 1e-3, i64::from(i * 7919 % 40_000)));
        let mut stream = stream(delays.collect());
        stream.lost_at = stream.delays.iter().map(|(time, _)| *time).collect();
        for figure in all(&stream) {
            assert!(figure.svg.0.len() < 150_000, "{} bytes", figure.svg.0.len());
        }
    }
}

#[test]
fn each_packet_is_a_point_and_each_loss_a_tick() {
    let mut stream = stream(vec![(0.0, 5), (1.0, 6), (2.0, 7)]);
    stream.lost_at = vec![0.5, 1.5];
    let figure = delay_over_time(&stream, "f", SIZE).unwrap();
    assert_eq!(figure.svg.0.matches("<circle").count(), 3);
    assert_eq!(figure.svg.0.matches("#D53E00").count(), 2);
    assert!(figure.caption.contains("2 lost packets"), "{}", figure.caption);
}

#[test]
fn every_colour_has_a_counterpart_in_dark_mode() {
    let style = include_str!("../style.css");
    let colours = [INK, GRID, LOST].into_iter().chain(SERIES);
    for RGBColor(red, green, blue) in colours {
        let colour = format!("=\"#{red:02X}{green:02X}{blue:02X}\"");
        assert!(style.contains(&colour), "{colour}");
    }
}

#[test]
fn a_figure_is_described_in_words() {
    let figure = delay_over_time(&stream(vec![(0.0, 5)]), "s1-time", SIZE).unwrap();
    assert!(figure.svg.0.contains("aria-labelledby=\"s1-time-title s1-time-text\""));
    assert!(figure.svg.0.contains("<title id=\"s1-time-title\">One-way delay over time"));
    assert!(figure.svg.0.contains("<desc id=\"s1-time-text\">Each point is one packet"));
}

#[test]
fn losses_without_a_time_are_not_denied() {
    let mut stream = stream(vec![(0.0, 5)]);
    let caption = |stream: &Stream| delay_over_time(stream, "f", SIZE).unwrap().caption;
    assert!(caption(&stream).contains("None was lost"));
    stream.lost = 1;
    assert!(caption(&stream).contains("Not shown: 1 lost packet."));
}

#[test]
fn empty_bins_part_the_outline_of_a_histogram() {
    let delays = [0, 0, 1_000_000].map(|delay| (0.0, delay));
    let figure = delay_histogram(&stream(delays.to_vec()), "f", SIZE).unwrap();
    assert_eq!(figure.svg.0.matches("<polygon").count(), 2);
}
