/*
 * Brings the cluster's past from one revision on into the store, as long as a watch reads it: one
 * source, or one for each mirrored prefix, whose revisions are merged.
 *
 *     source a   5 · · 8 · · ·│12          a revision is stored once every source is behind it, so
 *     source b   · 6 · · 9 ·  │ · 13       that what is stored is complete
 *                             ╰ at
 */
#ifndef VIGIL_MIRROR_BACKFILL_FETCH_H
#define VIGIL_MIRROR_BACKFILL_FETCH_H

#include "mirror/backfill/event_range.h"
#include "mirror/backfill/source.h"
#include "mirror/load/ranges.h"

struct backfill_fetch_options {
    struct backfill_source_options source; /* without a range */
    struct event_ranges *store;
    const struct range *ranges; /* used only at the start; their bytes are borrowed */
    size_t range_count;         /* at least one */
    size_t ahead_bytes;         /* that are received before they are needed */
};

struct backfill_fetch {
    struct backfill_fetch_options options;
    struct list in_backfill;
    int64_t at;              /* everything before, from its start on, is in the store */
    bool waiting;            /* a watch needs the revision `at` */
    int64_t wanted_ns;       /* when a watch last did */
    size_t credit;           /* bytes that may still be received before a watch needs them */
    uint64_t received_bytes; /* bytes of all sources, when `credit` was last reduced */
    uint64_t started_bytes;  /* stored since it was started */
    struct timer progress;   /* set while a watch waits */
    struct backfill_source sources[];
};

struct backfill_fetch *backfill_fetch_new(const struct backfill_fetch_options *options,
                                          int64_t from);
void backfill_fetch_free(struct backfill_fetch *fetch);

/* A watch waits for the revision `at`. */
void backfill_fetch_want(struct backfill_fetch *fetch);
/* A watch reads the last range before `at`: the next one is received meanwhile. */
void backfill_fetch_go_ahead(struct backfill_fetch *fetch);

/*
 * Reads for about *units events, and stores what is complete. Returns whether there is more to
 * read; *ret_stored: `at` has moved.
 */
bool backfill_fetch_step(struct backfill_fetch *fetch, size_t *units, bool *ret_stored);
/* A watch waits for it, or will soon. */
bool backfill_fetch_is_wanted(const struct backfill_fetch *fetch);
/* Which of its sources may receive: none, those that the others wait for, or all. */
enum backfill_flow { BACKFILL_FLOW_NONE, BACKFILL_FLOW_BEHIND, BACKFILL_FLOW_ALL };
void backfill_fetch_flow(struct backfill_fetch *fetch, enum backfill_flow flow);
/* The cluster has compacted the revision `at`; 0: it has not. */
int64_t backfill_fetch_compact_revision(const struct backfill_fetch *fetch);
/* A source has nothing more to bring, and what it has brought is stored. */
bool backfill_fetch_is_over(const struct backfill_fetch *fetch);
void backfill_fetch_check(const struct backfill_fetch *fetch);

#endif
