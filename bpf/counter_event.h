/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The CPU's counter, read by a tracing program without a kernel module: a perf event on each core, of the PMU
 * `msr` and its event `tsc` (arch/x86/events/msr.c in the kernel's source).
 *
 * Such an event counts from 0 at its start. Its last reading of the counter (`prev_count`) minus its count at
 * that reading is the counter's value at the start: its origin. Count plus origin is the counter's value, exactly.
 *
 * The names of the maps and of the program are shared with
 * crates/capture/src/bpf_program/counter_events.rs.
 */
#ifndef WIRESTAMP_COUNTER_EVENT_H
#define WIRESTAMP_COUNTER_EVENT_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "clocks.h"
#include "kernel.h"

/* The events, by core; sized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	/* They stay until the map is freed, although this process closes its descriptors. */
	__uint(map_flags, BPF_F_PRESERVE_ELEMS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} counter_events SEC(".maps");

/* The origin of each event. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counter_origins SEC(".maps");

/* Fields of the kernel's structs on the path from a file descriptor to its perf event. */
typedef struct {
	__u64 value;
} local64_t;

struct hw_perf_event {
	local64_t prev_count;
} KERNEL;

struct perf_event {
	struct hw_perf_event hw;
	local64_t count;
} KERNEL;

struct file {
	void *private_data;
} KERNEL;

struct fdtable {
	struct file **fd;
} KERNEL;

struct files_struct {
	struct fdtable *fdt;
} KERNEL;

struct task_struct {
	struct files_struct *files;
} KERNEL;

/* Stores the origin of the event behind a descriptor of the process that runs the program (BPF_PROG_RUN). Its
 * arguments are the descriptor and the event's core. Nothing else may read the event at the same time. */
SEC("raw_tp")
int counter_origin(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file **files = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;
	struct perf_event *event;
	__u32 core = context->args[1];
	__u64 read = 0, count = 0, origin;

	bpf_probe_read_kernel(&file, sizeof(file), files + (__u32)context->args[0]);
	event = BPF_CORE_READ(file, private_data);
	if (bpf_core_read(&read, sizeof(read), &event->hw.prev_count) ||
	    bpf_core_read(&count, sizeof(count), &event->count))
		return 1;
	origin = read - count;
	return bpf_map_update_elem(&counter_origins, &core, &origin, BPF_ANY) ? 1 : 0;
}

/* The kernel's clock where the core has no event, because it came online later, or where the event has stopped. */
static __always_inline struct stamp by_counter_event(void)
{
	__s64 count = bpf_perf_event_read(&counter_events, BPF_F_CURRENT_CPU);
	__u32 core = bpf_get_smp_processor_id();
	__u64 *origin = bpf_map_lookup_elem(&counter_origins, &core);

	/* Errors are negative; a count would need a century to become that. */
	if (count < 0 || !origin)
		return by_kernel();
	return (struct stamp){ .value = *origin + count, .clock = COUNTER };
}

#endif
