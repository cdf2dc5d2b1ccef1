/*
 * One of the server's I/O threads: a loop with its connections. Shards share nothing. A turn reads
 * the ready sockets, calls the application's after_input and end_of_turn, and then sends the output
 * of all connections in as few writes as possible.
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

/* A pointer for the application, e.g. its engine's part for this thread. Set in shard_start. */
void net_shard_set_user(struct net_shard *shard, void *user);
void *net_shard_user(const struct net_shard *shard);

/* Asserts that the shard and its connections are consistent; for tests, from the hooks of the
 * application. */
void net_shard_check(const struct net_shard *shard);

#endif
