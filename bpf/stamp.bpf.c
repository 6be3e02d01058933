// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * xdp-pass, tc-pass and trace-pass: stamp every frame in the softIRQ, in the driver or at the start of the
 * network stack, copy its head to a ring buffer, and pass the frame (XDP_PASS).
 *
 * The record layout is shared with crates/capture/src/pass/mod.rs.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"
#include "counts.h"
#include "filter.h"
#include "trace.h"

/* Number of bytes copied of each frame, at least up to the end of a VLAN tag. Set before loading; the
 * verifier sees a constant. */
const volatile __u32 head_bytes = 256;

/* Set by the reader before it sleeps: the next record wakes it. */
__u32 waiting;

struct record {
	__u64 stamp;
	__u32 length;   /* of the frame on the wire */
	__u16 captured; /* bytes that follow, at most head_bytes */
	__u16 clock;    /* of the stamp */
	__u32 head[];   /* in words of a tag's size, because one may be put in */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* resized before loading */
} frames SEC(".maps");

/* A helper that copies bytes of a frame, which may be in fragments. */
typedef long load_bytes(void *frame, __u32 offset, void *to, __u32 length);

/* Records of short frames are short: the ring buffer has room for more of them, and each touches less memory. The kernel
 * only accepts sizes that the verifier knows. */
#define SHORT_BYTES 128
#define MEDIUM_BYTES 512
#define ETHERNET_BYTES 1536 /* the longest frame of an MTU of 1500 bytes */

/* Room for the head of a frame. */
static __always_inline __u64 room_for(__u64 length)
{
	if (length <= SHORT_BYTES && head_bytes > SHORT_BYTES)
		return SHORT_BYTES;
	if (length <= MEDIUM_BYTES && head_bytes > MEDIUM_BYTES)
		return MEDIUM_BYTES;
	if (length <= ETHERNET_BYTES && head_bytes > ETHERNET_BYTES)
		return ETHERNET_BYTES;
	return head_bytes;
}

/* A VLAN tag, and what it stands behind. */
#define TAG_BYTES 4
#define ADDRESSES_BYTES 12

/* Copies the head of a frame that had `length` bytes on the wire, and leaves room in front for
 * `missing` ones of them, a tag's or none. Gives no record if the filter refuses the frame or all
 * is full. */
static __always_inline struct record *copy(void *frame, struct stamp stamp, __u64 length,
					   load_bytes *load, __u64 missing)
{
	/* 64 bits wide, so that the verifier keeps the bounds it has seen. */
	__u64 room = room_for(length);
	__s64 captured = length < room ? length : room;
	__s64 copied = captured - missing;
	struct record *record;

	if (!passes(frame))
		return NULL;
	count(SEEN);
	/* The verifier does not see that less is copied where a tag is missing. */
	record = bpf_ringbuf_reserve(&frames, sizeof(*record) + TAG_BYTES + room, 0);
	if (!record) {
		count(DROPPED);
		return NULL;
	}
	record->stamp = stamp.value;
	record->clock = stamp.clock;
	record->length = length;
	/* Asked like this, because the verifier of Linux 6.1 does not learn from "not 0" that there is at
	 * least 1; and the compiler must not see that "not 0" would do. */
	asm volatile("" : "+r"(copied));
	if (copied <= 0 || load(frame, 0, (void *)record->head + missing, copied) < 0)
		captured = 0;
	record->captured = captured;
	return record;
}

static __always_inline void submit(struct record *record)
{
	/* By default the kernel wakes the reader only after all earlier records were released,
	 * which the pipeline delays. A wake-up for each record costs more than everything else.
	 * The exchange is also a barrier: either the reader sees this record, or this program sees
	 * that the reader waits. */
	__u32 wake = __sync_lock_test_and_set(&waiting, 0);

	bpf_ringbuf_submit(record, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline int copy_and_pass(struct xdp_md *frame, struct stamp stamp)
{
	struct record *record = copy(frame, stamp, bpf_xdp_get_buff_len(frame),
				     (load_bytes *)bpf_xdp_load_bytes, 0);

	if (record)
		submit(record);
	return XDP_PASS;
}

/* ".frags": veth hands over frames above one page in fragments, and so do jumbo-frame drivers. */
SEC("xdp.frags")
int stamped_by_kernel(struct xdp_md *frame)
{
	return copy_and_pass(frame, by_kernel());
}

SEC("xdp.frags")
int stamped_by_card(struct xdp_md *frame)
{
	return copy_and_pass(frame, by_card(frame));
}

SEC("xdp.frags")
int stamped_by_counter_of_module(struct xdp_md *frame)
{
	return copy_and_pass(frame, by_counter_of_module());
}

SEC("xdp.frags")
int stamped_by_counter_of_kernel(struct xdp_md *frame)
{
	return copy_and_pass(frame, by_counter_of_kernel());
}

/* The kernel, or the network card, has taken the outer VLAN tag out (skb_vlan_untag of
 * net/core/skbuff.c): it is put back between the addresses and the type. */
static __always_inline void put_tag(struct record *record, struct __sk_buff *packet)
{
	__u32 tag = (__u32)bpf_ntohs(packet->vlan_proto) << 16 | packet->vlan_tci;

	__builtin_memmove(record->head, record->head + 1, ADDRESSES_BYTES);
	record->head[ADDRESSES_BYTES / 4] = bpf_htonl(tag);
}

static __always_inline int copy_and_continue(struct __sk_buff *packet, struct stamp stamp)
{
	__u64 tag = packet->vlan_present ? TAG_BYTES : 0;
	struct record *record = copy(packet, stamp, packet->len + tag,
				     (load_bytes *)bpf_skb_load_bytes, tag);

	if (record) {
		if (tag)
			put_tag(record, packet);
		submit(record);
	}
	return TC_ACT_UNSPEC; /* later programs decide about the packet */
}

SEC("tcx/ingress")
int tc_stamped_by_kernel(struct __sk_buff *packet)
{
	return copy_and_continue(packet, by_kernel());
}

SEC("tcx/ingress")
int tc_stamped_by_counter_of_module(struct __sk_buff *packet)
{
	return copy_and_continue(packet, by_counter_of_module());
}

SEC("tcx/ingress")
int tc_stamped_by_counter_of_kernel(struct __sk_buff *packet)
{
	return copy_and_continue(packet, by_counter_of_kernel());
}

/* For packets stamped by a program at the tracepoint (trace.h). */
SEC("tcx/ingress")
int tc_stamped_at_tracepoint(struct __sk_buff *packet)
{
	return copy_and_continue(packet, take_traced(packet));
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
