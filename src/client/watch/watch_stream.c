#include "client/watch/watch_stream.h"

#include "base/random.h"
#include "client/call/messages.h"
#include "client/call/stream.h"
#include "client/connect/metadata.h"
#include "client/watch/watch.h"
#include "client/watch/watch_decoder.h"
#include "client/watch/watch_progress.h"

#include <stdlib.h>

enum {
    CREATING_MAX = 4096, /* create requests without an answer: bounds what is queued to be sent */
    CANCELING_MAX =
        4096,           /* cancel requests that the server has not confirmed, for the same reason */
    UNKNOWN_MAX = 4096, /* ids without a watch for which the server sends something */
    SCRATCH_BYTES = 4096,
};

struct client_watch_stream {
    struct client_stream stream;
    struct vigil_client *client; /* borrowed: it owns this stream */
    struct driver_part part;
    struct client_watch_stream *next; /* next in vigil_client.watch_streams */
    struct client_metadata *metadata; /* owned; NULL: none */
    size_t watches; /* all except those that are leaving; without any the stream is closed */
    /* vigil_watch.in_stream, each in one of these: */
    struct list queued;
    struct list creating;  /* and leaving without an id yet */
    struct list to_cancel; /* parking or leaving; the request has not been sent */
    struct list known;     /* live, and those whose cancel request has been sent */
    struct list parked;
    size_t creating_count;  /* requests without an answer */
    size_t canceling_count; /* requests without a confirmation */
    struct hash_map ids;    /* watch_entry */
    size_t unknown_count;   /* entries of ids without a watch */
    uint64_t seed;          /* seed of ids */
    struct watch_decoder decoder;
    struct watch_progress progress;
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES]; /* for decoding */
};

static bool is_waiting_for_id(const struct vigil_watch *watch)
{
    return watch->state == WATCH_CREATING ||
           (watch->state == WATCH_LEAVING && watch->entry.id == WATCH_NO_ID);
}

static bool is_canceling(const struct vigil_watch *watch)
{
    return watch->state == WATCH_PARKING ||
           (watch->state == WATCH_LEAVING && watch->entry.id != WATCH_NO_ID);
}

struct watch_counts {
    size_t watches, creating, canceling, known;
};

static void check_watch(const struct vigil_watch *watch, struct watch_counts *counts)
{
    watch_check(watch);
    counts->watches += watch->state != WATCH_LEAVING;
    counts->creating += is_waiting_for_id(watch);
    counts->canceling += watch->cancel_sent;
    counts->known += watch->entry.id != WATCH_NO_ID;
    assert(!watch->cancel_sent || is_canceling(watch));
}

void client_watch_stream_check(const struct client_watch_stream *stream)
{
    const struct vigil_watch *watch;
    struct watch_counts counts = {0};
    LIST_FOREACH (watch, &stream->queued, in_stream) {
        assert(watch->state == WATCH_QUEUED);
        check_watch(watch, &counts);
    }
    LIST_FOREACH (watch, &stream->creating, in_stream) {
        assert(is_waiting_for_id(watch));
        check_watch(watch, &counts);
    }
    LIST_FOREACH (watch, &stream->to_cancel, in_stream) {
        assert(is_canceling(watch) && !watch->cancel_sent);
        check_watch(watch, &counts);
    }
    LIST_FOREACH (watch, &stream->known, in_stream) {
        assert(watch->state == WATCH_LIVE || watch->cancel_sent);
        check_watch(watch, &counts);
    }
    LIST_FOREACH (watch, &stream->parked, in_stream) {
        assert(watch->state == WATCH_PARKED);
        check_watch(watch, &counts);
    }
    assert(counts.watches == stream->watches);
    assert(counts.creating == stream->creating_count && counts.creating <= CREATING_MAX);
    assert(counts.canceling == stream->canceling_count && counts.canceling <= CANCELING_MAX);
    assert(stream->ids.count == counts.known + stream->unknown_count);
    assert(stream->stream.state == STREAM_OPEN || (counts.creating == 0 && counts.known == 0));
    client_stream_check(&stream->stream);
}

/* -- Ids -- */

static struct slice id_of(const void *value)
{
    const struct watch_entry *entry = value;
    return slice_of(&entry->id, sizeof(entry->id));
}

static struct watch_entry *find_id(const struct client_watch_stream *stream, int64_t id)
{
    return hash_map_get(&stream->ids, slice_of(&id, sizeof(id)));
}

static void remove_id(struct client_watch_stream *stream, int64_t id)
{
    struct watch_entry *entry = hash_map_remove(&stream->ids, slice_of(&id, sizeof(id)));
    if (!entry->unknown) {
        entry->id = WATCH_NO_ID;
        return;
    }
    stream->unknown_count--;
    free(entry);
}

/* False: the server repeats an id or uses an invalid one, or there is no memory. */
static bool set_id(struct client_watch_stream *stream, struct vigil_watch *watch, int64_t id)
{
    void *replaced = NULL;
    if (id == WATCH_NO_ID || find_id(stream, id))
        return false;
    watch->entry.id = id;
    if (hash_map_put(&stream->ids, &watch->entry, &replaced) == ST_OK)
        return true;
    watch->entry.id = WATCH_NO_ID;
    return false;
}

/* -- Requests -- */

static void send_cancel(struct client_watch_stream *stream, int64_t id)
{
    struct pb_watch_cancel_request cancel = {.watch_id = id};
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_CANCEL_REQUEST,
        .cancel_request = &cancel,
    };
    client_stream_send(&stream->stream, &pb_watch_request_table, &request);
}

static void send_create(struct client_watch_stream *stream, const struct vigil_watch *watch)
{
    int32_t filters[2];
    struct pb_watch_create_request create = {
        .key = watch_key(watch),
        .range_end = watch_range_end(watch),
        .start_revision = watch->next_revision,
        .progress_notify = watch->progress_notify,
        .prev_kv = watch->prev_kv,
        .fragment = watch->fragment,
        .filters = filters,
    };
    if (watch->no_put)
        filters[create.filters_count++] = PB_FILTER_TYPE_NOPUT;
    if (watch->no_delete)
        filters[create.filters_count++] = PB_FILTER_TYPE_NODELETE;
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
        .create_request = &create,
    };
    client_stream_send(&stream->stream, &pb_watch_request_table, &request);
}

static void put_on(struct vigil_watch *watch, struct list *list, enum watch_state state)
{
    list_remove(&watch->in_stream);
    list_push_back(list, &watch->in_stream);
    watch_move(watch, state);
}

/* Sends as many requests as may be unanswered. */
static void send_requests(struct client_watch_stream *stream)
{
    struct list *queued = &stream->queued, *to_cancel = &stream->to_cancel;
    if (!client_stream_is_open(&stream->stream) || stream->watches == 0)
        return; /* it is not open yet, or about to be closed */
    while (!list_empty(to_cancel) && stream->canceling_count < CANCELING_MAX) {
        struct vigil_watch *watch = LIST_ENTRY(to_cancel->next, struct vigil_watch, in_stream);
        list_remove(&watch->in_stream);
        list_push_back(&stream->known, &watch->in_stream);
        watch->cancel_sent = true;
        stream->canceling_count++;
        send_cancel(stream, watch->entry.id);
    }
    while (!list_empty(queued) && stream->creating_count < CREATING_MAX) {
        struct vigil_watch *watch = LIST_ENTRY(queued->next, struct vigil_watch, in_stream);
        put_on(watch, &stream->creating, WATCH_CREATING);
        stream->creating_count++;
        watch->entry.progress_after = stream->progress.sent;
        send_create(stream, watch);
    }
}

/* -- Watches leave -- */

/* The server has answered or forgotten the requests of this watch, and its id is free. */
static void settle_requests(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    stream->creating_count -= is_waiting_for_id(watch);
    stream->canceling_count -= watch->cancel_sent;
    watch->cancel_sent = false;
    if (watch->entry.id != WATCH_NO_ID)
        remove_id(stream, watch->entry.id);
}

static void take_off(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    if (watch->state != WATCH_LEAVING) {
        stream->watches--;
        client_stream_want(&stream->stream, stream->watches > 0);
    }
    settle_requests(stream, watch);
    list_remove(&watch->in_stream);
}

/* The server is to end this live watch, or this leaving one. */
static void cancel(struct client_watch_stream *stream, struct vigil_watch *watch,
                   enum watch_state state)
{
    client_messages_free(&watch->parts);
    put_on(watch, &stream->to_cancel, state);
    send_requests(stream);
}

static void finish(struct client_watch_stream *stream, struct vigil_watch *watch,
                   enum grpc_code code, const struct pb_watch_response *response)
{
    take_off(stream, watch);
    watch_finish(watch, code, response);
}

/* The first watch of a stream that is not open; NULL: there is none. */
static struct vigil_watch *first_of(struct client_watch_stream *stream)
{
    struct list *lists[] = {&stream->parked, &stream->queued};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        if (!list_empty(lists[i]))
            return LIST_ENTRY(lists[i]->next, struct vigil_watch, in_stream);
    return NULL;
}

/* All watches that the server knew are queued to be created again, in their order, before those
 * that it never knew. */
static void requeue_all(struct client_stream *client_stream)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(client_stream, struct client_watch_stream, stream);
    struct list *lists[] = {&stream->known, &stream->to_cancel, &stream->creating};
    struct list again;
    list_init(&again);
    struct watch_entry *entry;
    MAP_FOREACH (entry, &stream->ids) {
        entry->id = WATCH_NO_ID;
        if (entry->unknown)
            free(entry);
    }
    hash_map_fini(&stream->ids);
    hash_map_init(&stream->ids, id_of, stream->seed);
    stream->unknown_count = 0;
    watch_progress_reset(&stream->progress);
    stream->creating_count = stream->canceling_count = 0;
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (struct list *first; (first = lists[i]->next) != lists[i];) {
            /* The server has forgotten this watch. One that the program has ended need not be
             * cancelled any more, and a full one is not created before there is room. */
            struct vigil_watch *watch = LIST_ENTRY(first, struct vigil_watch, in_stream);
            watch->cancel_sent = false;
            client_messages_free(&watch->parts);
            if (watch->state == WATCH_LEAVING) {
                list_remove(&watch->in_stream);
                watch_release(watch);
            } else if (watch->state == WATCH_PARKING && watch->paused) {
                put_on(watch, &stream->parked, WATCH_PARKED);
            } else {
                put_on(watch, &again, WATCH_QUEUED);
            }
        }
    list_append(&again, &stream->queued);
    list_append(&stream->queued, &again);
}

/* -- Responses -- */

static void receive(struct client_watch_stream *stream, struct vigil_watch *watch,
                    struct slice message, struct pb_watch_response *response)
{
    enum status status = watch_receive(watch, message, response);
    if (status == ST_OK) {
        if (response->events_count)
            client_stream_progressed(&stream->stream);
    } else if (status == ST_LIMIT && watch->paused) {
        cancel(stream, watch, WATCH_PARKING); /* it is created again when it is resumed */
    } else {
        bool too_large = status == ST_LIMIT;
        watch_deliver_failure(watch, too_large ? VIGIL_ERROR_TOO_LARGE : VIGIL_ERROR_MEMORY,
                              too_large ? "a revision is larger than the receive limit"
                                        : "out of memory");
        client_watch_stream_remove(stream, watch);
    }
}

static void created(struct client_watch_stream *stream, struct slice message,
                    struct pb_watch_response *response)
{
    if (list_empty(&stream->creating)) { /* nothing was to be created */
        client_stream_give_up(&stream->stream);
        return;
    }
    struct vigil_watch *watch = LIST_ENTRY(stream->creating.next, struct vigil_watch, in_stream);
    bool leaving = watch->state == WATCH_LEAVING;
    if (leaving && response->canceled) {
        take_off(stream, watch);
        watch_release(watch);
    } else if (response->canceled) {
        if (!client_stream_renew_token(&stream->stream, response->cancel_reason))
            finish(stream, watch, GRPC_OK, response);
    } else if (!set_id(stream, watch, response->watch_id)) {
        client_stream_give_up(&stream->stream);
    } else if (leaving) {
        stream->creating_count--;
        list_remove(&watch->in_stream);
        list_push_back(&stream->to_cancel, &watch->in_stream);
    } else {
        int64_t revision = response->header ? response->header->revision : 0;
        watch_progress_created(&stream->progress, watch->entry.progress_after, revision);
        stream->creating_count--;
        put_on(watch, &stream->known, WATCH_LIVE);
        if (atomic_fetch_add_explicit(&watch->lives, 1, memory_order_relaxed) > 0)
            counter_add(&stream->client->counters.watch_resumes, 1);
        client_stream_works(&stream->stream);
        receive(stream, watch, message, response);
        if (watch->next_revision > revision) /* it has no past that older answers could deny */
            watch->entry.progress_after = 0;
    }
}

/* The server has ended a watch that we have cancelled. */
static void canceled(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    if (watch->state == WATCH_LEAVING) {
        take_off(stream, watch);
        watch_release(watch);
        return;
    }
    settle_requests(stream, watch);
    if (watch->paused)
        put_on(watch, &stream->parked, WATCH_PARKED);
    else
        put_on(watch, &stream->queued, WATCH_QUEUED);
}

static void dispatch(struct client_watch_stream *stream, struct slice message,
                     struct pb_watch_response *response)
{
    struct watch_entry *entry = NULL;
    struct vigil_watch *watch;
    void *replaced = NULL;
    if (response->created) {
        created(stream, message, response);
    } else if ((entry = find_id(stream, response->watch_id))) {
        watch = CONTAINER_OF(entry, struct vigil_watch, entry);
        if (!entry->unknown && watch->state == WATCH_LIVE) {
            entry->progress_after = 0; /* older answers would have come before this */
            if (response->canceled)
                finish(stream, watch, GRPC_OK, response);
            else
                receive(stream, watch, message, response);
        } else if (response->canceled && entry->unknown) {
            remove_id(stream, entry->id);
        } else if (response->canceled) {
            canceled(stream, watch);
        } /* otherwise the server has sent it before it received our cancel request */
    } else if (response->watch_id == WATCH_NO_ID && !response->canceled &&
               !response->events_count) {
        /* Progress for all watches that it covers. Callbacks end none of them before the next turn,
         * so the list does not change. */
        bool early = watch_progress_is_early(&stream->progress, response);
        LIST_FOREACH (watch, &stream->known, in_stream)
            if (watch->state == WATCH_LIVE &&
                (early || watch_progress_covers(&stream->progress, watch->entry.progress_after)))
                watch_receive_progress(watch, message, response, early);
    } else if (!response->canceled) {
        /* The server sends something for an id without a watch. It is cancelled once; there is no
         * watch whose end would have to be delivered. */
        entry = calloc(1, sizeof(*entry));
        if (entry)
            *entry = (struct watch_entry){.id = response->watch_id, .unknown = true};
        if (!entry || stream->unknown_count >= UNKNOWN_MAX ||
            hash_map_put(&stream->ids, entry, &replaced) != ST_OK) {
            free(entry);
            client_stream_give_up(&stream->stream);
            return;
        }
        stream->unknown_count++;
        send_cancel(stream, response->watch_id);
    }
}

static void on_message(struct client_stream *client_stream, struct slice message)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(client_stream, struct client_watch_stream, stream);
    struct pb_watch_response response;
    struct arena arena;
    arena_init(&arena, stream->scratch, sizeof(stream->scratch),
               client_decode_bytes_max(stream->client));
    enum status status = watch_decode(&stream->decoder, message, &arena, &response);
    if (status == ST_OK) {
        /* How far a watch lags behind is measured by the newest revision that was seen. */
        _Atomic int64_t *newest = &stream->client->counters.watch_revision;
        if (response.header &&
            response.header->revision > atomic_load_explicit(newest, memory_order_relaxed))
            atomic_store_explicit(newest, response.header->revision, memory_order_relaxed);
        dispatch(stream, message, &response);
    } else if (status == ST_LIMIT) {
        client_stream_overflow(client_stream);
    } else {
        client_stream_give_up(client_stream);
    }
    arena_fini(&arena);
    send_requests(stream);
}

static void on_open(struct client_stream *client_stream)
{
    send_requests(CONTAINER_OF(client_stream, struct client_watch_stream, stream));
}

/* No watch survives. */
static void on_refused(struct client_stream *client_stream, enum grpc_code code, struct slice text)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(client_stream, struct client_watch_stream, stream);
    struct pb_watch_response response = {.canceled = true, .cancel_reason = text};
    for (struct vigil_watch *watch; (watch = first_of(stream));)
        finish(stream, watch, client_stream->too_large ? (enum grpc_code)WATCH_TOO_LARGE : code,
               &response);
}

/* -- What watches want -- */

void client_watch_stream_add(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    stream->watches++;
    list_push_back(&stream->queued, &watch->in_stream);
    watch_move(watch, WATCH_QUEUED);
    client_stream_want(&stream->stream, true);
    send_requests(stream);
}

void client_watch_stream_resume(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    put_on(watch, &stream->queued, WATCH_QUEUED);
    send_requests(stream);
}

void client_watch_stream_remove(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    watch_drop_held(watch);
    switch ((enum watch_state)watch->state) {
    case WATCH_LIVE:
        stream->watches--;
        client_stream_want(&stream->stream, stream->watches > 0);
        cancel(stream, watch, WATCH_LEAVING);
        break;
    case WATCH_CREATING: /* its answer is still to come */
    case WATCH_PARKING:
        stream->watches--;
        client_stream_want(&stream->stream, stream->watches > 0);
        watch_move(watch, WATCH_LEAVING);
        break;
    case WATCH_LEAVING:
        break;
    default:
        take_off(stream, watch);
        watch_release(watch);
    }
}

static void send_progress_request(struct watch_progress *progress)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(progress, struct client_watch_stream, progress);
    struct pb_watch_progress_request message = {0};
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
        .progress_request = &message,
    };
    if (!client_stream_is_open(&stream->stream))
        return;
    if (progress->sent == UINT32_MAX) { /* the next stream counts from 0 again */
        client_stream_give_up(&stream->stream);
        return;
    }
    progress->sent++;
    client_stream_send(&stream->stream, &pb_watch_request_table, &request);
}

void client_watch_stream_request_progress(struct client_watch_stream *stream)
{
    if (client_stream_is_open(&stream->stream))
        watch_progress_request(&stream->progress, stream->client);
}

/* -- Life -- */

static void end_part(struct driver_part *part)
{
    struct client_watch_stream *stream = CONTAINER_OF(part, struct client_watch_stream, part);
    client_stream_fini(&stream->stream);
    requeue_all(&stream->stream);
    for (struct vigil_watch *watch; (watch = first_of(stream));) {
        /* The callback may free its watch and others, so the list is read again each time. */
        take_off(stream, watch);
        const struct driver *driver = &watch->client->driver;
        watch_fail(watch, driver_end_code(&driver->end), driver_end_text(&driver->end));
    }
    client_stream_fini(&stream->stream);
}

static void free_part(struct driver_part *part)
{
    struct client_watch_stream *stream = CONTAINER_OF(part, struct client_watch_stream, part);
    assert(stream->watches == 0 && !first_of(stream));
    client_stream_fini(&stream->stream);
    watch_progress_reset(&stream->progress);
    hash_map_fini(&stream->ids);
    free(stream->metadata);
    free(stream);
}

static enum status stream_new(struct vigil_client *client, struct client_watch_stream **ret_stream)
{
    static const struct client_stream_hooks hooks = {
        .on_open = on_open,
        .on_message = on_message,
        .on_break = requeue_all,
        .on_refused = on_refused,
    };
    struct client_watch_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return ST_NOMEM;
    stream->client = client;
    stream->part.end = end_part;
    stream->part.free = free_part;
    stream->progress.send = send_progress_request;
    stream->seed = random_seed_system();
    list_init(&stream->queued);
    list_init(&stream->creating);
    list_init(&stream->to_cancel);
    list_init(&stream->known);
    list_init(&stream->parked);
    hash_map_init(&stream->ids, id_of, stream->seed);
    client_stream_init(&stream->stream, client, &hooks, SLICE_LITERAL("/etcdserverpb.Watch/Watch"),
                       false);
    list_push_back(&client->driver.parts, &stream->part.in_driver);
    stream->next = client->watch_streams;
    client->watch_streams = stream;
    *ret_stream = stream;
    return ST_OK;
}

struct client_watch_stream *client_watch_stream_next(const struct client_watch_stream *stream)
{
    return stream->next;
}

/* A stream without watches is used again for other metadata, so there are only as many as are
 * needed at the same time. */
enum status client_watch_stream_get(struct vigil_client *client, bool require_leader,
                                    struct client_metadata **metadata,
                                    struct client_watch_stream **ret_stream)
{
    struct client_watch_stream *unused = NULL;
    for (struct client_watch_stream *s = client->watch_streams; s; s = s->next) {
        if (s->stream.require_leader == require_leader &&
            client_metadata_equal(s->metadata, *metadata)) {
            *ret_stream = s;
            return ST_OK;
        }
        if (s->watches == 0 && s->stream.state == STREAM_IDLE)
            unused = s;
    }
    if (!unused)
        TRY(stream_new(client, &unused));
    free(unused->metadata);
    unused->metadata = TAKE(*metadata);
    unused->stream.metadata = unused->metadata;
    unused->stream.require_leader = require_leader;
    *ret_stream = unused;
    return ST_OK;
}
