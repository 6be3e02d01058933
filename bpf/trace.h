/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A part of stamp.bpf.c, for trace-pass: a program at the tracepoint netif_receive_skb stamps each packet of the
 * interface and stores the stamp for a tc program on the same core, which the kernel runs next for that packet
 * (__netif_receive_skb_core of net/core/dev.c). The tc program filters, counts and copies, as for tc-pass.
 *
 * A kernel may skip tracing programs: where the same program is already running on the core, or while the softIRQ
 * has interrupted certain tasks. It never skips a tc program. That one finds no stamp of its packet then, reads
 * the kernel's clock, and marks the stamp as late.
 */
#ifndef WIRESTAMP_TRACE_H
#define WIRESTAMP_TRACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "clocks.h"
#include "counter_event.h"
#include "here.h"
#include "kernel.h"

/* What skb_vlan_untag (net/core/skbuff.c) needs of a tagged packet behind its type. It frees a shorter one. */
#define TAGGED_BYTES 6

/* The packet that is on its way from the tracepoint to the tc program of this core, and its stamp. */
struct stamped {
	__u64 skb; /* its address, 0 for none */
	struct stamp stamp;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stamped);
} traced SEC(".maps");

static __always_inline struct stamped *traced_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&traced, &zero);
}

/* A packet that is freed before it reaches the tc program must have no stamp: another packet at the same address
 * would take it. Only short packets are freed there, and those of an XDP program that the network stack runs. */
static __always_inline int trace(struct sk_buff *skb, struct stamp (*read)(void))
{
	struct stamped *mine;

	if (!is_here(skb->dev) || skb->len < TAGGED_BYTES)
		return 0;
	mine = traced_here();
	if (mine)
		*mine = (struct stamped){ .stamp = read(), .skb = (__u64)skb };
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(trace_stamped_by_kernel, struct sk_buff *skb)
{
	return trace(skb, by_kernel);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(trace_stamped_by_counter_event, struct sk_buff *skb)
{
	return trace(skb, by_counter_event);
}

/* Takes the stamp of a packet from the tracing program. */
static __always_inline struct stamp take_traced(struct __sk_buff *packet)
{
	__u64 skb = (__u64)bpf_cast_to_kern_ctx(packet);
	struct stamped *mine = traced_here();
	struct stamp late;

	if (mine && mine->skb == skb) {
		mine->skb = 0;
		return mine->stamp;
	}
	late = by_kernel();
	late.clock = LATE;
	return late;
}

#endif
