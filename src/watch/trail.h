/*
 * The events of each tag that somebody watches, of the recent past: who has a tag goes from one of
 * his events to the next, whatever happened between them.
 *
 *     number    1   2   3   4   5        tag a: 1 ⇄ 3 ⇄ 4      the tag's range knows its last,
 *     tag       a   b   a   a   b        tag b: 2 ⇄ 5          which leads back to all others
 *
 * A ring of marks with no bytes of the events: where an event is read again, and its place there.
 * One per hub; for the files of this directory only.
 */
#ifndef VIGIL_WATCH_TRAIL_H
#define VIGIL_WATCH_TRAIL_H

#include "watch/watcher.h"

enum { WATCH_TRAIL_MARKS = 16384 }; /* the oldest go first; a MiB of a shard that has tags */

struct trail_mark {
    struct watch_place before; /* where the reading of its revision begins */
    int64_t revision;
    size_t event;        /* of the revision */
    uint64_t prev, next; /* of the same tag; 0, or one that is gone: none */
};

struct watch_trail {
    struct trail_mark *marks; /* by number, modulo; NULL until the first */
    uint64_t first, end;      /* the numbers there are; from 1 */
    int64_t from;             /* no event of a watched tag is missing from this revision on */
    uint64_t steps;           /* from mark to mark, for tests */
};

void trail_init(struct watch_trail *trail, int64_t from);
void trail_fini(struct watch_trail *trail);
/* Nothing is known of what was before that revision. */
void trail_drop(struct watch_trail *trail, int64_t from);

/* The newest event of all; the tag is the range of that single key. Twice is as good as once. */
void trail_add(struct watch_trail *trail, struct watch_range *tag, const struct watch_place *before,
               int64_t revision, size_t event);

/*
 * The tag's first event at or behind that one; NULL: none. The revision is not before `from`.
 * number: of a mark of the tag that is not behind what is sought, or 0; moves on to what is found.
 */
const struct trail_mark *trail_seek(struct watch_trail *trail, const struct watch_range *tag,
                                    int64_t revision, size_t event, uint64_t *number);

#endif
