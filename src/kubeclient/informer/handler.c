#include "kubeclient/informer/handler.h"

#include "base/clock.h"
#include "base/random.h"
#include "kubeclient/informer/informer.h"

#include <stdlib.h>

/* What the program wants, as bits of vigil_kube_handler.shared. */
enum { HANDLER_WANTS_START = 1, HANDLER_WANTS_END = 2 };

#define RESYNC_MIN_NS (1 * NS_PER_S) /* as in client-go */

static void handler_unref(struct vigil_kube_handler *handler)
{
    if (!driver_shared_unref(&handler->shared))
        return;
    queued_change_fini(&handler->taken);
    change_queue_fini(&handler->consumer.queue);
    copy_unref(handler->copy);
    free(handler);
}

/* -- Calling the function -- */

static vigil_kube_change change_of(const struct queued_change *change)
{
    static const int kinds[] = {
        [CACHE_ADDED] = VIGIL_KUBE_CHANGE_ADDED,
        [CACHE_UPDATED] = VIGIL_KUBE_CHANGE_UPDATED,
        [CACHE_REMOVED] = VIGIL_KUBE_CHANGE_DELETED,
    };
    return (vigil_kube_change){
        .kind = kinds[change->kind],
        .before = change->before,
        .object = change->object,
        .initial = change->in_list,
        .state_unknown = change->state_unknown,
        .resync = change->resync,
    };
}

/* -- On its own thread -- */

static void *run_thread(void *arg)
{
    struct vigil_kube_handler *handler = arg;
    struct queued_change taken;
    atomic_store(&handler->running_as, pthread_self());
    atomic_store(&handler->runs, true);
    driver_thread_enter(&handler->waiting);
    while (change_queue_take(&handler->consumer.queue, CLOCK_NEVER, &taken) == ST_OK) {
        vigil_kube_change change = change_of(&taken);
        handler->fn(handler, &change, handler->user);
        queued_change_fini(&taken);
        change_queue_finish(&handler->consumer.queue);
    }
    driver_thread_enter(NULL); /* the handler may be freed now, and a simulated thread is not */
    handler_unref(handler);
    return NULL;
}

static enum status start_thread(struct vigil_kube_handler *handler)
{
    driver_shared_ref(&handler->shared);
    handler->has_thread = true;
    enum status status = driver_thread_new(run_thread, handler, &handler->thread);
    if (status == ST_OK)
        return ST_OK;
    handler->has_thread = false;
    handler_unref(handler);
    return status;
}

/* Inside a callback: the function may be about to wait for the client, which cannot continue before
 * we return. False: it waits. That is rare, so it is examined every millisecond. */
static bool join_unless_it_waits(struct vigil_kube_handler *handler)
{
    struct timespec until;
    do {
        if (atomic_load(&handler->waiting.waits))
            return false;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += NS_PER_MS;
        until.tv_sec += until.tv_nsec / NS_PER_S;
        until.tv_nsec %= NS_PER_S;
    } while (pthread_clockjoin_np(handler->thread, NULL, CLOCK_MONOTONIC, &until) != 0);
    return true;
}

static void stop_thread(struct vigil_kube_handler *handler)
{
    /* A thread cannot wait for itself: the handler was freed by its own function. */
    if (atomic_load(&handler->runs) &&
        pthread_equal(atomic_load(&handler->running_as), pthread_self()))
        pthread_detach(pthread_self());
    else if (!driver_must_not_wait(handler->copy->driver))
        pthread_join(handler->thread, NULL);
    else if (!join_unless_it_waits(handler))
        pthread_detach(handler->thread); /* it ends when its function returns */
}

/* -- In callbacks of the loop -- */

/* False: nothing waits, or the program has freed the handler. */
static bool deliver_one(struct vigil_kube_handler *handler)
{
    struct driver *driver = handler->copy->driver;
    struct queued_change taken;
    if (change_queue_take(&handler->consumer.queue, 0, &taken) != ST_OK)
        return false;
    bool wanted = driver_callback_begin(driver, &handler->object);
    if (wanted) {
        vigil_kube_change change = change_of(&taken);
        handler->fn(handler, &change, handler->user);
        driver_callback_end(driver);
    }
    queued_change_fini(&taken);
    change_queue_finish(&handler->consumer.queue);
    return wanted;
}

static void deliver(struct deferred *deferred)
{
    struct vigil_kube_handler *handler = CONTAINER_OF(deferred, struct vigil_kube_handler, deliver);
    struct clock *clock = loop_clock(handler->copy->driver->loop);
    int64_t from_ns = clock_mono_ns(clock);
    for (size_t delivered = 1; deliver_one(handler); delivered++) {
        bool timed = delivered % HANDLER_CHANGES_TIMED == 0;
        if (delivered == HANDLER_CHANGES_MAX ||
            (timed && clock_mono_ns(clock) - from_ns > HANDLER_TIME_MAX_NS)) {
            loop_defer(handler->copy->driver->loop, &handler->deliver);
            break;
        }
    }
}

static void on_published(struct copy_consumer *consumer)
{
    struct vigil_kube_handler *handler =
        CONTAINER_OF(consumer, struct vigil_kube_handler, consumer);
    loop_defer(handler->copy->driver->loop, &handler->deliver);
}

/* -- Resync -- */

static void on_resync(struct timer *timer)
{
    struct vigil_kube_handler *handler = CONTAINER_OF(timer, struct vigil_kube_handler, resync);
    copy_resync(handler->copy, &handler->consumer);
    if (handler->place == VIGIL_KUBE_HANDLER_CALLBACK)
        loop_defer(handler->copy->driver->loop, &handler->deliver);
    struct loop *loop = handler->copy->driver->loop;
    loop_timer_set(loop, &handler->resync, clock_add(loop_now_ns(loop), handler->resync_ns));
}

/* -- Commands -- */

static void on_client_end(struct driver_member *member)
{
    struct vigil_kube_handler *handler = CONTAINER_OF(member, struct vigil_kube_handler, member);
    change_queue_end(&handler->consumer.queue);
    loop_timer_cancel(handler->copy->driver->loop, &handler->resync);
    loop_defer_cancel(&handler->deliver);
}

static void start(struct vigil_kube_handler *handler)
{
    struct driver *driver = handler->copy->driver;
    if (driver->ended || atomic_load(&handler->object.dropped))
        return; /* its own function may have freed it already */
    list_push_back(&driver->members, &handler->member.in_driver);
    if (handler->resync_ns) {
        struct loop *loop = handler->copy->driver->loop;
        loop_timer_set(loop, &handler->resync, clock_add(loop_now_ns(loop), handler->resync_ns));
    }
    if (handler->place == VIGIL_KUBE_HANDLER_CALLBACK)
        loop_defer(handler->copy->driver->loop, &handler->deliver);
}

static void run_command(struct driver_command *command)
{
    struct vigil_kube_handler *handler =
        CONTAINER_OF(command, struct vigil_kube_handler, shared.command);
    uint32_t wanted = driver_shared_wanted(&handler->shared);
    if (wanted & HANDLER_WANTS_START)
        start(handler);
    if (wanted & HANDLER_WANTS_END) {
        list_remove(&handler->member.in_driver);
        on_client_end(&handler->member);
    }
    handler_unref(handler);
}

/* -- Public functions -- */

void vigil_kube_handler_options_init(vigil_kube_handler_options *options)
{
    *options =
        (vigil_kube_handler_options){.size = sizeof(*options), .place = VIGIL_KUBE_HANDLER_THREAD};
}

/* ST_NOMEM, ST_LIMIT. */
static enum status handler_new(struct copy *copy, const vigil_kube_handler_options *options,
                               struct vigil_kube_handler **ret_handler)
{
    struct vigil_kube_handler *handler = calloc(1, sizeof(*handler));
    if (!handler)
        return ST_NOMEM;
    uint64_t seed = random_seed_system();
    enum status status = change_queue_init(&handler->consumer.queue, seed,
                                           options->place == VIGIL_KUBE_HANDLER_TAKE);
    if (status != ST_OK) {
        free(handler);
        return status;
    }
    handler->place = options->place;
    handler->fn = options->fn;
    handler->user = options->user;
    handler->resync_ns = driver_ns(options->resync_ms);
    if (handler->resync_ns && handler->resync_ns < RESYNC_MIN_NS)
        handler->resync_ns = RESYNC_MIN_NS;
    handler->deliver.fn = deliver;
    handler->resync.fn = on_resync;
    handler->member.end = on_client_end;
    if (options->place == VIGIL_KUBE_HANDLER_CALLBACK)
        handler->consumer.published = on_published;
    driver_shared_init(&handler->shared, 1, run_command);
    list_init(&handler->member.in_driver);
    list_init(&handler->consumer.in_copy);
    handler->copy = copy;
    copy_ref(copy);
    *ret_handler = handler;
    return ST_OK;
}

static int code_of(enum status status)
{
    if (status == ST_NOMEM)
        return VIGIL_ERROR_MEMORY;
    return status == ST_CLOSED ? VIGIL_ERROR_CANCELED : VIGIL_ERROR_SYSTEM;
}

int vigil_kube_informer_add_handler(vigil_kube_informer *informer,
                                    const vigil_kube_handler_options *options,
                                    vigil_kube_handler **ret_handler)
{
    vigil_kube_handler_options complete;
    vigil_kube_handler_options_init(&complete);
    if (options->size == 0 || options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    if (complete.place < VIGIL_KUBE_HANDLER_THREAD || complete.place > VIGIL_KUBE_HANDLER_TAKE ||
        complete.resync_ms < 0 || (!complete.fn && complete.place != VIGIL_KUBE_HANDLER_TAKE))
        return VIGIL_ERROR_ARGUMENT;
    struct vigil_kube_handler *handler;
    enum status status = handler_new(informer->copy, &complete, &handler);
    if (status != ST_OK)
        return code_of(status);
    *ret_handler = handler; /* its function may be called before this one returns */
    if (complete.place == VIGIL_KUBE_HANDLER_THREAD)
        status = start_thread(handler);
    driver_shared_ref(&handler->shared); /* the function may also free it */
    if (status == ST_OK)
        status = copy_add_consumer(informer->copy, &handler->consumer);
    if (status == ST_OK) {
        driver_shared_want(&handler->shared, informer->copy->driver, HANDLER_WANTS_START);
    } else {
        *ret_handler = NULL;
        vigil_kube_handler_free(handler);
    }
    handler_unref(handler);
    return status == ST_OK ? VIGIL_OK : code_of(status);
}

void vigil_kube_handler_free(vigil_kube_handler *handler)
{
    if (!handler)
        return;
    struct driver *driver = handler->copy->driver;
    copy_remove_consumer(handler->copy, &handler->consumer);
    change_queue_end(&handler->consumer.queue);
    driver_drop(driver, &handler->object);
    if (handler->has_thread)
        stop_thread(handler);
    driver_shared_want(&handler->shared, driver, HANDLER_WANTS_END);
    handler_unref(handler);
}

int vigil_kube_handler_has_synced(const vigil_kube_handler *handler)
{
    struct vigil_kube_handler *own = (struct vigil_kube_handler *)(uintptr_t)handler;
    return change_queue_has_state(&own->consumer.queue);
}

int vigil_kube_handler_take(vigil_kube_handler *handler, int timeout_ms,
                            vigil_kube_change *ret_change)
{
    if (handler->place != VIGIL_KUBE_HANDLER_TAKE)
        return VIGIL_ERROR_ARGUMENT;
    int64_t until_ns = 0;
    if (timeout_ms)
        until_ns =
            timeout_ms < 0 ? CLOCK_NEVER : clock_mono_ns(clock_system()) + driver_ns(timeout_ms);
    queued_change_fini(&handler->taken);
    enum status status = change_queue_take(&handler->consumer.queue, until_ns, &handler->taken);
    if (status != ST_OK)
        return status == ST_TIMEOUT ? VIGIL_ERROR_TIMEOUT : VIGIL_ERROR_CANCELED;
    change_queue_finish(&handler->consumer.queue);
    *ret_change = change_of(&handler->taken);
    return VIGIL_OK;
}

int vigil_kube_handler_fd(const vigil_kube_handler *handler)
{
    return handler->place == VIGIL_KUBE_HANDLER_TAKE ? handler->consumer.queue.readable.fd : -1;
}
