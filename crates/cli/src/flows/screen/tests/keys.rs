//! Keys, selection, sorting and filtering.

use super::super::graph::Graph;
use super::*;

#[test]
fn selection_stays_on_its_flow() {
    let data = data();
    let selected = |keys: &[Key]| {
        let state = after(keys, &data);
        let (_, shown) = drawn(&state, &data, 100, 12);
        state.place(&shown.flows)
    };
    assert_eq!(selected(&[Key::Up]), 0);
    assert_eq!(selected(&[Key::Down]), 1);
    assert_eq!(selected(&[Key::End, Key::Down]), 3);
    assert_eq!(selected(&[Key::End, Key::Home]), 0);
    assert_eq!(selected(&[Key::PageDown, Key::Letter('k')]), 2);
    // The download is the third of the bad flows, and the first by bytes.
    let by_bytes = [Key::Letter('s'); 4];
    assert_eq!(selected(&[&[Key::Down, Key::Down][..], &by_bytes].concat()), 0);
}

#[test]
fn list_is_sorted_by_the_selected_order() {
    let data = data();
    let first = |times| listed(&after(&vec![Key::Letter('s'); times], &data), &data).remove(0);
    assert_eq!(first(0), "10.77.1.7:5008");
    assert_eq!(first(1), "10.77.1.7:5008");
    assert!(first(3).starts_with("[2001"), "by round trip");
    assert!(first(4).starts_with("[2001"), "by bytes");
    assert_eq!(after(&[Key::Letter('s'); 6], &data), State::default());
}

#[test]
fn filter_shows_flows_that_match_all_terms() {
    let data = data();
    let left = |text: &str| listed(&after(&typed(text), &data), &data).len();
    for (text, flows) in [
        ("", 4),
        ("tcp", 1),
        ("rtp", 2),
        ("udp not rtp", 1),
        ("host 10.77.2.2 and port 5008", 1),
        ("src 10.77.1.1", 2),
        ("dst fd77:2::2", 1),
        ("src 2001:db8:1234", 1),
        ("pcmu", 2),
        ("0x1234ABCD", 2),
        ("port", 4),
    ] {
        assert_eq!(left(text), flows, "{text}");
    }
    let keys = [typed("tcpx"), vec![Key::Backspace, Key::Enter]].concat();
    let state = after(&keys, &data);
    assert!(!state.typing && state.filter.text() == "tcp");
    assert_eq!(listed(&state, &data).len(), 1);
    assert_eq!(after(&[&keys[..], &[Key::Escape]].concat(), &data), State::default());
    let (text, shown) = drawn(&after(&typed("absent"), &data), &data, 60, 5);
    assert!(text.contains("No flow matches 'absent'. Esc shows all."), "{text}");
    // Nothing to choose is no reason to fall.
    for key in [Key::Enter, Key::Down, Key::End, Key::PageUp] {
        let state = update(State { typing: false, ..after(&typed("absent"), &data) }, key, &shown);
        assert_eq!((state.page, state.selected), (Page::List, None));
    }
}

#[test]
fn keys_pause_help_and_quit() {
    let data = data();
    assert!(after(&[Key::Letter(' ')], &data).paused);
    let (text, _) = drawn(&after(&[Key::Letter(' ')], &data), &data, 80, 4);
    assert!(text.contains("paused"), "{text}");
    let (text, _) = drawn(&after(&[Key::Letter('?')], &data), &data, 80, 24);
    assert!(
        text.contains("Keys (any key closes this)") && text.contains("the measurement continues")
    );
    assert_eq!(after(&[Key::Letter('?'), Key::Letter('q')], &data), State::default());
    assert!(after(&[Key::Letter('q')], &data).done);
    for keys in [typed("x"), vec![Key::Letter('?')], vec![Key::Enter], vec![]] {
        assert!(after(&[&keys[..], &[Key::Interrupt]].concat(), &data).done, "{keys:?}");
    }
    assert_eq!(after(&[Key::Letter('g')], &data).graph, Graph::Mos);
}
