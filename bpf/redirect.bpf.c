// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * xdp: stamp every frame in the driver's softIRQ, and give it to the AF_XDP socket of its queue.
 * The network stack does not see it, unless the filter refuses it.
 *
 * The layout of the stamp is shared with crates/capture/src/af_xdp/stamp.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"
#include "counts.h"
#include "filter.h"

/* Says that a stamp is there: a driver that does not keep metadata leaves none. */
#define MAGIC 0x57535450 /* "WSTP" */

/* What stands immediately in front of the frame. */
struct mark {
	__u64 value;
	__u32 clock;
	__u32 magic;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1); /* one for each queue; resized before loading */
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Without room for it, or on a driver without metadata, the frame goes without a stamp: the reader
 * counts that. */
static __always_inline void put_mark(struct xdp_md *frame, struct stamp stamp)
{
	struct mark *mark;

	if (bpf_xdp_adjust_meta(frame, -(int)sizeof(*mark)))
		return;
	mark = (void *)(long)frame->data_meta;
	if ((void *)(mark + 1) > (void *)(long)frame->data)
		return;
	mark->value = stamp.value;
	mark->clock = stamp.clock;
	mark->magic = MAGIC;
}

static __always_inline int redirect(struct xdp_md *frame)
{
	int action;

	if (!passes(frame))
		return XDP_PASS;
	count(SEEN);
	action = bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
	if (action != XDP_REDIRECT)
		count(DROPPED); /* a queue that was added later: the frame goes to the stack */
	return action;
}

static __always_inline int redirect_with(struct xdp_md *frame, struct stamp stamp)
{
	int action = redirect(frame);

	if (action == XDP_REDIRECT)
		put_mark(frame, stamp);
	return action;
}

/* ".frags": veth hands over frames above one page in fragments, and so do jumbo-frame drivers. */
SEC("xdp.frags")
int unstamped(struct xdp_md *frame)
{
	return redirect(frame);
}

SEC("xdp.frags")
int stamped_by_kernel(struct xdp_md *frame)
{
	return redirect_with(frame, by_kernel());
}

SEC("xdp.frags")
int stamped_by_card(struct xdp_md *frame)
{
	return redirect_with(frame, by_card(frame));
}

SEC("xdp.frags")
int stamped_by_counter_of_module(struct xdp_md *frame)
{
	return redirect_with(frame, by_counter_of_module());
}

SEC("xdp.frags")
int stamped_by_counter_of_kernel(struct xdp_md *frame)
{
	return redirect_with(frame, by_counter_of_kernel());
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
