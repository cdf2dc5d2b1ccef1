#include "client/object_watch.h"

#include "client/error.h"
#include "client/kv.h"
#include "client/watch_observer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_LIMIT_DEFAULT = 1000, QUOTED_BYTES = 96 };

/* What the user wants, as bits of vigil_object_watch.wanted. */
enum { WANTS_START = 1, WANTS_RESUME = 2, WANTS_END = 4 };

#define TO(state) (1u << OBJECT_WATCH_##state)

/* Drawn in object_watch.h. */
static const uint8_t moves[] = {
    [OBJECT_WATCH_NEW] = TO(LISTING) | TO(WATCHING) | TO(ENDED),
    [OBJECT_WATCH_LISTING] = TO(PAUSED) | TO(WATCHING) | TO(ENDED),
    [OBJECT_WATCH_PAUSED] = TO(LISTING) | TO(WATCHING) | TO(ENDED),
    [OBJECT_WATCH_WATCHING] = TO(ENDED),
    [OBJECT_WATCH_ENDED] = 0,
};

static void move(struct vigil_object_watch *watch, enum object_watch_state next)
{
    assert(moves[watch->state] & (1u << next));
    watch->state = next;
}

static int64_t revision_of(const struct vigil_object_watch *watch)
{
    return atomic_load_explicit(&watch->revision, memory_order_relaxed);
}

void object_watch_check(const struct vigil_object_watch *watch)
{
    object_batch_check(&watch->batch);
    assert(atomic_load(&watch->refs) > 0);
    assert((watch->page != NULL) == (watch->state == OBJECT_WATCH_LISTING));
    assert((watch->watch != NULL) == (watch->state == OBJECT_WATCH_WATCHING));
    assert(watch->state != OBJECT_WATCH_WATCHING || revision_of(watch) > 0);
    assert(watch->batch.count == 0);
    assert(watch->page_limit > 0);
}

static void object_watch_unref(struct vigil_object_watch *watch)
{
    if (atomic_fetch_sub_explicit(&watch->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct vigil_client *client = watch->client;
    object_batch_fini(&watch->batch);
    buf_fini(&watch->next_key);
    free(watch);
    client_unref(client);
}

/* -- Counters -- */

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void set(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void set_max(_Atomic uint64_t *counter, uint64_t value)
{
    if (value > get(counter))
        set(counter, value);
}

static void count_batch(struct vigil_object_watch *watch)
{
    struct object_watch_counters *counters = &watch->counters;
    for (size_t i = 0; i < watch->batch.count; i++) {
        int type = watch->batch.events[i].type;
        count(&counters->events, type <= VIGIL_OBJECT_DELETED);
        count(&counters->bookmarks, type == VIGIL_OBJECT_BOOKMARK);
    }
    set(&counters->filtered, watch->batch.filtered);
    set_max(&counters->batch_events_max, watch->batch.count);
}

static void on_held(void *user, size_t bytes)
{
    struct vigil_object_watch *watch = user;
    set(&watch->counters.queued_bytes, bytes);
    set_max(&watch->counters.queued_bytes_max, bytes);
}

/* -- The end, and errors -- */

static void drop_page(struct vigil_object_watch *watch)
{
    vigil_call_free(watch->page);
    watch->page = NULL;
}

/* Silent. Releases the loop's reference. */
static void end(struct vigil_object_watch *watch)
{
    if (watch->state == OBJECT_WATCH_ENDED)
        return;
    move(watch, OBJECT_WATCH_ENDED);
    if (watch->member.in_client.next)
        list_remove(&watch->member.in_client);
    drop_page(watch);
    vigil_watch_free(watch->watch);
    watch->watch = NULL;
    set(&watch->counters.queued_bytes, 0);
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
    count_batch(watch);
    int answer = batch.event_count || ended ? watch->fn(watch, &batch, watch->hooks.user)
                                            : VIGIL_WATCH_CONTINUE;
    object_batch_clear(&watch->batch);
    count(&watch->counters.pauses, answer == VIGIL_WATCH_PAUSE);
    return answer;
}

/* The client ends: this is not an error. */
static void end_with_client(struct vigil_object_watch *watch)
{
    if (client_callback_begin(watch->client, &watch->object)) {
        (void)deliver(watch, true);
        client_callback_end(watch->client);
    }
    end(watch);
}

static void add_error(struct vigil_object_watch *watch, enum vigil_code code, const char *text)
{
    vigil_error error;
    client_error_set(&error, code, VIGIL_REFUSED, "%s", text);
    object_batch_internal_error(&watch->batch, &error);
}

static void end_without_memory(struct vigil_object_watch *watch)
{
    if (client_callback_begin(watch->client, &watch->object)) {
        add_error(watch, VIGIL_ERROR_MEMORY, "out of memory");
        (void)deliver(watch, true);
        client_callback_end(watch->client);
    }
    end(watch);
}

static void add_server_error(struct vigil_object_watch *watch, const vigil_error *error,
                             int64_t compact_revision)
{
    if (watch->client->ended)
        return;
    if (error->code == VIGIL_ERROR_COMPACTED)
        object_batch_expired(&watch->batch, error, compact_revision);
    else
        object_batch_internal_error(&watch->batch, error);
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
            set_revision(watch, batch->events[i].kv->mod_revision - 1);
            return;
        }
    set_revision(watch, batch->revision);
}

/* Progress that the program requested for another watch of the stream is not for us: servers before
 * etcd 3.4.25 and 3.5.8 sent it too early, so the watch would not resume after it. */
static void add_progress(struct vigil_object_watch *watch, int64_t revision)
{
    if (revision > vigil_watch_revision(watch->watch))
        return;
    set_revision(watch, revision);
    object_batch_bookmark(&watch->batch, revision_of(watch), false);
}

static int on_watch_batch(vigil_watch *inner, const vigil_watch_batch *batch, void *user)
{
    struct vigil_object_watch *watch = user;
    (void)inner;
    if (!client_callback_begin(watch->client, &watch->object))
        return VIGIL_WATCH_CONTINUE; /* its end is on the way */
    if (batch->what == VIGIL_WATCH_EVENTS)
        add_events(watch, batch);
    else if (batch->what == VIGIL_WATCH_PROGRESS)
        add_progress(watch, batch->revision);
    else if (batch->what == VIGIL_WATCH_ENDED)
        add_server_error(watch, batch->error, batch->compact_revision);
    bool ended = batch->what == VIGIL_WATCH_ENDED || object_batch_has_error(&watch->batch);
    int answer = deliver(watch, ended);
    client_callback_end(watch->client);
    if (ended)
        end(watch);
    return answer;
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
        move(watch, OBJECT_WATCH_WATCHING);
    else
        end_without_memory(watch);
}

/* -- The state -- */

static void on_page(vigil_call *call, void *user);

static struct vigil_call *page_call(const struct vigil_object_watch *watch)
{
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    struct slice prefix = watch->client->prefix, key = slice_of(watch->key, watch->key_len);
    enum status status = watch->prefix ? prefix_all(prefix, key, &range)
                                       : prefix_range(prefix, key, SLICE_EMPTY, &range);
    if (status != ST_OK)
        return NULL;
    struct pb_range_request message = {
        .key = watch->next_key.len ? buf_slice(&watch->next_key) : range.key,
        .range_end = range.end,
        .limit = watch->page_limit,
        .revision = watch->list_revision,
    };
    return kv_range_call(watch->client, &message);
}

/* The call has no deadline: it is repeated, like a watch, until a server answers. */
static void request_page(struct vigil_object_watch *watch)
{
    struct vigil_call *call = page_call(watch);
    if (!call) {
        end_without_memory(watch);
        return;
    }
    call->object.internal = true;
    vigil_call_set_timeout(call, 0);
    watch->page = call;
    (void)vigil_call_start(call, on_page, watch);
}

/* Every page that is not the last one must bring us further. */
static bool page_is_valid(const struct vigil_object_watch *watch, const vigil_range_response *page)
{
    struct slice next = buf_slice(&watch->next_key);
    if (!page->header || page->header->revision <= 0 || page->header->revision == INT64_MAX)
        return false;
    if (!page->more)
        return true;
    if (page->kv_count == 0)
        return false;
    prefix_strip(&next, watch->client->prefix.len);
    return slice_compare(kv_slice(page->kvs[page->kv_count - 1].key), next) >= 0;
}

static enum status set_next_key(struct vigil_object_watch *watch, vigil_bytes last)
{
    buf_reset(&watch->next_key, SIZE_MAX);
    TRY(buf_append(&watch->next_key, watch->client->prefix));
    TRY(buf_append(&watch->next_key, kv_slice(last)));
    return buf_append(&watch->next_key, slice_of("", 1)); /* a zero byte */
}

/* False: the batch ends with an error. */
static bool add_object(struct vigil_object_watch *watch, const vigil_kv *kv)
{
    struct object_change change = {
        .key = kv->key,
        .value = kv->value,
        .revision = kv->mod_revision,
        .has_value = true,
        .initial = true,
    };
    vigil_error error;
    if (object_batch_change(&watch->batch, &change, &error))
        return true;
    object_batch_internal_error(&watch->batch, &error);
    return false;
}

static void add_page(struct vigil_object_watch *watch, const vigil_range_response *page)
{
    if (!page_is_valid(watch, page)) {
        add_error(watch, VIGIL_ERROR_PROTOCOL, "the server sent a page that is not valid");
        return;
    }
    if (object_batch_reserve(&watch->batch, page->kv_count + 1) != ST_OK ||
        (page->more && set_next_key(watch, page->kvs[page->kv_count - 1].key) != ST_OK)) {
        add_error(watch, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    count(&watch->counters.pages, 1);
    if (watch->list_revision == 0)
        watch->list_revision = page->header->revision;
    for (size_t i = 0; i < page->kv_count; i++)
        if (!add_object(watch, &page->kvs[i]))
            return;
    if (!page->more) {
        set_revision(watch, watch->list_revision);
        object_batch_bookmark(&watch->batch, watch->list_revision, true);
    }
}

/* After a page that was delivered. */
static void go_on(struct vigil_object_watch *watch)
{
    if (revision_of(watch) > 0) { /* the state is complete */
        start_watching(watch);
        return;
    }
    if (watch->state != OBJECT_WATCH_LISTING)
        move(watch, OBJECT_WATCH_LISTING);
    request_page(watch);
}

static bool retry_with_smaller_pages(struct vigil_object_watch *watch, const vigil_error *error)
{
    if (error->code != VIGIL_ERROR_TOO_LARGE || watch->page_limit == 1)
        return false;
    watch->page_limit /= 2;
    drop_page(watch);
    request_page(watch);
    return true;
}

static void on_page(vigil_call *call, void *user)
{
    struct vigil_object_watch *watch = user;
    const vigil_error *error = vigil_call_error(call);
    if (retry_with_smaller_pages(watch, error) ||
        !client_callback_begin(watch->client, &watch->object))
        return;
    if (error->code == VIGIL_OK)
        add_page(watch, vigil_range_result(call));
    else
        add_server_error(watch, error, 0);
    bool ended = error->code != VIGIL_OK || object_batch_has_error(&watch->batch);
    bool paused = deliver(watch, ended) == VIGIL_WATCH_PAUSE;
    client_callback_end(watch->client);
    drop_page(watch);
    if (ended)
        end(watch);
    else if (paused)
        move(watch, OBJECT_WATCH_PAUSED);
    else
        go_on(watch);
}

/* -- Commands -- */

static void end_member(struct client_member *member)
{
    end_with_client(CONTAINER_OF(member, struct vigil_object_watch, member));
}

static void start(struct vigil_object_watch *watch)
{
    if (watch->client->ended) {
        end_with_client(watch);
        return;
    }
    list_push_back(&watch->client->members, &watch->member.in_client);
    go_on(watch);
}

static void resume(struct vigil_object_watch *watch)
{
    if (watch->state == OBJECT_WATCH_PAUSED)
        go_on(watch);
    else if (watch->state == OBJECT_WATCH_WATCHING)
        vigil_watch_resume(watch->watch);
}

static void run_command(struct client_command *command)
{
    struct vigil_object_watch *watch = CONTAINER_OF(command, struct vigil_object_watch, command);
    uint32_t wanted = atomic_exchange(&watch->wanted, 0);
    if (wanted & WANTS_START)
        start(watch);
    if (wanted & WANTS_RESUME)
        resume(watch);
    if (wanted & WANTS_END)
        end(watch);
    object_watch_unref(watch);
}

static void want(struct vigil_object_watch *watch, uint32_t what)
{
    atomic_fetch_add_explicit(&watch->refs, 1, memory_order_relaxed);
    if (atomic_fetch_or(&watch->wanted, what) == 0)
        client_post(watch->client, &watch->command);
    else
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
        .refs = 2,
        .hooks = {.decode = options->decode,
                  .release = options->release,
                  .matches = options->matches},
        .revision = options->revision,
        .prefix = options->prefix,
        .progress_notify = options->progress_notify,
        .require_leader = options->require_leader,
        .page_limit = options->page_limit,
        .buffer_bytes = options->buffer_bytes,
        .command.run = run_command,
        .member.end = end_member,
        .key_len = options->key.size,
    };
    object_batch_init(&watch->batch, &watch->hooks);
    slice_copy(watch->key, kv_slice(options->key));
    client_ref(client);
}

int vigil_object_watch_new(vigil_client *client, const vigil_object_options *options,
                           vigil_object_watch_fn fn, void *user, vigil_object_watch **ret_watch)
{
    vigil_object_options complete;
    vigil_object_options_init(&complete);
    if (options->size == 0 || options->size > sizeof(complete) || !fn)
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
    want(watch, WANTS_START);
    return VIGIL_OK;
}

void vigil_object_watch_free(vigil_object_watch *watch)
{
    if (!watch)
        return;
    client_drop(watch->client, &watch->object);
    want(watch, WANTS_END);
    object_watch_unref(watch);
}

void vigil_object_watch_resume(vigil_object_watch *watch)
{
    want(watch, WANTS_RESUME);
}

int64_t vigil_object_watch_revision(const vigil_object_watch *watch)
{
    return revision_of(watch);
}

void *vigil_object_watch_user(const vigil_object_watch *watch)
{
    return watch->hooks.user;
}

void vigil_object_watch_get_stats(const vigil_object_watch *watch,
                                  vigil_object_watch_stats *ret_stats, size_t size)
{
    const struct object_watch_counters *c = &watch->counters;
    vigil_object_watch_stats stats = {
        .events = get(&c->events),
        .filtered = get(&c->filtered),
        .bookmarks = get(&c->bookmarks),
        .pages = get(&c->pages),
        .pauses = get(&c->pauses),
        .queued_bytes = get(&c->queued_bytes),
        .queued_bytes_max = get(&c->queued_bytes_max),
        .batch_events_max = get(&c->batch_events_max),
    };
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}
