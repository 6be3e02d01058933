//! Tests of the screen's text.

mod calls;
mod keys;

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use wirestamp_metrics::Summary;
use wirestamp_metrics::flow::{FlowReport, Iperf3Report, RtpReport, TcpReport};
use wirestamp_packet::FlowKey;

use super::data::Data;
use super::history::History;
use super::state::{FlowId, Key, Page, ScreenContent, State, update};
use super::view::{Theme, view};

const PLAIN: Theme = Theme { coloured: false };

fn times(typical: i64) -> Summary {
    Summary {
        count: 900,
        min: typical / 2,
        mean: 1e6,
        stddev: 1e5,
        p50: typical,
        p90: typical * 2,
        p99: typical * 3,
        p999: typical * 4,
        max: typical * 5,
    }
}

fn flow(source: &str, destination: &str, protocol: u8) -> FlowReport {
    let key = FlowKey {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        protocol,
    };
    FlowReport {
        src: key.source.ip(),
        dst: key.destination.ip(),
        sport: key.source.port(),
        dport: key.destination.port(),
        protocol,
        packets: 1234,
        bytes: 246_800,
        first_ns: 0,
        last_ns: 20_000_000_000,
        throughput_bps: Some(98_720.0),
        lost: None,
        duplicated: None,
        reordered: None,
        interarrival_ns: Some(times(20_000_000)),
        trains: 2,
        max_gap_ns: Some(145_000_000),
        capture_missed: Some(0),
        rtp: None,
        tcp: None,
        iperf3: None,
        wirestamp: None,
        transport_stream: None,
        rtcp: None,
        encapsulations: None,
        video: None,
    }
}

fn call(source: &str, mos: f64, lost: u64) -> FlowReport {
    let rtp = RtpReport {
        ssrc: 0x1234_abcd,
        payload_type: 0,
        codec: Some("PCMU".into()),
        clock_rate_hz: Some(8000),
        expected: 1000,
        cumulative_lost: 0,
        capture_lost: 0,
        lost_uncertainty: 0,
        late: Some(3),
        stray: 0,
        restarts: 0,
        loss_periods: 4,
        burst_ratio: 1.5,
        jitter_ms: Some(1.25),
        mean_jitter_ms: Some(2.5),
        max_jitter_ms: Some(9.0),
        max_delta_ms: 61.5,
        skew_ms: Some(-3.0),
        max_skew_ms: Some(-8.0),
        mos: Some(mos),
        mos_unknown: None,
        mos_lowest: Some(mos),
        mos_highest: Some(mos),
        r_factor: Some(70.0),
        interval_ms: 1000.0,
        mos_over_time: vec![Some(4.4), None, Some(1.0), Some(3.0)],
        loss_over_time: vec![Some(0.0), None, Some(0.5), Some(0.25)],
        jitter_ms_over_time: vec![Some(1.0), Some(0.0), Some(9.0), Some(2.0)],
        media_delivery: None,
        rated_codecs: None,
        r_scale: None,
        dtmf: None,
    };
    let udp = flow(source, "10.77.2.2:6000", 17);
    FlowReport { lost: Some(lost), duplicated: Some(0), reordered: Some(7), rtp: Some(rtp), ..udp }
}

fn download() -> FlowReport {
    let tcp = TcpReport {
        segments: 1_234,
        retransmitted: 5,
        rtt_ns: Some(times(40_000_000)),
        handshake_ns: Some(41_000_000),
    };
    let source = "[2001:db8:1234:5678:9abc:def0:1234:5678]:443";
    let flow = flow(source, "[fd77:2::2]:50000", 6);
    FlowReport { lost: Some(5), bytes: 9_000_000, tcp: Some(tcp), ..flow }
}

fn data() -> Data {
    let reports = vec![
        download(),
        call("10.77.1.1:5004", 4.41, 0),
        call("10.77.1.7:5008", 2.73, 120),
        flow("10.77.1.1:53", "10.77.2.2:40000", 17),
    ];
    let mut history = History::default();
    for second in 0..5 {
        history.record(&reports, Duration::from_secs(second));
    }
    let (from, packets) = ("eth0".to_owned(), 12_345);
    let capture_lost = Some(0);
    Data { from, live: true, packets, capture_lost, reports, history, ..Data::default() }
}

/// The screen as text, and its content.
fn drawn(state: &State, data: &Data, width: u16, height: u16) -> (String, ScreenContent) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut shown = ScreenContent::default();
    terminal.draw(|frame| shown = view(frame, state, data, PLAIN)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |row: u16| (0..width).map(|x| buffer[(x, row)].symbol()).collect::<String>();
    let text = (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect();
    (text, shown)
}

/// The state after these keys, each pressed on the screen left by the key before.
fn after(keys: &[Key], data: &Data) -> State {
    keys.iter().fold(State::default(), |state, key| {
        let (_, shown) = drawn(&state, data, 100, 12);
        update(state, *key, &shown)
    })
}

fn typed(text: &str) -> Vec<Key> {
    std::iter::once('/').chain(text.chars()).map(Key::Letter).collect()
}

fn listed(state: &State, data: &Data) -> Vec<String> {
    let (text, _) = drawn(state, data, 160, 12);
    let flows = text.lines().skip(2).take_while(|line| !line.is_empty());
    flows.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn worst_flow_is_listed_first() {
    let (text, shown) = drawn(&State::default(), &data(), 100, 8);
    assert_eq!(text, LIST, "\n{text}");
    assert_eq!((shown.flows.len(), shown.rows), (4, 5));
}

const LIST: &str = "\
\x20eth0  4 flows  12 345 packets  sort: worst first
flow                               payload             rate     lost    jitter  MOS rate over time
10.77.…7:5008 > 10.77.2.2:6000 udp PCMU             0 bit/s   12.0 %   2.50 ms 2.73 ▁▁▁▁
10.77.…1:5004 > 10.77.2.2:6000 udp PCMU             0 bit/s      0 %   2.50 ms 4.41 ▁▁▁▁
[2001:…8]:443 > [fd77:…]:50000 tcp -                0 bit/s  0.405 %         -    - ▁▁▁▁
10.77.1.1:53 > 10.77.2.2:40000 udp -                0 bit/s        -         -    - ▁▁▁▁

? help  q quit  Enter details  s sort  / filter  g graph  space pause
";

#[test]
fn enter_opens_the_page_of_a_flow() {
    let data = data();
    let (text, _) = drawn(&after(&[Key::Enter], &data), &data, 80, 24);
    assert_eq!(text, CALL, "\n{text}");
    let download = after(&[Key::Down, Key::Down, Key::Enter], &data);
    let (text, shown) = drawn(&download, &data, 80, 12);
    assert!(text.contains("handshake       41.0 ms"), "{text}");
    // Scrolling reaches the last line, and stops there.
    assert!(!text.contains("max    200 ms") && shown.hidden > 0, "{text}");
    let keys = [&[Key::Down, Key::Down, Key::Enter][..], &[Key::PageDown; 9], &[Key::Up]].concat();
    assert_eq!(after(&keys, &data).scrolled, shown.hidden - 1);
    let (text, _) = drawn(&State { scrolled: shown.hidden, ..download }, &data, 80, 12);
    assert!(text.contains("max    200 ms"), "{text}");
    assert_eq!(after(&[Key::Enter, Key::Escape], &data).page, Page::List);
}

const CALL: &str = "\
\x20eth0  4 flows  12 345 packets  sort: worst first
10.77.1.7:5008 > 10.77.2.2:6000 udp
volume          1 234 packets, 246 800 bytes
rate            98.72 kbit/s
payload         PCMU at 8000 Hz, type 0, source 0x1234abcd
quality         MOS 2.73, R-factor 70.0 (ITU-T G.107)
lost            120 of 1 000 (12.0 %), in 4 runs, burst ratio 1.50
others          3 too late, 7 reordered, 0 duplicates, 0 stray, 0 restarts
jitter          now 1.25 ms, mean 2.50 ms, max 9.00 ms (RFC 3550)
max delta       61.5 ms
skew            now -3.00 ms, max -8.00 ms
trains          2, longest gap 145 ms
rate            ▁▁▁▁  0 bit/s to 0 bit/s, a bar is 1.00 s
MOS             █ ▁▅  1.00 to 4.40, a bar is 1.00 s
jitter          ▂▁█▃  0 ns to 9.00 ms, a bar is 1.00 s
loss            ▁ █▅  0.00 % to 50.00 %, a bar is 1.00 s
between packets mean 1.00 ms, 900 times
                   min   10.0 ms ███
                   p50   20.0 ms ██████
                   p90   40.0 ms █████████████
                   p99   60.0 ms ███████████████████
                 p99.9   80.0 ms ██████████████████████████
                   max    100 ms ████████████████████████████████
? help  q quit  Esc back  space pause
";

#[test]
fn iperf3_values_match_its_server_report() {
    let iperf3 = Iperf3Report {
        sent: 1000,
        lost: 20,
        out_of_order: 7,
        jitter_ms: 0.25,
        capture_lost: 5,
        lost_uncertainty: 2,
        counter_bits: 32,
    };
    let test = flow("10.77.1.1:40000", "10.77.2.2:5201", 17);
    let test = FlowReport { lost: Some(21), iperf3: Some(iperf3), ..test };
    let data = Data { reports: vec![test], ..data() };
    let (list, _) = drawn(&State::default(), &data, 100, 4);
    assert!(
        list.contains("iperf3") && list.contains("2.10 %") && list.contains("250 µs"),
        "{list}"
    );
    let (page, _) = drawn(&after(&[Key::Enter], &data), &data, 80, 12);
    for line in [
        "payload         iperf3, counts of 32 bits",
        "lost            20 of 1 000 (2.00 %), 7 out of order (as iperf3 counts)",
        "capture lost    5, excluded from all other values",
        "uncertainty     ± 2 network losses",
    ] {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn uncertain_mos_is_shown_with_bounds() {
    let mut call = call("10.77.1.1:40000", 4.1, 3);
    let rtp = call.rtp.as_mut().unwrap();
    (rtp.lost_uncertainty, rtp.mos_lowest, rtp.mos_highest) = (2, Some(3.97), Some(4.25));
    let data = Data { reports: vec![call], ..data() };
    let (page, _) = drawn(&after(&[Key::Enter], &data), &data, 80, 12);
    for line in ["MOS 4.10 (3.97 to 4.25), R-factor 70.0", "uncertainty     ± 2 network losses"] {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn empty_list_explains_itself() {
    let filter = Some("udp port 7".to_owned());
    let waiting = Data { from: "eth0".into(), live: true, filter, ..Data::default() };
    let (text, _) = drawn(&State::default(), &waiting, 70, 5);
    assert!(text.contains("Waiting for packets on eth0 that match 'udp port 7'."), "{text}");
    let file = Data { from: "a.pcapng".into(), ..Data::default() };
    let (text, _) = drawn(&State::default(), &file, 70, 5);
    assert!(text.contains("There are no IP packets in a.pcapng."), "{text}");
}

#[test]
fn capture_losses_are_in_the_title() {
    let title = |capture_lost| drawn(&State::default(), &Data { capture_lost, ..data() }, 100, 5).0;
    assert!(title(Some(1500)).contains("lost by the capture: 1 500"));
    assert!(title(None).contains("lost by the capture: unknown"));
    assert!(!title(Some(0)).contains("lost by the capture"));
}

#[test]
fn any_terminal_size_is_drawn() {
    let data = data();
    let pages = [&[][..], &[Key::Enter], &[Key::Letter('?')], &typed("pcmu")]
        .map(|keys| after(keys, &data));
    for (width, height) in [(1, 1), (3, 2), (20, 3), (40, 9), (400, 3), (9, 90)] {
        for state in &pages {
            drawn(state, &data, width, height);
        }
    }
}

#[test]
fn bad_values_are_bold_and_red() {
    for (coloured, colour) in [(true, Color::Red), (false, Color::Reset)] {
        let mut terminal = Terminal::new(TestBackend::new(100, 8)).unwrap();
        let (state, data) = (State::default(), data());
        terminal
            .draw(|frame| {
                view(frame, &state, &data, Theme { coloured });
            })
            .unwrap();
        let cells = terminal.backend().buffer().content();
        let bold = cells.iter().filter(|cell| cell.modifier.contains(Modifier::BOLD));
        let bad: String =
            bold.filter(|cell| cell.fg == colour).map(ratatui::buffer::Cell::symbol).collect();
        assert!(bad.contains("2.73") && bad.contains("12.0 %"), "{bad}");
        assert!(!bad.contains("4.41"), "{bad}");
    }
}

#[test]
fn rates_are_recorded_between_refreshes() {
    let mut history = History::default();
    let mut report = download();
    history.record(std::slice::from_ref(&report), Duration::from_secs(1));
    let id = FlowId::of(&report);
    assert!(history.rates(id).is_empty());
    report.bytes += 1000;
    history.record(std::slice::from_ref(&report), Duration::from_secs(3));
    assert_eq!(history.rates(id), [Some(4000.0)]);
    history.record(&[], Duration::from_secs(4));
    assert!(history.rates(id).is_empty());
}
