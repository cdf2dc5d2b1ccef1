/*
 * Reads one range of keys event by event: a watch for callers that make messages of their own, such
 * as Kubernetes watches. A cursor has a place in history: events before it were taken, events after
 * it are still to be read.
 *
 *     wake ──► next ─► event ─► take ─► next … ─► ST_END: nothing more for now
 *                └─► no room: the cursor keeps its place; its owner calls next when it has room
 *
 * Nothing is queued and nothing is copied: an event is read where the history has it, and its bytes
 * are valid until the turn ends; the struct itself only until another event is read on the same
 * hub. A cursor belongs to its hub's shard.
 */
#ifndef VIGIL_WATCH_CURSOR_H
#define VIGIL_WATCH_CURSOR_H

#include "watch/hub.h"

struct watch_cursor;

struct watch_cursor_options {
    struct slice key, range_end; /* as in a watch request, and not empty; copied */
    /* Not empty: the cursor is woken only for events to which the hub's tagger gave this tag, and
     * is given those of its range. While it reads the past it may be given others as well. Copied.
     */
    struct slice tag;
    bool tag_within; /* the range contains every event of the tag, and is not compared with them */
    int64_t from;    /* the first revision of interest; 0: the next one */
    bool own;        /* it is the server's, so the limit of clients' watches is not for it */
    /* There may be something to read. Not called again until next has returned ST_END or ST_AGAIN,
     * or the last event was taken. */
    void (*wake)(void *ctx);
    /* It may be woken soon: the owner prefetches the memory that it will touch. May be NULL. */
    void (*soon)(void *ctx);
    void *ctx;
};

/* NULL: the server's limit of watches is reached; never if it is the server's own. */
struct watch_cursor *watch_cursor_new(struct watch_hub *hub,
                                      const struct watch_cursor_options *options);
void watch_cursor_free(struct watch_cursor *cursor); /* accepts NULL */
DEFINE_CLEANUP(struct watch_cursor *, watch_cursor_free)

/*
 * The next event of the range that was not taken; the same one again until it is taken. ST_END:
 * none for now. ST_AGAIN: none was found within a turn's share of searching, or the history is not
 * ready. In both cases wake follows. ST_COMPACTED: the next events are gone; ST_DAMAGED: they
 * cannot be read; free the cursor.
 */
MUST_CHECK
enum status watch_cursor_next(struct watch_cursor *cursor, const struct watch_event **ret_event,
                              int64_t *ret_revision);
/* Prefetches the cursor's memory, shortly before it is used. */
void watch_cursor_fetch(const struct watch_cursor *cursor);
/* The event just given was processed. */
void watch_cursor_take(struct watch_cursor *cursor);

/* `12 len KeyValue` of the version before the event just given; empty when it created the key. */
struct slice watch_cursor_prev(struct watch_cursor *cursor, const struct watch_event *event);

/* A number that changes when the events that the hub's cursors have given become invalid. */
uint64_t watch_cursor_turn(const struct watch_cursor *cursor);

/* How many revisions of those that the hub has read it has not read yet. */
int64_t watch_cursor_behind(const struct watch_cursor *cursor);

/* Every event up to this revision was taken or is not in the range: what a bookmark may say. */
int64_t watch_cursor_revision(const struct watch_cursor *cursor);

#endif
