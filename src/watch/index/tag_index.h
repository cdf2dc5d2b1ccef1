/*
 * The recent events of each tag that is watched: a cursor with a tag steps from one event of its
 * tag to the next, however many other events are between them. A second one has those of wide
 * ranges that many streams watch (watch_range_is_indexed), for their cursors without a tag.
 *
 *     number    1   2   3   4   5        tag a: 1 ⇄ 3 ⇄ 4      the tag's range knows its newest,
 *     tag       a   b   a   a   b        tag b: 2 ⇄ 5          which links back to all others
 *
 * A ring of entries without the bytes of the events: each says where its event can be read again.
 * A hub has these two. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_INDEX_TAG_INDEX_H
#define VIGIL_WATCH_INDEX_TAG_INDEX_H

#include "watch/index/watcher.h"

enum { TAG_INDEX_EVENTS = 16384 }; /* the oldest are replaced first; 1 MiB per shard with tags */

struct tag_event {
    struct watch_place before; /* the place from which its revision is read */
    int64_t revision;
    size_t event; /* its index in the revision */
    uint64_t prev,
        next; /* neighbours with the same tag; 0, or the number of a replaced entry: none */
};

struct tag_index {
    struct tag_event *events; /* by number, modulo; NULL until the first */
    uint64_t first, end;      /* the numbers that exist; from 1 */
    int64_t from;             /* from this revision on, no event of a watched tag is missing */
    uint64_t steps;           /* from entry to entry, for tests */
};

void tag_index_init(struct tag_index *index, int64_t from);
void tag_index_fini(struct tag_index *index);
/* Forgets everything; events before `from` are unknown. */
void tag_index_drop(struct tag_index *index, int64_t from);

/*
 * Adds the newest event so far. The tag is the range of a single key, or a wide range. Adding the
 * same event twice in a row has no effect.
 */
void tag_index_add(struct tag_index *index, struct watch_range *tag,
                   const struct watch_place *before, int64_t revision, size_t event);

/*
 * The tag's first event at or after the given one; NULL: none. The revision is not before `from`.
 * number: in, an entry of the tag that is not after the wanted one, or 0; out, the entry found.
 */
const struct tag_event *tag_index_seek(struct tag_index *index, const struct watch_range *tag,
                                       int64_t revision, size_t event, uint64_t *number);

/* Whether an entry exists and none of its tag follows it. */
static inline bool tag_index_is_newest(const struct tag_index *index, uint64_t number)
{
    return number >= index->first && number < index->end &&
           !index->events[number % TAG_INDEX_EVENTS].next;
}

#endif
