/*
 * Revisions that follow each other and are sent together: a watcher gets the events of all of them
 * in one response, whose header has the last revision, as etcd does for watchers that are behind.
 * When many revisions arrive in one turn, the head of a response is then written once for all of
 * them, and their events, which are the same bytes for every watcher of a range, are copied at
 * once. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_HUB_RUN_H
#define VIGIL_WATCH_HUB_RUN_H

#include "watch/hub/hub_state.h"

enum {
    WATCH_RUN_EVENTS = 32,
    WATCH_RUN_BYTES = 8 * 1024, /* size of key-values, so that a response fits a DATA frame */
    WATCH_RUN_SPAN = UINT8_MAX, /* between the first revision and the last */
};

struct watch_run {
    struct watch_batch batch; /* the last revision, and the events of all of them, in order */
    int64_t first;            /* the first revision */
    struct watch_place after; /* the place behind the last */
    size_t bytes;             /* size of their key-values */
    uint64_t turn;            /* the hub's; otherwise nothing here is valid */
    int64_t from, last;       /* the arguments of run_next */
    struct watch_event events[WATCH_RUN_EVENTS]; /* batch.events, if it has several revisions */
    int64_t revisions[WATCH_RUN_EVENTS];         /* revisions of these events */
};

static inline bool run_is_joined(const struct watch_run *run)
{
    return run->first < run->batch.revision;
}

/*
 * Gives the first revision from the place on, and those behind it up to `last` that can be sent
 * with it; the same for the same arguments. Statuses are those of hub_next for the first revision.
 * The run of a long revision, or of one behind `last`, consists of it alone. Valid until the next
 * call.
 */
MUST_CHECK
enum status run_next(struct watch_hub *hub, const struct watch_place *place, int64_t last,
                     const struct watch_run **ret_run);

/* The index of the first event that is not before this revision, which is not behind the run. */
size_t run_find(const struct watch_run *run, int64_t from);
/* The first revision of the run, which has several, that is not before `from`, alone. */
struct watch_batch run_one(const struct watch_run *run, int64_t from);

void run_check(const struct watch_run *run);

#endif
