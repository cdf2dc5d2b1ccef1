/*
 * A part of history that is read once in a turn for all watchers that catch up over it, whatever
 * their stream: for each range of keys, a list of its events.
 *
 *     revision  5   6   7   8        range a: 5 → 7      a stream at 5 takes the events that its
 *               a   b   a   b        range b: 6 → 8      watchers want; a stream at 7 begins there
 *
 * A window grows as its readers need more, and ends with the turn. A hub has a few of them; a
 * reader at another place replaces the oldest. catch_up.c reads into windows. Only files of
 * src/watch/ include it.
 */
#ifndef VIGIL_WATCH_INDEX_HISTORY_WINDOW_H
#define VIGIL_WATCH_INDEX_HISTORY_WINDOW_H

#include "watch/index/watcher.h"

struct watch_scan;

enum {
    WINDOW_NONE = UINT32_MAX, /* the end of a list */
    WINDOW_EVENTS_MAX = 4096, /* events read in one turn: about 0.3 ms */
    WINDOW_FOUND_MAX = 16384, /* no range is added beyond this many found events */
};

struct window_found {
    const struct watch_event *event;
    int64_t revision;
    uint32_t next; /* the next event of the same range */
};

struct window_list {
    struct watch_range *range;
    uint32_t first, last;
};

struct history_window {
    int64_t from;  /* the first revision; 0: the window is empty */
    int64_t lacks; /* from this revision on some ranges were left out; INT64_MAX: none were */
    struct watch_place place; /* behind the last revision read */
    size_t events;
    uint32_t number;               /* unique */
    const struct watch_scan *only; /* the scan it is read for; NULL: for all */
    bool partial;                  /* holds one revision, and only some members' events of it */
    int64_t
        long_revision; /* the next revision is a long one, which is sent otherwise; 0: it is not */
    struct watch_place long_after; /* behind the long revision */
    struct window_found *found;
    size_t found_count, found_capacity;
    struct window_list *lists;
    size_t list_count, list_capacity;
    uint32_t *slots;   /* hash table of lists by range; index + 1, or 0: free */
    size_t slot_count; /* a power of two */
};

void history_window_fini(struct history_window *window);
/* Empties the window and keeps its memory. */
void history_window_drop(struct history_window *window);

/* Adds the newest event so far of a range. Leaves it out, and notes so in `lacks`, when the window
 * is full and the range is new. Adding the same event twice has no effect. */
void history_window_add(struct history_window *window, struct watch_range *range,
                        const struct watch_event *event, int64_t revision);

/* The events that were found for the range; NULL: it has none before `lacks`. */
const struct window_list *history_window_find(const struct history_window *window,
                                              const struct watch_range *range);

#endif
