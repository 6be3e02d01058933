//! The first pass: classifies each packet.

use pcap_file::pcapng::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use wirestamp_clock::Span;

use super::{Conversion, Interface, PROGRESS_INTERVAL, Restamp, Unchanged, Watch};
use crate::Error;
use crate::file::interface::packet_comments;
use crate::file::raw::error_of;
use crate::file::reader;
use crate::file::times::from_epoch;

impl Restamp<'_> {
    /// Fills in the interfaces and the counts.
    pub(super) fn read(
        &mut self,
        watch: &mut Watch<'_>,
        each: &mut dyn FnMut(&Conversion),
    ) -> Result<(), Error> {
        let mut blocks = self.begin()?;
        // Interfaces are numbered from the start of their section.
        let mut section = 0;
        for number in 0_u64.. {
            if number.is_multiple_of(PROGRESS_INTERVAL) {
                self.report_progress(watch, &blocks)?;
            }
            let Some(block) = blocks.next_block() else { break };
            let damaged = |reason: &str| self.damaged(self.counts.packets, reason);
            let (block, _) = block.map_err(|error| damaged(&reader::reason(&error)))?;
            match block {
                Block::SectionHeader(_) => section = self.interfaces.len(),
                Block::InterfaceDescription(block) => {
                    self.interfaces.push(Interface::of(&block, self.anchors));
                }
                Block::EnhancedPacket(packet) => {
                    let interface = section + packet.interface_id as usize;
                    self.packet(interface, &packet, each)?;
                }
                Block::Packet(_) | Block::SimplePacket(_) => {
                    self.counts.packets += 1;
                    self.counts.without_raw += 1;
                }
                _ => {}
            }
        }
        if self.counts.restamped == 0 { Err(self.error(self.why_not())) } else { Ok(()) }
    }

    fn packet(
        &mut self,
        number: usize,
        packet: &EnhancedPacketBlock<'_>,
        each: &mut dyn FnMut(&Conversion),
    ) -> Result<(), Error> {
        let before = self.counts.packets;
        let Some(interface) = self.interfaces.get(number) else {
            return Err(self.damaged(before, "a packet of an unknown interface"));
        };
        let converted = self.convert(packet, interface);
        let Interface { nanoseconds, by_name, .. } = *interface;
        self.counts.packets += 1;
        let error_ns = match converted {
            Ok((raw, stamp)) if nanoseconds => {
                let time = from_epoch(packet.timestamp);
                each(&Conversion {
                    before: time.map_err(|reason| self.damaged(before, &reason))?,
                    error_before: Span::from_nanos(raw.error_ns),
                    after: stamp.utc,
                    error_after: stamp.error,
                });
                self.counts.restamped += 1;
                self.counts.by_name += u64::from(by_name);
                self.interfaces[number].restamped += 1;
                stamp.error.as_nanos()
            }
            Ok(_) => {
                return Err(
                    self.error("its times are not in nanoseconds, so more exact times do not fit")
                );
            }
            Err(unchanged) => {
                *match unchanged {
                    Unchanged::WithoutRaw => &mut self.counts.without_raw,
                    Unchanged::OtherClock => &mut self.counts.other_clock,
                    Unchanged::Outside => &mut self.counts.outside,
                } += 1;
                self.error_kept(number, packet)
            }
        };
        let interface = &mut self.interfaces[number];
        interface.error_ns = interface.error_ns.max(error_ns);
        Ok(())
    }

    /// Error of a packet that keeps its time.
    fn error_kept(&self, number: usize, packet: &EnhancedPacketBlock<'_>) -> i64 {
        let of_file = self.interfaces[number].provenance.as_ref().map_or(0, |of| of.error_ns);
        packet_comments(packet).find_map(error_of).unwrap_or(of_file)
    }

    /// Why no packet gets a new time.
    fn why_not(&self) -> String {
        let counts = self.counts;
        let anchors = self.anchors;
        if counts.packets == 0 {
            "it has no packets".into()
        } else if counts.outside > 0 {
            "its packets were not stamped in the time of these anchors: the anchors belong to \
             another capture"
                .into()
        } else if counts.other_clock > 0 {
            let stamped = self.interfaces.iter().filter_map(|of| of.provenance.as_ref());
            let by = stamped.map(|of| named(&of.clock, &of.boot_id)).next();
            format!(
                "its packets were stamped by {}, and the anchors are of {}",
                by.unwrap_or_else(|| "another clock".into()),
                named(anchors.clock(), anchors.boot_id())
            )
        } else {
            "no packet has its raw value; capture with --anchors to store them".into()
        }
    }
}

/// Text for a clock: its name, and the boot id if that is known.
fn named(clock: &str, boot_id: &str) -> String {
    if boot_id.is_empty() { clock.to_owned() } else { format!("{clock} of boot {boot_id}") }
}
