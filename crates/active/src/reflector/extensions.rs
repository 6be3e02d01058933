//! A reflector's answers to the extensions of a packet (RFC 8972 section 4).

use wirestamp_packet::stamp::{
    ClassOfService, Extension, ExtensionFlags, FollowUp, Key, StampMethod, SyncSource,
    TimestampInformation, Value, extensions,
};

use crate::system_clock::ClockState;

/// Data for the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerData {
    /// The sender's number of the packet.
    pub(super) sequence: u32,
    /// The number of the answer.
    pub(super) number: u32,
    /// The traffic class of the received packet.
    pub(super) class: u8,
    /// Transmit stamp of the previous answer.
    pub(super) follow_up: FollowUp,
    /// Sync status and error bound of the clock.
    pub(super) state: ClockState,
}

/// Writes the answers to the data after a packet's fields; returns the traffic class of the answer.
///
/// In an authenticated packet, extensions have a separate authentication code (HMAC). If it is wrong or
/// missing, they are returned unchanged and marked as forged. Padding alone needs no code.
pub(super) fn answer(
    asked: &[u8],
    key: Option<&Key>,
    by: &AnswerData,
    answers: &mut Vec<u8>,
) -> u8 {
    // Padding of TWAMP Light.
    if asked.iter().all(|&byte| byte == 0) {
        answers.extend(asked);
        return 0;
    }
    let is_trusted = key.is_none_or(|key| key.verifies_extensions(by.sequence, asked));
    let begin = answers.len();
    let (mut read, mut class) = (0, 0);
    for extension in extensions(asked) {
        read += Extension::HEAD + extension.value.len();
        if extension.flags.malformed {
            extension.write(answers);
            break;
        }
        match key {
            _ if !is_trusted => {
                let flags = ExtensionFlags { forged: true, ..ExtensionFlags::default() };
                Extension { flags, ..extension }.write(answers);
            }
            Some(key) if extension.kind == Extension::CODE => {
                let code = key.code_of_extensions(by.number, &answers[begin..]);
                let flags = ExtensionFlags::default();
                Extension { flags, kind: Extension::CODE, value: &code }.write(answers);
            }
            _ => answer_one(&extension, by, &mut class, answers),
        }
    }
    // The rest is too short for an extension.
    answers.extend(asked.get(read..).unwrap_or_default());
    class
}

fn answer_one(extension: &Extension<'_>, by: &AnswerData, class: &mut u8, answers: &mut Vec<u8>) {
    let answer = match extension.kind {
        Extension::PADDING => Ok(extension.value.to_vec()),
        TimestampInformation::KIND => answered(extension.value, |_: TimestampInformation| {
            // The kernel does not report other clock sources.
            let source =
                if by.state.synchronised { SyncSource::Ntp } else { SyncSource::FreeRunning };
            TimestampInformation {
                received_by: source as u8,
                received_how: StampMethod::Local as u8,
                sent_by: source as u8,
                sent_how: StampMethod::ControlPlane as u8,
            }
        }),
        ClassOfService::KIND => answered(extension.value, |asked: ClassOfService| {
            *class = asked.requested << 2;
            ClassOfService {
                received: by.class >> 2,
                congestion: by.class & 3,
                refused: false,
                ..asked
            }
        }),
        FollowUp::KIND => answered(extension.value, |_: FollowUp| by.follow_up),
        _ => Err(ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() }),
    };
    let (flags, value) = match answer {
        Ok(value) => (ExtensionFlags::default(), value),
        Err(flags) => (flags, extension.value.to_vec()),
    };
    Extension { flags, kind: extension.kind, value: &value }.write(answers);
}

/// The answer to a value; an error if the value is malformed.
fn answered<V: Value>(
    value: &[u8],
    answer: impl FnOnce(V) -> V,
) -> Result<Vec<u8>, ExtensionFlags> {
    match V::decode(value) {
        Some(asked) => Ok(answer(asked).encode()),
        None => Err(ExtensionFlags { malformed: true, ..ExtensionFlags::default() }),
    }
}
