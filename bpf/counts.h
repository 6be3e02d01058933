/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the XDP programs count. The keys are shared with crates/capture/src/bpf_program/mod.rs.
 */
#ifndef WIRESTAMP_COUNTS_H
#define WIRESTAMP_COUNTS_H

enum count { SEEN, DROPPED, COUNTS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline void count(enum count which)
{
	__u32 key = which;
	__u64 *value = bpf_map_lookup_elem(&counts, &key);

	if (value)
		*value += 1;
}

#endif
