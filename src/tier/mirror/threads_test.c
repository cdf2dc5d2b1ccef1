/* Readers on threads of their own, beside a follower that the test steps. For the thread sanitizer,
 * and for what must hold for a reader at any moment. */
#include "base/metric/page.h"
#include "tier/mirror/world_sim_test.h"

enum { THREADS = 3, STEPS = 400, WAITS_EACH = 8 };

struct io_thread;

struct threaded_wait {
    struct tier_wait wait; /* first */
    struct io_thread *thread;
};

struct io_thread {
    pthread_t thread;
    struct tier_mirror *mirror;
    struct tier_collection *collection;
    struct threaded_wait waits[WAITS_EACH];
    struct tier_change_listener listener;
    struct random random;
    _Atomic unsigned turns;
    unsigned waiting, done, failed, changes;
    uint64_t newest, generation;
};

static _Atomic bool stopping;
static struct tier_view last_view; /* by the test's thread */

static void on_done(struct tier_wait *wait, enum status status)
{
    struct io_thread *t = ((struct threaded_wait *)wait)->thread;
    t->waiting--;
    t->done++;
    t->failed += status != ST_OK;
}

static void on_change(struct tier_change_listener *listener)
{
    CONTAINER_OF(listener, struct io_thread, listener)->changes++;
}

/* What a read does, without reading the store. */
static void look(struct io_thread *t)
{
    struct tier_view view;
    int64_t revision;
    uint64_t version;
    tier_collection_look(t->collection, &view);
    if (!view.generation)
        return;
    /* The mirror never goes back. */
    assert(view.generation >= t->generation);
    assert(view.generation > t->generation || view.newest >= t->newest);
    assert(view.oldest <= view.newest);
    t->generation = view.generation;
    t->newest = view.newest;
    if (tier_collection_revision(t->collection, view.generation, view.newest, &revision) &&
        tier_collection_version(t->collection, view.generation, revision, &version))
        assert(version >= view.newest);
    if (tier_collection_change(t->collection, view.generation, view.began + 1, &version))
        assert(version > 0);
}

static void begin_wait(struct io_thread *t, struct tier_reader *reader)
{
    for (size_t i = 0; i < WAITS_EACH; i++) {
        struct threaded_wait *w = &t->waits[i];
        if (w->wait.use)
            continue;
        *w = (struct threaded_wait){
            .wait = {.done = on_done,
                     .kind = (enum tier_wait_kind)random_below(&t->random, 3),
                     .version = t->newest + random_below(&t->random, 3),
                     .timeout_ns = (int64_t)random_below(&t->random, 100) * NS_PER_MS},
            .thread = t,
        };
        t->waiting++;
        tier_wait_start(reader, &w->wait, t->collection);
        return;
    }
}

static void *run_thread(void *arg)
{
    struct io_thread *t = arg;
    struct loop *loop;
    enum status status = loop_new(clock_system(), &loop);
    assert(status == ST_OK);
    struct tier_reader *reader = tier_reader_new(t->mirror, loop);
    t->listener.changed = on_change;
    while (!atomic_load(&stopping)) {
        struct tier_name name = tier_pods(TIER_JSON);
        struct tier_collection *again = tier_mirror_open(t->mirror, &name);
        assert(again == t->collection);
        look(t);
        begin_wait(t, reader);
        if (random_chance(&t->random, 1, 10))
            tier_reader_unlisten(&t->listener);
        if (random_chance(&t->random, 1, 10) && !t->listener.use)
            tier_reader_listen(reader, &t->listener, t->collection);
        if (random_chance(&t->random, 1, 10)) {
            struct threaded_wait *w = &t->waits[random_below(&t->random, WAITS_EACH)];
            t->waiting -= w->wait.use != NULL;
            tier_wait_cancel(&w->wait);
        }
        loop_turn(loop, (int64_t)random_below(&t->random, 3) * NS_PER_MS);
        tier_collection_close(again);
        atomic_fetch_add(&t->turns, 1);
    }
    tier_reader_unlisten(&t->listener);
    while (t->waiting)
        loop_turn(loop, NS_PER_S);
    tier_reader_free(reader);
    loop_free(loop);
    return NULL;
}

/* The simulation is faster than threads that the machine does not run: without this, they could see
 * nothing of it. */
static void wait_for_turns(struct io_thread *threads, unsigned count)
{
    for (size_t i = 0; i < THREADS; i++)
        while (atomic_load(&threads[i].turns) < count)
            sched_yield();
}

static void readers_on_threads_see_no_step_back(void **state)
{
    struct io_thread threads[THREADS];
    struct metric_page page = {0};
    char reason[TIER_REASON_BYTES];
    (void)state;
    tier_serve();
    atomic_store(&stopping, false);
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (struct io_thread){.mirror = tier.mirror, .collection = tier.collection};
        random_init(&threads[i].random, i);
        assert_int_equal(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]), 0);
    }
    for (int i = 0; i < STEPS; i++) {
        api_change_one(&api);
        if (i % 40 == 39) {
            api.forgotten = api_version(&api);
            api_end_watches(&api, API_FORGETS);
        }
        if (i % 10 == 0)
            assert_true(tier_mirror_is_ready(tier.mirror, reason)); /* none is named */
        tier_run((int64_t)random_below(&api.random, 2 * (uint64_t)NS_PER_S));
        wait_for_turns(threads, (unsigned)i + 1);
    }
    tier_mirror_write_metrics(tier.mirror, &page);
    metric_page_fini(&page);
    last_view = tier_view();
    atomic_store(&stopping, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        assert_true(threads[i].done > threads[i].failed);
        assert_true(threads[i].changes > 0);
    }
    assert_true(last_view.generation > 3);
    tier_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_on_threads_see_no_step_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
