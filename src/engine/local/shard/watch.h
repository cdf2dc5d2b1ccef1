/*
 * The watches of one shard of the local engine: its hub, the history that the hub reads, and the
 * timer and mailbox that wake the shard for them. Created with the first watch of the shard.
 */
#ifndef VIGIL_ENGINE_LOCAL_SHARD_WATCH_H
#define VIGIL_ENGINE_LOCAL_SHARD_WATCH_H

#include "engine/local/state/shared.h"
#include "watch/hub.h"

struct local_watch;

/* All borrowed from the shard. */
struct local_watch_options {
    struct local_shared *shared;
    struct loop *loop;
    struct epoch_slot *slot;
    struct local_auth_reader *rights;
    struct metric_block *counts;
    unsigned shard_number;
    struct watch_history *(*wrap)(void *ctx,
                                  struct watch_history *own); /* NULL: see mirror_store.h */
    void *wrap_ctx;
};

struct local_watch *local_watch_new(
    const struct local_watch_options *options);   /* aborts without memory */
void local_watch_free(struct local_watch *watch); /* accepts NULL; all streams are closed */

struct watch_hub *local_watch_hub(struct local_watch *watch);

/* After input was read: reads what was published since the last turn. */
void local_watch_turn_begin(struct local_watch *watch);
/* After output was sent. */
void local_watch_flushed(struct local_watch *watch);

#endif
