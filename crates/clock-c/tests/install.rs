//! The library as C programmers use it: installed, found by pkg-config, compiled against, run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use clock::{Time, Utc};

const PREFIX: &str = "/opt/clock";
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// An installation as packagers make it: for a prefix, into a staging folder.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let destination = format!("DESTDIR={}", folder.path().display());
        let prefix = format!("PREFIX={PREFIX}");
        let make = ["--no-print-directory", "install-clock", &prefix, &destination];
        // With the profile of the tests, so that little is built twice.
        output(Command::new("make").args(make).env("PROFILE", "dev").current_dir(root()));
        Self { folder }
    }

    /// Current path of a file below the prefix.
    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(PREFIX.trim_start_matches('/')).join(below)
    }

    fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command
            .env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"))
            .env("PKG_CONFIG_SYSROOT_DIR", self.folder.path())
            .args(arguments)
            .arg("wirestamp_clock");
        output(&mut command).split_whitespace().map(str::to_owned).collect()
    }

    /// The example, compiled for a language and linked with these arguments.
    fn compile(&self, compiler: &[&str], linked: &[String]) -> PathBuf {
        let program = self.folder.path().join("example");
        let mut command = Command::new(compiler[0]);
        command
            .args(&compiler[1..])
            .args(WARNINGS)
            .arg(root().join("examples/c/clock.c"))
            .args(["-x", "none", "-o"])
            .arg(&program)
            .args(self.pkg_config(&["--cflags"]))
            .args(linked);
        output(&mut command);
        program
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path("lib"));
        command
    }

    fn run(&self, program: &Path) {
        let before = utc_ns();
        let printed = output(&mut self.command(program));
        let after = utc_ns();
        check(&printed, before, after);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Output of a command that must succeed.
fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {stderr}");
    String::from_utf8(stdout).unwrap()
}

fn utc_ns() -> i64 {
    Time::<Utc>::try_from(SystemTime::now()).unwrap().as_nanos()
}

/// Checks the lines of the example, which ran between two readings of the system clock.
fn check(printed: &str, before: i64, after: i64) {
    let lines: Vec<&str> = printed.lines().collect();
    let [counter, begin, delay, now] = lines[..] else { panic!("{printed}") };
    assert!(counter.starts_with("counter ") && counter.ends_with(" Hz"), "{counter}");

    let (delay, delay_error) = value_and_error(delay.strip_prefix("delay ").unwrap());
    let delay: i64 = delay.strip_suffix(" ns").unwrap().parse().unwrap();
    assert!(delay > 0 && delay < after - before + delay_error, "{printed}");

    let [begin, now] = [("begin ", begin), ("now ", now)].map(|(name, line)| {
        let (time, error) = value_and_error(line.strip_prefix(name).unwrap());
        let utc = output(Command::new("date").args(["--date", time, "+%s%N"]));
        let utc: i64 = utc.trim().parse().unwrap();
        assert!(error > 0 && utc + error >= before && utc - error <= after, "{printed}");
        (utc, error)
    });
    assert!(begin.0 - begin.1 < now.0 + now.1, "{printed}");
}

/// `a` and `b` of "a +- b ns".
fn value_and_error(text: &str) -> (&str, i64) {
    let (value, error) = text.split_once(" +- ").unwrap();
    (value, error.strip_suffix(" ns").unwrap().parse().unwrap())
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn c_example_compiles_without_warnings_and_runs() {
    let installed = Installed::new();
    let shared = installed.pkg_config(&["--libs"]);
    let c = ["cc", "-std=c11", "-pedantic"];
    let program = installed.compile(&c, &shared);
    installed.run(&program);

    let refused = installed.command(&program).arg("sundial").output().unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.starts_with("wirestamp_clock_open: cannot use the source sundial"));
    assert_eq!(message.lines().count(), 1);

    if is_there("g++") {
        let cxx = ["g++", "-x", "c++", "-std=c++17"];
        installed.run(&installed.compile(&cxx, &shared));
    } else {
        eprintln!("skipped: the example as C++ needs g++");
    }

    // Without the shared library only the static one is left.
    std::fs::remove_file(installed.path("lib/libwirestamp_clock.so")).unwrap();
    let fixed = installed.pkg_config(&["--libs", "--static"]);
    let program = installed.compile(&c, &fixed);
    std::fs::remove_file(installed.path("lib/libwirestamp_clock.a")).unwrap();
    installed.run(&program);
}
