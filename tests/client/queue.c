#include "heap.h"
#include "suite.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TAKE_MS = 60000 };

static vigil_client *client_with_thread(void)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    return client;
}

static vigil_queue *new_queue(vigil_client *client)
{
    vigil_queue *queue = NULL;
    CHECK(vigil_queue_new(client, &queue) == VIGIL_OK);
    return queue;
}

static const vigil_item *take(vigil_queue *queue)
{
    const vigil_item *item = NULL;
    CHECK(vigil_queue_take(queue, TAKE_MS, &item) == VIGIL_OK);
    return item;
}

static void check_empty(vigil_queue *queue)
{
    const vigil_item *item = NULL;
    CHECK(vigil_queue_take(queue, 0, &item) == VIGIL_ERROR_TIMEOUT);
    CHECK(!item);
}

static bool is_readable(const vigil_queue *queue)
{
    struct pollfd fd = {vigil_queue_fd(queue), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

static int64_t grant(vigil_client *client, int64_t ttl)
{
    vigil_call *call = vigil_lease_grant(client, ttl, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    int64_t id = vigil_lease_grant_result(call)->id;
    vigil_call_free(call);
    return id;
}

/* A call that does not complete by itself: another lease has the lock. */
static vigil_call *endless_call(vigil_client *client)
{
    static int64_t first, second;
    if (!first) {
        first = grant(client, 600);
        second = grant(client, 600);
        must(vigil_lock(client, vigil_text("taken"), first));
    }
    return vigil_lock(client, vigil_text("taken"), second);
}

static void queue_delivers_completed_calls(void)
{
    enum { CALLS = 200 };
    vigil_client *client = new_client(), *other = new_client();
    vigil_queue *queue = new_queue(client);
    static int seen[CALLS];
    check_empty(queue);
    CHECK(!is_readable(queue));
    CHECK(vigil_queue_call(queue, NULL, NULL) == VIGIL_ERROR_MEMORY);
    for (int i = 0; i < CALLS; i++) {
        vigil_call *call = vigil_put(client, vigil_text("q"), vigil_text("v"), 0);
        CHECK(vigil_queue_call(queue, call, &seen[i]) == VIGIL_OK);
        CHECK(vigil_queue_call(queue, call, &seen[i]) == VIGIL_ERROR_ARGUMENT);
    }
    vigil_call *foreign = vigil_get(other, vigil_text("q"));
    CHECK(vigil_queue_call(queue, foreign, NULL) == VIGIL_ERROR_ARGUMENT);
    vigil_call_free(foreign);
    for (int i = 0; i < CALLS; i++) {
        const vigil_item *item = take(queue);
        CHECK(item->what == VIGIL_ITEM_CALL && item->call && !item->watch && !item->lease);
        CHECK(item->user == vigil_call_user(item->call));
        CHECK(item->error == vigil_call_error(item->call));
        CHECK_CODE(item->call, VIGIL_OK);
        CHECK(vigil_put_result(item->call)->header->revision > 0);
        ++*(int *)item->user;
        if (i % 2)
            vigil_call_free(item->call); /* before or after the item */
        vigil_call *call = item->call;
        vigil_item_release(item);
        if (i % 2 == 0)
            vigil_call_free(call);
    }
    for (int i = 0; i < CALLS; i++)
        CHECK(seen[i] == 1);
    check_empty(queue);
    CHECK(!is_readable(queue));
    vigil_queue_free(queue);
    vigil_client_free(client);
    vigil_client_free(other);
}

/* Waits until the calls have completed, without taking them. */
static void wait_for_calls(vigil_client *client, vigil_call **calls, int count)
{
    for (int i = 0; i < count; i++)
        while (!vigil_call_header(calls[i])) {
            CHECK_CODE(calls[i], VIGIL_OK);
            must(vigil_get(client, vigil_text("q")));
        }
}

/* The descriptor is written once for all calls that complete while the queue is not empty. */
static void queue_wakes_the_program_once(void)
{
    enum { CALLS = 50 };
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *calls[CALLS];
    eventfd_t written;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CALLS; i++) {
            calls[i] = vigil_get(client, vigil_text("q"));
            CHECK(vigil_queue_call(queue, calls[i], NULL) == VIGIL_OK);
        }
        wait_for_calls(client, calls, CALLS);
        CHECK(is_readable(queue));
        CHECK(eventfd_read(vigil_queue_fd(queue), &written) == 0 && written == 1);
        for (int i = 0; i < CALLS; i++) /* etcd may answer in another order */
            vigil_item_release(take(queue));
        for (int i = 0; i < CALLS; i++)
            vigil_call_free(calls[i]);
        CHECK(!is_readable(queue));
    }
    vigil_queue_free(queue);
    vigil_client_free(client);
}

static void queue_take_has_a_timeout(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *call = endless_call(client);
    const vigil_item *item;
    CHECK(vigil_queue_call(queue, call, NULL) == VIGIL_OK);
    CHECK(vigil_queue_take(queue, 50, &item) == VIGIL_ERROR_TIMEOUT);
    vigil_call_cancel(call);
    item = take(queue);
    CHECK(item->call == call && item->error->code == VIGIL_ERROR_CANCELED);
    vigil_item_release(item);
    vigil_call_free(call);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

static void queue_delivers_a_lost_lease(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_lease *lease, *forgotten;
    int64_t id = grant(client, 60);
    int user;
    CHECK(vigil_queue_lease(queue, 0, 60, NULL, &lease) == VIGIL_ERROR_ARGUMENT);
    CHECK(vigil_queue_lease(queue, id, 60, &user, &lease) == VIGIL_OK);
    CHECK(vigil_queue_lease(queue, id, 60, NULL, &forgotten) == VIGIL_OK);
    vigil_lease_free(forgotten);
    must(vigil_lease_revoke(client, id));
    const vigil_item *item = take(queue);
    CHECK(item->what == VIGIL_ITEM_LEASE && item->lease == lease && item->user == &user);
    CHECK(item->error->code == VIGIL_ERROR_LEASE_NOT_FOUND);
    vigil_lease_free(lease);
    CHECK(item->error->code == VIGIL_ERROR_LEASE_NOT_FOUND); /* still valid */
    vigil_item_release(item);
    check_empty(queue);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

/* -- Inside callbacks, and on several threads -- */

struct inside {
    vigil_client *client;
    vigil_queue *queue;
    vigil_call *started;
};

static void take_inside(vigil_call *call, void *user)
{
    struct inside *inside = user;
    const vigil_item *item;
    CHECK(vigil_queue_take(inside->queue, 0, &item) == VIGIL_ERROR_TIMEOUT);
    CHECK(vigil_queue_take(inside->queue, -1, &item) == VIGIL_ERROR_WOULD_BLOCK);
    inside->started = vigil_get(inside->client, vigil_text("q"));
    CHECK(vigil_queue_call(inside->queue, inside->started, NULL) == VIGIL_OK);
    vigil_call_free(call);
}

static void queue_may_be_used_inside_a_callback(void)
{
    vigil_client *client = new_client();
    struct inside inside = {client, new_queue(client), NULL};
    CHECK(vigil_call_start(vigil_get(client, vigil_text("q")), take_inside, &inside) == VIGIL_OK);
    const vigil_item *item = take(inside.queue);
    CHECK(item->call == inside.started);
    vigil_item_release(item);
    vigil_call_free(inside.started);
    vigil_queue_free(inside.queue);
    vigil_client_free(client);
}

/* -- Watches -- */

static vigil_watch *watch_from(vigil_queue *queue, const char *key, int64_t revision,
                               size_t buffer_bytes, void *user)
{
    vigil_watch_options options;
    vigil_watch *watch = NULL;
    vigil_watch_options_init(&options);
    options.key = vigil_text(key);
    options.revision = revision;
    options.buffer_bytes = buffer_bytes;
    CHECK(vigil_queue_watch(queue, &options, user, &watch) == VIGIL_OK);
    return watch;
}

/* Values begin with a number. */
static long number_of(const vigil_event *event)
{
    char text[16] = "";
    size_t bytes = event->kv->value.size < sizeof(text) ? event->kv->value.size : sizeof(text) - 1;
    memcpy(text, event->kv->value.data, bytes);
    return strtol(text, NULL, 10);
}

/* Nothing is lost, repeated or reordered. */
static void check_batch(const vigil_item *item, long *next)
{
    CHECK(item->what == VIGIL_ITEM_WATCH && !item->call && !item->lease && !item->error);
    CHECK(item->batch->what == VIGIL_WATCH_EVENTS && item->batch->event_count > 0);
    for (size_t i = 0; i < item->batch->event_count; i++)
        CHECK(number_of(&item->batch->events[i]) == (*next)++);
    CHECK(vigil_watch_revision(item->watch) == item->batch->revision);
}

static int64_t put_numbers(vigil_client *client, const char *key, long from, long to, size_t bytes)
{
    char *value = malloc(bytes + 1);
    int64_t revision = 0;
    memset(value, '.', bytes);
    for (long i = from; i < to; i++) {
        int len = snprintf(value, bytes + 1, "%ld ", i);
        value[len] = '.';
        revision = must(vigil_put(client, vigil_text(key), vigil_bytes_of(value, bytes), 0));
    }
    free(value);
    return revision;
}

static void queue_delivers_a_watch(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_watch_options options;
    vigil_watch *watch = NULL;
    int user;
    int64_t first = put(client, "w/old", "0");
    vigil_watch_options_init(&options);
    options.key = vigil_text("w/");
    options.prefix = 1;
    options.revision = first;
    options.prev_kv = 1;
    options.created_notify = 1;
    CHECK(vigil_queue_watch(queue, &options, &user, &watch) == VIGIL_OK);
    CHECK(vigil_watch_user(watch) == &user && vigil_watch_revision(watch) == first - 1);
    const vigil_item *item = take(queue);
    CHECK(item->batch->what == VIGIL_WATCH_CREATED && item->user == &user && !item->error);
    CHECK(item->batch->header && vigil_watch_revision(watch) == first - 1);
    vigil_item_release(item);
    vigil_item_release(take(queue)); /* the past */
    int64_t second = put(client, "w/old", "1");
    item = take(queue);
    CHECK(item->watch == watch && item->batch->event_count == 1);
    CHECK(item->batch->revision == second && vigil_watch_revision(watch) == second);
    const vigil_event *event = item->batch->events;
    CHECK(bytes_equal(event->kv->key, "w/old") && bytes_equal(event->kv->value, "1"));
    CHECK(bytes_equal(event->prev_kv->value, "0") && event->prev_kv->mod_revision == first);
    int64_t third = must(vigil_delete(client, vigil_text("w/old")));
    const vigil_item *none;
    CHECK(vigil_queue_take(queue, 100, &none) == VIGIL_ERROR_TIMEOUT); /* not before the release */
    vigil_item_release(item);
    item = take(queue);
    CHECK(item->batch->events->type == VIGIL_DELETE && item->batch->revision == third);
    vigil_item_release(item);
    vigil_watch_request_progress(watch);
    item = take(queue);
    CHECK(item->batch->what == VIGIL_WATCH_PROGRESS && item->batch->revision >= third);
    vigil_watch_free(watch);
    CHECK(item->batch->what == VIGIL_WATCH_PROGRESS); /* still valid */
    vigil_item_release(item);
    check_empty(queue);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

static void queue_delivers_the_end_of_a_watch(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    int64_t last = put_numbers(client, "c", 0, 10, 20);
    must(vigil_compact(client, last, 1));
    vigil_watch *watch = watch_from(queue, "c", last - 5, 1000, NULL);
    const vigil_item *item = take(queue);
    CHECK(item->batch->what == VIGIL_WATCH_ENDED && item->error == item->batch->error);
    CHECK(item->error->code == VIGIL_ERROR_COMPACTED && item->batch->compact_revision == last);
    vigil_item_release(item);
    check_empty(queue);
    vigil_watch_free(watch);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

/* -- A program that does not take -- */

static int check_callback(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    _Atomic long *next = user;
    (void)watch;
    for (size_t i = 0; i < batch->event_count; i++)
        CHECK(number_of(&batch->events[i]) == (*next)++);
    return VIGIL_WATCH_CONTINUE;
}

/* A watch whose batch is not released, and one in a queue from which nothing is taken, receive far
 * more than their buffers. Another watch in the first queue and one with a callback continue, and
 * the library's memory stays small. Then both deliver everything. */
static void queue_is_bounded_while_the_program_does_not_take(void)
{
    enum { EVENTS = 1000, BYTES = 20000, ROUND = 25, BUFFER = 300000 };
    heap_count();
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client), *ignored = new_queue(client);
    long slow = 0, quick = 0, untaken = 0;
    _Atomic long called = 0;
    int64_t first = put_numbers(client, "many", 0, 1, BYTES);
    vigil_watch *slow_watch = watch_from(queue, "many", first, BUFFER, &slow);
    vigil_watch *ignored_watch = watch_from(ignored, "many", first, BUFFER, &untaken);
    const vigil_item *kept = take(queue), *item;
    check_batch(kept, &slow);
    vigil_watch *quick_watch = watch_from(queue, "many", first, BUFFER, &quick), *called_watch;
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("many");
    options.revision = first;
    CHECK(vigil_watch_new(client, &options, check_callback, &called, &called_watch) == VIGIL_OK);
    long before = heap_bytes();
    heap_mark();
    for (long i = 1; i < EVENTS; i += ROUND) {
        put_numbers(client, "many", i, i + ROUND < EVENTS ? i + ROUND : EVENTS, BYTES);
        while (quick < i) {
            item = take(queue);
            CHECK(item->watch == quick_watch);
            check_batch(item, &quick);
            vigil_item_release(item);
        }
    }
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.queued_bytes < 3 * (BUFFER + 2 * BYTES) && stats.queued_bytes > BUFFER);
    CHECK(heap_bytes_max() - before < (long)EVENTS * BYTES / 5);
    CHECK(slow == 1 && untaken == 0);
    vigil_watch_stats behind, ahead;
    vigil_watch_get_stats(slow_watch, &behind, sizeof(behind));
    CHECK(behind.revision == first && behind.queued_bytes > BUFFER / 4);
    CHECK(behind.queued_bytes < BUFFER + 2 * BYTES && behind.lag >= EVENTS - 2 * ROUND);
    vigil_item_release(kept);
    while (slow < EVENTS || quick < EVENTS || untaken < EVENTS) {
        bool other = slow == EVENTS && quick == EVENTS;
        item = take(other ? ignored : queue);
        check_batch(item, item->user);
        vigil_item_release(item);
    }
    while (called < EVENTS)
        must(vigil_get(client, vigil_text("q")));
    vigil_client_get_stats(client, &stats, sizeof(stats));
    vigil_watch_get_stats(slow_watch, &behind, sizeof(behind));
    vigil_watch_get_stats(quick_watch, &ahead, sizeof(ahead));
    CHECK(behind.lag == 0 && behind.queued_bytes == 0 && behind.revision == ahead.revision);
    CHECK(behind.resumes >= 1 && ahead.lag == 0); /* it was cancelled */
    vigil_watch_get_stats(ignored_watch, &behind, sizeof(behind));
    CHECK(behind.resumes >= 1 && stats.watch_resumes >= 2);
    CHECK(stats.queued_bytes == 0);
    check_empty(queue);
    check_empty(ignored);
    vigil_watch_free(slow_watch);
    vigil_watch_free(quick_watch);
    vigil_watch_free(called_watch);
    vigil_watch_free(ignored_watch);
    vigil_queue_free(queue);
    vigil_queue_free(ignored);
    vigil_client_free(client);
    CHECK(heap_bytes() == 0);
}

/* -- Several threads -- */

enum { TAKERS = 4, SHARED_CALLS = 1000, SHARED_WATCHES = 3 };

struct sharing {
    vigil_queue *queue;
    long seen[SHARED_CALLS];   /* completions of each call */
    long last[SHARED_WATCHES]; /* the newest revision of each watch */
    struct latch taken, ended; /* calls and events; watches */
};

static void take_shared_batch(struct sharing *sharing, const vigil_item *item)
{
    if (item->batch->what == VIGIL_WATCH_ENDED) {
        CHECK(item->error->code == VIGIL_ERROR_CANCELED);
        latch_add(&sharing->ended, 1);
    } else {
        long *last = item->user; /* no other thread has an item of this watch */
        for (size_t i = 0; i < item->batch->event_count; i++) {
            CHECK(item->batch->events[i].kv->mod_revision > *last);
            *last = (long)item->batch->events[i].kv->mod_revision;
        }
        latch_add(&sharing->taken, (long)item->batch->event_count);
    }
}

static void *take_shared(void *arg)
{
    struct sharing *sharing = arg;
    const vigil_item *item;
    int code;
    while ((code = vigil_queue_take(sharing->queue, -1, &item)) == VIGIL_OK) {
        if (item->what == VIGIL_ITEM_WATCH) {
            take_shared_batch(sharing, item);
        } else {
            CHECK_CODE(item->call, VIGIL_OK);
            ++*(long *)item->user;
            vigil_call_free(item->call);
            latch_add(&sharing->taken, 1);
        }
        vigil_item_release(item);
    }
    CHECK(code == VIGIL_ERROR_CANCELED);
    return NULL;
}

static void put_shared(vigil_client *client, struct sharing *sharing)
{
    for (int i = 0; i < SHARED_CALLS; i++)
        CHECK(vigil_queue_call(sharing->queue,
                               vigil_put(client, vigil_text("many"), vigil_text("v"), 0),
                               &sharing->seen[i]) == VIGIL_OK);
    latch_wait(&sharing->taken, SHARED_CALLS * (1 + SHARED_WATCHES));
}

/* Each item is given to one thread, and the batches of a watch are processed in order. */
static void threads_may_share_a_queue(void)
{
    static struct sharing sharing = {NULL, {0}, {0}, LATCH_INIT, LATCH_INIT};
    vigil_client *client = client_with_thread();
    vigil_watch *watches[SHARED_WATCHES];
    pthread_t threads[TAKERS];
    sharing.queue = new_queue(client);
    int64_t first = put(client, "q", "v") + 1;
    for (int i = 0; i < SHARED_WATCHES; i++)
        watches[i] = watch_from(sharing.queue, "many", first, 5000, &sharing.last[i]);
    for (int i = 0; i < TAKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_shared, &sharing) == 0);
    put_shared(client, &sharing);
    vigil_client_shutdown(client); /* all of them return */
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(latch_count(&sharing.ended) == SHARED_WATCHES);
    for (int i = 0; i < SHARED_CALLS; i++)
        CHECK(sharing.seen[i] == 1);
    for (int i = 0; i < SHARED_WATCHES; i++)
        vigil_watch_free(watches[i]);
    vigil_queue_free(sharing.queue);
    vigil_client_free(client);
}

/* -- The end -- */

/* After the end every take says so at once, and the descriptor stays readable. */
static void check_over(vigil_queue *queue)
{
    const vigil_item *item;
    CHECK(is_readable(queue));
    CHECK(vigil_queue_take(queue, 0, &item) == VIGIL_ERROR_CANCELED);
    CHECK(vigil_queue_take(queue, -1, &item) == VIGIL_ERROR_CANCELED);
}

static void end_a_queue(bool by_free)
{
    enum { CALLS = 20 };
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_lease *lease;
    int calls = 0, leases = 0, watches = 0;
    int64_t first = put(client, "q", "v") + 1;
    long next = 0;
    put_numbers(client, "many", 0, 50, 100);
    watch_from(queue, "many", first, 1000, NULL); /* which is full when the client ends */
    const vigil_item *item = take(queue);
    check_batch(item, &next);
    vigil_item_release(item);
    for (int i = 0; i < CALLS; i++)
        CHECK(vigil_queue_call(queue, endless_call(client), NULL) == VIGIL_OK);
    CHECK(vigil_queue_lease(queue, grant(client, 60), 60, NULL, &lease) == VIGIL_OK);
    if (by_free)
        vigil_client_free(client);
    else
        vigil_client_shutdown(client);
    int code;
    while ((code = vigil_queue_take(queue, TAKE_MS, &item)) == VIGIL_OK) {
        bool events = item->what == VIGIL_ITEM_WATCH && item->batch->what == VIGIL_WATCH_EVENTS;
        if (events)
            check_batch(item, &next);
        CHECK(events || item->error->code == VIGIL_ERROR_CANCELED);
        calls += item->what == VIGIL_ITEM_CALL;
        leases += item->what == VIGIL_ITEM_LEASE;
        watches += item->what == VIGIL_ITEM_WATCH && !events;
        vigil_call_free(item->call);
        vigil_lease_free(item->lease);
        if (!events)
            vigil_watch_free(item->watch);
        vigil_item_release(item);
    }
    CHECK(code == VIGIL_ERROR_CANCELED && calls == CALLS && leases == 1 && watches == 1);
    check_over(queue);
    vigil_queue_free(queue);
    if (!by_free)
        vigil_client_free(client);
}

static void shutdown_is_delivered_through_the_queue(void)
{
    end_a_queue(false);
}

static void freed_client_ends_its_queue(void)
{
    end_a_queue(true);
}

static void freed_queue_drops_its_items(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *completed = vigil_get(client, vigil_text("q"));
    vigil_call *running = endless_call(client);
    CHECK(vigil_queue_call(queue, completed, NULL) == VIGIL_OK);
    CHECK(vigil_queue_call(queue, running, NULL) == VIGIL_OK);
    wait_for_calls(client, &completed, 1);
    vigil_queue_free(queue);
    vigil_call_cancel(running);
    while (vigil_call_error(running)->code == VIGIL_OK)
        must(vigil_get(client, vigil_text("q")));
    CHECK_CODE(completed, VIGIL_OK);
    vigil_call_free(completed);
    vigil_call_free(running);
    vigil_client_free(client);
}

/* -- Freeing on one thread while another one takes -- */

static void *take_and_release(void *arg)
{
    const vigil_item *item;
    int code;
    while ((code = vigil_queue_take(arg, -1, &item)) == VIGIL_OK) {
        if (item->what == VIGIL_ITEM_WATCH && item->batch->event_count)
            CHECK(bytes_equal(item->batch->events->kv->key, "q"));
        vigil_item_release(item);
    }
    CHECK(code == VIGIL_ERROR_CANCELED);
    return NULL;
}

static void objects_may_be_freed_while_a_thread_takes(void)
{
    enum { OBJECTS = 60, TAKING = 2 };
    for (int round = 0; round < 5; round++) {
        vigil_client *client = client_with_thread();
        vigil_queue *queue = new_queue(client);
        vigil_watch *watches[OBJECTS];
        vigil_call *calls[OBJECTS];
        pthread_t threads[TAKING];
        for (int i = 0; i < TAKING; i++)
            CHECK(pthread_create(&threads[i], NULL, take_and_release, queue) == 0);
        for (int i = 0; i < OBJECTS; i++) {
            watches[i] = watch_from(queue, "q", 1, (size_t)i * 10, NULL);
            calls[i] = vigil_put(client, vigil_text("q"), vigil_text("v"), 0);
            CHECK(vigil_queue_call(queue, calls[i], NULL) == VIGIL_OK);
            if (i >= 10) {
                vigil_watch_free(watches[i - 10]);
                vigil_call_free(calls[i - 10]);
            }
        }
        vigil_client_free(client); /* both threads return */
        for (int i = OBJECTS - 10; i < OBJECTS; i++) {
            vigil_watch_free(watches[i]);
            vigil_call_free(calls[i]);
        }
        for (int i = 0; i < TAKING; i++)
            pthread_join(threads[i], NULL);
        vigil_queue_free(queue);
    }
}

struct waiter {
    vigil_queue *queue;
    struct latch ready;
    long thread_id;
};

static void *take_until_freed(void *arg)
{
    struct waiter *waiter = arg;
    const vigil_item *item;
    waiter->thread_id = syscall(SYS_gettid);
    latch_add(&waiter->ready, 1);
    CHECK(vigil_queue_take(waiter->queue, -1, &item) == VIGIL_ERROR_CANCELED);
    return NULL;
}

/* Returns when the thread sleeps. */
static void wait_until_asleep(long thread_id)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", thread_id);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
    }
}

static void freed_queue_ends_a_take(void)
{
    vigil_client *client = client_with_thread();
    struct waiter waiter = {new_queue(client), LATCH_INIT, 0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_until_freed, &waiter) == 0);
    latch_wait(&waiter.ready, 1);
    wait_until_asleep(waiter.thread_id);
    vigil_queue_free(waiter.queue);
    pthread_join(thread, NULL);
    vigil_client_free(client);
}

/* -- Every order of freeing -- */

/* All orders of the parts are more than need be: STEP has no divisor in common with them. */
enum { PARTS = 8, ORDERS = 300, STEP = 7919 };

/* A call that is running, one that was taken, a kept lease, a watch, two items of which the second
 * one is a batch, the queue and the client. */
struct order {
    vigil_client *client;
    vigil_queue *queue;
    vigil_call *running, *taken;
    const vigil_item *item, *batch;
    vigil_lease *lease;
    vigil_watch *watch;
};

static void free_part(struct order *order, int part)
{
    switch (part) {
    case 0:
        vigil_client_free(order->client);
        break;
    case 1:
        vigil_queue_free(order->queue);
        break;
    case 2:
        vigil_call_free(order->running);
        break;
    case 3:
        vigil_call_free(order->taken);
        break;
    case 4:
        CHECK(order->item->error->code == VIGIL_OK && order->item->user == order);
        vigil_item_release(order->item);
        break;
    case 5:
        CHECK(order->batch->batch->what == VIGIL_WATCH_CREATED);
        CHECK(order->batch->batch->header->revision == order->batch->batch->revision);
        vigil_item_release(order->batch);
        break;
    case 6:
        vigil_watch_free(order->watch);
        break;
    default:
        vigil_lease_free(order->lease);
    }
}

/* The numbers 0 to PARTS - 1 in the order with this number. */
static void permute(int number, int *parts)
{
    for (int i = 0; i < PARTS; i++)
        parts[i] = i;
    for (int left = PARTS; left > 1; left--) {
        int chosen = number % left, last = parts[left - 1];
        parts[left - 1] = parts[chosen];
        parts[chosen] = last;
        number /= left;
    }
}

static void everything_may_be_freed_in_every_order(void)
{
    vigil_client *writer = new_client();
    int64_t id = grant(writer, 600);
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("q");
    options.created_notify = 1;
    for (int number = 0; number < ORDERS; number++) {
        struct order order = {.client = new_client()};
        int parts[PARTS];
        order.queue = new_queue(order.client);
        order.taken = vigil_get(order.client, vigil_text("q"));
        CHECK(vigil_queue_call(order.queue, order.taken, &order) == VIGIL_OK);
        order.item = take(order.queue);
        CHECK(vigil_queue_watch(order.queue, &options, NULL, &order.watch) == VIGIL_OK);
        order.batch = take(order.queue);
        order.running = vigil_get(order.client, vigil_text("q"));
        CHECK(vigil_queue_call(order.queue, order.running, NULL) == VIGIL_OK);
        CHECK(vigil_queue_lease(order.queue, id, 600, NULL, &order.lease) == VIGIL_OK);
        permute(number * STEP, parts);
        for (int i = 0; i < PARTS; i++)
            free_part(&order, parts[i]);
    }
    vigil_client_free(writer);
}

const struct suite_test queue_tests[] = {
    {"queue_delivers_completed_calls", queue_delivers_completed_calls},
    {"queue_wakes_the_program_once", queue_wakes_the_program_once},
    {"queue_take_has_a_timeout", queue_take_has_a_timeout},
    {"queue_delivers_a_lost_lease", queue_delivers_a_lost_lease},
    {"queue_may_be_used_inside_a_callback", queue_may_be_used_inside_a_callback},
    {"threads_may_share_a_queue", threads_may_share_a_queue},
    {"queue_delivers_a_watch", queue_delivers_a_watch},
    {"queue_delivers_the_end_of_a_watch", queue_delivers_the_end_of_a_watch},
    {"queue_is_bounded_while_the_program_does_not_take",
     queue_is_bounded_while_the_program_does_not_take},
    {"shutdown_is_delivered_through_the_queue", shutdown_is_delivered_through_the_queue},
    {"freed_client_ends_its_queue", freed_client_ends_its_queue},
    {"freed_queue_drops_its_items", freed_queue_drops_its_items},
    {"objects_may_be_freed_while_a_thread_takes", objects_may_be_freed_while_a_thread_takes},
    {"freed_queue_ends_a_take", freed_queue_ends_a_take},
    {"everything_may_be_freed_in_every_order", everything_may_be_freed_in_every_order},
    {NULL, NULL},
};
