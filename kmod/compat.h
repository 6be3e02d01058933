/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernels from 6.1 on. Each name is given to older kernels as the newer ones
 * mean it, so that the module is written for the newest.
 */
#ifndef WIRESTAMP_COMPAT_H
#define WIRESTAMP_COMPAT_H

#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/compiler.h>

/* 6.3: keeps a function that only BPF programs call, and its call, as they are written. */
#ifndef __bpf_kfunc
#define __bpf_kfunc __used noinline
#endif

/* 6.7: a kfunc has no prototype in a header, which the compiler would remark on. */
#ifndef __bpf_kfunc_start_defs
#define __bpf_kfunc_start_defs()					\
	__diag_push();							\
	__diag_ignore_all("-Wmissing-prototypes", "called by BPF programs only")
#define __bpf_kfunc_end_defs() __diag_pop()
#endif

/* 6.9: a set of kfuncs says that it is one. */
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name) BTF_SET8_END(name)
#endif

#endif
