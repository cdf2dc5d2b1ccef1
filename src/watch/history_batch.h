/*
 * A stretch of history that is read once in a turn for everybody who catches up over it, of
 * whatever stream: the events of each range of keys that somebody wants, in a list.
 *
 *     revision  5   6   7   8        range a: 5 → 7      a stream that stands at 5 takes what its
 *               a   b   a   b        range b: 6 → 8      watchers want; one at 7 begins there
 *
 * It is read on as its readers need more, and ends with the turn. A hub has a few of them; who
 * stands elsewhere takes the place of the oldest. For the files of this directory only.
 */
#ifndef VIGIL_WATCH_HISTORY_BATCH_H
#define VIGIL_WATCH_HISTORY_BATCH_H

#include "watch/watcher.h"

struct watch_hub;
struct watch_scan;
struct watch_stream;

enum {
    STRETCH_NONE = UINT32_MAX, /* the end of a list */
    STRETCH_EVENTS_MAX = 4096, /* read in one turn: a fraction of a millisecond */
    STRETCH_FOUND_MAX = 16384, /* no range comes in beyond it */
};

struct stretch_found {
    const struct watch_event *event;
    int64_t revision;
    uint32_t next; /* of the same range */
};

struct stretch_list {
    struct watch_range *range;
    uint32_t first, last;
};

struct watch_stretch {
    int64_t from;  /* the first revision; 0: there is nothing */
    int64_t lacks; /* from this revision on some ranges were left out; INT64_MAX: none were */
    struct watch_place place; /* behind the last */
    size_t events;
    uint32_t number;               /* no other has it */
    const struct watch_scan *only; /* that is read for; NULL: for all */
    bool partial;                  /* one revision, of which only some riders have their events */
    int64_t long_revision; /* what comes next is a long revision, which is told otherwise; 0: not */
    struct watch_place long_after; /* behind it */
    struct stretch_found *found;
    size_t found_count, found_capacity;
    struct stretch_list *lists;
    size_t list_count, list_capacity;
    uint32_t *slots; /* of lists by range; a power of two of them, 0: free, else one more */
    size_t slot_count;
};

void stretch_fini(struct watch_stretch *stretch);
/* Nothing of it holds any more; its memory stays. */
void stretch_drop(struct watch_stretch *stretch);

/*
 * Reads on behind stretch->place until the scan will find about so many bytes. ST_END: there is
 * nothing more. ST_LIMIT: it is long enough for this turn, or long_revision comes next.
 * ST_COMPACTED, ST_AGAIN: as the history says. With ST_OK at least one revision was read.
 */
MUST_CHECK
enum status stretch_read(struct watch_hub *hub, struct watch_stretch *stretch,
                         const struct watch_stream *stream, const struct watch_scan *scan,
                         size_t bytes);

/* What was found for the range; NULL: nothing, up to `lacks`. */
const struct stretch_list *stretch_find(const struct watch_stretch *stretch,
                                        const struct watch_range *range);

#endif
