/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The place of the filter in an XDP or tc program. crates/capture/src/bpf_program/with_filter.rs
 * puts a filter there, translated for programs of that kind, before the program is loaded; without
 * one, every frame passes.
 */
#ifndef WIRESTAMP_FILTER_H
#define WIRESTAMP_FILTER_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/*
 * Whether the frame passes, which is the context that the kernel gave the program. It is found as
 * the only function that the program calls, so everything else has to be inlined. The compiler must
 * see neither that the verdict is constant nor that the frame is not looked at, or it would leave
 * out the call or its argument.
 */
static __noinline int passes(void *frame)
{
	int verdict = 1;

	asm volatile("" : "+r"(verdict) : "r"(frame));
	return verdict;
}

#endif
