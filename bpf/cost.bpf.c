// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What a stamp costs in an XDP program: programs that take one and do nothing else, to be run by
 * BPF_PROG_RUN (Documentation/bpf/bpf_prog_run.rst in the kernel's source).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"

/* Where stamps go, so that they are taken. */
__u64 stamp = 0;

SEC("xdp")
int unstamped(struct xdp_md *frame)
{
	return XDP_PASS;
}

SEC("xdp")
int stamped_by_kernel(struct xdp_md *frame)
{
	stamp = by_kernel().value;
	return XDP_PASS;
}

SEC("xdp")
int stamped_by_counter_of_module(struct xdp_md *frame)
{
	stamp = by_counter_of_module().value;
	return XDP_PASS;
}

SEC("xdp")
int stamped_by_counter_of_kernel(struct xdp_md *frame)
{
	stamp = by_counter_of_kernel().value;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
