use super::*;
use crate::report::Table;

fn measured(timer: Timer, mean: f64, course: Vec<Moment>) -> Measured {
    let cost = Cost {
        count: 100,
        min: mean,
        mean,
        stddev: 1.0,
        p50: mean,
        p90: mean,
        p99: mean,
        p999: mean,
        max: mean,
    };
    Measured {
        source: "tsc".into(),
        call: "TickTime::now".into(),
        timer: Some(timer),
        reason: "<b>because</b>".to_owned(),
        emulated_by: None,
        step_ns: Some(1.0),
        peak_above_ns: Some(50.0),
        peaks: 3,
        filtered: Some(cost),
        unfiltered: Some(cost),
        course,
    }
}

fn findings(ways: Vec<Measured>) -> Findings {
    Findings {
        circumstances: Circumstances { clocksource: "tsc".to_owned(), ..Circumstances::default() },
        interrupted: false,
        rounds: 1,
        reads_per_round: READS_PER_ROUND,
        selected: "tsc",
        ways,
        beside: None,
        paper: PAPER,
        published: PUBLISHED,
        report: None,
    }
}

#[test]
fn ratios_are_those_of_the_means_and_need_both() {
    let both = findings(vec![
        measured(Timer::Tsc, 10.0, Vec::new()),
        measured(Timer::Os, 25.0, Vec::new()),
    ]);
    let [here, via, athlon] = both.ratios(Timer::Os);
    assert_eq!(here, Some(2.5));
    assert!((via.unwrap() - 2.673).abs() < 1e-3 && (athlon.unwrap() - 44.518).abs() < 1e-3);
    assert_eq!(both.ratios(Timer::Hpet)[0], None);
    assert_eq!(findings(Vec::new()).ratios(Timer::Os)[0], None);
}

#[test]
fn any_course_makes_a_page_and_no_text_is_taken_for_markup() {
    let moment = |at, usual, longest| Moment { at, usual, longest };
    let courses = [
        Vec::new(),
        vec![moment(0.0, 0.0, 0.0)],
        vec![moment(0.0, 9.4, 230_000.0); 5_000],
        vec![moment(1e9, 1e12, 1e15)],
    ];
    for course in courses {
        let figures = if course.is_empty() { 2 } else { 4 };
        let ways =
            vec![measured(Timer::Tsc, 10.0, course.clone()), measured(Timer::Os, 0.0, course)];
        let page = page::html(&findings(ways));
        assert_eq!(page.matches("<svg ").count(), figures);
        assert!(!page.contains("NaN") && !page.contains("<b>because"));
        assert!(page.contains("38.231") && page.contains("374.3"), "the paper's numbers");
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }
}

#[test]
fn what_another_machine_measured_stands_in_only_for_what_is_missing_here_and_is_marked() {
    let elsewhere = |source: &'static str, timer| Measured {
        source: source.into(),
        emulated_by: Some("QEMU without KVM".to_owned()),
        ..measured(timer, 700.0, Vec::new())
    };
    let there = Elsewhere {
        circumstances: Circumstances { kernel: "6.1".to_owned(), ..Circumstances::default() },
        ways: vec![elsewhere("tsc", Timer::Tsc), elsewhere("hpet", Timer::Hpet)],
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timers.json");
    fs::write(&file, serde_json::to_string(&there).unwrap()).unwrap();
    let there = Elsewhere::read(&file).unwrap();

    let mut found = findings(vec![measured(Timer::Tsc, 10.0, Vec::new())]);
    found.beside = Some(there.of_what_lacks(&found.ways));
    let names = |table: Table| table.rows.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(names(found.beside_the_paper())[3..], ["HPET Timer (elsewhere, emulated)"]);
    let ways = ["tsc TickTime::now", "hpet TickTime::now (elsewhere, emulated)"];
    assert_eq!(names(found.every_way()), ways);
    assert_eq!(found.ratios(Timer::Hpet)[0], None);
    assert!(page::html(&found).contains("Linux 6.1, ; emulated by QEMU without KVM"));

    fs::write(&file, "{}").unwrap();
    let error = format!("{:#}", Elsewhere::read(&file).unwrap_err());
    assert!(error.contains("no document of `wirestamp study timers --json`"), "{error}");
}

#[test]
fn a_stopped_run_measures_nothing_and_still_tells_of_every_source() {
    let stop = Stop::new().unwrap();
    stop.request();
    let folder = std::env::temp_dir().join(format!("wirestamp-timers-{}", std::process::id()));
    let options = Options { rounds: 5, beside: None, folder: Some(folder.clone()) };
    let found = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(found.interrupted && found.rounds == 0);
    for source in ["tsc", "hpet", "os"] {
        assert!(found.ways.iter().any(|way| way.source == source), "{source}");
    }
    let page = fs::read_to_string(found.report.as_ref().unwrap()).unwrap();
    assert!(page.contains("The OS Timer was not read;"), "the kernel's clock is always there");
    let unavailable = found.ways.iter().filter(|way| way.timer.is_some() && !way.is_available());
    assert_eq!(page.matches(": not available here, ").count(), unavailable.count());
    fs::remove_dir_all(folder).unwrap();
}
