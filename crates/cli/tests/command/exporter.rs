//! Commands that serve metrics, and their scrapes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{stderr, tool, wirestamp};

/// Far above the time of any step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running command that serves metrics.
pub(crate) struct Exporter {
    child: Option<Child>,
    pub(crate) address: SocketAddr,
}

impl Exporter {
    /// Starts the command at a free port, and waits until it listens.
    pub(crate) fn start(command: &str, arguments: &[&str]) -> Self {
        let mut child = wirestamp(&[&[command, "--metrics", "127.0.0.1:0"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines().map(Result::unwrap);
        let mut message: Vec<_> = Vec::new();
        for line in lines {
            message.push(line);
            if message.last().is_some_and(|line| line.contains("Ctrl-C")) {
                break;
            }
        }
        let address = message.iter().find_map(|line| {
            line.strip_prefix("metrics at http://")?.strip_suffix("/metrics")?.parse().ok()
        });
        let address = address.unwrap_or_else(|| panic!("it does not listen: {message:?}"));
        Self { child: Some(child), address }
    }

    pub(crate) fn scrape(&self) -> String {
        body(&request(self.address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// Scrapes until `sample` has this value.
    pub(crate) fn scrape_until(&self, sample: &str, value: f64) -> String {
        self.scrape_for(|text| self::value(text, sample) == Some(value))
    }

    /// Scrapes until the condition holds.
    pub(crate) fn scrape_for(&self, wanted: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let text = self.scrape();
            if wanted(&text) {
                return text;
            }
            assert!(begin.elapsed() < TIMEOUT, "not what was wanted:\n{text}");
        }
    }

    /// Peak memory so far, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status("VmHWM:").trim_end_matches(" kB").parse().unwrap()
    }

    /// Suspends the command while `work` runs.
    pub(crate) fn suspended(&self, work: impl FnOnce()) {
        tool("kill", &["-STOP", &self.id().to_string()]);
        while !self.status("State:").starts_with('T') {
            thread::yield_now();
        }
        work();
        tool("kill", &["-CONT", &self.id().to_string()]);
    }

    fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// A line of its status (proc_pid_status(5)).
    fn status(&self, name: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(mut self) -> Output {
        let child = self.child.take().unwrap();
        tool("kill", &["-INT", &child.id().to_string()]);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }
}

impl Drop for Exporter {
    /// Kills the command if the test fails before the end.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// The complete answer to a request.
pub(crate) fn request(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn body(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// The value of a sample, with its labels if it has any.
pub(crate) fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    line.parse().ok()
}

/// The names of the samples, without their labels.
pub(crate) fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect()
}

/// Runs Prometheus' tool on a scrape or a rule file.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which tools/setup installs");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Checks a scrape against Prometheus' conventions.
pub(crate) fn assert_conventional(text: &str) {
    let verdict = promtool(&["check", "metrics"], text);
    let message = [verdict.stdout.as_slice(), &verdict.stderr].concat();
    assert!(
        verdict.status.success() && message.is_empty(),
        "{}",
        String::from_utf8_lossy(&message)
    );
}
