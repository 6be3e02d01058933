//! Wireshark's tshark captures with `wirestamp` as its extcap program.

use std::fs::{self, File};
use std::io::Read;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{is_root, run, stderr, tool, wirestamp};
use tempfile::TempDir;
use wirestamp_capture::file::Reader;
use wirestamp_lab::Netns;

/// A user whose tshark has our extcap link, and a namespace with a loopback interface.
struct Desk {
    home: TempDir,
    netns: Netns,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { home: tempfile::tempdir().unwrap(), netns: Netns::new().unwrap() };
        let up = desk.netns.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
        assert!(up.success());
        let message = desk.extcap("install");
        assert!(message.contains("is now a link to"), "{message}");
        desk
    }

    fn at_home<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("HOME", self.home.path()).env("TMPDIR", self.home.path());
        command.env_remove("XDG_CONFIG_HOME").stdin(Stdio::null())
    }

    /// Runs `wirestamp extcap install` or `remove`, and returns the output.
    fn extcap(&self, action: &str) -> String {
        let output = self.at_home(&mut wirestamp(&["extcap", action])).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn tshark(&self, arguments: &[&str]) -> Command {
        let mut command = self.netns.command("tshark");
        self.at_home(command.args(arguments)).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_owned()
    }

    /// Sends a packet to each port every millisecond while `work` runs.
    fn with_traffic<T>(&self, ports: [u16; 2], work: impl FnOnce() -> T) -> T {
        let socket = self.netns.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
        let sinks = self.netns.run(|| ports.map(|port| UdpSocket::bind(("127.0.0.1", port))));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for port in ports {
                        socket.send_to(b"packet", ("127.0.0.1", port)).unwrap();
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let _done = Raise(&done);
            let result = work();
            drop(sinks);
            result
        })
    }
}

/// Sets a flag on drop, also if the test fails.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `look` until it returns a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{what} does not come");
        thread::yield_now();
    }
}

/// Waits until tshark's child process captures, and returns its process ID.
fn capturing(tshark: &Child) -> u32 {
    let parent = tshark.id();
    // The thread that watches the reader is started last.
    let captures = |id: &u32| {
        let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?;
        let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm"));
        let mut names = threads.filter_map(|thread| name(thread.ok()?).ok());
        names.any(|name| name.trim() == "ws-reader").then_some(())
    };
    until("a capture", || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let mut children = children.split_whitespace().filter_map(|id| id.parse().ok());
        children.find(|id| captures(id).is_some())
    })
}

fn signal(name: &str, process: u32) {
    tool("kill", &[name, &process.to_string()]);
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tshark_lists_interfaces_while_installed() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let listed = || text(&desk.tshark(&["-D"]).output().unwrap());
    assert!(listed().contains("wirestamp-lo (Wirestamp: lo (precise stamps))"), "{}", listed());
    assert!(desk.extcap("install").contains("is already"));
    assert!(desk.extcap("remove").contains("removed"));
    assert!(!listed().contains("wirestamp"), "{}", listed());
    assert!(desk.extcap("remove").contains("nothing to remove"));
}

#[test]
fn tshark_captures_with_dialog_options() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let file = desk.path("x.pcapng");
    let options = ["method:recvmmsg", "stamp:raw"].map(|o| format!("extcap.wirestamp_lo.{o}"));
    let mut tshark = desk.tshark(&["-i", "wirestamp-lo", "-c", "40", "-f", "udp port 5000", "-P"]);
    tshark.args(["-w", &file, "-o", &options[0], "-o", &options[1]]);
    tshark.args(["-T", "fields", "-e", "frame.time_epoch", "-e", "udp.dstport"]);
    let output = desk.with_traffic([5000, 5001], || tshark.output().unwrap());
    let shown = text(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(shown.lines().count(), 40, "{shown}");
    assert!(shown.lines().all(|line| line.ends_with("\t5000")), "{shown}");
    let exact = |line: &str| line.split_once('\t').is_some_and(|(time, _)| !time.ends_with("000"));
    assert!(shown.lines().filter(|line| exact(line)).count() > 30, "{shown}");

    let mut reader = Reader::open(Path::new(&file)).unwrap();
    for line in shown.lines() {
        let time = reader.next_packet().unwrap().unwrap().time.as_nanos();
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        assert!(line.starts_with(&format!("{seconds}.{nanos:09}\t")), "{line} is {time}");
    }
    let provenance = reader.interfaces()[0].provenance.as_ref().unwrap();
    assert_eq!((&*provenance.method, &*provenance.stamp), ("recvmmsg", "raw"));
    let message = tool("capinfos", &[&file]);
    assert!(message.contains("nanoseconds (9)"), "{message}");
}

#[test]
fn tshark_file_has_drops_and_clock_error() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let file = desk.path("x.pcapng");
    let small = "extcap.wirestamp_lo.buffersize:64";
    let mut tshark = desk.tshark(&["-i", "wirestamp-lo", "-w", &file, "-o", small]);
    let tshark = tshark.spawn().unwrap();
    let capture = capturing(&tshark);
    signal("-STOP", capture);
    let flood = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..1000).for_each(|_| drop(socket.send_to(&[7; 1000], "127.0.0.1:5000")));
    };
    desk.netns.run(flood).unwrap();
    signal("-CONT", capture);
    // Wireshark stops a capture in this way; packets in the ring are still written.
    signal("-TERM", capture);
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut reader = Reader::open(Path::new(&file)).unwrap();
    let mut packets = 0;
    while reader.next_packet().unwrap().is_some() {
        packets += 1;
    }
    let lost = reader.capture_lost().unwrap();
    assert!(lost > 0 && packets > 0, "{packets}");
    assert!(packets + lost >= 1000, "{packets} and {lost}");
    assert!(reader.interfaces()[0].provenance.as_ref().unwrap().error_ns > 0);
}

#[test]
fn dialog_limit_ends_tshark() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let limit = "extcap.wirestamp_lo.count:5";
    let mut tshark = desk.tshark(&["-i", "wirestamp-lo", "-o", limit, "-T", "fields", "-e", "udp"]);
    let output = desk.with_traffic([5000, 5001], || tshark.output().unwrap());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(text(&output).lines().count(), 5);
}

#[test]
fn tshark_shows_our_errors() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let assert_error = |more: &[&str], hint: &str| {
        let arguments = [&["-i", "wirestamp-lo", "-c", "1"], more].concat();
        let output = desk.tshark(&arguments).output().unwrap();
        assert!(!output.status.success());
        assert!(stderr(&output).contains(hint), "{more:?}: {}", stderr(&output));
    };
    assert_error(&["-f", "udp prot 5"], "cannot compile filter 'udp prot 5': ");
    assert_error(&["-o", "extcap.wirestamp_lo.stamp:xdp"], "method ring has no xdp stamps");
    assert_error(&["-o", "extcap.wirestamp_lo.snaplen:none"], "--snaplen");
}

#[test]
fn killed_tshark_leaves_no_capture() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    // Not to /dev/null: a dumpcap that captured nothing removes the file it was to write.
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = file.path().to_str().unwrap();
    let mut tshark = desk.tshark(&["-i", "wirestamp-lo", "-w", output]).spawn().unwrap();
    let capture = capturing(&tshark);
    tshark.kill().unwrap();
    tshark.wait().unwrap();
    let gone = || {
        let status = fs::read_to_string(format!("/proc/{capture}/status")).unwrap_or_default();
        let ended = status.is_empty() || status.contains("State:\tZ");
        ended.then_some(())
    };
    until("its end", gone);
}

/// Starts a capture into a new pipe, outside of Wireshark.
fn capture_into(fifo: &Path) -> Child {
    tool("mkfifo", &[fifo.to_str().unwrap()]);
    let arguments = ["--capture", "--extcap-interface", "wirestamp-lo", "--fifo"];
    let filter = ["--extcap-capture-filter", "udp port 1"];
    let mut command = wirestamp(&[&arguments[..], &[fifo.to_str().unwrap()], &filter].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn idle_capture_ends_with_its_reader() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let capture = capture_into(&fifo);
    let mut head = [0; 4];
    File::open(&fifo).unwrap().read_exact(&mut head).unwrap();
    assert_eq!(head, [0x0a, 0x0d, 0x0d, 0x0a]);
    let output = capture.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output), text(&output)),
        (Some(0), "".into(), "".into())
    );
}

#[test]
fn signal_ends_a_capture_without_reader() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let capture = capture_into(&folder.path().join("fifo"));
    signal("-TERM", capture.id());
    assert_eq!(stderr(&capture.wait_with_output().unwrap()), "");
}

#[test]
fn missing_pipe_is_not_created() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let gone: PathBuf = folder.path().join("gone");
    let fifo = gone.to_str().unwrap();
    let output = run(&["--capture", "--extcap-interface", "wirestamp-lo", "--fifo", fifo]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("No such file"), "{}", stderr(&output));
    assert!(!gone.exists());
}

/// The parameters of a sentence such as `arg {number=0}{call=--x}`, which have to fill it.
fn parameters(line: &str) -> Vec<(&str, &str)> {
    let (_, rest) = line.split_once(' ').unwrap();
    let inner = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect(line);
    inner.split("}{").map(|parameter| parameter.split_once('=').expect(line)).collect()
}

#[test]
fn output_follows_the_extcap_grammar() {
    let asked = |question: &str| {
        let output = run(&[question, "--extcap-interface", "wirestamp-lo"]);
        assert!(output.status.success(), "{}", stderr(&output));
        text(&output)
    };
    let types = ["selector", "unsigned", "boolflag"];
    let mut number = 0;
    for line in asked("--extcap-config").lines() {
        let parameters = parameters(line);
        let get = |name: &str| parameters.iter().find(|(found, _)| *found == name).map(|p| p.1);
        if line.starts_with("arg ") {
            assert_eq!(get("number"), Some(&*number.to_string()), "{line}");
            assert!(get("call").unwrap().starts_with("--"), "{line}");
            assert!(types.contains(&get("type").unwrap()), "{line}");
            let texts = ["display", "tooltip", "group"].map(|name| get(name).unwrap());
            assert!(texts.iter().all(|text| !text.is_empty()), "{line}");
            number += 1;
        } else {
            assert!(line.starts_with("value "), "{line}");
            assert_eq!(get("arg"), Some(&*(number - 1).to_string()), "{line}");
            assert!(get("value").is_some() && get("display").is_some(), "{line}");
        }
    }
    assert!(number > 5);
    let link_types = asked("--extcap-dlts");
    assert_eq!(parameters(link_types.trim_end())[0], ("number", "1"));
    let interfaces = asked("--extcap-interfaces");
    assert!(interfaces.lines().all(|line| !parameters(line).is_empty()));
    assert_eq!(asked("--extcap-version"), format!("{}\n", interfaces.lines().next().unwrap()));
}

#[test]
fn filter_errors_go_to_standard_output() {
    let judged = |filter: &str| {
        let asked = ["--extcap-capture-filter", filter, "--extcap-interface", "wirestamp-lo"];
        let output = run(&asked);
        assert!(output.status.success());
        text(&output)
    };
    assert_eq!((judged(""), judged("udp port 5000")), (String::new(), String::new()));
    assert_eq!(judged("udp prot 5").lines().count(), 1);
}

#[test]
fn invalid_requests_fail_with_one_line() {
    let lo = ["--extcap-interface", "wirestamp-lo"];
    let fifo = ["--fifo", "/nonexistent/fifo"];
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--extcap-nonsense"], 2, "--extcap-nonsense"),
        (&["--extcap-config"], 2, "--extcap-interface"),
        (&["--extcap-dlts", "--extcap-interface", "eth0"], 1, "no interface eth0"),
        (&["--capture", lo[0], lo[1]], 2, "--fifo"),
        (&["--capture", lo[0], lo[1], fifo[0], fifo[1]], 1, "/nonexistent/fifo"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(hint) && message.lines().count() == 1, "{arguments:?}: {message}");
    }
}

#[test]
fn extcap_help_explains_its_purpose() {
    let all = text(&run(&["--help"]));
    assert!(all.contains("extcap") && all.contains("Wireshark"), "{all}");
    let output = run(&["extcap"]);
    let help = stderr(&output);
    assert!(help.contains("install") && help.contains("remove"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}
