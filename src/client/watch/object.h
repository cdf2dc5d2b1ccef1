/*
 * The events of watches of objects (vigil/object.h), made from values: an object is decoded and
 * selected by the functions of the program, before and after a change.
 *
 * A batch belongs to one watch, and is used on the loop's thread inside a callback, because it
 * calls the program. Mirrors event.go and transform of Kubernetes' storage/etcd3.
 */
#ifndef VIGIL_CLIENT_WATCH_OBJECT_H
#define VIGIL_CLIENT_WATCH_OBJECT_H

#include "base/macros.h"
#include "base/status.h"

#include <stdbool.h>
#include <vigil/object.h>

/* The functions of the program; each may be NULL. */
struct object_hooks {
    vigil_object_decode decode;
    vigil_object_release release;
    vigil_object_matches matches;
    void *user; /* argument of decode and matches */
};

/* The change of one key. */
struct object_change {
    vigil_bytes key;
    vigil_bytes value, prev_value;
    int64_t revision;
    bool has_value;      /* false: the key was deleted */
    bool has_prev_value; /* false: the key was created */
    bool initial;        /* it is not a change, but part of the state */
    bool is_old;         /* without a previous value: the object is MODIFIED nevertheless */
    /* A previous value that cannot be decoded counts as one that is not selected. */
    bool may_lose_prev_value;
};

/* The events of one callback. A zeroed batch may be finished. */
struct object_batch {
    const struct object_hooks *hooks; /* borrowed */
    vigil_object_event *events;       /* first or owned */
    size_t count, room;
    uint64_t filtered;           /* changes that yielded no event, ever */
    vigil_object_error error;    /* error of the last event, if that is an ERROR */
    vigil_object_event first[2]; /* enough for a change, and for an ERROR without memory */
};

void object_batch_init(struct object_batch *batch, const struct object_hooks *hooks);
void object_batch_fini(struct object_batch *batch);

/* Makes an empty batch large enough for `count` events and an ERROR. ST_NOMEM: there is room for
 * the ERROR only. */
MUST_CHECK
enum status object_batch_reserve(struct object_batch *batch, size_t count);

/* Adds the event of a change, or none if the object is not selected. False: a value cannot be
 * decoded; ret_error says why. */
MUST_CHECK
bool object_batch_change(struct object_batch *batch, const struct object_change *change,
                         vigil_error *ret_error);
void object_batch_bookmark(struct object_batch *batch, int64_t revision, bool initial);

/* Add an ERROR, after which nothing can be added. The cause is copied. */
void object_batch_internal_error(struct object_batch *batch, const vigil_error *cause);
void object_batch_read_error(struct object_batch *batch, const vigil_error *cause);
void object_batch_expired(struct object_batch *batch, const vigil_error *cause,
                          int64_t compact_revision);

/* The same in the words of the cause itself, for the v2 API. cleared_index: 410 if it is not 0. */
void object_batch_error(struct object_batch *batch, const vigil_error *cause,
                        int64_t cleared_index);

static inline bool object_batch_has_error(const struct object_batch *batch)
{
    return batch->count && batch->events[batch->count - 1].type == VIGIL_OBJECT_ERROR;
}

/* Releases the objects that the program has not kept, and forgets all events. */
void object_batch_clear(struct object_batch *batch);

/* Asserts every invariant; for tests. */
void object_batch_check(const struct object_batch *batch);

#endif
