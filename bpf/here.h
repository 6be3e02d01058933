/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interface of a tracing program, which the kernel runs for the packets of all interfaces.
 */
#ifndef WIRESTAMP_HERE_H
#define WIRESTAMP_HERE_H

#include <stdbool.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include "kernel.h"

/* The sk_buff of a program's context (Linux 6.3). */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

/* Set before loading: the interface, and the network namespace it is in. */
const volatile int interface = 0;
const volatile __u32 namespace = 0;

static __always_inline bool is_inside(struct net_device *device)
{
	return device->nd_net.net->ns.inum == namespace;
}

static __always_inline bool is_here(struct net_device *device)
{
	return is_inside(device) && device->ifindex == interface;
}

#endif
