use wirestamp_packet::stamp::{Key, Mode};

use super::*;
use crate::task::measure::DEFAULT_RATE;

fn read(text: &str) -> Result<Task, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn tasks_round_trip() {
    for text in [
        r#"{"name":"v","measure":"volume","at":"a/eth0"}"#,
        r#"{"name":"t","measure":"traffic","at":"a/eth0","filter":"udp","interval":"10s"}"#,
        r#"{"name":"p","measure":"passive-delay","from":"a/eth0","to":"b/eth1","share":0.25,
            "codec":"g711-plc","archive":"observations"}"#,
        r#"{"name":"x","measure":"active-delay","from":"a","to":"b@ns","address":"2001:db8::1",
            "port":862,"rate":50.0,"bytes":400,"distribution":"poisson","dscp":46,
            "authenticated":true,"codec":"g729a"}"#,
        r#"{"name":"f","measure":"flows","at":"a/eth0","schedule":{"for":"10m"}}"#,
        r#"{"name":"r","measure":"passive-delay","from":"ipfix:192.0.2.7/3","to":"ipfix:2001:db8::1/3/9"}"#,
        r#"{"name":"r","measure":"passive-delay","from":"ipfix:192.0.2.7/3","to":"ipfix:192.0.2.8/3",
            "clock_error":"1ms"}"#,
    ] {
        let task = read(text).unwrap();
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&task).unwrap(), value);
    }
}

#[test]
fn omitted_keys_have_defaults() {
    let task = read(r#"{"name":"x","measure":"active-delay","from":"a","to":"b"}"#).unwrap();
    let Measure::ActiveDelay(active) = &task.measure else { panic!("{task:?}") };
    assert_eq!((active.rate, active.bytes, active.dscp), (DEFAULT_RATE, MIN_BYTES, 0));
    assert!(!active.is_authenticated);
    assert_eq!(task.measure.probes().len(), 2);
    let task = read(r#"{"name":"p","measure":"passive-delay","from":"a/i","to":"a/j"}"#);
    let Measure::PassiveDelay(passive) = task.unwrap().measure else { panic!() };
    assert_eq!(passive.share, 1.0);
}

#[test]
fn authenticated_packets_have_min_length() {
    let text = r#"{"name":"x","measure":"active-delay","from":"a","to":"b","authenticated":true}"#;
    let Measure::ActiveDelay(active) = read(text).unwrap().measure else { panic!("{text}") };
    let key = Key::new(b"a secret").unwrap();
    assert_eq!(usize::from(active.bytes), 8 + Mode::Authenticated(&key).length());
    assert!(active.is_authenticated);
}

#[test]
fn errors_name_key_and_valid_values() {
    for (text, said) in [
        (r#"{"measure":"volume"}"#, "`name` is missing"),
        (r#"{"name":"v"}"#, "task v: `measure` is missing"),
        (r#"{"name":"V","measure":"volume"}"#, "\"V\" is not a name"),
        (r#"{"name":"v","measure":"volumes"}"#, "task v: `measure` \"volumes\" is unknown"),
        (r#"{"name":"v","measure":"volume"}"#, "task v: `at` is missing for volume"),
        (r#"{"name":"v","measure":"volume","at":"a"}"#, "`at` \"a\" is not an observation point"),
        (r#"{"name":"v","measure":"volume","at":"a/b","to":"c"}"#, "`to` is not used for volume"),
        (r#"{"name":"v","measure":"volume","at":"a/b","color":"c"}"#, "unknown field `color`"),
        (
            r#"{"name":"t","measure":"traffic","at":"a/b","interval":"1ms"}"#,
            "`interval` must be at least a second",
        ),
        (r#"{"name":"t","measure":"traffic","at":"a/b","interval":"7s"}"#, "divide an hour"),
        (r#"{"name":"p","measure":"passive-delay","from":"a/b","to":"a/b"}"#, "`to` must differ"),
        (
            r#"{"name":"p","measure":"passive-delay","from":"a/b","to":"a/c","share":0}"#,
            "`share` must be",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"a/b","to":"ipfix:192.0.2.7/3"}"#,
            "`from` \"a/b\" is not a point of an IPFIX exporter",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"ipfix:::1/3","to":"ipfix:::1/3"}"#,
            "`to` must differ",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"ipfix:::1/3","to":"ipfix:::1/4","share":0.5}"#,
            "`share` is not used for passive-delay",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"ipfix:::1/3","to":"ipfix:::1/4","filter":"udp"}"#,
            "`filter` is not used for passive-delay",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"ipfix:::1/3","to":"ipfix:::1/4",
                "schedule":{"for":"1m"}}"#,
            "`schedule` is not used for passive-delay",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"ipfix:::1/3","to":"ipfix:::1/4","clock_error":"-1s"}"#,
            "`clock_error` must be 0 s to",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"a/b","to":"a/c","clock_error":"1ms"}"#,
            "`clock_error` is not used",
        ),
        (
            r#"{"name":"v","measure":"volume","at":"a/b","archive":"observations"}"#,
            "`archive` is not used for volume",
        ),
        (
            r#"{"name":"p","measure":"passive-delay","from":"a/b","to":"a/c","archive":"packets"}"#,
            "expected `results` or `observations`",
        ),
        (r#"{"name":"x","measure":"active-delay","from":"a","to":"a"}"#, "`to` must differ"),
        (
            r#"{"name":"x","measure":"active-delay","from":"a/eth0","to":"b"}"#,
            "`from` \"a/eth0\" is not an end of a test",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","filter":"udp"}"#,
            "`filter` is not used for active-delay",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","port":0}"#,
            "`port` must be 1",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","rate":0}"#,
            "`rate` must be 0.001 to 1000000",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","bytes":9}"#,
            "`bytes` must be 52 to",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","bytes":119,"authenticated":true}"#,
            "`bytes` must be at least 120 if `authenticated` is true",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","authenticated":1}"#,
            "invalid type: integer `1`, expected a boolean",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","dscp":64}"#,
            "`dscp` must be 0 to",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","codec":"opus"}"#,
            "`codec` is unknown: choose among g711, ",
        ),
        (
            r#"{"name":"v","measure":"volume","at":"a/b","codec":"g711"}"#,
            "`codec` is not used for volume",
        ),
        (
            r#"{"name":"v","measure":"volume","at":"a/b","filter":"a\u0000"}"#,
            "`filter` must not contain a zero",
        ),
        (
            r#"{"name":"v","measure":"volume","at":"a/b","schedule":{"every":"1h"}}"#,
            "requires `for`",
        ),
        (
            r#"{"name":"v","measure":"volume","at":"a/b","schedule":{"every":"1 month","for":"1h"}}"#,
            "durations such as 90s, 10m, 24h or 7d",
        ),
        (
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","address":"host.example"}"#,
            "`address` must be an IP address",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

/// Tasks from before this check stay readable.
#[test]
fn filter_of_a_new_task_must_be_valid() {
    for (filter, said) in [
        ("udp prot 5004".to_owned(), "`filter` is not valid"),
        ("udp ".repeat(2000), "at most 4096"),
    ] {
        let task =
            serde_json::json!({ "name": "v", "measure": "volume", "at": "a/b", "filter": filter });
        let error = Task::read(task.clone()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(Task::try_from(task).is_ok());
    }
}
