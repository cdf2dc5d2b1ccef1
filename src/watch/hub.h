/*
 * All watches of one shard, and how far each stream has read.
 *
 *   history ── new revisions ──► hub: finds the streams that watch them and wakes these
 *                                       │
 *                       a woken stream is pulled when its transport has room: it reads the
 *                       revisions from its place on and writes responses directly into the output
 *
 * Nothing is queued for a stream. A stream without new events follows the tail without being
 * touched; a stream without room in its transport keeps a revision and a position in it, and
 * nothing else. The hub corresponds to etcd's watchableStore, without its victims, batches and
 * ticks.
 *
 * One per shard, used on its thread. The engine owns the history.
 */
#ifndef VIGIL_WATCH_HUB_H
#define VIGIL_WATCH_HUB_H

#include "watch/hub/options.h"

struct watch_hub;

struct watch_hub *watch_hub_new(
    const struct watch_hub_options *options); /* aborts without memory */
void watch_hub_free(struct watch_hub *hub);   /* no stream may be left; accepts NULL */
DEFINE_CLEANUP(struct watch_hub *, watch_hub_free)

/*
 * Called once per turn, after input was read: reads the newly published revisions and wakes the
 * streams that watch them. Takes about a millisecond at most; true: there is more to do at once.
 */
MUST_CHECK
bool watch_hub_turn_begin(struct watch_hub *hub, int64_t now_ns);
/* Called after everything that could be sent was sent: releases what the history handed out. */
void watch_hub_turn_end(struct watch_hub *hub);

/*
 * The time until which the hub pauses, 0 if it does not. A turn that woke many cursors is followed
 * by a pause in proportion, so that changes that arrive one by one are sent together. The caller
 * need not announce new revisions during a pause. There are no pauses while the hub has streams
 * other than cursors.
 */
int64_t watch_hub_paused_until(const struct watch_hub *hub);

/* The identity that headers have from now on. */
void watch_hub_set_identity(struct watch_hub *hub, const struct watch_identity *identity);

/* Everything up to this revision was read. */
int64_t watch_hub_revision(const struct watch_hub *hub);

/* The history can now give what it answered with ST_AGAIN before. */
void watch_hub_history_ready(struct watch_hub *hub);

/*
 * When turn_begin next has work of its own; CLOCK_NEVER. To be called after the turn's fills: a
 * time in the past means that one of them has more to search and the next turn should begin at
 * once.
 */
int64_t watch_hub_next_ns(const struct watch_hub *hub);

/* Sets the function that finds the tags of events, for cursors with a tag (cursor.h). */
void watch_hub_set_tagger(struct watch_hub *hub, watch_tagger tagger, void *ctx);

/* Examines every stream at once and returns the current statistics: for tests and small hubs. */
const struct watch_report *watch_hub_scan_stats(struct watch_hub *hub);

/* For tests: asserts that every watcher is where its state says and that every count is right. */
void watch_hub_check(const struct watch_hub *hub);

#endif
