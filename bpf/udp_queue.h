/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet that a read from a UDP socket takes. The kernel copies the usual datagram, which is in one
 * piece, without a trace point, and reports only the end of a read. So the first packet of the queue is
 * stored whenever a packet enters or leaves the queue; the next read takes that one.
 *
 * A reader on another core may finish with a packet before the kernel reports that it is in the queue.
 * Therefore the packet that is about to enter is stored too.
 */
#ifndef WIRESTAMP_UDP_QUEUE_H
#define WIRESTAMP_UDP_QUEUE_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kernel.h"

/* Packets by the addresses of their sk_buff, 0 for none. */
struct udp_queue {
	__u64 first;
	__u64 coming;
};

/* By the address of the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct udp_queue);
} udp_queues SEC(".maps");

/* The first packet in the queue (net/ipv4/udp.c: __skb_recv_udp). */
static __always_inline __u64 first_in_queue(struct sock *sk)
{
	struct udp_sock *udp = (void *)sk;
	__u64 taken_over = (__u64)BPF_CORE_READ(udp, reader_queue.next);
	__u64 waiting = (__u64)BPF_CORE_READ(sk, sk_receive_queue.next);

	if (taken_over != (__u64)&udp->reader_queue)
		return taken_over;
	return waiting != (__u64)&sk->sk_receive_queue ? waiting : 0;
}

/* A packet is about to come to the queue. */
static __always_inline void udp_coming(struct sock *sk, __u64 skb)
{
	__u64 key = (__u64)sk, first;
	struct udp_queue *queue = bpf_map_lookup_elem(&udp_queues, &key);
	struct udp_queue new = { .coming = skb };

	if (queue)
		/* A barrier: we see the reader's first packet, or the reader sees ours. */
		__sync_lock_test_and_set(&queue->coming, skb);
	if (queue && queue->first)
		return;
	first = first_in_queue(sk);
	new.first = first ? first : skb;
	if (queue)
		queue->first = new.first;
	else
		bpf_map_update_elem(&udp_queues, &key, &new, BPF_ANY);
}

/* One has come. The first one that we know of may be out of the queue by now, but the read that took it
 * has not ended. */
static __always_inline void udp_has_come(struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct udp_queue *queue = bpf_map_lookup_elem(&udp_queues, &key);

	if (!queue)
		return;
	queue->coming = 0;
	if (!queue->first)
		queue->first = first_in_queue(sk);
}

/* A read has ended. Gives the packet that it took, 0 if that is not known. */
static __always_inline __u64 udp_taken(struct sock *sk)
{
	__u64 key = (__u64)sk, first = first_in_queue(sk), coming, taken;
	struct udp_queue *queue = bpf_map_lookup_elem(&udp_queues, &key);

	if (!queue)
		return 0;
	taken = __sync_lock_test_and_set(&queue->first, first); /* and a barrier */
	coming = queue->coming;
	if (!first)
		queue->first = coming && coming != taken ? coming : first_in_queue(sk);
	/* It is first still where two threads read at once. */
	return taken != first ? taken : 0;
}

#endif
