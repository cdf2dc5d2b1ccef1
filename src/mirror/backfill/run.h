/*
 * Revisions and their events, as they are received from the cluster. The events point into the
 * messages, which are kept as they were sent.
 */
#ifndef VIGIL_MIRROR_BACKFILL_RUN_H
#define VIGIL_MIRROR_BACKFILL_RUN_H

#include "watch/index/history.h"

/* Bytes as the cluster has sent them. The ranges whose events point into them share them. */
struct backfill_body {
    unsigned refs;
    size_t *counted; /* where its memory is counted */
    size_t len;
    uint8_t bytes[];
};

struct backfill_body *backfill_body_new(struct slice bytes, size_t *counted);
struct backfill_body *backfill_body_ref(struct backfill_body *body);
void backfill_body_unref(struct backfill_body *body);

struct backfill_revision {
    int64_t revision;
    size_t first, count; /* its events */
    size_t bytes;        /* size of its events, with previous versions */
    size_t field_bytes;  /* size of their fields alone */
    size_t body;         /* the index of the first body that has some of them, if there are any */
    bool lost;           /* it is larger than the limit and was not kept */
};

/* Revisions with their events, in order. Grows at the end while it is received. */
struct backfill_run {
    struct backfill_revision *revisions;
    size_t revision_count, revision_capacity;
    struct watch_event *events;
    size_t event_count, event_capacity;
    struct backfill_body **bodies; /* references */
    size_t body_count, body_capacity;
};

void backfill_run_fini(struct backfill_run *run);
/* Begins the next revision; its events follow. */
void backfill_run_begin(struct backfill_run *run, int64_t revision);
/* An event of the last revision, in the body. */
void backfill_run_add(struct backfill_run *run, struct backfill_body *body,
                      const struct watch_event *event);
/* Drops all events of the last revision and marks it as lost. */
void backfill_run_lose(struct backfill_run *run);
/* Moves the revisions before `to` of all runs into an empty one. A revision that several runs have
 * gets the events of all. */
void backfill_run_merge(struct backfill_run *runs[], size_t count, int64_t to,
                        struct backfill_run *ret_run);
/* The index of the first revision that is not before this one; revision_count: none. */
size_t backfill_run_seek(const struct backfill_run *run, int64_t revision);
/* Drops the revisions from `from` on. */
void backfill_run_cut(struct backfill_run *run, int64_t from);
/* Memory besides its bodies. */
size_t backfill_run_bytes(const struct backfill_run *run);

/*
 * The version before an event is behind its field in the same body: `private` has the distance, and
 * a bit that tells these events from the mirror's, whose `private` is an aligned pointer.
 */
static inline const void *backfill_event_private(size_t prev_distance)
{
    return (const void *)(uintptr_t)(prev_distance << 1 | 1);
}

static inline bool backfill_event_is(const struct watch_event *event)
{
    return ((uintptr_t)event->private & 1) != 0;
}

/* `12 len KeyValue`; empty: there is none. */
struct slice backfill_event_prev(const struct watch_event *event);

#endif
