/*
 * The history of the local engine: events are read from the store's log in order of revision,
 * previous versions through the index. See watch/index/history.h.
 *
 * One for each shard, on its thread. The first call in a turn pins the epoch; it stays pinned until
 * local_history_flushed, so that events can be sent from where they are stored.
 */
#ifndef VIGIL_ENGINE_LOCAL_SHARD_HISTORY_H
#define VIGIL_ENGINE_LOCAL_SHARD_HISTORY_H

#include "engine/local/state/revision_notice.h"
#include "store/store.h"
#include "watch/index/history.h"

struct local_history;

struct local_history_options {
    struct store *store;
    struct epoch_slot *slot;        /* slot of the shard's thread */
    struct revision_notice *notice; /* listens while there are watches */
    /* Called when a read meets damaged bytes. */
    void (*on_damage)(void *ctx, enum status status);
    void *ctx;
};

struct local_history *local_history_new(
    const struct local_history_options *options);       /* aborts without memory */
void local_history_free(struct local_history *history); /* accepts NULL; not pinned */
DEFINE_CLEANUP(struct local_history *, local_history_free)

struct watch_history *local_history_base(struct local_history *history);

/* There are watches, or the history was used in this turn. */
bool local_history_wanted(const struct local_history *history);

/*
 * Loads the newest published state and keeps it until local_history_flushed. Before this, while
 * input is read, each call that returns a revision loads the newest state.
 */
void local_history_turn_begin(struct local_history *history);
/* The events of this turn were sent: unpins the epoch. */
void local_history_flushed(struct local_history *history);

#endif
