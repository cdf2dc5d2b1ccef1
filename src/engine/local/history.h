/*
 * The history of the local engine: the store's log, read in order of revision, and its index for
 * the versions before. See watch/history.h.
 *
 * One per shard, on its thread. It pins the epoch when it is first asked in a turn and keeps it
 * pinned until local_history_flushed, so that what it handed out can be sent from where it lies.
 */
#ifndef VIGIL_ENGINE_LOCAL_HISTORY_H
#define VIGIL_ENGINE_LOCAL_HISTORY_H

#include "engine/local/revision_notice.h"
#include "store/store.h"
#include "watch/history.h"

struct local_history;

struct local_history_options {
    struct store *store;
    struct epoch_slot *slot; /* of the shard's thread */
    struct local_news *news; /* told whether to wake the shard */
    /* What was written cannot be read: must not return. */
    void (*on_damage)(void *ctx, enum status status);
    void *ctx;
};

struct local_history *local_history_new(
    const struct local_history_options *options);       /* aborts without memory */
void local_history_free(struct local_history *history); /* accepts NULL; not pinned */
DEFINE_CLEANUP(struct local_history *, local_history_free)

struct watch_history *local_history_base(struct local_history *history);

/* Somebody watches, or has asked something in this turn: there is something to do. */
bool local_history_wanted(const struct local_history *history);

/*
 * Loads the newest published state, which stays the newest until local_history_flushed. Before
 * this, while input is read, each question for the revision looks anew.
 */
void local_history_turn_begin(struct local_history *history);
/* What was handed out has been sent: lets go of it. */
void local_history_flushed(struct local_history *history);

#endif
