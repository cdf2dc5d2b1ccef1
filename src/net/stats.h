/* What a server counts of its connections. */
#ifndef VIGIL_NET_STATS_H
#define VIGIL_NET_STATS_H

#include <stdint.h>

/* Summed over the shards; each number is right, together they are of about the same moment. */
struct net_stats {
    uint64_t connections;     /* open now */
    uint64_t accepted;        /* ever */
    uint64_t refused;         /* for connections_max */
    uint64_t accept_failures; /* for want of descriptors or memory */
    uint64_t stalled;         /* closed because of stall_ns */
    uint64_t bytes_in, bytes_out;
    uint64_t reads, writes; /* system calls that moved bytes */
    uint64_t held_bytes;    /* now: filled out, but not taken by the socket yet */
};

struct tls_stats {
    uint64_t rejections;      /* clients turned away; counted by who is told of them */
    uint64_t reloads;         /* of files that had changed */
    uint64_t reload_failures; /* states of them that could not be used */
    int64_t expires_s;        /* when the certificate that is shown ends, since 1970 */
};

#endif
