// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What a stamp costs in an XDP program or in a tracing program: programs that take one and do nothing else, to be
 * run by BPF_PROG_RUN (Documentation/bpf/bpf_prog_run.rst in the kernel's source).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"
#include "counter_event.h"

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

/*
 * A run of a tracing program cannot be repeated by BPF_PROG_RUN. So each repeats the stamp, its argument says how
 * often, and returns the nanoseconds that it took.
 */

typedef long take(__u32 index, void *context);

static __always_inline int repeat(struct bpf_raw_tracepoint_args *context, take *stamp)
{
	__u64 begin = bpf_ktime_get_ns();

	bpf_loop(context->args[0], stamp, NULL, 0);
	return bpf_ktime_get_ns() - begin;
}

static long take_none(__u32 index, void *context)
{
	return 0;
}

static long take_kernel(__u32 index, void *context)
{
	stamp = by_kernel().value;
	return 0;
}

static long take_counter_event(__u32 index, void *context)
{
	stamp = by_counter_event().value;
	return 0;
}

/* The same event, read with its times of being enabled and running. */
static long take_counter_event_value(__u32 index, void *context)
{
	struct bpf_perf_event_value value = {};

	bpf_perf_event_read_value(&counter_events, BPF_F_CURRENT_CPU, &value, sizeof(value));
	stamp = value.counter;
	return 0;
}

SEC("raw_tp")
int repeat_none(struct bpf_raw_tracepoint_args *context)
{
	return repeat(context, take_none);
}

SEC("raw_tp")
int repeat_kernel(struct bpf_raw_tracepoint_args *context)
{
	return repeat(context, take_kernel);
}

SEC("raw_tp")
int repeat_counter_event(struct bpf_raw_tracepoint_args *context)
{
	return repeat(context, take_counter_event);
}

SEC("raw_tp")
int repeat_counter_event_value(struct bpf_raw_tracepoint_args *context)
{
	return repeat(context, take_counter_event_value);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
