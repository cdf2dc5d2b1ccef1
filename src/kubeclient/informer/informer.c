#include "kubeclient/informer/informer.h"

#include "base/clock.h"
#include "kubeclient/call/kube.h"

#include <vigil/client.h>
#include <vigil/kube/protobuf.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* What the program wants, as bits of vigil_kube_informer.shared. */
enum { INFORMER_WANTS_JOIN = 1, INFORMER_WANTS_START = 2, INFORMER_WANTS_END = 4 };

enum { PAGE_LIMIT_MAX = 100000, OWNER_UID_BYTES = 256 };
enum { OBJECT_META_OWNERS = 13 }; /* field number in the protobuf of Kubernetes' ObjectMeta */

#define TO(state) (1u << INFORMER_##state)

/* Drawn in informer.h. */
static const unsigned informer_moves[] = {
    [INFORMER_CREATED] = TO(STARTED) | TO(ENDED),
    [INFORMER_STARTED] = TO(ENDED),
    [INFORMER_ENDED] = 0,
};

static int64_t now_of(const struct vigil_kube_informer *informer)
{
    return loop_now_ns(informer->kube->driver.loop);
}

/* -- What the reflector decides, with the copy's lock held -- */

static void on_request(void *ctx, const struct reflector_request *request)
{
    struct vigil_kube_informer *informer = ctx;
    if (request->kind == REFLECTOR_LISTING)
        informer->stats.lists++;
    else
        informer->stats.watches++;
    fetcher_request(&informer->fetcher, request);
}

static void on_cancel(void *ctx)
{
    struct vigil_kube_informer *informer = ctx;
    fetcher_cancel(&informer->fetcher);
}

static void on_wait(void *ctx, int64_t delay_ns)
{
    struct vigil_kube_informer *informer = ctx;
    loop_timer_set(informer->kube->driver.loop, &informer->wait,
                   clock_add(now_of(informer), delay_ns));
}

static void on_synced(void *ctx)
{
    struct vigil_kube_informer *informer = ctx;
    /* The first synchronization is not a repeated one. */
    informer->stats.relists += informer->copy->synced;
    copy_set_synced(informer->copy);
}

static void on_failed(void *ctx, const struct vigil_kube_status *status)
{
    struct vigil_kube_informer *informer = ctx;
    informer->stats.failures++;
    informer->stats.last_failure = *status;
    informer->has_failed = true;
}

static const struct reflector_ops reflector_ops = {
    .request = on_request,
    .cancel = on_cancel,
    .wait = on_wait,
    .synced = on_synced,
    .failed = on_failed,
};

/* -- What becomes of requests -- */

/* Takes the lock for a step of the reflector. False: the copy has ended, and nothing happens until
 * the loop ends the informer, too. */
static bool begin_step(struct vigil_kube_informer *informer)
{
    lock_take(&informer->copy->lock);
    if (!informer->copy->ended)
        return true;
    lock_release(&informer->copy->lock);
    return false;
}

static void end_step(struct vigil_kube_informer *informer)
{
    lock_release(&informer->copy->lock);
    loop_defer(informer->kube->driver.loop, &informer->publish);
}

static void on_received(void *ctx, const struct received_event *event)
{
    struct vigil_kube_informer *informer = ctx;
    if (!begin_step(informer))
        return;
    if (event->type == RECEIVED_BOOKMARK)
        informer->stats.bookmarks++;
    else if (event->type != RECEIVED_ERROR)
        informer->stats.events++;
    informer->has_news |= event->type != RECEIVED_ERROR;
    reflector_received(&informer->reflector, event, now_of(informer));
    end_step(informer);
}

static void on_watch_ended(void *ctx, bool cut_off)
{
    struct vigil_kube_informer *informer = ctx;
    (void)cut_off;
    if (!begin_step(informer))
        return;
    reflector_watch_ended(&informer->reflector, now_of(informer));
    end_step(informer);
}

static void on_listed(void *ctx, struct slice object)
{
    struct vigil_kube_informer *informer = ctx;
    if (!begin_step(informer))
        return;
    reflector_listed(&informer->reflector, object, now_of(informer));
    end_step(informer);
}

static void on_page_ended(void *ctx, const struct list_info *info)
{
    struct vigil_kube_informer *informer = ctx;
    if (!begin_step(informer))
        return;
    reflector_page_ended(&informer->reflector, info->version, info->continue_token,
                         now_of(informer));
    end_step(informer);
}

static void on_request_failed(void *ctx, const struct vigil_kube_status *status)
{
    struct vigil_kube_informer *informer = ctx;
    if (!begin_step(informer))
        return;
    reflector_failed(&informer->reflector, status, now_of(informer));
    end_step(informer);
}

static const struct fetcher_ops fetcher_ops = {
    .received = on_received,
    .watch_ended = on_watch_ended,
    .listed = on_listed,
    .page_ended = on_page_ended,
    .failed = on_request_failed,
};

static void on_wait_over(struct timer *timer)
{
    struct vigil_kube_informer *informer = CONTAINER_OF(timer, struct vigil_kube_informer, wait);
    if (!begin_step(informer))
        return;
    reflector_resume(&informer->reflector, now_of(informer));
    end_step(informer);
}

/* -- The end of a turn -- */

static void publish(struct deferred *deferred)
{
    struct vigil_kube_informer *informer =
        CONTAINER_OF(deferred, struct vigil_kube_informer, publish);
    if (informer->has_news) {
        int64_t now_ms = clock_real_ns(loop_clock(informer->kube->driver.loop)) / NS_PER_MS;
        LOCK_SCOPE(&informer->copy->lock);
        informer->stats.last_event_ms = now_ms;
        informer->has_news = false;
    }
    /* Consumers are woken once for everything that one turn has brought. */
    copy_publish(informer->copy);
    if (informer->has_failed) {
        informer->has_failed = false;
        char text[VIGIL_KUBE_MESSAGE_BYTES + 256];
        const struct vigil_kube_status *status = &informer->stats.last_failure; /* ours to write */
        snprintf(text, sizeof(text), "the informer of %s tries again: %s%s%s",
                 informer->scope.target.resource, status->reason,
                 status->reason[0] && status->message[0] ? ": " : "", status->message);
        driver_log(&informer->kube->driver, VIGIL_LOG_WARN, text);
    }
}

/* -- Commands -- */

static void end(struct vigil_kube_informer *informer)
{
    if (informer->state == INFORMER_ENDED)
        return;
    STATE_MOVE(informer->state, informer_moves, INFORMER_ENDED);
    copy_end(informer->copy);
    lock_take(&informer->copy->lock);
    reflector_stop(&informer->reflector);
    lock_release(&informer->copy->lock);
    loop_timer_cancel(informer->kube->driver.loop, &informer->wait);
    loop_defer_cancel(&informer->publish);
}

static void on_client_end(struct driver_member *member)
{
    end(CONTAINER_OF(member, struct vigil_kube_informer, member));
}

static void join(struct vigil_kube_informer *informer)
{
    struct vigil_kube *kube = informer->kube;
    lock_take(&informer->copy->lock);
    reflector_init(&informer->reflector, &informer->copy->cache, &reflector_ops, informer,
                   random_u64(&kube->random));
    informer->reflector.lists = informer->no_streaming;
    informer->reflector.page_objects = informer->page_limit;
    lock_release(&informer->copy->lock);
    fetcher_init(&informer->fetcher, kube, &informer->scope, &fetcher_ops, informer);
    list_init(&informer->member.in_driver);
    /* The client has ended since the informer was created, and tells its members no more. */
    if (kube->driver.ended)
        end(informer);
    else
        list_push_back(&kube->driver.members, &informer->member.in_driver);
}

static void start(struct vigil_kube_informer *informer)
{
    if (informer->state != INFORMER_CREATED || !begin_step(informer))
        return;
    STATE_MOVE(informer->state, informer_moves, INFORMER_STARTED);
    reflector_start(&informer->reflector, now_of(informer));
    end_step(informer);
}

static void informer_unref(struct vigil_kube_informer *informer)
{
    if (!driver_shared_unref(&informer->shared))
        return;
    assert(informer->users == 0);
    reflector_fini(&informer->reflector);
    fetcher_fini(&informer->fetcher);
    free(informer->texts);
    copy_unref(informer->copy);
    free(informer);
}

static void run_command(struct driver_command *command)
{
    struct vigil_kube_informer *informer =
        CONTAINER_OF(command, struct vigil_kube_informer, shared.command);
    uint32_t wanted = driver_shared_wanted(&informer->shared);
    if (wanted & INFORMER_WANTS_JOIN)
        join(informer);
    if (wanted & INFORMER_WANTS_START)
        start(informer);
    if (wanted & INFORMER_WANTS_END) {
        /* The program has no reference any more. */
        list_remove(&informer->member.in_driver);
        end(informer);
        copy_clear(informer->copy);
    }
    informer_unref(informer);
}

static void want(struct vigil_kube_informer *informer, uint32_t what)
{
    driver_shared_want(&informer->shared, &informer->kube->driver, what);
}

/* -- Indexes -- */

void vigil_kube_index_values_add(vigil_kube_index_values *values, vigil_bytes value)
{
    index_values_add(values, slice_of(value.data, value.size));
}

static void index_namespace(const vigil_kube_object *object, vigil_kube_index_values *values,
                            void *user)
{
    (void)user;
    vigil_bytes name_space = vigil_kube_object_namespace(object);
    if (name_space.size)
        vigil_kube_index_values_add(values, name_space);
}

static void index_protobuf_owners(vigil_bytes message, vigil_kube_index_values *values)
{
    uint32_t field;
    vigil_pb_value metadata, value, uid;
    if (!vigil_pb_find(message, "1", &metadata))
        return;
    vigil_pb_iterator iterator = vigil_pb_iterate(metadata.bytes);
    while (vigil_pb_next(&iterator, &field, &value)) {
        if (field == OBJECT_META_OWNERS && vigil_pb_find(value.bytes, "4", &uid))
            vigil_kube_index_values_add(values, uid.bytes);
    }
}

static void index_owner(const vigil_kube_object *object, vigil_kube_index_values *values,
                        void *user)
{
    (void)user;
    vigil_bytes message = vigil_kube_object_protobuf(object);
    if (message.size) {
        index_protobuf_owners(message, values);
    } else {
        vigil_bytes owners, owner, uid;
        if (!vigil_json_find(vigil_kube_object_json(object), "metadata.ownerReferences", &owners))
            return;
        vigil_json_iterator iterator = vigil_json_iterate(owners);
        while (vigil_json_next(&iterator, NULL, &owner)) {
            char text[OWNER_UID_BYTES];
            size_t length;
            if (vigil_json_member(owner, vigil_text("uid"), &uid) &&
                vigil_json_text(uid, text, sizeof(text), &length))
                vigil_kube_index_values_add(values, vigil_bytes_of(text, length));
        }
    }
}

/* Built when they are first read, since most programs read neither. */
static const struct own_index {
    const char *name;
    vigil_kube_index_fn fn;
} own_indexes[] = {{"namespace", index_namespace}, {"owner", index_owner}};

static const struct own_index *own_index_named(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(own_indexes); i++) {
        if (strcmp(own_indexes[i].name, name) == 0)
            return &own_indexes[i];
    }
    return NULL;
}

static enum status build_own_index(struct copy *copy, const char *name)
{
    const struct own_index *index = own_index_named(name);
    LOCK_SCOPE(&copy->lock);
    if (!index || indexer_has_index(&copy->cache.indexer, name))
        return ST_OK;
    return indexer_add_index(&copy->cache.indexer, name, index->fn, NULL);
}

int vigil_kube_informer_add_index(vigil_kube_informer *informer, const char *name,
                                  vigil_kube_index_fn fn, void *user)
{
    if (!name || !fn || own_index_named(name))
        return VIGIL_ERROR_ARGUMENT;
    LOCK_SCOPE(&informer->copy->lock);
    /* The index would lack the objects that are already in the copy. */
    if (informer->started)
        return VIGIL_ERROR_ARGUMENT;
    enum status status = indexer_add_index(&informer->copy->cache.indexer, name, fn, user);
    if (status == ST_OK)
        return VIGIL_OK;
    return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
}

/* -- Creating and sharing -- */

void vigil_kube_informer_options_init(vigil_kube_informer_options *options)
{
    *options = (vigil_kube_informer_options){.size = sizeof(*options),
                                             .page_limit = REFLECTOR_PAGE_OBJECTS};
}

static struct fetcher_scope scope_of(const vigil_kube_informer_options *options)
{
    return (struct fetcher_scope){.target = options->target,
                                  .label_selector = options->label_selector,
                                  .field_selector = options->field_selector,
                                  .protobuf = options->protobuf};
}

/* "" and NULL mean the same. */
static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_scope(const struct fetcher_scope *a, const struct fetcher_scope *b)
{
    return same_text(a->target.group, b->target.group) &&
           same_text(a->target.version, b->target.version) &&
           same_text(a->target.resource, b->target.resource) &&
           same_text(a->target.name_space, b->target.name_space) &&
           same_text(a->label_selector, b->label_selector) &&
           same_text(a->field_selector, b->field_selector) && a->protobuf == b->protobuf;
}

/* Copies the texts of the scope into memory of the informer. */
static enum status own_texts(struct vigil_kube_informer *informer)
{
    struct fetcher_scope *scope = &informer->scope;
    const char **texts[] = {&scope->target.group,    &scope->target.version,
                            &scope->target.resource, &scope->target.name_space,
                            &scope->label_selector,  &scope->field_selector};
    enum { TEXTS = sizeof(texts) / sizeof(*texts) };
    size_t bytes = 0;
    scope->target.name = scope->target.subresource = NULL;
    /* All texts are in one block of memory. */
    for (size_t i = 0; i < TEXTS; i++)
        bytes += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    char *to = informer->texts = malloc(bytes);
    if (!to)
        return ST_NOMEM;
    for (size_t i = 0; i < TEXTS; i++) {
        if (!*texts[i])
            continue;
        size_t len = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(to, *texts[i], len);
        to += len;
    }
    return ST_OK;
}

static enum status fill(struct vigil_kube_informer *informer,
                        const vigil_kube_informer_options *options)
{
    uint64_t seed = random_seed_system();
    informer->scope = scope_of(options);
    TRY(own_texts(informer));
    TRY(copy_new(&informer->kube->driver, seed, &informer->copy));
    informer->copy->cache.bytes_max = options->bytes_max;
    return ST_OK;
}

/* Not in the list yet. NULL: out of memory. */
static struct vigil_kube_informer *informer_new(vigil_kube *kube,
                                                const vigil_kube_informer_options *options)
{
    struct vigil_kube_informer *informer = calloc(1, sizeof(*informer));
    if (!informer)
        return NULL;
    informer->kube = kube;
    informer->no_streaming = options->no_streaming;
    informer->page_limit = (int)options->page_limit;
    informer->wait.fn = on_wait_over;
    informer->publish.fn = publish;
    informer->member.end = on_client_end;
    informer->stats.last_failure.retry_after_s = -1;
    driver_shared_init(&informer->shared, 1, run_command);
    list_init(&informer->in_kube);
    if (fill(informer, options) == ST_OK)
        return informer;
    free(informer->texts);
    if (informer->copy)
        copy_unref(informer->copy);
    free(informer);
    return NULL;
}

/* With the driver's lock held. */
static struct vigil_kube_informer *find(vigil_kube *kube, const struct fetcher_scope *scope)
{
    struct vigil_kube_informer *informer;
    if (!kube->informers.next)
        list_init(&kube->informers);
    LIST_FOREACH (informer, &kube->informers, in_kube) {
        if (same_scope(&informer->scope, scope))
            return informer;
    }
    return NULL;
}

static struct vigil_kube_informer *find_or_add(vigil_kube *kube, const struct fetcher_scope *scope,
                                               struct vigil_kube_informer *added)
{
    LOCK_SCOPE(&kube->driver.lock);
    struct vigil_kube_informer *informer = find(kube, scope);
    if (!informer && added)
        list_push_back(&kube->informers, &added->in_kube);
    if (!informer)
        informer = added;
    if (informer)
        informer->users++;
    return informer;
}

static int check_options(const vigil_kube_informer_options *options)
{
    struct error error;
    struct fetcher_scope scope = scope_of(options);
    if (options->page_limit <= 0 || options->page_limit > PAGE_LIMIT_MAX)
        return VIGIL_ERROR_ARGUMENT;
    enum status status = fetcher_check_scope(&scope, &error);
    if (status == ST_OK)
        return VIGIL_OK;
    return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
}

int vigil_kube_informer_new(vigil_kube *kube, const vigil_kube_informer_options *options,
                            vigil_kube_informer **ret_informer)
{
    vigil_kube_informer_options complete;
    vigil_kube_informer_options_init(&complete);
    if (options->size == 0 || options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    int code = check_options(&complete);
    if (code != VIGIL_OK)
        return code;
    struct fetcher_scope scope = scope_of(&complete);
    struct vigil_kube_informer *informer = find_or_add(kube, &scope, NULL);
    if (!informer) {
        struct vigil_kube_informer *added = informer_new(kube, &complete);
        if (!added)
            return VIGIL_ERROR_MEMORY;
        want(added, INFORMER_WANTS_JOIN); /* before another thread can start it */
        informer = find_or_add(kube, &scope, added);
        if (informer != added) { /* another thread was quicker */
            want(added, INFORMER_WANTS_END);
            informer_unref(added);
        }
    }
    *ret_informer = informer;
    return VIGIL_OK;
}

/* True: that was the last reference of the program. */
static bool drop_user(struct vigil_kube_informer *informer)
{
    LOCK_SCOPE(&informer->kube->driver.lock);
    if (--informer->users > 0)
        return false;
    list_remove(&informer->in_kube);
    return true;
}

void vigil_kube_informer_free(vigil_kube_informer *informer)
{
    if (!informer || !drop_user(informer))
        return;
    copy_end(informer->copy); /* functions of indexes are not called any more */
    want(informer, INFORMER_WANTS_END);
    informer_unref(informer);
}

/* -- Starting and waiting -- */

int vigil_kube_informer_start(vigil_kube_informer *informer)
{
    lock_take(&informer->copy->lock);
    bool ended = informer->copy->ended;
    informer->started = true;
    lock_release(&informer->copy->lock);
    if (ended || atomic_load(&informer->kube->driver.shutting_down))
        return VIGIL_ERROR_CANCELED;
    want(informer, INFORMER_WANTS_START);
    return VIGIL_OK;
}

int vigil_kube_informer_has_synced(const vigil_kube_informer *informer)
{
    return copy_sync_state(informer->copy) == ST_OK;
}

/* At most until that time, which has not come. */
static void wait_for_loop(struct driver *driver, int64_t until_ns, int64_t now_ns)
{
    struct pollfd waited = {.fd = driver_fd(driver), .events = POLLIN};
    int wait_ms = driver_timeout_ms(driver);
    int64_t left_ms = (until_ns - now_ns) / NS_PER_MS + 1;
    if (until_ns != CLOCK_NEVER && (wait_ms < 0 || left_ms < wait_ms))
        wait_ms = (int)left_ms;
    (void)poll(&waited, 1, wait_ms); /* interrupted: an early turn */
}

static enum status drive_until_synced(struct vigil_kube_informer *informer, int64_t until_ns)
{
    enum status status;
    struct driver *driver = &informer->kube->driver;
    while ((status = copy_sync_state(informer->copy)) == ST_AGAIN) {
        int64_t now_ns = clock_mono_ns(clock_system());
        if (now_ns >= until_ns)
            return ST_TIMEOUT;
        wait_for_loop(driver, until_ns, now_ns);
        driver_process(driver);
    }
    return status;
}

int vigil_kube_informer_wait_synced(vigil_kube_informer *informer, int timeout_ms)
{
    struct driver *driver = &informer->kube->driver;
    if (driver_is_inside(driver))
        return VIGIL_ERROR_WOULD_BLOCK;
    int64_t until_ns =
        timeout_ms < 0 ? CLOCK_NEVER : clock_mono_ns(clock_system()) + driver_ns(timeout_ms);
    /* Without a thread of its own, the client makes progress only if the caller runs its loop. */
    bool drives = !driver->own_thread && !atomic_load(&driver->loop_ended);
    enum status status = drives ? drive_until_synced(informer, until_ns)
                                : copy_wait_synced(informer->copy, until_ns);
    if (status == ST_OK)
        return VIGIL_OK;
    return status == ST_TIMEOUT ? VIGIL_ERROR_TIMEOUT : VIGIL_ERROR_CANCELED;
}

/* -- Reading the copy -- */

vigil_kube_object *vigil_kube_informer_get(vigil_kube_informer *informer, vigil_bytes key)
{
    return copy_get(informer->copy, slice_of(key.data, key.size));
}

int vigil_kube_informer_list(vigil_kube_informer *informer, vigil_kube_objects *ret_objects)
{
    return copy_list(informer->copy, ret_objects) == ST_OK ? VIGIL_OK : VIGIL_ERROR_MEMORY;
}

int vigil_kube_informer_find(vigil_kube_informer *informer, const char *index, vigil_bytes value,
                             vigil_kube_objects *ret_objects)
{
    enum status status = build_own_index(informer->copy, index);
    if (status == ST_OK)
        status = copy_find(informer->copy, index, slice_of(value.data, value.size), ret_objects);
    if (status == ST_OK)
        return VIGIL_OK;
    return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
}

void vigil_kube_objects_free(vigil_kube_objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        vigil_kube_object_unref(objects->items[i]);
    free(objects->items);
    *objects = (vigil_kube_objects){0};
}

/* -- State -- */

void vigil_kube_informer_get_stats(const vigil_kube_informer *informer,
                                   vigil_kube_informer_stats *ret_stats, size_t size)
{
    lock_take(&informer->copy->lock);
    vigil_kube_informer_stats stats = informer->stats;
    const struct indexer *indexer = &informer->copy->cache.indexer;
    stats.objects = indexer_count(indexer);
    stats.bytes = indexer->json_bytes;
    snprintf(stats.version, sizeof(stats.version), "%s", informer->reflector.version);
    lock_release(&informer->copy->lock);
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}

void informer_check(struct vigil_kube_informer *informer)
{
    bool requests = informer->fetcher.state != FETCHER_IDLE;
    copy_check(informer->copy);
    LOCK_SCOPE(&informer->copy->lock);
    if (informer->state == INFORMER_STARTED && !informer->copy->ended)
        reflector_check(&informer->reflector);
    if (informer->state != INFORMER_STARTED)
        assert(!requests && !informer->wait.set);
    else if (!informer->copy->ended)
        assert(requests != informer->wait.set);
}
