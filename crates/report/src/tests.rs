use wirestamp_metrics::Summary;

use super::*;

const HOSTILE: &str = "</title></style><script>alert(\"1\")</script><img src='x' onerror=go()>&";

fn numbers() -> Summary {
    Summary {
        count: 990,
        min: 28_400,
        mean: 4_210_000.5,
        stddev: 7_000_000.0,
        p50: 31_000,
        p90: 20_000_000,
        p99: 38_500_000,
        p999: 40_100_000,
        max: 41_000_000,
    }
}

fn stream() -> Stream {
    Stream {
        name: "Phone call (G.729)".to_owned(),
        description: "140-byte frames every 20 ms".to_owned(),
        verdict: "The call would have sounded well.".to_owned(),
        sent: 1000,
        received: 990,
        lost: 10,
        duplicated: 0,
        reordered: 3,
        delay: Some(numbers()),
        variation: Some(numbers()),
        clock_error_ns: Some(45),
        delays: (0..990_u32).map(|i| (f64::from(i) * 0.02, i64::from(i % 50) * 1000)).collect(),
        lost_at: vec![3.0, 3.02],
        interarrival: vec![("at tap A".to_owned(), vec![20_000_000; 989])],
    }
}

fn report() -> Report {
    let check = |what: &str, holds| Check { what: what.to_owned(), holds, ..Check::default() };
    Report {
        title: "A phone call and a video".to_owned(),
        generated_at: "2026-11-21 10:00".to_owned(),
        summary: vec!["Ten packets were lost.".to_owned(), "None was late.".to_owned()],
        machine: vec![("Kernel".to_owned(), "6.18".to_owned())],
        streams: vec![stream()],
        checks: vec![
            check("lost packets", true),
            Check { within_percent: Some(2.0), ..check("mean delay", false) },
        ],
        ledgers: vec![Ledger {
            point: "tap A".to_owned(),
            rows: vec![("seen".to_owned(), 123_456)],
            balanced: true,
        }],
        files: vec![("tap-a.pcapng".to_owned(), "what tap A saw".to_owned())],
        commands: vec!["tshark -r tap-a.pcapng".to_owned()],
    }
}

/// The names of elements that are not closed, in order. Panics on a closing tag that does not match.
fn unclosed(page: &str) -> Vec<String> {
    let void = ["!DOCTYPE", "meta"];
    let mut open: Vec<String> = Vec::new();
    for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split_whitespace().next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "closed by </{closed}>");
        } else if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name.to_owned());
        }
    }
    open
}

#[test]
fn the_page_says_what_the_report_holds() {
    let page = html(&report());
    for text in [
        "<title>A phone call and a video</title>",
        "Ten packets were lost. None was late.",
        "10 (1.00\u{202f}%)",
        "4.21\u{202f}ms",
        "± 45\u{202f}ns",
        "1 of 2 checks against the truth does not hold.",
        "✗ does not hold within 2 %",
        "✓ balances",
        "123\u{202f}456",
        "tshark -r tap-a.pcapng",
        "RFC 4737",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Delay over time in two sizes, and two histograms.
    assert_eq!(page.matches("<svg ").count(), 4);
}

#[test]
fn every_element_is_closed() {
    assert_eq!(unclosed(&html(&report())), [""; 0]);
    assert_eq!(unclosed(&html(&Report::default())), [""; 0]);
}

#[test]
fn identities_are_unique_and_links_lead_to_them() {
    let report = Report { streams: vec![stream(), stream()], ..report() };
    let page = html(&report);
    let values = |key: &str| -> Vec<String> {
        let values = page.split(key).skip(1).filter_map(|rest| rest.split('"').next());
        values.map(str::to_owned).collect()
    };
    let ids = values(" id=\"");
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), ids.len());
    for target in values("href=\"#") {
        assert!(ids.contains(&target), "{target}");
    }
}

#[test]
fn nothing_is_fetched_from_elsewhere() {
    let page = html(&report());
    for reference in ["http", "src=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn hostile_text_is_shown_and_not_interpreted() {
    let text = || HOSTILE.to_owned();
    let hostile = Report {
        title: text(),
        generated_at: text(),
        summary: vec![text()],
        machine: vec![(text(), text())],
        streams: vec![Stream {
            name: text(),
            description: text(),
            verdict: text(),
            interarrival: vec![(text(), vec![1, 2, 3]), (text(), vec![2])],
            ..stream()
        }],
        checks: vec![Check {
            what: text(),
            truth: text(),
            measured: text(),
            within_percent: Some(2.0),
            holds: false,
            how: text(),
        }],
        ledgers: vec![Ledger { point: text(), rows: vec![(text(), 1)], balanced: false }],
        files: vec![(text(), text())],
        commands: vec![text()],
    };
    let page = html(&hostile);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert_eq!(page.matches("&lt;script&gt;").count(), 21);
    assert_eq!(unclosed(&page), [""; 0]);
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let page = html(&Report::default());
    assert!(page.contains("No stream was measured."));
    assert!(page.contains("Nothing was checked."));
    let unheard = Report {
        streams: vec![Stream { sent: 5, lost: 5, lost_at: vec![0.0; 5], ..Stream::default() }],
        ..Report::default()
    };
    let page = html(&unheard);
    assert!(page.contains("5 (100\u{202f}%)"));
    assert!(page.contains("No packet was received"));
    assert!(page.contains("unknown"));
}
