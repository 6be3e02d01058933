/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Journeys of packets through their host: current ones, and completed ones, which are passed to the
 * reader.
 *
 * The layout of struct journey and the numbers of points and ends are shared with
 * crates/capture/src/layers/journey.rs.
 */
#ifndef WIRESTAMP_JOURNEY_H
#define WIRESTAMP_JOURNEY_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "counts.h"
#include "kernel.h"

/* Room for an Ethernet header with two VLAN tags, IP options, and the identifying bytes of a packet. */
#define HEAD_BYTES 192

/* Bytes in the ring at which the reader is woken: a wake-up per packet would disturb the packets. */
const volatile __u64 wake_at = 0;

/* Points of received packets; those of sent packets are in leaving.h. */
enum point { DRIVER, STACK, SOCKET, APPLICATION, POINTS };

enum end {
	END_OPEN,      /* not yet */
	END_READ,      /* an application has it */
	END_DROPPED,   /* the kernel gave a reason */
	END_CONSUMED,  /* the kernel was done with it */
	END_JOINED,    /* its bytes moved to another packet */
	END_FORWARDED, /* to another interface */
	END_UNKNOWN,   /* its address was reused */
	END_SENT,      /* the driver was done with it */
	END_SPLIT,     /* its bytes moved to other packets */
};

struct journey {
	__u64 times[POINTS]; /* CLOCK_MONOTONIC, nanoseconds; 0 if it was not seen */
	__u32 own[POINTS];   /* nanoseconds that our program took there */
	__u64 card;          /* the network card's stamp, 0 for none */
	__u32 length;        /* of the frame */
	__u32 reason;        /* enum skb_drop_reason of the kernel */
	__u16 captured;      /* bytes of the head */
	__u8 end;
	__u8 udp; /* whether its socket is one of UDP */
	__u32 unused;
	__u64 socket; /* its address, 0 before there is one */
	__u8 head[HEAD_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64); /* the address of the sk_buff */
	__type(value, struct journey);
} journeys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ended SEC(".maps");

/* A packet is at a point, where our program began at `now` and is about to end. */
static __always_inline void note(struct journey *journey, enum point point, __u64 now)
{
	journey->times[point] = now;
	journey->own[point] = bpf_ktime_get_ns() - now;
}

static __always_inline void hand_over(__u64 skb, struct journey *journey, enum end end, __u32 reason)
{
	__u64 waiting = bpf_ringbuf_query(&ended, BPF_RB_AVAIL_DATA);

	journey->end = end;
	journey->reason = reason;
	if (bpf_ringbuf_output(&ended, journey, sizeof(*journey),
			       waiting >= wake_at ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		count(DROPPED);
	bpf_map_delete_elem(&journeys, &skb);
}

static __always_inline void finish(struct sk_buff *skb, enum end end, __u32 reason)
{
	__u64 key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (journey)
		hand_over(key, journey, end, reason);
}

/* Whether a journey can come to a point next: it has been there not yet, nor at a later one. */
static __always_inline bool is_before(struct journey *journey, enum point point)
{
#pragma unroll
	for (int later = 0; later < POINTS; later++)
		if (later >= point && journey->times[later])
			return false;
	return true;
}

#endif
