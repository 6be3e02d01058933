//! Malformed input is counted and has no other effect.

use super::*;

/// A template with one field.
fn template(id: u16, length: u16) -> Vec<u8> {
    [id, 1, 1, length].map(u16::to_be_bytes).concat()
}

fn count(session: &mut Session, bytes: &[u8]) -> usize {
    session.read(bytes).unwrap().records.len()
}

#[test]
fn malformed_messages_are_rejected() {
    let mut session = fresh();
    let whole = message(1, 0, &[(300, &[1, 2, 3])]);
    let mut why = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        session.read(&bytes).unwrap_err()
    };
    assert_eq!(why(&|it| it.truncate(15)), Malformed::Short(15));
    assert_eq!(why(&|it| it[1] = 9), Malformed::Version(9));
    assert_eq!(why(&|it| it.push(0)), Malformed::Length { has: 24, says: 23 });
    assert_eq!(why(&|it| it[19] = 3), Malformed::Set(3));
    assert_eq!(why(&|it| it[19] = 8), Malformed::Set(8));
    let cut_off = |it: &mut Vec<u8>| {
        it.truncate(18);
        it[3] = 18;
    };
    assert_eq!(why(&cut_off), Malformed::Set(2));
    assert_eq!(session.unread(), Unread { messages: 6, ..Unread::default() });
}

#[test]
fn undecodable_records_count_as_missed() {
    let mut session = fresh();
    assert_eq!(count(&mut session, &message(1, 0, &[(256, &[0; 4]), (7, &[])])), 0);
    let known = message(1, 2, &[(TEMPLATES, &template(256, 2)), (256, &[0; 4])]);
    assert_eq!(session.read(&known).unwrap().order, Order::Missed(2));
    assert_eq!(session.unread(), Unread { unknown: 1, reserved: 1, ..Unread::default() });
    // Other domains have their own templates and sequence numbers.
    assert_eq!(session.read(&message(2, 9, &[(256, &[0; 4])])).unwrap().order, Order::First);
    assert_eq!(session.unread().unknown, 2);
    let next = |session: &mut Session, sequence| {
        session.read(&message(1, sequence, &[(256, &[0; 2])])).unwrap().order
    };
    assert_eq!(next(&mut session, 4), Order::Missed(0));
    assert_eq!(next(&mut session, 3), Order::Back);
    assert_eq!(next(&mut session, 10), Order::Missed(6));
    assert_eq!(next(&mut session, u32::MAX), Order::Back);
    assert_eq!(next(&mut session, 0), Order::Missed(0));
}

#[test]
fn truncated_records_are_rejected() {
    let mut session = fresh();
    let varies = message(1, 0, &[(TEMPLATES, &template(256, VARIABLE))]);
    assert_eq!(count(&mut session, &varies), 0);
    for cut_off in [&[1, 7, 2, 7][..], &[1, 7, 255], &[1, 7, 255, 0], &[1, 7, 255, 0, 1]] {
        assert_eq!(count(&mut session, &message(1, 0, &[(256, cut_off)])), 1);
    }
    assert_eq!(session.unread(), Unread { cut_off: 4, ..Unread::default() });
}

#[test]
fn invalid_templates_are_rejected() {
    let wrong: [(u16, Vec<u8>); 5] = [
        (TEMPLATES, template(255, 4)),
        (TEMPLATES, template(256, 0)),
        (TEMPLATES, template(256, 4)[..6].to_vec()),
        (OPTIONS_TEMPLATES, [256, 1, 0, 1, 4].map(u16::to_be_bytes).concat()),
        (OPTIONS_TEMPLATES, [256, 1, 2, 1, 4].map(u16::to_be_bytes).concat()),
    ];
    let mut session = fresh();
    for (set, bytes) in &wrong {
        let bytes = message(1, 0, &[(*set, bytes), (256, &[0; 4])]);
        assert_eq!(count(&mut session, &bytes), 0);
    }
    assert_eq!(session.unread(), Unread { templates: 5, unknown: 5, ..Unread::default() });
    assert_eq!(Template::new(256, 0, Vec::new()), Err(WrongTemplate::Fields(256)));
}

#[test]
fn templates_are_withdrawn_from_streams_only() {
    let withdrawn = |transport, withdrawal: &[u8]| {
        let mut session = Session::new(transport);
        let both = [template(256, 4), template(257, 4)].concat();
        let known = message(1, 0, &[(TEMPLATES, &both)]);
        assert_eq!(count(&mut session, &known), 0);
        let sets = [(TEMPLATES, withdrawal), (256, &[0; 4]), (257, &[0; 4])];
        count(&mut session, &message(1, 0, &sets))
    };
    let (one, all) = ([1, 0, 0, 0], [0, 2, 0, 0]);
    assert_eq!(withdrawn(Transport::Stream, &one), 1);
    assert_eq!(withdrawn(Transport::Stream, &all), 0);
    assert_eq!(withdrawn(Transport::Stream, &[0, 3, 0, 0]), 2);
    assert_eq!(withdrawn(Transport::Datagrams, &all), 2);
}

#[test]
fn templates_expire_in_datagrams() {
    let sent = |second: u32, sets: &[(u16, &[u8])]| {
        let mut bytes = message(1, 0, sets);
        bytes[4..8].copy_from_slice(&second.to_be_bytes());
        bytes
    };
    for (transport, read) in [(Transport::Datagrams, 0), (Transport::Stream, 1)] {
        let mut session = Session::new(transport);
        count(&mut session, &sent(1000, &[(TEMPLATES, &template(256, 4))]));
        assert_eq!(count(&mut session, &sent(2800, &[(256, &[0; 4])])), 1);
        assert_eq!(count(&mut session, &sent(2801, &[(256, &[0; 4])])), read);
        assert_eq!(session.unread().unknown, 1 - read as u64);
        count(&mut session, &sent(2801, &[(TEMPLATES, &template(256, 4))]));
        assert_eq!(count(&mut session, &sent(2802, &[(256, &[0; 4])])), 1);
    }
}

#[test]
fn memory_of_an_exporter_is_limited() {
    let mut session = fresh();
    for domain in 0..300 {
        let bytes = message(domain, 0, &[(TEMPLATES, &template(256, 4))]);
        assert_eq!(session.read(&bytes).is_err(), domain >= 256);
    }
    let mut session = fresh();
    let fields = [1_u16, 4].map(u16::to_be_bytes).concat().repeat(10_000);
    for id in 256..270_u16 {
        let template = [&id.to_be_bytes()[..], &10_000_u16.to_be_bytes(), &fields].concat();
        // Repetition takes no more memory.
        for _ in 0..2 {
            count(&mut session, &message(1, 0, &[(TEMPLATES, &template)]));
        }
    }
    assert_eq!(session.unread().templates, 2 * 8);
}
