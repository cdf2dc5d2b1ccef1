#include "client/v2/v2_watch.h"

#include "client/call/client.h"
#include "client/connect/channel.h"
#include "client/connect/error.h"
#include "client/driver/bytes.h"

#include <stdlib.h>

enum {
    QUEUE_MAX_DEFAULT = 100,
    BUFFER_BYTES_DEFAULT = 1 << 20,
    KEY_BYTES_MAX = 8192,
    BATCH_EVENTS_MAX = 128,
    TURN_NODES_MAX = 1024, /* that are looked at in a turn, selected or not */
};

/* What the user wants, as bits of driver_shared. */
enum { WANTS_START = 1, WANTS_RESUME = 2, WANTS_END = 4 };

#define TO(state) (1u << V2_WATCH_##state)

/* Drawn in v2_watch.h. */
static const uint8_t moves[] = {
    [V2_WATCH_NEW] = TO(OPEN) | TO(ENDED),
    [V2_WATCH_OPEN] = TO(ENDING) | TO(ENDED),
    [V2_WATCH_ENDING] = TO(ENDED),
    [V2_WATCH_ENDED] = 0,
};

static void v2_watch_unref(struct vigil_v2_watch *w)
{
    if (!driver_shared_unref(&w->shared))
        return;
    struct vigil_client *client = w->client;
    object_batch_fini(&w->batch);
    free(w);
    driver_unref(&client->driver);
}

/* -- The queue -- */

static struct v2_reply *first_reply(const struct vigil_v2_watch *w)
{
    return list_empty(&w->queue) ? NULL : LIST_ENTRY(w->queue.next, struct v2_reply, in_queue);
}

/* The client has a sum of all its watches. */
static void set_queued(struct vigil_v2_watch *w, uint64_t replies, uint64_t bytes)
{
    counter_add(&w->client->counters.queued_bytes, bytes - counter_get(&w->counters.queued_bytes));
    counter_set(&w->counters.queued, replies);
    counter_set(&w->counters.queued_bytes, bytes);
}

/* Moves the first reply to another list. */
static void take_reply(struct vigil_v2_watch *w, struct list *to)
{
    struct v2_reply *reply = first_reply(w);
    list_remove(&reply->in_queue);
    list_push_back(to, &reply->in_queue);
    set_queued(w, counter_get(&w->counters.queued) - 1,
               counter_get(&w->counters.queued_bytes) - reply->body.len);
    w->tree_begun = false;
}

/* Requests the next change only while the queue has room for it. */
static void poll_if_room(struct vigil_v2_watch *w)
{
    bool has_room = w->state == V2_WATCH_OPEN && counter_get(&w->counters.queued) < w->queue_max &&
                    counter_get(&w->counters.queued_bytes) < w->buffer_bytes;
    v2_poller_want(&w->poller, has_room);
    counter_set(&w->counters.requests, w->poller.requests);
    counter_set(&w->counters.retries, w->poller.retries);
}

static void set_index(struct vigil_v2_watch *w, int64_t index)
{
    /* The index from which the program would resume never goes back. */
    if (index > atomic_load_explicit(&w->index, memory_order_relaxed))
        atomic_store_explicit(&w->index, index, memory_order_relaxed);
}

/* -- The end -- */

/* Silent. Releases the loop's reference. */
static void end(struct vigil_v2_watch *w)
{
    if (w->state == V2_WATCH_ENDED)
        return;
    bool was_started = w->state != V2_WATCH_NEW;
    STATE_MOVE(w->state, moves, V2_WATCH_ENDED);
    if (w->member.in_driver.next)
        list_remove(&w->member.in_driver);
    loop_defer_cancel(&w->delivery);
    if (was_started)
        v2_poller_fini(&w->poller);
    for (struct list *link; (link = list_pop_front(&w->queue));)
        v2_reply_free(LIST_ENTRY(link, struct v2_reply, in_queue));
    w->tree_begun = false;
    set_queued(w, 0, 0);
    atomic_fetch_sub_explicit(&w->client->counters.watches, 1, memory_order_relaxed);
    v2_watch_unref(w);
}

/* -- Events, inside a callback -- */

/* Whether the node holds an object that is included; otherwise it is counted. */
static bool holds_object(struct vigil_v2_watch *w, const struct v2_node *node)
{
    if (!node->present || node->dir) {
        counter_add(&w->counters.skipped, 1);
        return false;
    }
    if (node->bad_text) {
        counter_add(&w->counters.bad_values, 1);
        return false;
    }
    if (!w->include || w->include(bytes_of_slice(node->key), w->hooks.user))
        return true;
    w->batch.filtered++;
    return false;
}

static void add_change(struct vigil_v2_watch *w, const struct object_change *change)
{
    vigil_error ignored;
    if (!object_batch_change(&w->batch, change, &ignored))
        counter_add(&w->counters.bad_values, 1);
}

static void add_node(struct vigil_v2_watch *w, const struct v2_node *node, bool initial)
{
    if (!holds_object(w, node))
        return;
    struct object_change change = {
        .key = bytes_of_slice(node->key),
        .value = bytes_of_slice(node->value),
        .revision = node->modified,
        .has_value = true,
        .is_old = node->modified != node->created,
        .initial = initial,
    };
    add_change(w, &change);
}

static void add_event(struct vigil_v2_watch *w, const struct v2_event *event)
{
    const struct v2_node *node = &event->node, *prev = &event->prev;
    /* The object that was deleted has the index of its deletion, so that a watch can continue
     * there. */
    struct object_change deleted = {
        .key = bytes_of_slice(prev->key),
        .prev_value = bytes_of_slice(prev->value),
        .revision = node->present ? node->modified : prev->modified,
        .has_prev_value = true,
    };
    /* If the object before cannot be decoded, it is as if there had been none: the new one counts.
     */
    struct object_change modified = {
        .key = bytes_of_slice(node->key),
        .value = bytes_of_slice(node->value),
        .prev_value = bytes_of_slice(prev->value),
        .revision = node->modified,
        .has_value = true,
        .has_prev_value = prev->present && !prev->dir && !prev->bad_text,
        .may_lose_prev_value = true,
    };
    switch (event->action) {
    case V2_ACTION_GET:
    case V2_ACTION_CREATE:
        add_node(w, node, false);
        break;
    case V2_ACTION_SET:
    case V2_ACTION_UPDATE:
    case V2_ACTION_COMPARE_AND_SWAP:
        if (holds_object(w, node))
            add_change(w, &modified);
        break;
    case V2_ACTION_DELETE:
    case V2_ACTION_EXPIRE:
    case V2_ACTION_COMPARE_AND_DELETE:
        if (holds_object(w, prev))
            add_change(w, &deleted);
        break;
    case V2_ACTION_UNKNOWN:
        counter_add(&w->counters.skipped, 1);
        break;
    }
}

static void add_error(struct vigil_v2_watch *w, enum vigil_code code, const char *text)
{
    vigil_error error;
    client_error_set(&error, code, VIGIL_REFUSED, "%s", text);
    object_batch_error(&w->batch, &error, 0);
}

/* One object of the state, or its end. */
static void add_of_state(struct vigil_v2_watch *w, struct v2_reply *reply, struct list *used,
                         struct arena *texts)
{
    struct v2_node node;
    if (!w->tree_begun) {
        v2_tree_begin(&w->tree, buf_slice(&reply->body));
        w->tree_begun = true;
    }
    enum status status = reply->body.len ? v2_tree_next(&w->tree, texts, &node) : ST_END;
    if (status == ST_OK) {
        add_node(w, &node, true);
    } else if (status == ST_END) {
        set_index(w, reply->index);
        object_batch_bookmark(&w->batch, reply->index, true);
        take_reply(w, used);
    } else {
        add_error(w, status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_PROTOCOL,
                  status == ST_NOMEM ? "out of memory" : "the response is not valid JSON");
    }
}

/* Replies whose events are in the batch are moved to used, because the events borrow them. */
static void fill_batch(struct vigil_v2_watch *w, struct list *used, struct arena *texts)
{
    struct v2_reply *reply;
    for (int n = 0; n < TURN_NODES_MAX && w->batch.count < BATCH_EVENTS_MAX &&
                    !object_batch_has_error(&w->batch) && (reply = first_reply(w));
         n++) {
        if (reply->is_state) {
            add_of_state(w, reply, used, texts);
        } else {
            add_event(w, &reply->event);
            set_index(w, reply->index);
            take_reply(w, used);
        }
    }
    if (!object_batch_has_error(&w->batch) && !first_reply(w) && w->state == V2_WATCH_ENDING)
        object_batch_error(&w->batch, &w->failure, w->cleared_index);
}

/* -- Delivery -- */

/* Calls the program, unless there is nothing to say. Inside a callback. */
static void call_program(struct vigil_v2_watch *w, bool ended)
{
    vigil_object_batch batch = {
        .events = w->batch.events,
        .event_count = w->batch.count,
        .revision = vigil_v2_watch_index(w),
        .ended = ended,
    };
    uint64_t events = 0;
    for (size_t i = 0; i < w->batch.count; i++)
        events += w->batch.events[i].type <= VIGIL_OBJECT_DELETED;
    counter_add(&w->counters.events, events);
    counter_add(&w->client->counters.watch_events, events);
    counter_set(&w->counters.filtered, w->batch.filtered);
    if ((batch.event_count || ended) && w->fn(w, &batch, w->hooks.user) == VIGIL_WATCH_PAUSE)
        w->paused = true;
    object_batch_clear(&w->batch);
}

static bool has_delivery(const struct vigil_v2_watch *w)
{
    return !w->paused && (first_reply(w) || w->state == V2_WATCH_ENDING);
}

static void schedule(struct vigil_v2_watch *w)
{
    if (has_delivery(w))
        loop_defer(w->client->driver.loop, &w->delivery);
}

static void on_delivery(struct deferred *deferred)
{
    struct vigil_v2_watch *w = CONTAINER_OF(deferred, struct vigil_v2_watch, delivery);
    struct list used;
    struct arena texts;
    if (!has_delivery(w) || !driver_callback_begin(&w->client->driver, &w->object))
        return; /* freed by the user: its end is on the way */
    /* One batch in a turn, so that other watches and calls of the client have theirs. The functions
     * of the program that decode and select objects are called while it is made, so all of it is
     * inside the callback. */
    list_init(&used);
    arena_init(&texts, NULL, 0, SIZE_MAX);
    if (object_batch_reserve(&w->batch, BATCH_EVENTS_MAX + 1) == ST_OK)
        fill_batch(w, &used, &texts);
    else
        add_error(w, VIGIL_ERROR_MEMORY, "out of memory");
    bool ended = object_batch_has_error(&w->batch);
    call_program(w, ended);
    arena_fini(&texts);
    for (struct list *link; (link = list_pop_front(&used));)
        v2_reply_free(LIST_ENTRY(link, struct v2_reply, in_queue));
    driver_callback_end(&w->client->driver);
    if (ended) {
        end(w);
        return;
    }
    schedule(w);
    poll_if_room(w);
}

/* -- The poller -- */

static void on_reply(struct v2_poller *poller, struct v2_reply *reply)
{
    struct vigil_v2_watch *w = CONTAINER_OF(poller, struct vigil_v2_watch, poller);
    struct v2_watch_counters *c = &w->counters;
    list_push_back(&w->queue, &reply->in_queue);
    set_queued(w, counter_get(&c->queued) + 1, counter_get(&c->queued_bytes) + reply->body.len);
    counter_raise(&c->queued_max, counter_get(&c->queued));
    counter_raise(&c->queued_bytes_max, counter_get(&c->queued_bytes));
    poll_if_room(w);
    schedule(w);
}

static void on_failed(struct v2_poller *poller, const vigil_error *error, int64_t cleared_index)
{
    struct vigil_v2_watch *w = CONTAINER_OF(poller, struct vigil_v2_watch, poller);
    STATE_MOVE(w->state, moves, V2_WATCH_ENDING);
    w->failure = *error;
    w->cleared_index = cleared_index;
    counter_set(&w->counters.requests, w->poller.requests);
    counter_set(&w->counters.retries, w->poller.retries);
    schedule(w);
}

/* -- Commands -- */

/* The client ends, which is not an error. */
static void end_with_client(struct vigil_v2_watch *w)
{
    if (driver_callback_begin(&w->client->driver, &w->object)) {
        call_program(w, true);
        driver_callback_end(&w->client->driver);
    }
    end(w);
}

static void end_member(struct driver_member *member)
{
    end_with_client(CONTAINER_OF(member, struct vigil_v2_watch, member));
}

static void start(struct vigil_v2_watch *w)
{
    static const struct v2_poller_hooks hooks = {on_reply, on_failed};
    struct v2_poller_options options = {
        .key = slice_of(w->key, w->key_len),
        .recursive = w->recursive,
        .quorum = w->quorum,
        .index = vigil_v2_watch_index(w),
        .receive_bytes_max = w->client->receive_bytes_max,
    };
    if (w->client->driver.ended) {
        end_with_client(w);
        return;
    }
    list_push_back(&w->client->driver.members, &w->member.in_driver);
    STATE_MOVE(w->state, moves, V2_WATCH_OPEN);
    if (v2_poller_init(&w->poller, w->client->channel, &options, &hooks) == ST_OK) {
        v2_poller_want(&w->poller, true);
        return;
    }
    vigil_error error;
    client_error_set(&error, VIGIL_ERROR_MEMORY, VIGIL_REFUSED, "out of memory");
    on_failed(&w->poller, &error, 0);
}

static void run_command(struct driver_command *command)
{
    struct vigil_v2_watch *w = CONTAINER_OF(command, struct vigil_v2_watch, shared.command);
    uint32_t wanted = driver_shared_wanted(&w->shared);
    if ((wanted & WANTS_START) && !(wanted & WANTS_END)) /* freed before it was started */
        start(w);
    if ((wanted & WANTS_RESUME) && w->state != V2_WATCH_ENDED) {
        w->paused = false;
        schedule(w);
    }
    if (wanted & WANTS_END)
        end(w);
    v2_watch_unref(w);
}

/* -- Public functions -- */

void vigil_v2_watch_options_init(vigil_v2_watch_options *options)
{
    *options = (vigil_v2_watch_options){
        .size = sizeof(*options),
        .queue_max = QUEUE_MAX_DEFAULT,
        .buffer_bytes = BUFFER_BYTES_DEFAULT,
    };
}

static void watch_init(struct vigil_v2_watch *w, vigil_client *client,
                       const vigil_v2_watch_options *o, vigil_v2_watch_fn fn, void *user)
{
    *w = (struct vigil_v2_watch){
        .client = client,
        .member.end = end_member,
        .fn = fn,
        .include = o->include,
        .hooks = {o->decode, o->release, o->matches, user},
        .queue_max = o->queue_max,
        .buffer_bytes = o->buffer_bytes,
        .delivery.fn = on_delivery,
        .index = o->index,
        .recursive = o->recursive != 0,
        .quorum = !o->no_quorum,
        .key_len = o->key.size,
    };
    list_init(&w->queue);
    object_batch_init(&w->batch, &w->hooks);
    driver_shared_init(&w->shared, 2, run_command);
    slice_copy(w->key, slice_of(o->key.data, o->key.size));
    driver_ref(&client->driver);
    counter_add(&client->counters.watches, 1);
}

int vigil_v2_watch_new(vigil_client *client, const vigil_v2_watch_options *options,
                       vigil_v2_watch_fn fn, void *user, vigil_v2_watch **ret_watch)
{
    vigil_v2_watch_options complete;
    vigil_v2_watch_options_init(&complete);
    if (!client || !options || !fn || !ret_watch || options->size == 0 ||
        options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    if (!(complete.index >= 0 && complete.index < INT64_MAX && complete.key.size <= KEY_BYTES_MAX &&
          complete.queue_max > 0 && complete.buffer_bytes > 0))
        return VIGIL_ERROR_ARGUMENT;
    struct vigil_v2_watch *w = malloc(sizeof(*w) + complete.key.size);
    if (!w)
        return VIGIL_ERROR_MEMORY;
    watch_init(w, client, &complete, fn, user);
    *ret_watch = w;
    driver_shared_want(&w->shared, &client->driver, WANTS_START);
    return VIGIL_OK;
}

void vigil_v2_watch_free(vigil_v2_watch *w)
{
    if (!w)
        return;
    driver_drop(&w->client->driver, &w->object);
    driver_shared_want(&w->shared, &w->client->driver, WANTS_END);
    v2_watch_unref(w);
}

void vigil_v2_watch_resume(vigil_v2_watch *w)
{
    if (w)
        driver_shared_want(&w->shared, &w->client->driver, WANTS_RESUME);
}

int64_t vigil_v2_watch_index(const vigil_v2_watch *w)
{
    return w ? atomic_load_explicit(&w->index, memory_order_relaxed) : 0;
}

void *vigil_v2_watch_user(const vigil_v2_watch *w)
{
    return w ? w->hooks.user : NULL;
}

void vigil_v2_watch_get_stats(const vigil_v2_watch *w, vigil_v2_watch_stats *ret_stats, size_t size)
{
    if (!w) {
        client_stats_copy(ret_stats, size, NULL, 0);
        return;
    }
    const struct v2_watch_counters *c = &w->counters;
    vigil_v2_watch_stats stats = {
        .events = counter_get(&c->events),
        .filtered = counter_get(&c->filtered),
        .skipped = counter_get(&c->skipped),
        .bad_values = counter_get(&c->bad_values),
        .requests = counter_get(&c->requests),
        .retries = counter_get(&c->retries),
        .queued = counter_get(&c->queued),
        .queued_max = counter_get(&c->queued_max),
        .queued_bytes = counter_get(&c->queued_bytes),
        .queued_bytes_max = counter_get(&c->queued_bytes_max),
    };
    client_stats_copy(ret_stats, size, &stats, sizeof(stats));
}

void v2_watch_check(const struct vigil_v2_watch *w)
{
    uint64_t replies = 0, bytes = 0;
    struct v2_reply *reply;
    LIST_FOREACH (reply, &w->queue, in_queue) {
        replies++;
        bytes += reply->body.len;
    }
    assert(replies == counter_get(&w->counters.queued) &&
           bytes == counter_get(&w->counters.queued_bytes));
    assert(w->state != V2_WATCH_ENDED || replies == 0);
    assert(w->batch.count == 0);
    assert(!w->tree_begun || first_reply(w));
    object_batch_check(&w->batch);
    if (w->state == V2_WATCH_OPEN)
        v2_poller_check(&w->poller);
}
