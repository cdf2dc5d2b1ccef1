#include "client/watch/watch.h"

#include "client/call/messages.h"
#include "client/call/prefix.h"
#include "client/connect/error.h"
#include "client/watch/watch_item.h"
#include "client/watch/watch_observer.h"
#include "codec/pb/rpc.pb.h"

#include <stdlib.h>

/* With a key of 16 bytes it then takes 176 bytes of glibc's heap, and not 192. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct vigil_watch) <= 152, "a watch is small");

#define TO(state) (1u << WATCH_##state)

/* Drawn in watch.h. */
static const uint16_t moves[] = {
    [WATCH_NEW] = TO(QUEUED) | TO(ENDED),
    [WATCH_QUEUED] = TO(CREATING) | TO(ENDING) | TO(ENDED),
    [WATCH_CREATING] = TO(QUEUED) | TO(LIVE) | TO(LEAVING) | TO(ENDING),
    [WATCH_LIVE] = TO(QUEUED) | TO(PARKING) | TO(LEAVING) | TO(ENDING),
    [WATCH_PARKING] = TO(PARKED) | TO(QUEUED) | TO(LEAVING),
    [WATCH_PARKED] = TO(QUEUED) | TO(ENDING) | TO(ENDED),
    [WATCH_LEAVING] = TO(ENDED),
    [WATCH_ENDING] = TO(ENDED),
    [WATCH_ENDED] = 0,
};

void watch_move(struct vigil_watch *watch, enum watch_state next)
{
    assert(moves[watch->state] & (1u << next));
    atomic_store_explicit(&watch->state, (uint8_t)next, memory_order_relaxed);
}

void watch_unref(struct vigil_watch *watch)
{
    if (!driver_shared_unref(&watch->shared))
        return;
    struct vigil_client *client = watch->client;
    client_messages_free(&watch->held);
    client_messages_free(&watch->parts);
    if (watch->for_queue)
        watch_item_free(watch->item);
    free(watch);
    driver_unref(&client->driver);
}

void watch_check(const struct vigil_watch *watch)
{
    assert(client_messages_bytes(watch->held) == watch->held_bytes);
    assert((watch->stream == NULL) == (watch->state == WATCH_NEW || watch->state >= WATCH_ENDING));
    assert(watch->next_revision >= 0);
    assert(!watch->parts || watch->state == WATCH_LIVE);
    assert(watch->state != WATCH_ENDING || watch->held || watch->end_lost);
    assert((watch->state != WATCH_ENDED && watch->state != WATCH_LEAVING) || !watch->held);
    assert(watch->state != WATCH_LIVE || watch->entry.id != WATCH_NO_ID);
    assert(watch->state != WATCH_PARKING || watch->entry.id != WATCH_NO_ID);
}

/* -- Callbacks -- */

/* The watch may be freed by the user inside, but our reference keeps it. */
static void call_back(struct vigil_watch *watch, const vigil_watch_batch *batch)
{
    struct vigil_client *client = watch->client;
    if (watch->for_queue) {
        if (watch_item_add(watch->item, batch, watch_delivered(watch)))
            watch->paused = true;
        return;
    }
    if (!driver_callback_begin(&client->driver, &watch->object))
        return;
    vigil_watch_fn fn = watch->object.internal ? watch->observer->fn : watch->fn;
    if (fn(watch, batch, watch->user) == VIGIL_WATCH_PAUSE)
        watch->paused = true;
    driver_callback_end(&client->driver);
}

static void set_delivered(struct vigil_watch *watch, int64_t revision)
{
    if (revision > watch_delivered(watch))
        atomic_store_explicit(&watch->delivered, revision, memory_order_relaxed);
}

static int64_t header_revision(const struct pb_watch_response *response)
{
    return response->header ? response->header->revision : 0;
}

static int64_t revision_of(const struct pb_event *event)
{
    return event->kv ? event->kv->mod_revision : 0;
}

static void deliver_events(struct vigil_watch *watch, const struct pb_watch_response *response)
{
    struct pb_event *events = response->events;
    size_t count = response->events_count;
    /* A server that was behind at a resume may repeat what was delivered before. */
    while (count && revision_of(events) <= watch_delivered(watch)) {
        events++;
        count--;
    }
    if (count == 0)
        return;
    vigil_watch_batch batch = {
        .what = VIGIL_WATCH_EVENTS,
        .revision = revision_of(&events[count - 1]),
        .header = (const vigil_header *)response->header,
        .events = (const vigil_event *)events,
        .event_count = count,
    };
    for (size_t i = 0; i < count; i++) {
        /* An event without a pair gets an empty one, so that users need no check. */
        static struct pb_key_value none;
        if (!events[i].kv)
            events[i].kv = &none;
        else
            prefix_strip(&events[i].kv->key, watch->client->prefix.len);
        if (events[i].prev_kv)
            prefix_strip(&events[i].prev_kv->key, watch->client->prefix.len);
    }
    set_delivered(watch, batch.revision);
    counter_add(&watch->client->counters.watch_events, count);
    call_back(watch, &batch);
}

static void deliver_mark(struct vigil_watch *watch, enum vigil_watch_what what, int64_t revision,
                         const struct pb_watch_response *response)
{
    vigil_watch_batch batch = {
        .what = (int)what,
        .revision = revision,
        .header = (const vigil_header *)response->header,
    };
    call_back(watch, &batch);
}

static void deliver_end(struct vigil_watch *watch, const struct pb_watch_response *response)
{
    vigil_error error;
    struct slice reason = response->cancel_reason;
    /* etcd gives no reason for two errors: a compacted revision is known by the field that names
     * the first one left, and one in the future by a watch that is cancelled as it is created. */
    if (response->compact_revision)
        client_error_from_server(&error, GRPC_OUT_OF_RANGE,
                                 slice_from_text(status_text(ST_COMPACTED)));
    else if (watch->end_code == GRPC_OK && reason.len == 0 && response->created)
        client_error_from_server(&error, GRPC_OUT_OF_RANGE,
                                 slice_from_text(status_text(ST_FUTURE_REV)));
    else if (watch->end_code == WATCH_TOO_LARGE)
        client_error_set(&error, VIGIL_ERROR_TOO_LARGE, VIGIL_REFUSED, "%.*s", SLICE_ARGS(reason));
    else if (watch->end_code == GRPC_OK)
        client_error_from_reason(&error, reason);
    else
        client_error_from_server(&error, watch->end_code, reason);
    vigil_watch_batch batch = {
        .what = VIGIL_WATCH_ENDED,
        .revision = watch_delivered(watch),
        .header = (const vigil_header *)response->header,
        .compact_revision = response->compact_revision,
        .error = &error,
    };
    call_back(watch, &batch);
}

static void deliver(struct vigil_watch *watch, const struct pb_watch_response *response)
{
    if (response->canceled)
        deliver_end(watch, response);
    else if (response->events_count)
        deliver_events(watch, response);
    else if (!response->created)
        deliver_mark(watch, VIGIL_WATCH_PROGRESS, header_revision(response), response);
    else if (watch->created_wanted) {
        watch->created_wanted = false;
        deliver_mark(watch, VIGIL_WATCH_CREATED, header_revision(response), response);
    }
}

/* -- Holding responses while the watch is paused -- */

static void count_held(struct vigil_watch *watch, int64_t bytes)
{
    uint32_t before = atomic_load_explicit(&watch->held_bytes, memory_order_relaxed);
    atomic_store_explicit(&watch->held_bytes, (uint32_t)(before + bytes), memory_order_relaxed);
    counter_add(&watch->client->counters.queued_bytes, (uint64_t)bytes);
    if (watch->object.internal && !watch->object.dropped)
        watch->observer->held(watch->user, watch->held_bytes);
}

static size_t room(const struct vigil_watch *watch)
{
    return watch->held_max - size_min(watch->held_bytes, watch->held_max);
}

static enum status hold(struct vigil_watch *watch, struct slice message, bool always)
{
    if (!always && message.len > room(watch))
        return ST_LIMIT;
    TRY(client_messages_push(&watch->held, message));
    count_held(watch, (int64_t)message.len);
    return ST_OK;
}

/* Progress only matters until newer progress has arrived, so it replaces older progress that no
 * event follows; but early progress says less than any other. Without room or memory it is dropped.
 */
static void hold_progress(struct vigil_watch *watch, struct slice message, bool early)
{
    struct client_message *newest = watch->held;
    if (newest && newest->progress && message.len <= CLIENT_MESSAGE_ROOM) {
        if (early && !newest->early)
            return;
        count_held(watch, (int64_t)message.len - (int64_t)newest->len);
        newest->len = message.len;
        newest->early = early;
        slice_copy(newest->bytes, message);
    } else if (hold(watch, message, false) == ST_OK) {
        watch->held->progress = true;
        watch->held->early = early;
    }
}

void watch_drop_held(struct vigil_watch *watch)
{
    client_messages_free(&watch->held);
    count_held(watch, -(int64_t)watch->held_bytes);
}

void watch_release(struct vigil_watch *watch)
{
    if (watch->state == WATCH_NEW)
        free(TAKE(watch->metadata));
    watch_move(watch, WATCH_ENDED);
    watch->stream = NULL;
    client_messages_free(&watch->parts);
    watch_drop_held(watch);
    atomic_fetch_sub_explicit(&watch->client->counters.watches, 1, memory_order_relaxed);
    watch_unref(watch);
}

/* Decodes a held message, which was valid before. ST_NOMEM. */
static enum status deliver_message(struct vigil_watch *watch, const struct client_message *message)
{
    struct arena arena;
    struct pb_watch_response response;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    enum status status = pb_decode(&pb_watch_response_table, slice_of(message->bytes, message->len),
                                   &arena, &response);
    if (status == ST_OK) {
        /* Early progress says that the watch is alive, but not up to which revision it has received
         * everything. */
        if (message->progress && !message->early)
            set_delivered(watch, header_revision(&response));
        if (message->early)
            deliver_mark(watch, VIGIL_WATCH_PROGRESS, watch_delivered(watch), &response);
        else
            deliver(watch, &response);
    }
    arena_fini(&arena);
    return status;
}

enum status watch_deliver_held(struct vigil_watch *watch)
{
    enum status status = ST_OK;
    while (watch->held && !watch->paused && status == ST_OK) {
        struct client_message *message = client_messages_pop(&watch->held);
        count_held(watch, -(int64_t)message->len);
        status = deliver_message(watch, message);
        free(message);
    }
    bool lost = watch->end_lost && !watch->held && !watch->paused;
    return lost ? ST_NOMEM : status;
}

/* -- Responses -- */

/* What the server has sent completely need not be sent again. */
static void advance(struct vigil_watch *watch, const struct pb_watch_response *response)
{
    int64_t revision = header_revision(response);
    if (response->events_count)
        revision = revision_of(&response->events[response->events_count - 1]);
    else if (response->created && watch->next_revision)
        return; /* the past is still to come */
    if (revision >= watch->next_revision)
        watch->next_revision = revision < INT64_MAX ? revision + 1 : revision;
}

static enum status receive_whole(struct vigil_watch *watch, struct slice message,
                                 const struct pb_watch_response *response)
{
    bool mark = response->events_count == 0;
    if (!watch->paused && !watch->held) {
        advance(watch, response);
        if (mark)
            set_delivered(watch, watch->next_revision - 1);
        deliver(watch, response);
        return ST_OK;
    }
    if (!mark || (response->created && watch->created_wanted))
        TRY(hold(watch, message, false));
    else if (!response->created)
        hold_progress(watch, message, false);
    advance(watch, response);
    return ST_OK;
}

static enum status receive_joined(struct vigil_watch *watch, struct slice last)
{
    AUTO(buf_fini) struct buf joined = {0};
    struct arena arena;
    struct pb_watch_response response;
    /* The fragments and the last part are one message when they are put together, because protobuf
     * appends repeated fields. */
    enum status status = buf_reserve(&joined, client_messages_bytes(watch->parts) + last.len);
    while (watch->parts && status == ST_OK) {
        struct client_message *part = client_messages_pop(&watch->parts);
        status = buf_append(&joined, slice_of(part->bytes, part->len));
        free(part);
    }
    TRY(status);
    TRY(buf_append(&joined, last));
    arena_init(&arena, NULL, 0, client_decode_bytes_max(watch->client));
    status = pb_decode(&pb_watch_response_table, buf_slice(&joined), &arena, &response);
    if (status == ST_OK)
        status = receive_whole(watch, buf_slice(&joined), &response);
    arena_fini(&arena);
    return status;
}

static enum status keep_part(struct vigil_watch *watch, struct slice message)
{
    size_t bytes = client_messages_bytes(watch->parts) + message.len;
    if (bytes > watch->client->receive_bytes_max || (watch->paused && bytes > room(watch)))
        return ST_LIMIT;
    return client_messages_push(&watch->parts, message);
}

static int64_t last_revision(const struct pb_watch_response *response)
{
    return response->events_count ? revision_of(&response->events[response->events_count - 1]) : 0;
}

static enum status append_events(const struct pb_watch_response *response, size_t from, size_t to,
                                 struct buf *message)
{
    struct pb_watch_response some = *response;
    some.events += from;
    some.events_count = to - from;
    return pb_append(&pb_watch_response_table, &some, message);
}

/* A fragment. etcd sends a thousand revisions of the past as one response, so those that are
 * complete are received at once, and only the last revision is kept. */
static enum status receive_part(struct vigil_watch *watch, struct slice message,
                                const struct pb_watch_response *response)
{
    AUTO(buf_fini) struct buf complete = {0};
    AUTO(buf_fini) struct buf rest = {0};
    int64_t newest = last_revision(response), kept = newest;
    size_t first = response->events_count; /* first event of the newest revision */
    while (first > 0 && revision_of(&response->events[first - 1]) == newest)
        first--;
    if (watch->parts) {
        /* The fragments that are kept may belong to an earlier revision, which is complete now. */
        struct slice part = slice_of(watch->parts->bytes, watch->parts->len);
        struct pb_watch_response earlier;
        struct arena arena;
        arena_init(&arena, NULL, 0, client_decode_bytes_max(watch->client));
        enum status status = pb_decode(&pb_watch_response_table, part, &arena, &earlier);
        if (status == ST_OK)
            kept = last_revision(&earlier);
        arena_fini(&arena);
        TRY(status);
    }
    /* Everything so far is of one revision, which may still not be complete. */
    if (first == 0 && kept == newest)
        return keep_part(watch, message);
    TRY(append_events(response, 0, first, &complete));
    TRY(append_events(response, first, response->events_count, &rest));
    TRY(receive_joined(watch, buf_slice(&complete)));
    return keep_part(watch, buf_slice(&rest));
}

enum status watch_receive(struct vigil_watch *watch, struct slice message,
                          struct pb_watch_response *response)
{
    if (response->fragment)
        return receive_part(watch, message, response);
    if (watch->parts)
        return receive_joined(watch, message);
    return receive_whole(watch, message, response);
}

void watch_receive_progress(struct vigil_watch *watch, struct slice message,
                            const struct pb_watch_response *response, bool early)
{
    if (watch->parts)
        return; /* the rest of a revision is still to come */
    if (!early && header_revision(response) < watch->next_revision - 1)
        return; /* it is the answer to a request from before the watch was created */
    if (!early)
        advance(watch, response);
    if (watch->paused || watch->held) {
        hold_progress(watch, message, early);
        return;
    }
    if (!early)
        set_delivered(watch, header_revision(response));
    deliver_mark(watch, VIGIL_WATCH_PROGRESS, watch_delivered(watch), response);
}

void watch_finish(struct vigil_watch *watch, enum grpc_code code,
                  const struct pb_watch_response *response)
{
    AUTO(buf_fini) struct buf message = {0};
    struct pb_watch_response last = *response;
    last.canceled = true;
    last.events_count = 0;
    watch_move(watch, WATCH_ENDING);
    watch->stream = NULL;
    watch->end_code = (uint8_t)code;
    client_messages_free(&watch->parts);
    /* A queue gets everything that is held, even if its item is full: the program takes nothing any
     * more after the end of the client, so its watch must not wait for it. */
    enum status status = ST_OK;
    while (watch->for_queue && watch->held && status == ST_OK) {
        watch->paused = false;
        status = watch_deliver_held(watch);
    }
    if (status != ST_OK) {
        watch_fail(watch, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    if (watch->for_queue || (!watch->paused && !watch->held)) {
        deliver_end(watch, &last);
        watch_release(watch);
        return;
    }
    /* What is held comes first; then the end, as the last held message. */
    watch->end_lost = pb_append(&pb_watch_response_table, &last, &message) != ST_OK ||
                      hold(watch, buf_slice(&message), true) != ST_OK;
}

void watch_deliver_failure(struct vigil_watch *watch, enum vigil_code code, const char *text)
{
    vigil_error error;
    client_error_set(&error, code, VIGIL_REFUSED, "%s", text);
    vigil_watch_batch batch = {
        .what = VIGIL_WATCH_ENDED, .revision = watch_delivered(watch), .error = &error};
    watch_drop_held(watch);
    call_back(watch, &batch);
}

void watch_fail(struct vigil_watch *watch, enum vigil_code code, const char *text)
{
    watch_deliver_failure(watch, code, text);
    watch_release(watch);
}
