/*
 * The end of a client that still has work: every call that was started completes before
 * vigil_client_free returns, whatever its callback does. Nothing listens at the endpoint.
 * Sanitizers find what remains or is used too late.
 */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <vigil/v2.h>
#include <vigil/vigil.h>

#include <cmocka.h>

enum { CALLS = 4, ROUNDS = 400, RACES = 200 };

static vigil_client *client_new(int own_thread)
{
    vigil_client *client = NULL;
    vigil_options options;
    vigil_options_init(&options);
    options.endpoints = "http://127.0.0.1:1";
    options.call_timeout_ms = 0;
    options.own_thread = own_thread;
    assert_int_equal(vigil_client_new(&options, &client, NULL), VIGIL_OK);
    return client;
}

static vigil_call *put(vigil_client *client)
{
    return vigil_put(client, vigil_text("k"), vigil_text("v"), 0);
}

static _Atomic size_t completed;

static void free_itself(vigil_call *call, void *user)
{
    (void)user;
    assert_int_equal(vigil_call_error(call)->code, VIGIL_ERROR_CANCELED);
    completed++;
    vigil_call_free(call);
}

/* -- Calls that the program has forgotten -- */

static void forget_calls(int own_thread)
{
    vigil_client *client = client_new(own_thread);
    for (size_t i = 0; i < CALLS; i++)
        assert_int_equal(vigil_call_start(put(client), free_itself, NULL), VIGIL_OK);
    vigil_client_free(client);
}

static void forgotten_calls_keep_no_memory(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread <= 1; own_thread++) {
        completed = 0;
        forget_calls(own_thread);
        size_t before = mallinfo2().uordblks; /* 0 with a sanitizer, which counts for itself */
        for (size_t i = 1; i < ROUNDS; i++)
            forget_calls(own_thread);
        assert_int_equal(completed, CALLS * ROUNDS);
        assert_true(mallinfo2().uordblks <= before + 4096);
    }
}

/* -- What callbacks do meanwhile -- */

struct world {
    vigil_client *client;
    vigil_call *calls[CALLS];
    size_t completions;
};

static void start_again(vigil_call *call, void *user)
{
    struct world *w = user;
    w->completions++;
    vigil_call *again = put(w->client);
    assert_int_equal(vigil_call_start(again, start_again, w), VIGIL_ERROR_CANCELED);
    assert_int_equal(vigil_call_error(again)->code, VIGIL_ERROR_CANCELED);
    assert_int_equal(vigil_call_run(again), VIGIL_ERROR_WOULD_BLOCK);
    vigil_call_free(again);
    vigil_client_shutdown(w->client); /* no effect any more */
    vigil_client_free(w->client);     /* neither has this, as it is under way */
    vigil_call_free(call);
}

static void no_call_can_be_started_while_a_client_is_freed(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread <= 1; own_thread++) {
        struct world w = {.client = client_new(own_thread)};
        for (size_t i = 0; i < CALLS; i++)
            assert_int_equal(vigil_call_start(put(w.client), start_again, &w), VIGIL_OK);
        vigil_client_free(w.client);
        assert_int_equal(w.completions, CALLS);
    }
}

/* The first callback frees and cancels all calls, also those that come later. */
static void free_all(vigil_call *call, void *user)
{
    struct world *w = user;
    (void)call;
    w->completions++;
    for (size_t i = 0; i < CALLS; i++) {
        vigil_call_cancel(w->calls[i]);
        vigil_call_free(w->calls[i]);
    }
}

static void callback_may_free_every_other_call(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread <= 1; own_thread++) {
        struct world w = {.client = client_new(own_thread)};
        for (size_t i = 0; i < CALLS; i++)
            w.calls[i] = put(w.client);
        for (size_t i = 0; i < CALLS; i++)
            assert_int_equal(vigil_call_start(w.calls[i], free_all, &w), VIGIL_OK);
        vigil_client_free(w.client);
        assert_int_equal(w.completions, 1);
    }
}

/* -- Calls that the program holds -- */

static void note(vigil_call *call, void *user)
{
    struct world *w = user;
    (void)call;
    w->completions++;
}

static void held_calls_stay_valid_and_have_completed(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread <= 1; own_thread++) {
        struct world w = {.client = client_new(own_thread)};
        for (size_t i = 0; i < CALLS; i++)
            w.calls[i] = put(w.client);
        for (size_t i = 1; i < CALLS; i++)
            assert_int_equal(vigil_call_start(w.calls[i], i > 1 ? note : NULL, &w), VIGIL_OK);
        vigil_client_free(w.client);
        assert_int_equal(w.completions, CALLS - 2);
        assert_int_equal(vigil_call_start(w.calls[0], note, &w), VIGIL_ERROR_CANCELED);
        assert_int_equal(vigil_call_run(w.calls[0]), VIGIL_ERROR_ARGUMENT); /* it was tried */
        for (size_t i = 0; i < CALLS; i++) {
            assert_int_equal(vigil_call_error(w.calls[i])->code, VIGIL_ERROR_CANCELED);
            vigil_call_free(w.calls[i]);
        }
        assert_int_equal(w.completions, CALLS - 2);
    }
}

/* -- Freed inside a callback -- */

static void free_client(vigil_call *call, void *user)
{
    struct world *w = user;
    vigil_call_free(call);
    vigil_client_free(w->client);
    assert_int_equal(completed, 0); /* one callback at a time */
}

static void callbacks_follow_if_a_client_is_freed_inside_one(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread <= 1; own_thread++) {
        struct world w = {.client = client_new(own_thread)};
        completed = 0;
        for (size_t i = 0; i < CALLS; i++)
            assert_int_equal(vigil_call_start(put(w.client), free_itself, NULL), VIGIL_OK);
        vigil_call *first = put(w.client);
        assert_int_equal(vigil_call_start(first, free_client, &w), VIGIL_OK);
        vigil_call_cancel(first);
        if (!own_thread)
            vigil_client_process(w.client);
        for (int i = 0; i < 10000 && completed < CALLS; i++)
            usleep(1000);
        assert_int_equal(completed, CALLS);
    }
}

/* -- On other threads -- */

static void *run_call(void *arg)
{
    assert_int_equal(vigil_call_run(arg), VIGIL_ERROR_CANCELED);
    vigil_call_free(arg);
    return NULL;
}

static void thread_that_waits_for_a_call_returns(void **state)
{
    (void)state;
    vigil_client *client = client_new(1);
    pthread_t threads[CALLS];
    for (size_t i = 0; i < CALLS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_call, put(client)), 0);
    usleep(1000); /* some wait by then, and others have not begun */
    vigil_client_free(client);
    for (size_t i = 0; i < CALLS; i++)
        pthread_join(threads[i], NULL);
}

struct racer {
    vigil_call *calls[CALLS];
    _Atomic size_t completions;
    pthread_t starter;
};

static void note_race(vigil_call *call, void *user)
{
    struct racer *r = user;
    assert_false(pthread_equal(pthread_self(), r->starter));
    r->completions++;
    vigil_call_free(call);
}

/* Each start succeeds and has its callback, or fails and has none. */
static void calls_may_be_started_while_another_thread_frees_the_client(void **state)
{
    (void)state;
    for (size_t round = 0; round < RACES; round++) {
        vigil_client *client = client_new(1);
        struct racer r = {.starter = pthread_self()};
        pthread_t thread;
        size_t started = 0;
        for (size_t i = 0; i < CALLS; i++)
            r.calls[i] = put(client);
        assert_int_equal(
            pthread_create(&thread, NULL, (void *(*)(void *))(void *)vigil_client_free, client), 0);
        for (size_t i = 0; i < CALLS; i++) {
            if (vigil_call_start(r.calls[i], note_race, &r) == VIGIL_OK)
                started++;
            else
                vigil_call_free(r.calls[i]);
        }
        pthread_join(thread, NULL);
        assert_int_equal(r.completions, started);
    }
}

/* -- Watches and leases -- */

struct held {
    vigil_client *client;
    vigil_watch *watch;
    vigil_object_watch *objects, *later;
    vigil_v2_watch *v2;
    vigil_lease *lease;
};

static int on_watch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch, (void)batch, (void)user;
    fail();
    return VIGIL_WATCH_CONTINUE;
}

static int on_objects(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
{
    (void)watch, (void)batch, (void)user;
    fail();
    return VIGIL_WATCH_CONTINUE;
}

static int on_v2(vigil_v2_watch *watch, vigil_object_batch *batch, void *user)
{
    (void)watch, (void)batch, (void)user;
    fail();
    return VIGIL_WATCH_CONTINUE;
}

static void on_lost(vigil_lease *lease, const vigil_error *error, void *user)
{
    (void)lease, (void)error, (void)user;
    fail();
}

static void hold(struct held *held)
{
    vigil_watch_options watch;
    vigil_object_options objects;
    vigil_v2_watch_options v2;
    vigil_watch_options_init(&watch);
    watch.key = vigil_text("k");
    vigil_object_options_init(&objects);
    objects.key = vigil_text("k");
    vigil_v2_watch_options_init(&v2);
    v2.key = vigil_text("/k");
    vigil_watch_new(held->client, &watch, on_watch, NULL, &held->watch);
    vigil_object_watch_new(held->client, &objects, on_objects, NULL, &held->objects);
    objects.revision = 5;
    vigil_object_watch_new(held->client, &objects, on_objects, NULL, &held->later);
    vigil_v2_watch_new(held->client, &v2, on_v2, NULL, &held->v2);
    vigil_lease_keep(held->client, 1, 60, on_lost, NULL, &held->lease);
}

static void hold_more(vigil_call *call, void *user)
{
    completed++;
    vigil_call_free(call);
    hold(user);
}

static void let_go(struct held *held)
{
    vigil_watch_free(held->watch);
    vigil_object_watch_free(held->objects);
    vigil_object_watch_free(held->later);
    vigil_v2_watch_free(held->v2);
    vigil_lease_free(held->lease);
}

/* Whether their starts have reached the loop or not, and even if a completion starts them. */
static void watches_and_leases_end_without_a_callback(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        vigil_client *client = client_new(mode & 1);
        struct held before = {.client = client}, meanwhile = before;
        completed = 0;
        hold(&before);
        assert_int_equal(vigil_call_start(put(client), hold_more, &meanwhile), VIGIL_OK);
        if (mode == 2)
            vigil_client_process(client);
        else if (mode == 3)
            usleep(1000);
        vigil_client_free(client);
        assert_int_equal(completed, 1);
        let_go(&before);
        let_go(&meanwhile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten_calls_keep_no_memory),
        cmocka_unit_test(no_call_can_be_started_while_a_client_is_freed),
        cmocka_unit_test(callback_may_free_every_other_call),
        cmocka_unit_test(held_calls_stay_valid_and_have_completed),
        cmocka_unit_test(callbacks_follow_if_a_client_is_freed_inside_one),
        cmocka_unit_test(thread_that_waits_for_a_call_returns),
        cmocka_unit_test(calls_may_be_started_while_another_thread_frees_the_client),
        cmocka_unit_test(watches_and_leases_end_without_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
