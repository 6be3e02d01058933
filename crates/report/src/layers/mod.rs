//! Times that packets spent in the layers of one host, as a page or a part of one.
//!
//! [`html()`] renders what `wirestamp layers` has measured.

mod figure;
mod points;

use maud::{Markup, html};
use wirestamp_capture::layers::Direction;
use wirestamp_metrics::Summary;

use crate::circumstances::Circumstances;
use crate::format::{NOTHING, count, duration, nanos};
use crate::sheet::{Heading, document, on_every_screen, pairs, table, terms};

/// Contents of the page.
#[derive(Clone, Debug, Default)]
pub struct LayersResult {
    /// The interface whose packets were followed.
    pub interface: String,
    /// Whether it received or sent them.
    pub direction: Direction,
    /// Filter of the followed packets, in pcap syntax.
    pub filter: Option<String>,
    /// The layers in the order in which packets pass them, then the total.
    pub layers: Vec<Layer>,
    /// Packet outcomes: description and count.
    pub ends: Vec<(String, u64)>,
    /// Limits of clock and observation, a sentence each.
    pub remarks: Vec<String>,
    /// Machine, moment and command.
    pub circumstances: Circumstances,
}

/// The times that packets spent between two points.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Name: its first and last point.
    pub name: String,
    /// Short name, for the figure.
    pub short: String,
    /// In nanoseconds; none if no packet was seen at both ends.
    pub delay: Option<Summary>,
    /// Share of the total time, 0 to 1.
    pub share: Option<f64>,
}

/// The page.
#[must_use]
pub fn html(findings: &LayersResult) -> String {
    let generated_at = format!("{} UTC", findings.circumstances.date);
    let heading = Heading {
        title: &format!("Where the time goes inside this host, on {}", findings.interface),
        generated_at: &generated_at,
        summary: &summary(findings),
    };
    let machine = pairs("machine", "Machine and run", &machine(findings));
    document(&heading, Markup::default(), html! { (section(findings, "The layers")) (machine) })
}

/// The figure and the tables, for a page that has other contents too.
pub(crate) fn section(findings: &LayersResult, heading: &str) -> Markup {
    let draw = |size, id: &str| figure::spread(&findings.layers, size, id);
    let figure = on_every_screen("Times in each layer", &Markup::default(), "spread", draw);
    let ends: Vec<_> = findings.ends.iter().map(|(end, n)| (end.clone(), count(*n))).collect();
    html! {
        section id="layers" {
            h2 { (heading) }
            @if let Some(figure) = figure { (figure) }
            (times(&findings.layers))
        }
        (pairs("ends", "Packet outcomes", &ends))
        (terms("points", "The points", points::of(findings.direction)))
    }
}

/// Result in sentences.
fn summary(findings: &LayersResult) -> Vec<String> {
    let [layers @ .., whole] = &findings.layers[..] else { return findings.remarks.clone() };
    let most =
        layers.iter().max_by(|a, b| a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)));
    let mut summary = Vec::new();
    if let (Some(delay), Some(most)) = (whole.delay, most) {
        summary.push(format!(
            "{} packets were followed from {}, which took {} for half of them and up to {} for all.",
            count(delay.count),
            whole.name,
            nanos(delay.p50),
            nanos(delay.max)
        ));
        let share = most.share.map_or(NOTHING.to_owned(), percent);
        summary.push(format!("{share} of that time went by from {}.", most.name));
    }
    summary.extend(findings.remarks.iter().cloned());
    summary
}

/// Table of the times in each layer.
fn times(layers: &[Layer]) -> Markup {
    let heads = ["", "packets", "shortest", "mean", "median", "90 %", "99 %", "longest", "share"];
    let row = |layer: &Layer| {
        let mut row = vec![layer.name.clone()];
        match layer.delay {
            Some(delay) => {
                row.extend([count(delay.count), nanos(delay.min), duration(delay.mean)]);
                row.extend([delay.p50, delay.p90, delay.p99, delay.max].map(nanos));
            }
            None => row.extend([(); 7].map(|()| NOTHING.to_owned())),
        }
        row.push(layer.share.map_or(NOTHING.to_owned(), percent));
        row
    };
    let rows: Vec<_> = layers.iter().map(row).collect();
    table("costs", "Times in each layer, and its share of all the time", &heads, &rows)
}

fn percent(share: f64) -> String {
    format!("{:.1}\u{202f}%", 100.0 * share)
}

fn machine(findings: &LayersResult) -> Vec<(String, String)> {
    let here = &findings.circumstances;
    let all = match findings.direction {
        Direction::In => "all that the interface received",
        Direction::Out => "all that the interface sent",
    };
    let filter = findings.filter.clone().unwrap_or_else(|| all.into());
    [
        ("Command", here.command.clone()),
        ("Packets", filter),
        ("Kernel", here.kernel.clone()),
        ("Processor", here.processor.clone()),
    ]
    .map(|(what, which)| (what.to_owned(), which))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, delays: Option<(i64, i64)>, share: f64) -> Layer {
        let delay = delays.map(|(p50, max)| Summary {
            count: 1500,
            min: 0,
            mean: 900.0,
            stddev: 1.0,
            p50,
            p90: p50,
            p99: max,
            p999: max,
            max,
        });
        let short = name.split(' ').next().unwrap_or_default().to_owned();
        Layer { name: name.to_owned(), short, delay, share: Some(share) }
    }

    #[test]
    fn the_page_names_the_layer_that_takes_most_of_the_time() {
        let findings = LayersResult {
            interface: "<eth0>".to_owned(),
            layers: vec![
                layer("driver to stack", Some((700, 900)), 0.04),
                layer("stack to application", Some((17_000, 2_000_000)), 0.96),
                layer("driver to application", Some((18_000, 2_100_000)), 1.0),
            ],
            ends: vec![("were dropped after socket: SOCKET_RCVBUFF".to_owned(), 12)],
            ..LayersResult::default()
        };
        let page = html(&findings);
        assert!(page.contains("96.0\u{202f}% of that time went by from stack to application."));
        assert!(page.contains("&lt;eth0&gt;") && !page.contains("<eth0>"));
        assert!(page.contains("<svg") && page.contains("SOCKET_RCVBUFF"));
    }

    #[test]
    fn without_packets_there_is_a_page_without_a_figure() {
        let page =
            html(&LayersResult { layers: vec![Layer::default()], ..LayersResult::default() });
        assert!(page.contains("The layers") && !page.contains("<svg"));
        assert!(html(&LayersResult::default()).contains("The layers"));
    }
}
