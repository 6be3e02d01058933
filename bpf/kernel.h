/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What we look at of the kernel's structs. Where each field really is, libbpf finds out from the
 * running kernel's own types (BTF) when it loads a program.
 */
#ifndef WIRESTAMP_KERNEL_H
#define WIRESTAMP_KERNEL_H

#include <linux/types.h>

#define KERNEL __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum; /* the inode number in /proc/PID/ns/net */
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

struct sk_buff;

/* A queue of packets; an empty one has itself for its next. */
struct sk_buff_head {
	struct sk_buff *next;
} KERNEL;

struct sock_common {
	unsigned short skc_family;
	possible_net_t skc_net;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u16 sk_protocol;
} KERNEL;

struct udp_sock {
	struct sk_buff_head reader_queue; /* what readers took over from the receive queue */
} KERNEL;

struct skb_shared_hwtstamps {
	__s64 hwtstamp; /* the network card's stamp, 0 for none */
} KERNEL;

struct skb_shared_info {
	struct skb_shared_hwtstamps hwtstamps;
} KERNEL;

/* include/linux/skbuff.h: headers and `end` are offsets from `head`, `len` counts from `data`, and of
 * that `data_len` bytes are not in one piece with the rest. */
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	unsigned int data_len;
	__u16 transport_header;
	__u16 mac_header;
	__be16 vlan_proto; /* of a tag that is not in the data; 0 for none */
	__u16 vlan_tci;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} KERNEL;

#endif
