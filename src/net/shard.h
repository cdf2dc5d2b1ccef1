/*
 * One of the server's I/O threads: a loop with the connections it was given. Shards share nothing.
 * A turn reads the ready sockets, then calls the application's after_input, then its end_of_turn,
 * and then sends what every connection has to say in as few writes as possible.
 *
 * Only for the shard's own thread.
 */
#ifndef VIGIL_NET_SHARD_H
#define VIGIL_NET_SHARD_H

#include "base/status.h"

#include <stdint.h>

struct net_shard;
struct loop;

struct loop *net_shard_loop(struct net_shard *shard);

/* The application's own, e.g. its engine's part for this thread. Set in shard_start. */
void net_shard_set_user(struct net_shard *shard, void *user);
void *net_shard_user(const struct net_shard *shard);

#endif
