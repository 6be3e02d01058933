// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Overhead of a stamp in the softIRQ, packet by packet: a clock before and after it, as Orosz and Skopko measured it in
 * a changed kernel. A program at the tracepoint netif_receive_skb takes the stamps.
 *
 * The clock of the checkpoints is the other one: the kernel's around a stamp of the counter, and the counter around a
 * stamp of the kernel. So the checkpoints do not load the code and data of the first stamp into the caches.
 *
 * Other programs at the same place only take the stamp.
 *
 * The record layout is shared with crates/capture/src/softirq_cost/packets.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "clocks.h"
#include "counter_event.h"
#include "here.h"
#include "kernel.h"

/* Length of the measured packets behind the Ethernet header. Set before loading. */
const volatile __u32 length = 0;

/* Readings at the checkpoints. A stamp is taken after the first and after the second. */
struct checkpoints {
	__u64 before_first;
	__u64 between;
	__u64 after_second;
	__u64 end;
	__u64 interrupts; /* that this core served meanwhile */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23); /* room for 100,000 packets */
} measured SEC(".maps");

/* Interrupts that each core has served. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} interrupts SEC(".maps");

static __always_inline __u64 served(void)
{
	__u32 key = 0;
	__u64 *count = bpf_map_lookup_elem(&interrupts, &key);

	return count ? *count : 0;
}

/* Attached to the trace points at which the kernel enters interrupts. */
SEC("raw_tp")
int count_interrupt(void *context)
{
	__u32 key = 0;
	__u64 *count = bpf_map_lookup_elem(&interrupts, &key);

	if (count)
		*count += 1;
	return 0;
}

/* Where stamps go, so that they are taken. */
__u64 taken;

typedef __u64 clock(void);

/* Reads the counter between fences (msr_event_update of arch/x86/events/msr.c). The origin of the event does not
 * matter here: only differences on one core are used. */
static __always_inline __u64 counter(void)
{
	return bpf_perf_event_read(&counter_events, BPF_F_CURRENT_CPU);
}

static __always_inline __u64 ktime(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline int measure(struct sk_buff *skb, clock *take, clock *checkpoint)
{
	struct checkpoints points;

	if (!is_here(skb->dev) || skb->len != length)
		return 0;
	points.interrupts = served();
	/* Loads the code and data of a checkpoint into the caches. */
	checkpoint();
	points.before_first = checkpoint();
	taken = take();
	points.between = checkpoint();
	taken = take();
	points.after_second = checkpoint();
	points.end = checkpoint();
	points.interrupts = served() - points.interrupts;
	/* The reader knows how many packets were sent, and notices those that do not fit. */
	bpf_ringbuf_output(&measured, &points, sizeof(points), BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(measure_kernel, struct sk_buff *skb)
{
	return measure(skb, ktime, counter);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(measure_counter, struct sk_buff *skb)
{
	return measure(skb, counter, ktime);
}

/* Only the stamp, of every packet of the interface: what stamps add to the work of the softIRQ. */
static __always_inline int stamp_only(struct sk_buff *skb, clock *take)
{
	if (is_here(skb->dev))
		taken = take();
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stamp_kernel, struct sk_buff *skb)
{
	return stamp_only(skb, ktime);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stamp_counter, struct sk_buff *skb)
{
	return stamp_only(skb, counter);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
