// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * live frames: number every copy of a frame, stamp it, and let it go.
 *
 * BPF_PROG_RUN makes the copies (Documentation/bpf/bpf_prog_run.rst in the kernel's source). It uses
 * their memory again as the last run of this program left it, so every field is written anew and
 * none is derived from what is there.
 *
 * Where the fields are is shared with crates/traffic/src/payload.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Set before loading; the verifier sees constants. */
const volatile __u32 verdict = XDP_TX; /* or XDP_PASS, to receive it here; or XDP_REDIRECT, on a core */
const volatile __u32 core = 0;         /* which one that is */
const volatile __u32 udp_at = 34;      /* bytes before the UDP header */
const volatile __u32 brief = 0;        /* whether the payload has the brief form */
const volatile __u32 flows = 1;
const volatile __u16 first_port = 0;   /* source port of the first flow */
const volatile __u32 rest = 0;         /* ones' complement sum of all that is checksummed and constant */

/* Only one thread runs this program, so that it needs neither atomics nor one for each core. Shared with
 * crates/traffic/src/live/program.rs. */
struct account {
	__u64 next_sequence;
	__u64 refused; /* frames for which the core had no room */
	__u64 id;      /* of the map that frames wait in, set before any is sent */
} account;

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1); /* up to the core; resized before loading */
	__type(key, __u32);
	__type(value, __u32); /* how many frames may wait for it */
} cores SEC(".maps");

#define UDP_BYTES 8
#define UDP_CHECKSUM_AT 6
/* In a payload of version 1. */
#define SEQUENCE_AT 8
#define ACTUAL_AT 24
#define FULL_BYTES 32
/* In a payload of version 2: 40 bits of the sequence number, then 56 of the time. */
#define NUMBERS_AT 6
#define BRIEF_BYTES 18

/* The 16-bit words of a number, added up. */
static __always_inline __u64 words(__u64 number)
{
	return (number >> 48) + (number >> 32 & 0xffff) + (number >> 16 & 0xffff) + (number & 0xffff);
}

/* The internet checksum of a sum of 16-bit words (RFC 1071); 0 is sent as its other form, because
 * it stands for "none" in UDP (RFC 768). */
static __always_inline __u16 checksum(__u64 sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum ^= 0xffff;
	return sum ? sum : 0xffff;
}

SEC("xdp")
int generate(struct xdp_md *frame)
{
	void *end = (void *)(long)frame->data_end;
	void *udp = (void *)(long)frame->data + udp_at;
	void *payload = udp + UDP_BYTES;
	__u64 sequence = account.next_sequence;
	__u16 port = first_port + sequence % flows;
	__u64 sum = rest + port;
	__u64 now;

	if (payload + (brief ? BRIEF_BYTES : FULL_BYTES) > end)
		return XDP_ABORTED;
	now = bpf_ktime_get_ns();
	if (brief) {
		__u64 upper = sequence << 24 | (now >> 32 & 0xffffff);
		__u32 lower = now;

		*(__be64 *)(payload + NUMBERS_AT) = bpf_cpu_to_be64(upper);
		*(__be32 *)(payload + NUMBERS_AT + sizeof(upper)) = bpf_htonl(lower);
		sum += words(upper) + words(lower);
	} else {
		*(__be64 *)(payload + SEQUENCE_AT) = bpf_cpu_to_be64(sequence);
		*(__be64 *)(payload + ACTUAL_AT) = bpf_cpu_to_be64(now);
		sum += words(sequence) + words(now);
	}
	*(__be16 *)udp = bpf_htons(port);
	*(__be16 *)(udp + UDP_CHECKSUM_AT) = bpf_htons(checksum(sum));
	account.next_sequence = sequence + 1;
	return verdict == XDP_REDIRECT ? bpf_redirect_map(&cores, core, XDP_ABORTED) : verdict;
}

/* The kernel drops frames that a core has no room for. This trace point is the only report of it
 * (include/trace/events/xdp.h): the map, accepted frames, dropped frames, the core. */
SEC("raw_tp/xdp_cpumap_enqueue")
int refuse(struct bpf_raw_tracepoint_args *event)
{
	if ((__u32)event->args[0] == account.id)
		account.refused += (__u32)event->args[2];
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
