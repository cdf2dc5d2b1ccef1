/* What a server counts about its connections. */
#ifndef VIGIL_NET_STATS_H
#define VIGIL_NET_STATS_H

#include <stdint.h>

/* Sums over the shards. Each number is exact, but they may be of slightly different times. */
struct net_stats {
    uint64_t connections;     /* currently open */
    uint64_t accepted;        /* in total */
    uint64_t refused;         /* because of connections_max */
    uint64_t accept_failures; /* because there were no descriptors or memory */
    uint64_t stalled;         /* closed because of stall_ns */
    uint64_t bytes_in, bytes_out;
    uint64_t reads, writes; /* system calls that transferred bytes */
    uint64_t held_bytes;    /* currently: filled, but not yet taken by the socket */
};

struct tls_stats {
    uint64_t rejections;      /* refused clients; counted by the receiver of on_rejection */
    uint64_t reloads;         /* reloads of changed files */
    uint64_t reload_failures; /* changed files that could not be used */
    int64_t expires_s;        /* when our certificate expires, in seconds since 1970 */
};

#endif
