#include "client/watch/object_watch.h"

#include "client/api/kv.h"
#include "client/connect/error.h"
#include "client/watch/watch_observer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_LIMIT_DEFAULT = 1000, QUOTED_BYTES = 96 };

/* What the user wants, as bits of driver_shared.wanted. */
enum { WANTS_START = 1, WANTS_RESUME = 2, WANTS_END = 4 };

#define TO(state) (1u << OBJECT_WATCH_##state)

/* Drawn in object_watch.h. */
static const uint8_t moves[] = {
    [OBJECT_WATCH_NEW] = TO(LISTING) | TO(WATCHING) | TO(ENDED),
    [OBJECT_WATCH_LISTING] = TO(WATCHING) | TO(ENDED),
    [OBJECT_WATCH_WATCHING] = TO(ENDED),
    [OBJECT_WATCH_ENDED] = 0,
};

static int64_t revision_of(const struct vigil_object_watch *watch)
{
    return atomic_load_explicit(&watch->revision, memory_order_relaxed);
}

void object_watch_check(const struct vigil_object_watch *watch)
{
    object_batch_check(&watch->batch);
    assert(atomic_load(&watch->shared.refs) > 0);
    assert((watch->pages != NULL) == (watch->state == OBJECT_WATCH_LISTING));
    assert((watch->watch != NULL) == (watch->state == OBJECT_WATCH_WATCHING));
    assert(watch->state != OBJECT_WATCH_WATCHING || revision_of(watch) > 0);
    assert(watch->batch.count == 0);
    assert(watch->page_limit > 0);
}

static void object_watch_unref(struct vigil_object_watch *watch)
{
    if (!driver_shared_unref(&watch->shared))
        return;
    struct vigil_client *client = watch->client;
    object_batch_fini(&watch->batch);
    free(watch);
    driver_unref(&client->driver);
}

static void on_held(void *user, size_t bytes)
{
    struct vigil_object_watch *watch = user;
    counter_set(&watch->counters.queued_bytes, bytes);
    counter_raise(&watch->counters.queued_bytes_max, bytes);
}

/* -- The end, and errors -- */

/* Silent. Releases the loop's reference. */
static void end(struct vigil_object_watch *watch)
{
    if (watch->state == OBJECT_WATCH_ENDED)
        return;
    STATE_MOVE(watch->state, moves, OBJECT_WATCH_ENDED);
    vigil_call_free(watch->pages);
    vigil_watch_free(watch->watch);
    watch->pages = NULL;
    watch->watch = NULL;
    counter_set(&watch->counters.queued_bytes, 0);
    object_watch_unref(watch);
}

/* Delivers the batch, unless it is empty and does not end the watch. Inside a callback. Returns an
 * enum vigil_watch_answer. */
static int deliver(struct vigil_object_watch *watch, bool ended)
{
    vigil_object_batch batch = {
        .events = watch->batch.events,
        .event_count = watch->batch.count,
        .revision = revision_of(watch),
        .ended = ended,
    };
    struct object_watch_counters *counters = &watch->counters;
    for (size_t i = 0; i < watch->batch.count; i++) {
        int type = watch->batch.events[i].type;
        counter_add(&counters->events, type <= VIGIL_OBJECT_DELETED);
        counter_add(&counters->bookmarks, type == VIGIL_OBJECT_BOOKMARK);
    }
    counter_set(&counters->filtered, watch->batch.filtered);
    counter_raise(&counters->batch_events_max, watch->batch.count);
    int answer = batch.event_count || ended ? watch->fn(watch, &batch, watch->hooks.user)
                                            : VIGIL_WATCH_CONTINUE;
    object_batch_clear(&watch->batch);
    counter_add(&watch->counters.pauses, answer == VIGIL_WATCH_PAUSE);
    return answer;
}

static void add_error(struct vigil_object_watch *watch, enum vigil_code code, const char *text)
{
    vigil_error error;
    client_error_set(&error, code, VIGIL_REFUSED, "%s", text);
    object_batch_internal_error(&watch->batch, &error);
}

/* Nothing if the client ends: that is not an error. */
static void add_server_error(struct vigil_object_watch *watch, const vigil_error *error,
                             int64_t compact_revision)
{
    if (watch->client->driver.ended)
        return;
    if (error->code == VIGIL_ERROR_COMPACTED)
        object_batch_expired(&watch->batch, error, compact_revision);
    else
        object_batch_internal_error(&watch->batch, error);
}

/* Outside of callbacks: delivers the error, unless the client ends, and ends the watch. */
static void end_with(struct vigil_object_watch *watch, const vigil_error *error)
{
    if (driver_callback_begin(&watch->client->driver, &watch->object)) {
        add_server_error(watch, error, 0);
        (void)deliver(watch, true);
        driver_callback_end(&watch->client->driver);
    }
    end(watch);
}

static void end_without_memory(struct vigil_object_watch *watch)
{
    vigil_error error;
    client_error_set(&error, VIGIL_ERROR_MEMORY, VIGIL_NOT_SENT, "out of memory");
    end_with(watch, &error);
}

/* -- Changes -- */

static void set_revision(struct vigil_object_watch *watch, int64_t revision)
{
    if (revision > revision_of(watch))
        atomic_store_explicit(&watch->revision, revision, memory_order_relaxed);
}

/* Writes bytes as Go's %q does, for those that are usual in keys. Long keys are cut off. */
static void quote(vigil_bytes bytes, char *to, size_t to_bytes)
{
    const uint8_t *from = bytes.data;
    size_t len = 0;
    enum { LONGEST = sizeof("\\x00") };
    for (size_t i = 0; i < bytes.size && len + LONGEST < to_bytes; i++) {
        bool escaped = from[i] == '"' || from[i] == '\\';
        bool printable = from[i] >= ' ' && from[i] <= '~';
        int n = snprintf(to + len, to_bytes - len,
                         escaped     ? "\\%c"
                         : printable ? "%c"
                                     : "\\x%02x",
                         from[i]);
        len += (size_t)n;
    }
    to[len] = '\0';
}

/* Without it we do not know what was deleted or modified. */
static void add_missing_previous(struct vigil_object_watch *watch, const vigil_event *event)
{
    char key[QUOTED_BYTES];
    vigil_error error;
    quote(event->kv->key, key, sizeof(key));
    client_error_set(&error, VIGIL_ERROR_COMPACTED, VIGIL_REFUSED,
                     "etcd event received with PrevKv=nil (key=\"%s\", modRevision=%" PRId64
                     ", type=%s)",
                     key, event->kv->mod_revision, event->type == VIGIL_PUT ? "PUT" : "DELETE");
    object_batch_internal_error(&watch->batch, &error);
}

/* False: the batch ends with an error. */
static bool add_event(struct vigil_object_watch *watch, const vigil_event *event)
{
    bool deleted = event->type == VIGIL_DELETE;
    bool created = !deleted && event->kv->create_revision == event->kv->mod_revision;
    struct object_change change = {
        .key = event->kv->key,
        .value = event->kv->value,
        .revision = event->kv->mod_revision,
        .has_value = !deleted,
        .has_prev_value = !created,
    };
    vigil_error error;
    if (!created && !event->prev_kv) {
        add_missing_previous(watch, event);
        return false;
    }
    if (!created)
        change.prev_value = event->prev_kv->value;
    if (object_batch_change(&watch->batch, &change, &error))
        return true;
    if (deleted)
        object_batch_read_error(&watch->batch, &error);
    else
        object_batch_internal_error(&watch->batch, &error);
    return false;
}

static void add_events(struct vigil_object_watch *watch, const vigil_watch_batch *batch)
{
    if (object_batch_reserve(&watch->batch, batch->event_count) != ST_OK) {
        add_error(watch, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < batch->event_count; i++)
        if (!add_event(watch, &batch->events[i])) {
            /* A program that resumes there gets the event that it could not use again. */
            set_revision(watch, batch->events[i].kv->mod_revision - 1);
            return;
        }
    set_revision(watch, batch->revision);
}

/* The end of an interval in which the program is called: the batch is delivered, and an error ends
 * the watch. Returns an enum vigil_watch_answer. */
static int end_callback(struct vigil_object_watch *watch, bool ended)
{
    ended = ended || object_batch_has_error(&watch->batch);
    int answer = deliver(watch, ended);
    driver_callback_end(&watch->client->driver);
    if (ended)
        end(watch);
    return answer;
}

static int on_watch_batch(vigil_watch *inner, const vigil_watch_batch *batch, void *user)
{
    struct vigil_object_watch *watch = user;
    (void)inner;
    if (!driver_callback_begin(&watch->client->driver, &watch->object))
        return VIGIL_WATCH_CONTINUE; /* the watch or its client has been freed */
    if (batch->what == VIGIL_WATCH_EVENTS) {
        add_events(watch, batch);
    } else if (batch->what == VIGIL_WATCH_PROGRESS) {
        /* Progress may be older than what this watch has: the program may have requested it for
         * another watch of the stream. */
        set_revision(watch, batch->revision);
        object_batch_bookmark(&watch->batch, revision_of(watch), false);
    } else if (batch->what == VIGIL_WATCH_ENDED) {
        add_server_error(watch, batch->error, batch->compact_revision);
    }
    return end_callback(watch, batch->what == VIGIL_WATCH_ENDED);
}

static void start_watching(struct vigil_object_watch *watch)
{
    static const struct watch_observer observer = {.fn = on_watch_batch, .held = on_held};
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_bytes_of(watch->key, watch->key_len);
    options.prefix = watch->prefix;
    options.revision = revision_of(watch) + 1;
    options.prev_kv = 1;
    options.progress_notify = watch->progress_notify;
    options.require_leader = watch->require_leader;
    options.buffer_bytes = watch->buffer_bytes;
    if (watch_new_observed(watch->client, &options, &observer, watch, &watch->watch) == VIGIL_OK)
        STATE_MOVE(watch->state, moves, OBJECT_WATCH_WATCHING);
    else
        end_without_memory(watch);
}

/* -- The state -- */

static void add_page(struct vigil_object_watch *watch, const vigil_range_response *page)
{
    vigil_error error;
    if (watch->list_revision == 0)
        watch->list_revision = page->header->revision;
    counter_add(&watch->counters.pages, 1);
    /* The watch begins behind this revision. */
    if (watch->list_revision <= 0 || watch->list_revision == INT64_MAX) {
        add_error(watch, VIGIL_ERROR_PROTOCOL, "the server sent a revision that is not valid");
        return;
    }
    if (object_batch_reserve(&watch->batch, page->kv_count + 1) != ST_OK) {
        add_error(watch, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < page->kv_count; i++) {
        struct object_change change = {
            .key = page->kvs[i].key,
            .value = page->kvs[i].value,
            .revision = page->kvs[i].mod_revision,
            .has_value = true,
            .initial = true,
        };
        if (!object_batch_change(&watch->batch, &change, &error)) {
            object_batch_internal_error(&watch->batch, &error);
            return;
        }
    }
    /* A program that resumes before the last page begins with the first page again. */
    if (!page->more) {
        set_revision(watch, watch->list_revision);
        object_batch_bookmark(&watch->batch, watch->list_revision, true);
    }
}

static int on_page(vigil_call *call, const vigil_range_response *page, void *user)
{
    struct vigil_object_watch *watch = user;
    (void)call;
    if (!driver_callback_begin(&watch->client->driver, &watch->object))
        return VIGIL_PART_CONTINUE; /* the watch or its client has been freed */
    add_page(watch, page);
    return end_callback(watch, false) == VIGIL_WATCH_PAUSE ? VIGIL_PART_PAUSE : VIGIL_PART_CONTINUE;
}

static void on_pages_done(vigil_call *call, void *user)
{
    struct vigil_object_watch *watch = user;
    const vigil_error *error = vigil_call_error(call);
    if (error->code != VIGIL_OK) {
        end_with(watch, error);
        return;
    }
    vigil_call_free(watch->pages);
    watch->pages = NULL;
    start_watching(watch);
}

/* The call has no deadline: it is repeated, like a watch, until a server answers. */
static void start_listing(struct vigil_object_watch *watch)
{
    void *buffer = malloc(watch->key_len + 1);
    struct vigil_call *call = NULL;
    if (buffer) {
        vigil_range_request request;
        vigil_range_request_init(&request);
        request.key = vigil_bytes_of(watch->key, watch->key_len);
        request.limit = watch->page_limit;
        if (watch->prefix)
            request.range_end = vigil_prefix_end(request.key, buffer);
        if (watch->prefix && watch->key_len + watch->client->prefix.len == 0)
            request.key = vigil_bytes_of("", 1); /* "\0" is the first key */
        call = vigil_range_pages(watch->client, &request, on_page, watch);
    }
    free(buffer);
    if (!call) {
        end_without_memory(watch);
        return;
    }
    call->operation.object.internal = true;
    vigil_call_set_timeout(call, 0);
    watch->pages = call;
    STATE_MOVE(watch->state, moves, OBJECT_WATCH_LISTING);
    if (vigil_call_start(call, on_pages_done, watch) != VIGIL_OK) /* the client is freed */
        end_with(watch, vigil_call_error(call));
}

/* -- Commands -- */

static void run_command(struct driver_command *command)
{
    struct vigil_object_watch *watch =
        CONTAINER_OF(command, struct vigil_object_watch, shared.command);
    uint32_t wanted = driver_shared_wanted(&watch->shared);
    if ((wanted & WANTS_START) && revision_of(watch) > 0)
        start_watching(watch);
    else if (wanted & WANTS_START)
        start_listing(watch);
    if (wanted & WANTS_RESUME) {
        if (watch->state == OBJECT_WATCH_LISTING)
            vigil_call_resume(watch->pages);
        else if (watch->state == OBJECT_WATCH_WATCHING)
            vigil_watch_resume(watch->watch);
    }
    if (wanted & WANTS_END)
        end(watch);
    object_watch_unref(watch);
}

/* -- Public functions -- */

void vigil_object_options_init(vigil_object_options *options)
{
    *options = (vigil_object_options){
        .size = sizeof(*options), .page_limit = PAGE_LIMIT_DEFAULT, .buffer_bytes = 1u << 20};
}

static void object_watch_init(struct vigil_object_watch *watch, vigil_client *client,
                              const vigil_object_options *options)
{
    *watch = (struct vigil_object_watch){
        .client = client,
        .hooks = {.decode = options->decode,
                  .release = options->release,
                  .matches = options->matches},
        .revision = options->revision,
        .prefix = options->prefix,
        .progress_notify = options->progress_notify,
        .require_leader = options->require_leader,
        .page_limit = options->page_limit,
        .buffer_bytes = options->buffer_bytes,
        .key_len = options->key.size,
    };
    driver_shared_init(&watch->shared, 2, run_command);
    object_batch_init(&watch->batch, &watch->hooks);
    slice_copy(watch->key, slice_of_bytes(options->key));
    driver_ref(&client->driver);
}

int vigil_object_watch_new(vigil_client *client, const vigil_object_options *options,
                           vigil_object_watch_fn fn, void *user, vigil_object_watch **ret_watch)
{
    vigil_object_options complete;
    vigil_object_options_init(&complete);
    if (!client || !options || !fn || !ret_watch || options->size == 0 ||
        options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    if (complete.revision < 0 || complete.revision == INT64_MAX || complete.page_limit <= 0 ||
        complete.key.size > client->send_bytes_max)
        return VIGIL_ERROR_ARGUMENT;
    struct vigil_object_watch *watch = malloc(sizeof(*watch) + complete.key.size);
    if (!watch)
        return VIGIL_ERROR_MEMORY;
    object_watch_init(watch, client, &complete);
    watch->fn = fn;
    watch->hooks.user = user;
    *ret_watch = watch;
    driver_shared_want(&watch->shared, &client->driver, WANTS_START);
    return VIGIL_OK;
}

void vigil_object_watch_free(vigil_object_watch *watch)
{
    if (!watch)
        return;
    driver_drop(&watch->client->driver, &watch->object);
    driver_shared_want(&watch->shared, &watch->client->driver, WANTS_END);
    object_watch_unref(watch);
}

void vigil_object_watch_resume(vigil_object_watch *watch)
{
    if (watch)
        driver_shared_want(&watch->shared, &watch->client->driver, WANTS_RESUME);
}

int64_t vigil_object_watch_revision(const vigil_object_watch *watch)
{
    return watch ? revision_of(watch) : -1;
}

void *vigil_object_watch_user(const vigil_object_watch *watch)
{
    return watch ? watch->hooks.user : NULL;
}

void vigil_object_watch_get_stats(const vigil_object_watch *watch,
                                  vigil_object_watch_stats *ret_stats, size_t size)
{
    if (!watch) {
        client_stats_copy(ret_stats, size, NULL, 0);
        return;
    }
    const struct object_watch_counters *c = &watch->counters;
    vigil_object_watch_stats stats = {
        .events = counter_get(&c->events),
        .filtered = counter_get(&c->filtered),
        .bookmarks = counter_get(&c->bookmarks),
        .pages = counter_get(&c->pages),
        .pauses = counter_get(&c->pauses),
        .queued_bytes = counter_get(&c->queued_bytes),
        .queued_bytes_max = counter_get(&c->queued_bytes_max),
        .batch_events_max = counter_get(&c->batch_events_max),
    };
    client_stats_copy(ret_stats, size, &stats, sizeof(stats));
}
