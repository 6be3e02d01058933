// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What the module has to serve: an XDP and a tc program that call its function and keep the value.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern __u64 bpf_wirestamp_counter(void) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} read SEC(".maps");

/* Two reads in a row: the last value, and the one before it. */
static __always_inline void read_twice(void)
{
	__u64 values[2] = { bpf_wirestamp_counter(), bpf_wirestamp_counter() };

	for (__u32 key = 0; key < 2; key++)
		bpf_map_update_elem(&read, &key, &values[key], BPF_ANY);
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
