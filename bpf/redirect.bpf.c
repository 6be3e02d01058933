// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * xdp: stamp every frame in the driver's softIRQ, and give it to the AF_XDP socket of its queue.
 * The network stack does not see it, unless the filter refuses it.
 *
 * The layout of the stamp is shared with crates/capture/src/af_xdp/stamp.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "counts.h"
#include "filter.h"

/* Says that a stamp is there: a driver that does not keep metadata leaves none. */
#define MAGIC 0x57535450 /* "WSTP" */

/* Whether frames are stamped here. Set before loading. */
const volatile __u32 stamps = 1;

/* What stands immediately in front of the frame. */
struct stamp {
	__u64 time; /* CLOCK_MONOTONIC, nanoseconds */
	__u32 magic;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1); /* one for each queue; resized before loading */
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Without room for it, or on a driver without metadata, the frame goes without a stamp: the reader
 * counts that. */
static __always_inline void put_stamp(struct xdp_md *frame, __u64 time)
{
	struct stamp *stamp;

	if (bpf_xdp_adjust_meta(frame, -(int)sizeof(*stamp)))
		return;
	stamp = (void *)(long)frame->data_meta;
	if ((void *)(stamp + 1) > (void *)(long)frame->data)
		return;
	stamp->time = time;
	stamp->magic = MAGIC;
	stamp->reserved = 0;
}

/* ".frags": veth hands over frames above one page in fragments, and so do jumbo-frame drivers. */
SEC("xdp.frags")
int stamp_and_redirect(struct xdp_md *frame)
{
	__u64 now = bpf_ktime_get_ns(); /* first, before anything can delay it */
	int action;

	if (!passes(frame))
		return XDP_PASS;
	count(SEEN);
	action = bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
	if (action != XDP_REDIRECT)
		count(DROPPED); /* a queue that was added later: the frame goes to the stack */
	else if (stamps)
		put_stamp(frame, now);
	return action;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
