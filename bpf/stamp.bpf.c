// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * xdp-pass: stamp every frame in the driver's softIRQ, copy its head to a ring buffer, and let the
 * frame go on to whoever it was for.
 *
 * The record layout is shared with crates/capture/src/xdp_pass/mod.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"
#include "counts.h"
#include "filter.h"

/* How many bytes of each frame are copied. Set before loading; the verifier sees a constant. */
const volatile __u32 head_bytes = 256;

/* Set by the reader before it sleeps: the next record is to wake it. */
__u32 waiting;

struct record {
	__u64 stamp;
	__u32 length;   /* of the frame on the wire */
	__u16 captured; /* bytes that follow, at most head_bytes */
	__u16 clock;    /* of the stamp */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* resized before loading */
} frames SEC(".maps");

static __always_inline int copy_and_pass(struct xdp_md *frame, struct stamp stamp)
{
	/* 64 bits wide, so that the verifier keeps the bounds it has seen. */
	__u64 room = head_bytes;
	__u64 length = bpf_xdp_get_buff_len(frame);
	__s64 captured = length < room ? length : room;
	struct record *record;
	__u32 wake;

	if (!passes(frame))
		return XDP_PASS;
	count(SEEN);
	record = bpf_ringbuf_reserve(&frames, sizeof(*record) + room, 0);
	if (!record) {
		count(DROPPED);
		return XDP_PASS;
	}
	record->stamp = stamp.value;
	record->clock = stamp.clock;
	record->length = length;
	/* Asked like this, because the verifier of Linux 6.1 does not learn from "not 0" that there is at
	 * least 1; and the compiler must not see that "not 0" would do. */
	asm volatile("" : "+r"(captured));
	if (captured <= 0 || bpf_xdp_load_bytes(frame, 0, record + 1, captured) < 0)
		captured = 0;
	record->captured = captured;
	/* By itself the kernel wakes the reader only when every record before this one has been
	 * given back, which takes the pipeline a while; and to wake it each time costs more than
	 * all the rest. The exchange is a barrier too: the reader sees this record or is seen
	 * waiting. */
	wake = __sync_lock_test_and_set(&waiting, 0);
	bpf_ringbuf_submit(record, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
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

char LICENSE[] SEC("license") = "Dual BSD/GPL";
