// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * layers: follow the packets that an interface receives through their host, from the driver to the
 * application, or those that it sends (leaving.h), and pass a journey for each to the reader when it ends.
 *
 * Within one host a packet needs no identity computed from its bytes: the address of its sk_buff
 * identifies it, from the driver until it is freed. Journeys are stored by that address. The first
 * point applies the filter; all others only look up the address.
 *
 * The programs' names are shared with crates/capture/src/layers/hooks.rs.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "counts.h"
#include "filter.h"
#include "here.h"
#include "journey.h"
#include "kernel.h"
#include "udp_queue.h"

/* include/linux/netdevice.h: enum gro_result, what was joined to an earlier packet. */
#define GRO_MERGED 0
#define GRO_MERGED_FREE 1

/* include/linux/socket.h */
#define AF_INET 2
#define AF_INET6 10
#define MSG_PEEK 2

/* What the filter looks at: the bytes of a frame that are in one piece, and the VLAN tag that is not
 * in it. Its layout is shared with crates/capture/src/filter/ebpf/context.rs. */
struct frame {
	__u64 start;
	__u32 captured;
	__u32 length;
	__u32 tagged;
	__u32 tag;
	__u32 tag_type; /* in network byte order */
	__u32 unused;
};

/* The packet that this core is offering to GRO. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} offered SEC(".maps");

static __always_inline __u64 stamp_of_card(struct sk_buff *skb)
{
	struct skb_shared_info *shared = (void *)(skb->head + skb->end);

	return BPF_CORE_READ(shared, hwtstamps.hwtstamp);
}

/* True if a packet with a known address is still the same packet: it reaches the next point, or it comes
 * from a bridge, a tunnel or a similar device, which receives it once more. */
static __always_inline bool is_same_packet(struct journey *journey, struct net_device *device,
				    enum point point)
{
	if (device->ifindex == interface)
		return is_before(journey, point);
	return journey->times[STACK] && is_before(journey, SOCKET);
}

/* The bytes of a packet, whose link header may be before its data. */
static __always_inline struct frame frame_of(struct sk_buff *skb)
{
	__u64 start = (__u64)skb->head + skb->mac_header;
	__u32 link = (__u64)skb->data - start;

	return (struct frame){
		.start = start,
		.captured = link + skb->len - skb->data_len,
		.length = link + skb->len,
		.tagged = skb->vlan_proto != 0,
		.tag = skb->vlan_tci,
		.tag_type = skb->vlan_proto,
	};
}

/* What is known of a packet at its first point. */
static __always_inline void describe(struct journey *journey, struct sk_buff *skb,
				     struct frame *frame)
{
	__u32 captured = frame->captured < HEAD_BYTES ? frame->captured : HEAD_BYTES;

	journey->card = stamp_of_card(skb);
	journey->length = frame->length;
	if (!bpf_probe_read_kernel(journey->head, captured, (void *)frame->start))
		journey->captured = captured;
}

static __always_inline void begin(struct sk_buff *skb, struct frame *frame, enum point point,
				  __u64 now)
{
	struct journey journey = {}, *kept;
	__u64 key = (__u64)skb;

	describe(&journey, skb, frame);
	bpf_map_update_elem(&journeys, &key, &journey, BPF_NOEXIST);
	kept = bpf_map_lookup_elem(&journeys, &key);
	if (kept)
		note(kept, point, now);
	else
		count(UNTRACKED);
}

/* A packet came to one of the first points, where journeys begin. */
static __always_inline void arrive(struct sk_buff *skb, enum point point)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *known = bpf_map_lookup_elem(&journeys, &key);
	struct net_device *device = skb->dev;
	bool inside = is_inside(device), here = inside && device->ifindex == interface;
	struct frame frame;

	if (known && inside && is_same_packet(known, device, point)) {
		if (here)
			note(known, point, now);
		return;
	}
	if (known)
		hand_over(key, known, END_UNKNOWN, 0);
	if (!here)
		return;
	frame = frame_of(skb);
	if (!passes(&frame))
		return;
	count(SEEN);
	begin(skb, &frame, point, now);
}

/*
 * The driver hands the packet over: to GRO, to the backlog of a core, or to the stack.
 */

static __always_inline void offer(struct sk_buff *skb)
{
	__u32 zero = 0;
	__u64 *mine = bpf_map_lookup_elem(&offered, &zero);

	if (mine)
		*mine = (__u64)skb;
}

static __always_inline bool is_offered(struct sk_buff *skb)
{
	__u32 zero = 0;
	__u64 *mine = bpf_map_lookup_elem(&offered, &zero);

	return mine && *mine == (__u64)skb;
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(gro_begins, struct sk_buff *skb)
{
	offer(skb);
	arrive(skb, DRIVER);
	return 0;
}

/* A packet that was joined to another may be kept or freed, and no hook below need see it. */
SEC("tp_btf/napi_gro_receive_exit")
int BPF_PROG(gro_ends, int result)
{
	__u32 zero = 0;
	__u64 *mine = bpf_map_lookup_elem(&offered, &zero);
	struct sk_buff *skb;

	if (!mine)
		return 0;
	skb = (void *)*mine;
	*mine = 0;
	if (result == GRO_MERGED || result == GRO_MERGED_FREE)
		finish(skb, END_JOINED, 0);
	return 0;
}

SEC("tp_btf/netif_rx_entry")
int BPF_PROG(to_backlog, struct sk_buff *skb)
{
	arrive(skb, DRIVER);
	return 0;
}

SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(to_stack, struct sk_buff *skb)
{
	arrive(skb, DRIVER);
	return 0;
}

SEC("tp_btf/netif_receive_skb_list_entry")
int BPF_PROG(to_stack_in_list, struct sk_buff *skb)
{
	arrive(skb, DRIVER);
	return 0;
}

/* The stack begins with it. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stack, struct sk_buff *skb)
{
	arrive(skb, STACK);
	return 0;
}

/*
 * A socket is to have it. The kernel asks the programs of the socket's cgroup, whatever the protocol:
 * after it has found the socket, before it puts the packet into the socket's queue.
 */

/* Of a segment in the hands of TCP. */
static __always_inline bool has_payload(struct sk_buff *skb)
{
	__u64 segment = (__u64)skb->head + skb->transport_header;
	__u64 end = (__u64)skb->data + skb->len;
	__u8 words = 0; /* of its header, in the upper half (RFC 9293 section 3.1) */

	bpf_probe_read_kernel(&words, sizeof(words), (void *)(segment + 12));
	return segment + (words >> 4) * 4 < end;
}

/* Every packet passes: we only look. */
SEC("cgroup_skb/ingress")
int socket(struct __sk_buff *context)
{
	__u64 now = bpf_ktime_get_ns();
	struct sk_buff *skb = bpf_cast_to_kern_ctx(context);
	__u64 key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);
	struct sock *sk = skb->sk;
	__u16 protocol;

	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != namespace)
		return 1;
	protocol = BPF_CORE_READ(sk, sk_protocol);
	if (protocol == IPPROTO_UDP)
		udp_coming(sk, key);
	if (!journey || !is_before(journey, SOCKET))
		return 1;
	journey->socket = (__u64)sk;
	journey->udp = protocol == IPPROTO_UDP;
	note(journey, SOCKET, now);
	/* TCP itself reads it, and frees it without a trace point. */
	if (protocol == IPPROTO_TCP && !has_payload(skb))
		hand_over(key, journey, END_CONSUMED, 0);
	return 1;
}

/*
 * The application has it.
 */

static __always_inline void read(__u64 skb, struct journey *journey, __u64 now)
{
	journey->times[APPLICATION] = now;
	hand_over(skb, journey, END_READ, 0);
}

SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(copied, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (journey && !journey->udp)
		read(key, journey, now);
	return 0;
}

static __always_inline bool is_udp_here(struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	return sk->sk_protocol == IPPROTO_UDP && (family == AF_INET || family == AF_INET6) &&
	       sk->__sk_common.skc_net.net->ns.inum == namespace;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(udp_queued, struct sock *sk)
{
	if (is_udp_here(sk))
		udp_has_come(sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(udp_read, struct sock *sk, int result, int flags)
{
	__u64 now = bpf_ktime_get_ns(), skb;
	struct journey *journey;

	if (result < 0 || flags & MSG_PEEK || !is_udp_here(sk))
		return 0;
	skb = udp_taken(sk);
	journey = bpf_map_lookup_elem(&journeys, &skb);
	if (journey && journey->socket == (__u64)sk)
		read(skb, journey, now);
	return 0;
}

/*
 * It ends otherwise.
 */

SEC("tp_btf/kfree_skb")
int BPF_PROG(discarded, struct sk_buff *skb, void *location, __u32 reason)
{
	finish(skb, END_DROPPED, reason);
	return 0;
}

SEC("tp_btf/consume_skb")
int BPF_PROG(consumed, struct sk_buff *skb)
{
	__u64 key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	/* Up to Linux 6.17 a datagram is freed in this way when it is read; the trace point of the read follows. */
	if (journey && !(journey->udp && journey->socket))
		hand_over(key, journey, is_offered(skb) ? END_JOINED : END_CONSUMED, 0);
	return 0;
}

/* No packet that a socket has is sent on: that is another at the same address. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(sent_on, struct sk_buff *skb)
{
	__u64 key = (__u64)skb;
	struct journey *journey = bpf_map_lookup_elem(&journeys, &key);

	if (journey)
		hand_over(key, journey, journey->socket ? END_UNKNOWN : END_FORWARDED, 0);
	return 0;
}

#include "leaving.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
