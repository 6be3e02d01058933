/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The place of the filter in an XDP program. crates/capture/src/xdp_program/with_filter.rs puts a translated
 * filter there before the program is loaded; without one, every frame passes.
 */
#ifndef WIRESTAMP_FILTER_H
#define WIRESTAMP_FILTER_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/*
 * Whether the frame passes. It is found as the only function that the program calls, so everything
 * else has to be inlined. The compiler must see neither that the verdict is constant nor that the
 * frame is not looked at, or it would leave out the call or its argument.
 */
static __noinline int passes(struct xdp_md *frame)
{
	int verdict = 1;

	asm volatile("" : "+r"(verdict) : "r"(frame));
	return verdict;
}

#endif
