use super::*;
use crate::account::{Making, MeasuredDesign};
use crate::experiment::{Claim, Estimate};
use wirestamp_report::Circumstances;

fn account(claims: Vec<Claim>) -> Account {
    let making = Making {
        circumstances: Circumstances::default(),
        sittings: 1,
        interrupted: false,
        seed: 1,
        repetitions: 2,
        designs: Vec::new(),
    };
    Account {
        title: "Does it rain".to_owned(),
        making,
        claims,
        paper: "A <paper>",
        data: serde_json::Map::new(),
        sections: Vec::new(),
        deviations: "",
        machine: Vec::new(),
        report: None,
    }
}

fn rains(_: &Options, stop: &Stop, progress: &mut dyn FnMut(&Progress)) -> anyhow::Result<Account> {
    progress(&Progress { share: 0.0, left: Duration::from_secs(60), doing: "it".to_owned() });
    let lead = |mean| vec![Some(Estimate::new(mean, Some(0.5)))];
    let claims = vec![
        Claim::of("it rains", lead(1.0), "<b>"),
        Claim::of("it snows", lead(-1.0), "2"),
        Claim::of("it hails", lead(0.1), "3"),
    ];
    let mut account = account(claims);
    account.making.interrupted = stop.is_requested();
    Ok(account)
}

fn fails(_: &Options, _: &Stop, _: &mut dyn FnMut(&Progress)) -> anyhow::Result<Account> {
    Err(anyhow::anyhow!("no <cloud>").context("cannot rain"))
}

fn stops(options: &Options, stop: &Stop, _: &mut dyn FnMut(&Progress)) -> anyhow::Result<Account> {
    stop.request();
    rains(options, stop, &mut |_| ())
}

static WEATHER: &[Entry] = &[
    Entry { name: "fails", about: "whether it fails", paper: "B", run: fails, run_over_mesh: None },
    Entry {
        name: "rains",
        about: "whether it rains",
        paper: "A <paper>",
        run: rains,
        run_over_mesh: None,
    },
    Entry { name: "stops", about: "whether it stops", paper: "C", run: stops, run_over_mesh: None },
    Entry {
        name: "never",
        about: "whether it is reached",
        paper: "D",
        run: rains,
        run_over_mesh: None,
    },
];

const OPTIONS: Options = Options { quick: true, seed: 1, folder: None };

#[test]
fn failed_study_does_not_prevent_others_but_stop_does() {
    let mut reported = Vec::new();
    let stop = Stop::new().unwrap();
    let outcomes =
        run(WEATHER, &OPTIONS, &stop, &mut |progress| reported.push(progress.clone())).unwrap();
    let names: Vec<_> = outcomes.iter().map(|outcome| outcome.study).collect();
    assert_eq!(names, ["fails", "rains", "stops"]);
    assert_eq!(outcomes[0].error(), Some("cannot rain: no <cloud>"));
    assert!(outcomes[2].account().unwrap().making.interrupted);
    // The last of them takes a minute, too.
    let left = reported[0].left.as_secs();
    assert!((119..=120).contains(&left) && reported[0].doing == "rains it", "{reported:?}");

    let document = serde_json::to_value(&outcomes).unwrap();
    assert_eq!(document[0]["error"], "cannot rain: no <cloud>");
    assert_eq!((&document[1]["study"], &document[1]["seed"]), (&"rains".into(), &1.into()));
}

#[test]
fn page_has_a_card_for_each_study_and_escapes_text() {
    let stop = Stop::new().unwrap();
    let outcomes = run(WEATHER, &OPTIONS, &stop, &mut |_| ()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let with_mesh = serde_json::to_vec(outcomes[1].account().unwrap()).unwrap();
    fs::write(folder.path().join("active-delay-mesh.json"), with_mesh).unwrap();
    let index = write(folder.path(), &outcomes).unwrap();
    let page = fs::read_to_string(index).unwrap();
    for text in [
        "<a href=\"rains.html\">Whether it rains</a>",
        "Cannot be run: cannot rain: no &lt;cloud&gt;",
        "A &lt;paper&gt;",
        "✓</span> The paper finds that it rains: confirmed here; &lt;b&gt;.",
        "✗</span> The paper finds that it snows: contradicted here",
        "?</span> The paper finds that it hails: not decided here",
        "3 studies.",
        "Of 6 findings of the papers, 2 confirmed, 2 contradicted, 2 not decided.",
        "The study was interrupted",
        "✗</span> contradicted: the contrary holds",
        "1 study also with probes of a mesh.",
        "Of 3 findings of the papers, 1 confirmed",
        "<a href=\"active-delay-mesh.html\">",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<b>") && !page.contains("http"), "{page}");
    assert!(page::html(&[]).contains("0 studies"));
}

#[test]
fn page_is_written_from_saved_documents() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_saved(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("no document of a study in "), "{error}");
    let mut account = account(vec![Claim::of("it rains", vec![None], "")]);
    let sitting = |day: &str, counter_hz| Circumstances {
        date: format!("{day} 12:00:00"),
        processor: "An abacus".to_owned(),
        counter_hz: Some(counter_hz),
        ..Circumstances::default()
    };
    let sittings = vec![sitting("2026-11-22", 2.4454e9), sitting("2026-11-27", 2.5961e9)];
    account.making = account.making.with([MeasuredDesign { name: "beads".to_owned(), sittings }]);
    let document = serde_json::to_vec(&account).unwrap();
    for name in ["timers.json", "limit-rate.json", "limit-rate-mesh.json", "other.json"] {
        fs::write(folder.path().join(name), &document).unwrap();
    }
    let page = fs::read_to_string(write_saved(folder.path()).unwrap()).unwrap();
    let order = ["timers.html", "limit-rate.html", "limit-rate-mesh.html"];
    let order = order.map(|name| page.find(name).unwrap());
    assert!(order.is_sorted() && !page.contains("other.html"), "{order:?}");
    let processors = "An abacus (counter 2.445 GHz); An abacus (counter 2.596 GHz)";
    assert!(page.contains("2 studies."));
    assert!(page.contains(&format!("Processors: {processors}.")), "{page}");
    assert!(page.contains(&format!("2026-11-22 to 2026-11-27 UTC; {processors}; Linux ")));
    fs::write(folder.path().join("timers.json"), "{}").unwrap();
    let error = write_saved(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("timers.json is not the document of a study"), "{error}");
}
