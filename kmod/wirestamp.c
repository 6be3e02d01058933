// SPDX-License-Identifier: GPL-2.0-only
/*
 * The raw counter of the CPU for XDP and tc programs: one kfunc, and nothing else. A program calls
 * it where a packet arrives, in the driver's softIRQ; what is read there is converted elsewhere.
 */
#include <linux/bpf.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include "compat.h"

#if defined(CONFIG_X86_64)

#include <asm/tsc.h>

static __always_inline u64 read_counter(void)
{
	return rdtsc_ordered();
}

#elif defined(CONFIG_ARM64)

#include <asm/arch_timer.h>

static __always_inline u64 read_counter(void)
{
	return __arch_counter_get_cntvct();
}

#else
#error "wirestamp knows no counter of this CPU: x86-64 and arm64 only"
#endif

__bpf_kfunc_start_defs();

/*
 * bpf_wirestamp_counter - the counter that user space reads with RDTSC or CNTVCT_EL0, in ticks
 *
 * Ordered with the memory accesses around it. An interrupt between the call and the read would
 * add its own time to the stamp, so none is let in.
 */
__bpf_kfunc u64 bpf_wirestamp_counter(void)
{
	unsigned long flags;
	u64 value;

	local_irq_save(flags);
	value = read_counter();
	local_irq_restore(flags);
	return value;
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(wirestamp_kfuncs)
BTF_ID_FLAGS(func, bpf_wirestamp_counter)
BTF_KFUNCS_END(wirestamp_kfuncs)

static const struct btf_kfunc_id_set wirestamp_set = {
	.owner = THIS_MODULE,
	.set = &wirestamp_kfuncs,
};

static int __init wirestamp_init(void)
{
	int error;

	/* The kernel takes an empty set without a word, and programs would not find the function. */
	if (!wirestamp_kfuncs.cnt) {
		pr_err("wirestamp: built without BTF ids: see kmod/README.md, \"Building\"\n");
		return -ENOENT;
	}
	error = register_btf_kfunc_id_set(BPF_PROG_TYPE_XDP, &wirestamp_set);
	if (error)
		return error;
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_SCHED_CLS, &wirestamp_set);
}

/* Nothing to undo: the set is the module's BTF, which goes with it, and the kernel lets it go only
 * when no program that calls it is loaded. */
static void __exit wirestamp_exit(void)
{
}

module_init(wirestamp_init);
module_exit(wirestamp_exit);

MODULE_DESCRIPTION("The CPU's raw counter for XDP and tc programs");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
