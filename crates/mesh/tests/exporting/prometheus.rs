//! A Prometheus server reads the metrics of a controller.

use std::path::PathBuf;

use super::*;

/// A server that scrapes a controller every second.
struct Server {
    _folder: tempfile::TempDir,
    _process: Ending,
    port: u16,
}

impl Server {
    fn of(page: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [settings, data]: [PathBuf; 2] = ["settings", "data"].map(|it| folder.path().join(it));
        let text = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: mesh, static_configs: [{{targets: ['{page}']}}]}}]\n"
        );
        fs::write(&settings, text).unwrap();
        let port = free_tcp_port();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", settings.display()));
        command.arg(format!("--storage.tsdb.path={}", data.display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = Ending(command.stderr(Stdio::null()).spawn().unwrap());
        Self { _folder: folder, _process: process, port }
    }

    /// The value of an expression, when it has this one.
    fn wait_for(&self, expression: &str, expected: f64) {
        while self.value(expression) != Some(expected) {
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The value of an expression; none if the server does not answer yet, or there is no sample.
    fn value(&self, expression: &str) -> Option<f64> {
        let address = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        let query = format!("query={expression}");
        let mut curl = Command::new("curl");
        let printed = curl.args(["-sG", &address, "--data-urlencode", &query]).output().unwrap();
        let answer: Value = serde_json::from_slice(&printed.stdout).ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

fn free_tcp_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// The results of twenty seconds arrive between two scrapes.
#[test]
fn prometheus_counts_all_packets_and_finds_the_percentile() {
    let (folder, mesh) = mesh();
    let server = Server::of(mesh.page);
    server.wait_for("wirestamp_task_sent_packets_total", 0.0);
    for (name, point) in [("roof", 0), ("cellar", 1)] {
        let probe = Probe::let_in(&mesh.runtime, folder.path(), mesh.address, name, point);
        probe.hold(batches(point, 0..BATCHES));
        mesh.runtime.spawn(Arc::new(probe).deliver(mesh.address));
    }
    let packets = u32::try_from(PACKETS).map(f64::from).unwrap();
    server.wait_for("wirestamp_task_sent_packets_total", packets);
    assert_eq!(server.value("wirestamp_task_lost_packets_total"), Some(packets / 10.0));
    assert_eq!(server.value("wirestamp_task_delay_seconds_count"), Some(packets * 0.9));
    let sum = server.value("wirestamp_task_delay_seconds_sum").unwrap();
    assert!((sum - packets * 0.9 * 0.005).abs() < 1e-6, "{sum}");
    let p99 =
        server.value("histogram_quantile(0.99, wirestamp_task_delay_seconds_bucket)").unwrap();
    assert!((0.0047..=0.0056).contains(&p99), "{p99}");
    // These results are years old.
    assert_eq!(server.value("wirestamp_task_window_timestamp_seconds"), None);
}
