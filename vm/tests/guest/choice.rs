//! Choice of the clock source: the three machines of Fedotova and Siemens, section 5. `tools/test-vm` starts the
//! machine of each test by the test's name.

use serde_json::Value;

use crate::tools::wirestamp;

/// Costs that differ by no more than this share of the lower one count as equal.
const SIMILAR: f64 = 0.25;

struct Survey(Value);

impl Survey {
    fn of_this_machine() -> Self {
        Self(wirestamp(&["clock", "--duration", "0.3", "--json"]))
    }

    fn selected(&self) -> &str {
        self.0["selected"].as_str().unwrap()
    }

    fn source(&self, name: &str) -> &Value {
        let mut sources = self.0["sources"].as_array().unwrap().iter();
        sources.find(|source| source["name"] == name).unwrap()
    }

    fn is_available(&self, name: &str) -> bool {
        self.source(name)["available"].as_bool().unwrap()
    }

    fn reason(&self, name: &str) -> &str {
        self.source(name)["reason"].as_str().unwrap()
    }

    fn cost_ns(&self, name: &str) -> f64 {
        self.source(name)["cost_ns"].as_f64().unwrap()
    }
}

#[test]
fn stable_tsc_is_chosen_though_there_is_an_hpet_of_64_bits() {
    let survey = Survey::of_this_machine();
    assert_eq!(survey.selected(), "tsc", "{}", survey.reason("tsc"));
    assert!(survey.reason("tsc").contains("invariant"), "{}", survey.reason("tsc"));
    assert!(survey.is_available("hpet"), "{}", survey.reason("hpet"));
    assert!(survey.reason("hpet").contains("64-bit"), "{}", survey.reason("hpet"));
    let frequency_hz = survey.source("hpet")["frequency_hz"].as_f64().unwrap();
    // The specification requires at least 10 MHz (IA-PC HPET 1.0a, 2.4).
    assert!(frequency_hz >= 10e6, "{frequency_hz} Hz");
}

#[test]
fn stable_tsc_is_converted_as_the_kernel_does() {
    let survey = Survey::of_this_machine();
    let exact = &survey.0["exact_conversion"];
    // Both kernels of these tests have a known layout.
    assert_eq!(exact["layout"], "table", "{}", survey.0["no_exact_conversion"]);
    assert_eq!(exact["proof_reads"], 10_000, "{exact}");
}

#[test]
fn unstable_tsc_leaves_the_hpet_or_the_os_whichever_costs_less() {
    let survey = Survey::of_this_machine();
    assert!(
        !survey.is_available("tsc"),
        "the TSC is marked as unstable on the kernel's command line"
    );
    assert!(survey.reason("tsc").contains("does not trust it"), "{}", survey.reason("tsc"));
    assert!(survey.is_available("hpet"), "{}", survey.reason("hpet"));
    let [hpet, os] = ["hpet", "os"].map(|name| survey.cost_ns(name));
    if (hpet - os).abs() > SIMILAR * hpet.min(os) {
        let cheaper = if hpet < os { "hpet" } else { "os" };
        assert_eq!(survey.selected(), cheaper, "HPET {hpet} ns, OS {os} ns");
    } else {
        assert!(["hpet", "os"].contains(&survey.selected()), "{}", survey.selected());
    }
    let chosen = survey.reason(survey.selected());
    assert!(chosen.contains("; chosen: "), "{chosen}");
}

#[test]
fn no_hpet_and_an_unstable_tsc_leave_the_os() {
    let survey = Survey::of_this_machine();
    assert_eq!(survey.selected(), "os");
    assert!(!survey.is_available("tsc") && !survey.is_available("hpet"));
    // The kernel provides the device even without an HPET.
    assert!(survey.reason("hpet").contains("no HPET"), "{}", survey.reason("hpet"));
}
