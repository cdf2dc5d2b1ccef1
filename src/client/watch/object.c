#include "client/watch/object.h"

#include "client/connect/error.h"

#include <stdlib.h>

enum { STATUS_EXPIRED = 410, STATUS_INTERNAL = 500 };
enum { KEEP_EVENTS_MAX = 256 }; /* a larger batch gives its memory back */

void object_batch_init(struct object_batch *batch, const struct object_hooks *hooks)
{
    *batch = (struct object_batch){.hooks = hooks, .room = COUNT_OF(batch->first)};
    batch->events = batch->first;
}

static void free_events(struct object_batch *batch)
{
    if (batch->events != batch->first)
        free(batch->events);
    batch->events = batch->first;
    batch->room = COUNT_OF(batch->first);
}

void object_batch_fini(struct object_batch *batch)
{
    assert(batch->count == 0);
    free_events(batch);
}

void object_batch_check(const struct object_batch *batch)
{
    assert(batch->count <= batch->room);
    assert(batch->room >= COUNT_OF(batch->first));
    assert((batch->events == batch->first) == (batch->room == COUNT_OF(batch->first)));
    for (size_t i = 0; i < batch->count; i++) {
        assert((batch->events[i].type == VIGIL_OBJECT_ERROR) == (batch->events[i].error != NULL));
        assert(batch->events[i].type != VIGIL_OBJECT_ERROR || i + 1 == batch->count);
    }
}

enum status object_batch_reserve(struct object_batch *batch, size_t count)
{
    assert(batch->count == 0);
    if (count < batch->room)
        return ST_OK;
    free_events(batch);
    vigil_object_event *events = calloc(count + 1, sizeof(*events));
    if (!events)
        return ST_NOMEM;
    batch->events = events;
    batch->room = count + 1;
    return ST_OK;
}

static void release(const struct object_batch *batch, void *decoded)
{
    if (decoded && batch->hooks->release)
        batch->hooks->release(decoded);
}

void object_batch_clear(struct object_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        release(batch, batch->events[i].object.decoded);
    batch->count = 0;
    if (batch->room > KEEP_EVENTS_MAX)
        free_events(batch);
}

static vigil_object_event *add(struct object_batch *batch, vigil_object_event_type type)
{
    assert(batch->count < batch->room);
    assert(!object_batch_has_error(batch));
    vigil_object_event *event = &batch->events[batch->count++];
    *event = (vigil_object_event){.type = (int)type};
    return event;
}

/* -- Changes -- */

static bool decode(const struct object_batch *batch, vigil_object *object, vigil_error *ret_error)
{
    const struct object_hooks *hooks = batch->hooks;
    vigil_error error = {0};
    if (!hooks->decode || hooks->decode(object, &error, hooks->user) == 0)
        return true;
    error.text[sizeof(error.text) - 1] = '\0';
    client_error_set(ret_error, VIGIL_ERROR_DECODE, VIGIL_REFUSED, "%s",
                     error.text[0] ? error.text : "a value cannot be decoded");
    return false;
}

/* Both objects are decoded if they are needed. For the program, an object exists while it selects
 * it: a change that makes it match adds it, and one after which it does not match deletes it. */
static void add_change(struct object_batch *batch, const struct object_change *change,
                       vigil_object *before, vigil_object *after)
{
    const struct object_hooks *hooks = batch->hooks;
    bool matched =
        change->has_prev_value && (!hooks->matches || hooks->matches(before, hooks->user));
    bool matches = change->has_value && (!hooks->matches || hooks->matches(after, hooks->user));
    if (!matched && !matches) {
        batch->filtered++;
        return;
    }
    bool existed = matched || change->is_old;
    vigil_object_event *event = add(batch, !matches   ? VIGIL_OBJECT_DELETED
                                           : !existed ? VIGIL_OBJECT_ADDED
                                                      : VIGIL_OBJECT_MODIFIED);
    event->initial = change->initial;
    event->object = matches ? *after : *before;
    (matches ? after : before)->decoded = NULL; /* it belongs to the event now */
}

bool object_batch_change(struct object_batch *batch, const struct object_change *change,
                         vigil_error *ret_error)
{
    struct object_change known = *change;
    /* The one before has the revision of the change too: it is the object of a DELETED event. */
    vigil_object before = {change->key, change->prev_value, change->revision, NULL};
    vigil_object after = {change->key, change->value, change->revision, NULL};
    bool valid = !change->has_value || decode(batch, &after, ret_error);
    /* The previous value is decoded only if it is the object of the event, or decides about it. */
    if (valid && change->has_prev_value &&
        (!change->has_value || batch->hooks->matches || change->may_lose_prev_value)) {
        known.has_prev_value = decode(batch, &before, ret_error);
        valid = known.has_prev_value || change->may_lose_prev_value;
    }
    if (valid)
        add_change(batch, &known, &before, &after);
    release(batch, before.decoded);
    release(batch, after.decoded);
    return valid;
}

void object_batch_bookmark(struct object_batch *batch, int64_t revision, bool initial)
{
    vigil_object_event *event = add(batch, VIGIL_OBJECT_BOOKMARK);
    event->initial = initial;
    event->object.revision = revision;
}

/* -- Errors -- */

/* The text is what Kubernetes has for it: some words, and perhaps the text of the cause. */
static void add_error(struct object_batch *batch, int status, const char *reason,
                      const vigil_error *cause, const char *words, const char *text)
{
    vigil_object_event *event = add(batch, VIGIL_OBJECT_ERROR);
    batch->error = (vigil_object_error){.status = status, .reason = reason};
    client_error_set(&batch->error.error, (enum vigil_code)cause->code,
                     (enum vigil_outcome)cause->outcome, "%s%s", words, text);
    batch->error.error.grpc_code = cause->grpc_code;
    event->error = &batch->error;
}

void object_batch_internal_error(struct object_batch *batch, const vigil_error *cause)
{
    add_error(batch, STATUS_INTERNAL, "InternalError", cause,
              "Internal error occurred: ", cause->text);
}

void object_batch_read_error(struct object_batch *batch, const vigil_error *cause)
{
    add_error(batch, STATUS_INTERNAL, "StorageReadError", cause,
              "saw a DELETED event, but object data is corrupt - ", cause->text);
}

void object_batch_expired(struct object_batch *batch, const vigil_error *cause,
                          int64_t compact_revision)
{
    add_error(batch, STATUS_EXPIRED, "Expired", cause,
              "The resourceVersion for the provided watch is too old.", "");
    batch->error.compact_revision = compact_revision;
}

void object_batch_error(struct object_batch *batch, const vigil_error *cause, int64_t cleared_index)
{
    add_error(batch, cleared_index ? STATUS_EXPIRED : STATUS_INTERNAL,
              cleared_index ? "Expired" : "InternalError", cause, "", cause->text);
    batch->error.compact_revision = cleared_index;
}
