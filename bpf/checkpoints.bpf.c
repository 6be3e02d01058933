// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Overhead of a stamp in the softIRQ, packet by packet: a clock before and after it, as Orosz and Skopko measured it in
 * a changed kernel. A program at the tracepoint netif_receive_skb takes the stamps.
 *
 * The clock of the checkpoints is the other one: the kernel's around a stamp of the counter, and the counter around a
 * stamp of the kernel. So the checkpoints do not load the code and data of the first stamp into the caches.
 *
 * Other programs at the same place only take the stamp.
 *
 * The record layout is shared with crates/capture/src/softirq_cost/packets.rs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "clocks.h"
#include "counter_event.h"
#include "here.h"
#include "kernel.h"

/* Length of the measured packets behind the Ethernet header. Set before loading. */
const volatile __u32 length = 0;

/* Readings at the checkpoints. A stamp is taken after the first and after the second. */
struct checkpoints {
	__u64 before_first;
	__u64 between;
	__u64 after_second;
	__u64 end;
	__u64 interrupts; /* that this core served meanwhile */
	__u64 stolen;     /* nanoseconds in which the hypervisor ran something else on this core meanwhile */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23); /* room for 100,000 packets */
} measured SEC(".maps");

/* Interrupts of a core by kind (arch/x86/include/asm/hardirq.h), and those of devices (linux/kernel_stat.h). */
typedef struct {
	unsigned int __nmi_count;
	unsigned int apic_timer_irqs;
	unsigned int apic_irq_work_irqs;
	unsigned int irq_resched_count;
	unsigned int irq_call_count;
	unsigned int irq_tlb_count;
} KERNEL irq_cpustat_t;

struct kernel_stat {
	unsigned long irqs_sum;
} KERNEL;

/* Time that the hypervisor reports (Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME). */
struct kvm_steal_time {
	__u64 steal;
} KERNEL;

extern const irq_cpustat_t irq_stat __ksym __weak;
extern const struct kernel_stat kstat __ksym __weak;
extern const struct kvm_steal_time steal_time __ksym __weak;

static __always_inline __u64 interrupts(void)
{
	__u64 count = 0;

	if (&irq_stat) {
		const irq_cpustat_t *by_kind = bpf_this_cpu_ptr(&irq_stat);

		count += by_kind->__nmi_count + by_kind->apic_timer_irqs + by_kind->apic_irq_work_irqs +
			 by_kind->irq_resched_count + by_kind->irq_call_count + by_kind->irq_tlb_count;
	}
	if (&kstat) {
		const struct kernel_stat *of_devices = bpf_this_cpu_ptr(&kstat);

		count += of_devices->irqs_sum;
	}
	return count;
}

static __always_inline __u64 stolen(void)
{
	const struct kvm_steal_time *time;

	if (!&steal_time)
		return 0;
	time = bpf_this_cpu_ptr(&steal_time);
	return time->steal;
}

/* Where stamps go, so that they are taken. */
__u64 taken;

typedef __u64 clock(void);

/* Reads the counter between fences (msr_event_update of arch/x86/events/msr.c). The origin of the event does not
 * matter here: only differences on one core are used. */
static __always_inline __u64 counter(void)
{
	return bpf_perf_event_read(&counter_events, BPF_F_CURRENT_CPU);
}

static __always_inline __u64 ktime(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline int measure(struct sk_buff *skb, clock *take, clock *checkpoint)
{
	struct checkpoints points;

	if (!is_here(skb->dev) || skb->len != length)
		return 0;
	points.interrupts = interrupts();
	points.stolen = stolen();
	/* Loads the code and data of a checkpoint into the caches. */
	checkpoint();
	points.before_first = checkpoint();
	taken = take();
	points.between = checkpoint();
	taken = take();
	points.after_second = checkpoint();
	points.end = checkpoint();
	points.interrupts = interrupts() - points.interrupts;
	points.stolen = stolen() - points.stolen;
	/* The reader knows how many packets were sent, and notices those that do not fit. */
	bpf_ringbuf_output(&measured, &points, sizeof(points), BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(measure_kernel, struct sk_buff *skb)
{
	return measure(skb, ktime, counter);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(measure_counter, struct sk_buff *skb)
{
	return measure(skb, counter, ktime);
}

/* Only the stamp, of every packet of the interface: what stamps add to the work of the softIRQ. */
static __always_inline int stamp_only(struct sk_buff *skb, clock *take)
{
	if (is_here(skb->dev))
		taken = take();
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stamp_kernel, struct sk_buff *skb)
{
	return stamp_only(skb, ktime);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stamp_counter, struct sk_buff *skb)
{
	return stamp_only(skb, counter);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
