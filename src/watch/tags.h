/*
 * Which tags the events of the past have, for cursors that walk over them: found out once, and
 * known to all that come after. Many of them come at the same time, after a restart, and want each
 * the few events of their own tag.
 *
 * A table of fixed size by revision and event, with hashes for the tags: what it does not have is
 * found out again, and what it takes for another's own is told by the cursor's owner. One per hub;
 * for the files of this directory only.
 */
#ifndef VIGIL_WATCH_TAGS_H
#define VIGIL_WATCH_TAGS_H

#include "watch/cursor.h"

enum {
    WATCH_TAGS_KNOWN = 32768, /* events: 800 KB of a shard with such cursors */
    WATCH_TAGS_WAYS = 4,      /* places that one of them may have */
    WATCH_TAGS_EACH = 2,      /* of one event; one with more is everybody's */
};

struct tags_of_event {
    int64_t revision; /* 0: nothing */
    uint32_t event;
    uint32_t count;
    uint32_t hashes[WATCH_TAGS_EACH];
};

struct watch_tags {
    struct tags_of_event *known; /* NULL until the first */
};

void tags_fini(struct watch_tags *tags);

uint32_t tags_hash(struct slice tag);

/* NULL: it is not known. */
const struct tags_of_event *tags_find(const struct watch_tags *tags, int64_t revision,
                                      size_t event);
const struct tags_of_event *tags_set(struct watch_tags *tags, int64_t revision, size_t event,
                                     const struct slice given[], size_t count);
bool tags_have(const struct tags_of_event *of, uint32_t hash);

#endif
