#include "client/watch_stream.h"

#include "base/random.h"
#include "client/stream.h"
#include "client/watch.h"
#include "codec/pb/rpc.pb.h"

#include <stdlib.h>

enum {
    CREATING_MAX = 4096,  /* create requests without an answer: bounds what is queued to be sent */
    FORGOTTEN_MAX = 4096, /* ids that we have cancelled and the server has not confirmed */
    SCRATCH_BYTES = 4096,
};

struct client_watch_stream {
    struct client_stream stream;
    struct vigil_client *client; /* borrowed: it owns this stream */
    struct client_part part;
    struct list queued, creating, others; /* vigil_watch.in_stream */
    size_t creating_count;
    struct hash_map ids; /* watch_entry: live watches, and ids that the server should forget */
    size_t forgotten_count;
    uint64_t seed;                                        /* of ids */
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES]; /* for decoding */
};

static bool is_empty(const struct client_watch_stream *stream)
{
    return list_empty(&stream->queued) && list_empty(&stream->creating) &&
           list_empty(&stream->others);
}

void watch_stream_check(const struct client_watch_stream *stream)
{
    const struct vigil_watch *watch;
    size_t creating = 0, live = 0;
    LIST_FOREACH (watch, &stream->queued, in_stream)
        assert(watch->state == WATCH_QUEUED);
    LIST_FOREACH (watch, &stream->creating, in_stream) {
        assert(watch->state == WATCH_CREATING || watch->state == WATCH_LEAVING);
        creating++;
    }
    LIST_FOREACH (watch, &stream->others, in_stream) {
        assert(watch->state == WATCH_LIVE || watch->state == WATCH_PARKED);
        live += watch->state == WATCH_LIVE;
        watch_check(watch);
    }
    assert(creating == stream->creating_count);
    assert(stream->ids.count == live + stream->forgotten_count);
    assert(stream->stream.state == STREAM_OPEN || (creating == 0 && live == 0));
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

static struct vigil_watch *watch_of(struct watch_entry *entry)
{
    return CONTAINER_OF(entry, struct vigil_watch, entry);
}

static void remove_id(struct client_watch_stream *stream, int64_t id)
{
    struct watch_entry *entry = hash_map_remove(&stream->ids, slice_of(&id, sizeof(id)));
    if (!entry || !entry->forgotten)
        return;
    stream->forgotten_count--;
    free(entry);
}

static void clear_ids(struct client_watch_stream *stream)
{
    struct watch_entry *entry;
    MAP_FOREACH (entry, &stream->ids)
        if (entry->forgotten)
            free(entry);
    hash_map_fini(&stream->ids);
    hash_map_init(&stream->ids, id_of, stream->seed);
    stream->forgotten_count = 0;
}

/* -- Requests -- */

static void send_request(struct client_watch_stream *stream, const struct pb_watch_request *request)
{
    client_stream_send(&stream->stream, &pb_watch_request_table, request);
}

/* Cancels an id at the server, once. */
static void forget_id(struct client_watch_stream *stream, int64_t id)
{
    struct watch_entry *entry = calloc(1, sizeof(*entry));
    struct pb_watch_cancel_request cancel = {.watch_id = id};
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_CANCEL_REQUEST,
        .cancel_request = &cancel,
    };
    void *replaced = NULL;
    remove_id(stream, id);
    if (entry)
        *entry = (struct watch_entry){.id = id, .forgotten = true};
    if (!entry || stream->forgotten_count >= FORGOTTEN_MAX ||
        hash_map_put(&stream->ids, entry, &replaced) != ST_OK) {
        free(entry);
        client_stream_give_up(&stream->stream);
        return;
    }
    stream->forgotten_count++;
    send_request(stream, &request);
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
    send_request(stream, &request);
}

static void put_on(struct vigil_watch *watch, struct list *list, enum watch_state state)
{
    list_remove(&watch->in_stream);
    list_push_back(list, &watch->in_stream);
    watch_move(watch, state);
}

/* Sends as many create requests as may be unanswered. */
static void send_creates(struct client_watch_stream *stream)
{
    while (client_stream_is_open(&stream->stream) && !list_empty(&stream->queued) &&
           stream->creating_count < CREATING_MAX) {
        struct vigil_watch *watch = LIST_ENTRY(stream->queued.next, struct vigil_watch, in_stream);
        put_on(watch, &stream->creating, WATCH_CREATING);
        stream->creating_count++;
        send_create(stream, watch);
    }
}

/* -- Watches leave -- */

/* A watch leaves the stream, which ends at the server with its last one. */
static void take_off(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    if (watch->state == WATCH_CREATING || watch->state == WATCH_LEAVING)
        stream->creating_count--;
    if (find_id(stream, watch->entry.id) == &watch->entry)
        remove_id(stream, watch->entry.id);
    list_remove(&watch->in_stream);
    client_stream_want(&stream->stream, !is_empty(stream));
}

static void finish(struct client_watch_stream *stream, struct vigil_watch *watch,
                   enum grpc_code code, const struct pb_watch_response *response)
{
    take_off(stream, watch);
    watch_finish(watch, code, response);
}

/* Takes the first watch of the stream; NULL: there is none. */
static struct vigil_watch *first_of(struct client_watch_stream *stream)
{
    struct list *lists[] = {&stream->others, &stream->creating, &stream->queued};
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
    struct vigil_watch *watch, *following;
    struct list again;
    list_init(&again);
    LIST_FOREACH_SAFE (watch, following, &stream->others, in_stream) {
        if (watch->state != WATCH_LIVE)
            continue;
        watch_drop_parts(watch);
        put_on(watch, &again, WATCH_QUEUED);
    }
    LIST_FOREACH_SAFE (watch, following, &stream->creating, in_stream) {
        if (watch->state == WATCH_CREATING) {
            put_on(watch, &again, WATCH_QUEUED);
        } else {
            list_remove(&watch->in_stream);
            watch_release(watch);
        }
    }
    stream->creating_count = 0;
    list_append(&again, &stream->queued);
    list_append(&stream->queued, &again);
    clear_ids(stream);
    client_stream_want(&stream->stream, !is_empty(stream));
}

/* -- Responses -- */

static void receive(struct client_watch_stream *stream, struct vigil_watch *watch,
                    struct slice message, struct pb_watch_response *response)
{
    enum status status = watch_receive(watch, message, response);
    if (status == ST_OK) {
        if (response->events_count)
            client_stream_progressed(&stream->stream);
        return;
    }
    forget_id(stream, watch->entry.id);
    watch_drop_parts(watch);
    watch_move(watch, WATCH_PARKED);
    if (status == ST_LIMIT && watch->paused)
        return; /* it is created again when it is resumed */
    take_off(stream, watch);
    watch_fail(watch, status == ST_LIMIT ? VIGIL_ERROR_TOO_LARGE : VIGIL_ERROR_MEMORY,
               status == ST_LIMIT ? "a revision is larger than the receive limit"
                                  : "out of memory");
}

/* False: the server repeats an id, or there is no memory. */
static bool make_live(struct client_watch_stream *stream, struct vigil_watch *watch, int64_t id)
{
    void *replaced = NULL;
    watch->entry = (struct watch_entry){.id = id};
    if (find_id(stream, id) || hash_map_put(&stream->ids, &watch->entry, &replaced) != ST_OK)
        return false;
    stream->creating_count--;
    put_on(watch, &stream->others, WATCH_LIVE);
    if (watch->was_live)
        atomic_fetch_add_explicit(&stream->client->counters.watch_resumes, 1, memory_order_relaxed);
    watch->was_live = true;
    client_stream_works(&stream->stream);
    return true;
}

static void created(struct client_watch_stream *stream, struct slice message,
                    struct pb_watch_response *response)
{
    if (list_empty(&stream->creating)) { /* nothing was to be created */
        client_stream_give_up(&stream->stream);
        return;
    }
    struct vigil_watch *watch = LIST_ENTRY(stream->creating.next, struct vigil_watch, in_stream);
    if (watch->state == WATCH_LEAVING) {
        if (!response->canceled)
            forget_id(stream, response->watch_id);
        take_off(stream, watch);
        watch_release(watch);
    } else if (response->canceled) {
        if (!client_stream_renew_token(&stream->stream, response->cancel_reason))
            finish(stream, watch, GRPC_OK, response);
    } else if (make_live(stream, watch, response->watch_id)) {
        receive(stream, watch, message, response);
    } else {
        client_stream_give_up(&stream->stream);
    }
}

/* Progress for all watches. Callbacks end none of them before the next turn, so the list does not
 * change. */
static void broadcast(struct client_watch_stream *stream, const struct pb_watch_response *response)
{
    struct vigil_watch *watch;
    LIST_FOREACH (watch, &stream->others, in_stream)
        if (watch->state == WATCH_LIVE)
            watch_receive_progress(watch, response);
}

static void dispatch(struct client_watch_stream *stream, struct slice message,
                     struct pb_watch_response *response)
{
    if (response->created) {
        created(stream, message, response);
        return;
    }
    struct watch_entry *entry = find_id(stream, response->watch_id);
    if (response->watch_id == -1 && !response->canceled && response->events_count == 0)
        broadcast(stream, response);
    else if (entry && !entry->forgotten && response->canceled)
        finish(stream, watch_of(entry), GRPC_OK, response);
    else if (entry && !entry->forgotten)
        receive(stream, watch_of(entry), message, response);
    else if (response->canceled)
        remove_id(stream, response->watch_id);
    else if (!entry)
        forget_id(stream, response->watch_id);
}

static void on_message(struct client_stream *client_stream, struct slice message)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(client_stream, struct client_watch_stream, stream);
    struct pb_watch_response response;
    struct arena arena;
    arena_init(&arena, stream->scratch, sizeof(stream->scratch), SIZE_MAX);
    if (pb_decode(&pb_watch_response_table, message, &arena, &response) == ST_OK)
        dispatch(stream, message, &response);
    else
        client_stream_give_up(client_stream);
    arena_fini(&arena);
    send_creates(stream);
}

static void on_open(struct client_stream *client_stream)
{
    send_creates(CONTAINER_OF(client_stream, struct client_watch_stream, stream));
}

/* No watch survives. */
static void on_refused(struct client_stream *client_stream, enum grpc_code code, struct slice text)
{
    struct client_watch_stream *stream =
        CONTAINER_OF(client_stream, struct client_watch_stream, stream);
    struct pb_watch_response response = {.canceled = true, .cancel_reason = text};
    for (struct vigil_watch *watch; (watch = first_of(stream));)
        finish(stream, watch, code, &response);
}

/* -- What watches want -- */

void watch_stream_add(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    if (watch->in_stream.next)
        list_remove(&watch->in_stream);
    list_push_back(&stream->queued, &watch->in_stream);
    watch_move(watch, WATCH_QUEUED);
    client_stream_want(&stream->stream, true);
    send_creates(stream);
}

void watch_stream_remove(struct client_watch_stream *stream, struct vigil_watch *watch)
{
    if (watch->state == WATCH_CREATING)
        watch_move(watch, WATCH_LEAVING);
    if (watch->state == WATCH_LEAVING)
        return; /* its answer is still to come */
    if (watch->state == WATCH_LIVE)
        forget_id(stream, watch->entry.id);
    take_off(stream, watch);
}

void watch_stream_request_progress(struct client_watch_stream *stream)
{
    struct pb_watch_progress_request progress = {0};
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
        .progress_request = &progress,
    };
    if (client_stream_is_open(&stream->stream))
        send_request(stream, &request);
}

/* -- Life -- */

static void end_part(struct client_part *part)
{
    struct client_watch_stream *stream = CONTAINER_OF(part, struct client_watch_stream, part);
    client_stream_fini(&stream->stream);
    requeue_all(&stream->stream);
    for (struct vigil_watch *watch; (watch = first_of(stream));) {
        take_off(stream, watch);
        watch_fail(watch, VIGIL_ERROR_CANCELED, "the client was shut down");
    }
    client_stream_fini(&stream->stream);
}

static void free_part(struct client_part *part)
{
    struct client_watch_stream *stream = CONTAINER_OF(part, struct client_watch_stream, part);
    assert(is_empty(stream));
    client_stream_fini(&stream->stream);
    hash_map_fini(&stream->ids);
    free(stream);
}

enum status client_watch_stream_new(struct vigil_client *client, bool require_leader,
                                    struct client_watch_stream **ret_stream)
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
    stream->seed = random_seed_system();
    list_init(&stream->queued);
    list_init(&stream->creating);
    list_init(&stream->others);
    hash_map_init(&stream->ids, id_of, stream->seed);
    client_stream_init(&stream->stream, client, &hooks, SLICE_LITERAL("/etcdserverpb.Watch/Watch"),
                       require_leader);
    list_push_back(&client->parts, &stream->part.in_client);
    *ret_stream = stream;
    return ST_OK;
}
