// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What the module has to serve: an XDP and a tc program that call its function twice and keep what they
 * read.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern __u64 bpf_wirestamp_counter(void) __ksym;

struct reads {
	__u64 first;
	__u64 second;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reads);
} reads SEC(".maps");

/* Only once, so that a later look-up returns the two reads of one run. */
static __always_inline void read_twice(void)
{
	__u32 key = 0;
	struct reads *kept = bpf_map_lookup_elem(&reads, &key);

	if (!kept || kept->second)
		return;
	kept->first = bpf_wirestamp_counter();
	kept->second = bpf_wirestamp_counter();
}

SEC("xdp")
int in_xdp(struct xdp_md *frame)
{
	read_twice();
	return XDP_PASS;
}

SEC("tc")
int in_tc(struct __sk_buff *packet)
{
	read_twice();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
