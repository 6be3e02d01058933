//! Options with the letters of tcpdump.

use std::fs;
use std::path::Path;

use crate::capture::{Traffic, by_tshark, folder, read, summary};
use crate::common::{Leftovers, is_root, run, stderr};

#[test]
fn options_may_follow_the_filter() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("x.pcapng");
    let options = ["-nn", "-p", "-U", "-vv", "-s", "0", "-w", &file, "udp", "and"];
    let words: Vec<_> = traffic.filter.split(' ').map(str::to_owned).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    // The helper adds the filter at the end, behind these words and options.
    let capture = traffic.capture(&[&options[..], &words, &["-c", "3", "--json", "and"]].concat());
    traffic.send(3);
    let summary = summary(capture);
    assert_eq!(summary["packets"], 3);
    assert_eq!(summary["filter"], format!("udp and {0} and {0}", traffic.filter));
    assert_eq!(read(Path::new(&file)).times, by_tshark(&file));
}

#[test]
fn filter_is_read_from_a_file() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let filter = path("filter");
    fs::write(&filter, format!("# one port\n{}\n", traffic.filter)).unwrap();
    let words = std::mem::replace(&mut traffic.filter, "--json".to_owned());
    let capture = traffic.capture(&["-F", &filter, "-c", "3"]);
    traffic.send(3);
    let summary = summary(capture);
    assert_eq!((&summary["packets"], &summary["filter"]), (&3.into(), &words.into()));
}

#[test]
fn requested_precision_selects_the_pcap_format() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let file = path("x.pcap");
    for (precision, has_nanoseconds) in [
        (&["--time-stamp-precision", "micro"][..], false),
        (&["--time-stamp-precision", "nano"], true),
        (&["--micro"], false),
        (&["--nano"], true),
    ] {
        let mut traffic = Traffic::new();
        let capture = traffic.capture(&[precision, &["-w", &file, "-c", "20", "--json"]].concat());
        traffic.send(20);
        summary(capture);
        let times = read(Path::new(&file)).times;
        assert_eq!(times.iter().any(|time| time % 1000 != 0), has_nanoseconds, "{precision:?}");
    }
}

/// Prints the state of an interface while it is captured, without and with `-p`. `$0` is the binary, `$1` the folder.
const PROMISCUITY: &str = r#"
    cd "$1"
    for option in -n -p; do
        "$0" capture -i out@wirestamp-source $option -w x.pcapng 2> log$option & capture=$!
        until grep -q Ctrl-C log$option; do sleep 0.05; done
        ip -n wirestamp-source -d link show out > shown$option
        kill -INT $capture
        wait $capture
    done
"#;

#[test]
fn interface_is_promiscuous_unless_refused() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    let shell = ["lab", "run", "timeout", "60", "sh", "-euc", PROMISCUITY];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), &path("")];
    let output = run(&[&shell[..], &files].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for (option, promiscuity) in [("-n", "promiscuity 1"), ("-p", "promiscuity 0")] {
        let shown = fs::read_to_string(path(&format!("shown{option}"))).unwrap();
        assert!(shown.contains(promiscuity), "{option}: {shown}");
    }
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn options_of_tcpdump_without_a_meaning_are_refused() {
    let cases: [(&[&str], &str); 15] = [
        (&["-E", "key"], "-E: ESP is not decrypted"),
        (&["-I"], "-I: monitor mode is not supported"),
        (&["--monitor-mode"], "-I: monitor mode is not supported"),
        (&["-j", "adapter"], "-j: stamps are chosen with --stamp"),
        (&["-J"], "-J: use --list"),
        (&["-L"], "-L: each interface has one link type"),
        (&["-m", "mib"], "-m: SNMP is not decoded"),
        (&["-M", "secret"], "-M: TCP-MD5 is not verified"),
        (&["-P"], "-P: its meaning depends on the system"),
        (&["-T", "rtp"], "-T: `wirestamp flows` finds RTP"),
        (&["-V", "files"], "-V: -r reads the captures of a folder as one"),
        (&["-y", "EN10MB"], "-y: each interface has one link type"),
        (&["-z", "gzip"], "-z: no command is run after each file; --zstd"),
        (&["--immediate-mode"], "--immediate-mode: use -U"),
        (&["-tttttt", "--print"], "-t: the forms are -t, -tt, -ttt, -tttt and -ttttt"),
    ];
    for (options, hint) in cases {
        let output = run(&[&["capture", "-i", "lo"], options].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {message}");
        assert!(message.contains(hint), "{options:?}: {message}");
    }
}

#[test]
fn wrong_options_are_named_with_the_next_step() {
    let (_folder, path) = folder();
    let [empty, missing] = ["empty", "missing"].map(&path);
    fs::write(&empty, "# nothing\n").unwrap();
    let cases: [(&[&str], i32, &[&str]); 11] = [
        (&["-i", "lo", "-F", &missing], 1, &["-F: cannot read", "missing", "No such file"]),
        (&["-i", "lo", "-F", &empty], 2, &["-F", "has no filter", "leave -F out"]),
        (&["-i", "lo", "-F", &empty, "udp"], 2, &["-F <FILE>", "cannot be used with", "FILTER"]),
        (&["-i", "lo", "udp", "--no-such-option"], 2, &["--no-such-option"]),
        (&["-i", "lo", "-X", "--json"], 2, &["--json", "-X", "leave one out"]),
        (&["-i", "lo", "-e", "-w", "-"], 2, &["-w -", "-e", "write the packets to a file"]),
        (&["-i", "lo", "-w", "x", "-U", "--zstd"], 2, &["-U and --zstd", "leave one out"]),
        (&["-i", "lo", "--time-stamp-precision", "micro"], 2, &["micro", "--format pcap-us"]),
        (
            &["-i", "lo", "-w", "x.pcapng", "--time-stamp-precision", "micro"],
            2,
            &["only pcap files", "--format pcap-us"],
        ),
        (
            &["-i", "lo", "-w", "x", "--format", "pcap-us", "--time-stamp-precision", "nano"],
            2,
            &["nano", "--format pcap"],
        ),
        (&["-i", "lo", "--time-stamp-precision", "pico"], 2, &["micro, nano"]),
    ];
    for (arguments, code, hints) in cases {
        let output = run(&[&["capture"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(hints.iter().all(|hint| message.contains(hint)), "{arguments:?}: {message}");
    }
}
