/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The clocks that stamp frames, and how each is read. The numbers are shared with
 * crates/capture/src/bpf_program/stamped_by.rs.
 *
 * An object file has a program for each way to read a clock, and only the one that is wanted is
 * loaded. A choice inside of one program would not do: the kernel looks at every function of its own
 * that is called before it finds out which calls are never reached (add_kfunc_call of
 * kernel/bpf/verifier.c), and wants one that asks for the card's stamp to be bound to the card.
 */
#ifndef WIRESTAMP_CLOCKS_H
#define WIRESTAMP_CLOCKS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum clock {
	MONOTONIC, /* CLOCK_MONOTONIC, nanoseconds */
	CARD,      /* the network card's, nanoseconds */
	COUNTER,   /* the CPU's counter, ticks */
	LATE,      /* CLOCK_MONOTONIC, read later than at the requested place */
};

struct stamp {
	__u64 value;
	__u32 clock;
};

/* Linux 6.3, in programs bound to a device (Documentation/networking/xdp-rx-metadata.rst). */
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *frame, __u64 *time) __ksym __weak;
/* Of the module in kmod/. */
extern __u64 bpf_wirestamp_counter(void) __ksym __weak;
/* The same in the kernel itself: posted for it in March 2025 (version 12), not found in it yet. */
extern __u64 bpf_get_cpu_time_counter(void) __ksym __weak;

static __always_inline struct stamp by_kernel(void)
{
	return (struct stamp){ .value = bpf_ktime_get_ns(), .clock = MONOTONIC };
}

/* The kernel's where the card has none: the driver then says -ENODATA or -EOPNOTSUPP, or gives a
 * stamp of 0, as veth does. */
static __always_inline struct stamp by_card(const struct xdp_md *frame)
{
	struct stamp kernels = by_kernel(); /* first, before anything can delay it */
	__u64 time = 0;

	if (bpf_xdp_metadata_rx_timestamp(frame, &time) || time == 0)
		return kernels;
	return (struct stamp){ .value = time, .clock = CARD };
}

static __always_inline struct stamp by_counter_of_module(void)
{
	return (struct stamp){ .value = bpf_wirestamp_counter(), .clock = COUNTER };
}

static __always_inline struct stamp by_counter_of_kernel(void)
{
	return (struct stamp){ .value = bpf_get_cpu_time_counter(), .clock = COUNTER };
}

#endif
