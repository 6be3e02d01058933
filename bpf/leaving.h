/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A part of layers.bpf.c: programs that follow the packets that an interface sends, from their socket
 * until the driver has finished with them.
 *
 * A packet has all its headers when it reaches the queue of its interface. There its journey begins, if
 * it passes the filter. Until then the time at which it left its socket is stored.
 */
#ifndef WIRESTAMP_LEAVING_H
#define WIRESTAMP_LEAVING_H

#include <linux/pkt_cls.h>
#include "journey.h"
#include "kernel.h"

/* include/linux/netdevice.h: return values of a driver. A rejected packet returns to the queue; with any
 * other value the driver has freed the packet. */
#define NETDEV_TX_OK 0x00
#define NETDEV_TX_BUSY 0x10

/* The points' numbers, as those of enum point. */
#define SENDER ((enum point)0)
#define QUEUE ((enum point)1)
#define HANDED ((enum point)2)
#define SENT ((enum point)3)

/* A packet that has left its socket. */
struct let_go {
	__u64 socket; /* its address */
	__u64 time;
	__u32 own; /* as of struct journey */
	__u32 unused;
};

/* By the address of the sk_buff. Those that never come to the interface are forgotten in time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct let_go);
} let_go SEC(".maps");

/* The kernel asks the programs of the socket's cgroup when the packet has been addressed and routed.
 * Every packet passes: we only look. */
SEC("cgroup_skb/egress")
int leaves_socket(struct __sk_buff *context)
{
	struct let_go now = { .time = bpf_ktime_get_ns() }, *kept;
	struct sk_buff *skb = bpf_cast_to_kern_ctx(context);
	struct sock *sk = skb->sk;
	__u64 key = (__u64)skb;

	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != namespace)
		return 1;
	now.socket = (__u64)sk;
	bpf_map_update_elem(&let_go, &key, &now, BPF_ANY);
	kept = bpf_map_lookup_elem(&let_go, &key);
	if (kept)
		kept->own = bpf_ktime_get_ns() - now.time;
	return 1;
}

/* Another packet at the same address has another socket, or none. */
static __always_inline void recall_socket(struct sk_buff *skb)
{
	__u64 key = (__u64)skb, socket = (__u64)skb->sk;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);
	struct let_go *kept = bpf_map_lookup_elem(&let_go, &key);

	if (!kept)
		return;
	if (journey && kept->socket == socket) {
		journey->times[SENDER] = kept->time;
		journey->own[SENDER] = kept->own;
	}
	bpf_map_delete_elem(&let_go, &key);
}

/* A packet came to the interface's queue, or past it to the driver. */
static __always_inline void depart(struct sk_buff *skb, struct net_device *device, enum point point)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *known;
	struct frame frame;

	if (!is_here(device))
		return;
	known = bpf_map_lookup_elem(&journeys, &key);
	if (known && is_before(known, point)) {
		note(known, point, now);
		return;
	}
	if (known)
		hand_over(key, known, END_UNKNOWN, 0);
	frame = frame_of(skb);
	if (!passes(&frame))
		return;
	count(SEEN);
	begin(skb, &frame, point, now);
	recall_socket(skb);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(to_queue, struct sk_buff *skb)
{
	depart(skb, skb->dev, QUEUE);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(to_driver, struct sk_buff *skb, struct net_device *device)
{
	depart(skb, device, HANDED);
	return 0;
}

/*
 * For those who want nothing else, a program that is the last before the interface's queue, and where it
 * has none the last before its driver. It keeps no journey, and reads the clock last of all.
 */
SEC("tcx/egress")
int departs(struct __sk_buff *context)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(context);
	struct frame frame = frame_of(skb);
	__u64 wake = BPF_RB_NO_WAKEUP;
	struct journey *journey;

	if (!passes(&frame))
		return TC_ACT_UNSPEC;
	count(SEEN);
	journey = bpf_ringbuf_reserve(&ended, sizeof(*journey), 0);
	if (!journey) {
		count(DROPPED);
		return TC_ACT_UNSPEC;
	}
	__builtin_memset(journey, 0, offsetof(struct journey, head));
	describe(journey, skb, &frame);
	if (bpf_ringbuf_query(&ended, BPF_RB_AVAIL_DATA) >= wake_at)
		wake = BPF_RB_FORCE_WAKEUP;
	journey->times[QUEUE] = bpf_ktime_get_ns();
	bpf_ringbuf_submit(journey, wake);
	return TC_ACT_UNSPEC;
}

static __always_inline void sent(__u64 skb, struct journey *journey, __u64 now)
{
	journey->times[SENT] = now;
	hand_over(skb, journey, END_SENT, 0);
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(from_driver, struct sk_buff *skb, int result, struct net_device *device)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (!journey || !journey->times[HANDED] || !is_here(device))
		return 0;
	if (result == NETDEV_TX_BUSY)
		journey->times[HANDED] = 0;
	else if (result == NETDEV_TX_OK)
		sent(key, journey, now);
	return 0;
}

/* The driver may be done with it before it says so. Before the driver had it, others went on for it. */
SEC("tp_btf/consume_skb")
int BPF_PROG(freed, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (journey && journey->times[HANDED])
		sent(key, journey, now);
	else if (journey)
		hand_over(key, journey, END_SPLIT, 0);
	return 0;
}

/* At the other end of a virtual cable it belongs to another interface, and was sent by this one. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(not_sent, struct sk_buff *skb, void *location, __u32 reason)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (journey && journey->times[HANDED] && !is_here(skb->dev))
		sent(key, journey, now);
	else if (journey)
		hand_over(key, journey, END_DROPPED, reason);
	return 0;
}

#endif
