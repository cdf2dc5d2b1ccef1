/*
 * One range of keys read event by event: the watch for who makes messages of his own. A cursor
 * stands at a place in history; what is before it was taken, what is behind it lies there.
 *
 *     wake ──► next ─► event ─► take ─► next … ─► ST_END: nothing more for now
 *                └─► no room: the cursor stands there, and its owner calls next when he has some
 *
 * Nothing is queued and nothing is copied: an event is read where the history has it, and is valid
 * until the turn ends. Of the hub's shard.
 */
#ifndef VIGIL_WATCH_CURSOR_H
#define VIGIL_WATCH_CURSOR_H

#include "watch/hub.h"

struct watch_cursor;

struct watch_cursor_options {
    struct slice key, range_end; /* as in a watch request, and not empty; copied */
    /*
     * Not empty: be woken for events that the hub's tagger gave this tag, and given those, instead
     * of all of the range; it must hold them. Where the past is searched others are given as well.
     * Copied.
     */
    struct slice tag;
    int64_t from; /* the first revision of interest; 0: those after now */
    /* There may be something. Not called again until next has said ST_END or ST_AGAIN. */
    void (*wake)(void *ctx);
    /* It may be woken in a moment: the owner fetches what that touches into the cache. May be
     * NULL. */
    void (*soon)(void *ctx);
    void *ctx;
};

/* NULL: there are as many watches on this server as there may be. */
struct watch_cursor *watch_cursor_new(struct watch_hub *hub,
                                      const struct watch_cursor_options *options);
void watch_cursor_free(struct watch_cursor *cursor); /* accepts NULL */
DEFINE_CLEANUP(struct watch_cursor *, watch_cursor_free)

/*
 * The next event of the range that was not taken; the same one again until it is. ST_END: none for
 * now. ST_AGAIN: none was found within a turn's share of searching, or the history is not there
 * yet. In both cases wake will come. ST_COMPACTED: what comes next is gone, ST_DAMAGED: it cannot
 * be read; free the cursor.
 */
MUST_CHECK
enum status watch_cursor_next(struct watch_cursor *cursor, const struct watch_event **ret_event,
                              int64_t *ret_revision);
/* It will be asked in a moment. */
void watch_cursor_fetch(const struct watch_cursor *cursor);
/* The event just given was dealt with. */
void watch_cursor_take(struct watch_cursor *cursor);

/* `12 len KeyValue` of the version before the event just given; empty when it created the key. */
struct slice watch_cursor_prev(struct watch_cursor *cursor, const struct watch_event *event);

/* A number that changes when what the cursors of a hub have given is no longer there. */
uint64_t watch_cursor_turn(const struct watch_cursor *cursor);

/* Every event up to this revision was taken, or is of no concern: what a bookmark may say. */
int64_t watch_cursor_revision(const struct watch_cursor *cursor);

/* -- Tags -- */

enum { WATCH_TAGS_MAX = 4, WATCH_TAGS_UNKNOWN = WATCH_TAGS_MAX + 1 };

/*
 * What an event is about besides its key: a pod's node before and after. Asked once for each new
 * event while there is a cursor with a tag. The tags are keys of no other meaning, such as
 * "\0pods\0spec.nodeName\0a", and valid until the next call. Returns how many;
 * or WATCH_TAGS_UNKNOWN, and the event is given to all with a tag whose keys it is among.
 */
typedef size_t (*watch_tagger)(void *ctx, struct watch_history *history,
                               const struct watch_event *event,
                               struct slice ret_tags[WATCH_TAGS_MAX]);
void watch_hub_set_tagger(struct watch_hub *hub, watch_tagger tagger, void *ctx);

#endif
