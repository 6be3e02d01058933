//! Compares filters in the kernel's two machines with libpcap's results.

mod arithmetic;
mod loaded;
mod machine;
mod samples;

use std::io;

use proptest::prelude::*;

use self::arithmetic::expression;
use self::loaded::Loaded;
use self::machine::SocketFrame;
use self::samples::{FILTERS, FOR_THE_CONSUMER, frames};
use super::classic::{Condition, Operand, Register, Size, decode, encode};
use super::ebpf::{Context, translate};
use super::reach::remove_unreachable_with_tag;
use super::tagged::for_socket;
use super::*;

/// The samples, and each truncated at every possible end of a header.
fn truncated_frames() -> Vec<Vec<u8>> {
    let cuts = |frame: Vec<u8>| {
        (14..frame.len().min(90)).map(|length| frame[..length].to_vec()).collect::<Vec<_>>()
    };
    frames().into_iter().flat_map(|frame| [vec![frame.clone()], cuts(frame)].concat()).collect()
}

/// A filter in each of its forms; not every filter has one for sockets.
struct Forms {
    expression: String,
    filter: Filter,
    socket: Option<Vec<Operation>>,
    xdp: Option<Loaded>,
    tc: Option<Loaded>,
}

const SNAPLEN: u32 = 77;

/// Max length of a packet in a test run of a tc program: it has to fit into a page with the kernel's data.
const MAX_PACKET: usize = 3000;

impl Forms {
    fn of(expression: &str) -> Self {
        let filter = Filter::compile(expression).unwrap();
        let socket = filter.for_socket(SNAPLEN).ok().map(|program| decode(&program).unwrap());
        let loaded = |code: Vec<bpf_insn>, load: fn(&[bpf_insn]) -> io::Result<Loaded>| {
            is_root().then(|| load(&code).unwrap_or_else(|e| panic!("{expression}: {e}")))
        };
        let xdp = loaded(filter.for_xdp().unwrap(), Loaded::xdp);
        let tc = filter.for_tc().ok().and_then(|code| loaded(code, Loaded::tc));
        Self { expression: expression.to_owned(), filter, socket, xdp, tc }
    }

    /// Compares every form with libpcap's result.
    fn check(&self, frame: &[u8]) -> bool {
        let passes = passes(&self.filter, frame);
        if let Some(socket) = &self.socket {
            let remaining = SocketFrame::of(frame).run(socket);
            assert_eq!(
                remaining,
                if passes { SNAPLEN } else { 0 },
                "{}: {frame:02x?}",
                self.expression
            );
        }
        if let Some(xdp) = &self.xdp {
            assert_eq!(xdp.passes(frame), passes, "{}: {frame:02x?}", self.expression);
        }
        let packet = SocketFrame::of(frame);
        if let Some(tc) = self.tc.as_ref().filter(|_| packet.bytes.len() <= MAX_PACKET) {
            let verdict = tc.passes_packet(&packet);
            assert_eq!(verdict, passes, "{} in tc: {frame:02x?}", self.expression);
        }
        passes
    }
}

/// Whether a frame passes that was captured as a whole.
fn passes(filter: &Filter, frame: &[u8]) -> bool {
    filter.passes(frame, u32::try_from(frame.len()).unwrap())
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root");
    }
    root
}

#[test]
fn all_forms_of_a_filter_agree() {
    let frames = truncated_frames();
    for expression in FILTERS {
        let forms = Forms::of(expression);
        let passed = frames.iter().filter(|frame| forms.check(frame)).count();
        assert!(forms.socket.is_some() && forms.filter.for_tc().is_ok(), "{expression}");
        assert!(passed > 0 && passed < frames.len(), "{expression}: {passed}");
    }
}

#[test]
fn long_frame_is_read_to_its_end() {
    let forms = Forms::of("greater 8000 and ether[8990:4] = 0x01020304 and ether[100] = 7");
    let mut frame = vec![7; 9000];
    assert!(!forms.check(&frame));
    frame[8990..8994].copy_from_slice(&[1, 2, 3, 4]);
    assert!(forms.check(&frame));
    assert!(!forms.check(&frame[..8993]));
}

#[test]
fn length_is_that_on_the_wire() {
    let captured = [0; 96];
    let filter = |expression| Filter::compile(expression).unwrap();
    for (expression, expected) in [
        ("greater 500", true),
        ("less 500", false),
        ("len = 1000", true),
        ("ether[500] = 0", false),
    ] {
        assert_eq!(filter(expression).passes(&captured, 1000), expected, "{expression}");
    }
    let ip = Filter::compile_for("greater 1001", LinkType::Ip).unwrap();
    assert!(!ip.passes(&captured, 1000) && ip.passes(&captured, 1001));
}

#[test]
fn shifts_match_libpcap() {
    let filter = Filter::compile("ip[6] << ip[8] = 0 and ip[6] >> ip[8] = 0").unwrap();
    if !is_root() {
        return;
    }
    let xdp = Loaded::xdp(&filter.for_xdp().unwrap()).unwrap();
    let tc = Loaded::tc(&filter.for_tc().unwrap()).unwrap();
    for shift in 0..=255 {
        let mut frame = vec![0; 60];
        (frame[12], frame[20], frame[22]) = (8, 0x81, shift);
        assert_eq!(xdp.passes(&frame), passes(&filter, &frame), "{shift}");
        assert_eq!(tc.passes_packet(&SocketFrame::of(&frame)), passes(&filter, &frame), "{shift}");
        assert_eq!(passes(&filter, &frame), shift > 31, "{shift}");
    }
}

#[test]
fn filters_unsupported_by_sockets_are_refused() {
    for expression in FOR_THE_CONSUMER {
        let error = Filter::compile(expression).unwrap().for_socket(SNAPLEN).unwrap_err();
        assert!(matches!(error, Error::FilterNotInKernel { .. }), "{expression}: {error}");
    }
}

#[test]
fn too_long_program_is_refused() {
    let end = [Operation::Return(0)];
    let reads = |count| vec![Operation::Load { size: Size::Byte, offset: 14 }; count];
    let long = |count| [&reads(count)[..], &end].concat();
    assert!(encode(&long(4095)).is_ok());
    assert!(encode(&long(4096)).is_err());

    let (condition, operand) = (Condition::Equal, Operand::K(0));
    let across = |count| {
        let branch = Operation::Branch { condition, operand, yes: 1, no: count + 1 };
        [&[branch], &long(count)[..]].concat()
    };
    assert!(encode(&across(255)).is_ok());
    assert!(encode(&across(256)).is_err());
    let code = translate(&across(4000), Context::Xdp).unwrap();
    assert!(code.len() < 1 << 15);
    assert_eq!(translate(&across(5000), Context::Xdp).unwrap_err(), TOO_LONG);
    // Each read becomes two instructions if there is a tag.
    assert!(encode(&for_socket(&across(127), SNAPLEN).unwrap()).is_ok());
    assert!(encode(&for_socket(&across(128), SNAPLEN).unwrap()).is_err());
}

#[test]
fn uninitialised_memory_is_refused() {
    let (condition, operand) = (Condition::Equal, Operand::K(0));
    let program = |stored| {
        let branch = Operation::Branch { condition, operand, yes: 1, no: 2 };
        let (store, fetch) =
            (Operation::Store(Register::A, stored), Operation::Fetch(Register::X, 3));
        encode(&[branch, store, store, fetch, Operation::Return(1)]).unwrap()
    };
    assert!(decode(&program(3)).is_ok());
    assert!(decode(&program(2)).is_err());
    let mut on_one_way = program(3);
    on_one_way[0].jf = 2;
    assert!(decode(&on_one_way).is_err());
}

#[test]
fn registers_are_zero_after_the_tag_check() {
    let (condition, operand) = (Condition::Equal, Operand::K(0));
    let branch = Operation::Branch { condition, operand, yes: 1, no: 2 };
    let empty = [branch, Operation::Return(1), Operation::Return(0)];
    let program = for_socket(&empty, SNAPLEN).unwrap();
    for frame in frames() {
        assert_eq!(SocketFrame::of(&frame).run(&program), SNAPLEN);
    }
}

#[test]
fn code_reachable_without_tag_is_kept() {
    let (condition, operand) = (Condition::Equal, Operand::K(0x0800));
    let branch = |yes, no| Operation::Branch { condition, operand, yes, no };
    let tag_type = Operation::Load { size: Size::Half, offset: 12 };
    let other = Operation::Load { size: Size::Half, offset: 16 };
    // Two paths lead to the last branch: with `A` from the first load, and with `A` from the second.
    let program =
        [other, branch(2, 3), other, Operation::Jump { to: 4 }, branch(5, 6), Operation::Return(1)];
    let program = [&program[..], &[Operation::Return(0)]].concat();
    let mut remaining = program.clone();
    remove_unreachable_with_tag(&mut remaining);
    assert_eq!(remaining, program);

    let mut with_tag = program.clone();
    with_tag[2] = tag_type;
    remove_unreachable_with_tag(&mut with_tag);
    assert_eq!(with_tag, [&[other, branch(2, 3), tag_type][..], &program[3..]].concat());
    with_tag[0] = tag_type;
    remove_unreachable_with_tag(&mut with_tag);
    let jump = |to| Operation::Jump { to };
    assert_eq!(with_tag, [tag_type, jump(2), jump(3), jump(4), Operation::Return(0)]);
}

#[test]
fn decoded_program_encodes_to_the_same() {
    for expression in FILTERS {
        let program = Filter::compile(expression).unwrap().operations().unwrap();
        assert_eq!(decode(&encode(&program).unwrap()).as_ref(), Ok(&program), "{expression}");
    }
}

#[test]
fn invalid_filter_reports_libpcaps_reason() {
    let error = Filter::compile("udp prot 5").err().unwrap().to_string();
    assert!(error.starts_with("cannot compile filter 'udp prot 5': "), "{error}");
}

proptest! {
    #[test]
    fn random_bytes_pass_in_every_form_or_in_none(
        expression in prop::sample::select(FILTERS),
        frame in prop::collection::vec(any::<u8>(), 14..200),
        kind in prop::sample::select(vec![0x0800_u16, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8864]),
        inner in prop::sample::select(vec![0x0800_u16, 0x86dd, 0x8100, 0x8864]),
    ) {
        let mut frame = frame;
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        if frame.len() >= 18 {
            frame[16..18].copy_from_slice(&inner.to_be_bytes());
        }
        Forms::of(expression).check(&frame);
    }

    #[test]
    fn any_program_is_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fake::try_program(&bytes);
    }

    #[test]
    fn flipped_bits_pass_in_every_form_or_in_none(
        expression in prop::sample::select(FILTERS),
        frame in prop::sample::select(frames()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut frame = frame;
        for (at, byte) in flips {
            let at = at.index(frame.len().min(80));
            frame[at] = byte;
        }
        Forms::of(expression).check(&frame);
    }

    #[test]
    fn all_forms_agree_on_any_arithmetic(
        expression in expression(),
        frames in prop::collection::vec(prop::sample::select(frames()), 10),
    ) {
        // libpcap rejects filters that no packet passes, and compiles some others to programs with undefined results.
        prop_assume!(Filter::compile(&expression).is_ok_and(|filter| filter.for_xdp().is_ok()));
        let forms = Forms::of(&expression);
        for frame in &frames {
            forms.check(frame);
        }
    }
}

#[test]
fn direction_is_refused() {
    for expression in ["inbound", "not outbound", "udp and (inbound or port 53)"] {
        let error = Filter::compile(expression).err().unwrap().to_string();
        assert!(error.contains("-Q"), "{error}");
    }
}
