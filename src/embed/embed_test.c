#include "embed/fixture_test.h"

#include <signal.h>

enum { THREADS = 8, ROUNDS = 60, MANY_THREADS = 160 };

static void what_was_written_is_there_after_a_reopen(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    vigil_client_free(client);
    client = open_store();
    assert_int_equal(count(client, "a", false), 1);
    assert_int_equal(count(client, "b", false), 0);
    vigil_client_free(client);
}

static void clients_of_a_directory_share_its_store(void **state)
{
    (void)state;
    vigil_client *first = open_store(), *second = open_store();
    assert_int_equal(put(first, "a", "1"), VIGIL_OK);
    assert_int_equal(count(second, "a", false), 1);
    vigil_client_free(first);
    assert_int_equal(put(second, "b", "1"), VIGIL_OK);
    assert_int_equal(count(second, "", true), 2);
    vigil_client_free(second);
}

static void store_has_a_limit_of_clients(void **state)
{
    (void)state;
    vigil_client *clients[VIGIL_EMBEDDED_CLIENTS_MAX], *none;
    vigil_embedded_options options;
    vigil_error error;
    vigil_embedded_options_init(&options);
    options.keep_history_revisions = 1000;
    for (int i = 0; i < VIGIL_EMBEDDED_CLIENTS_MAX; i++)
        clients[i] = open_with(&options);
    assert_int_equal(vigil_open_embedded(dir, NULL, &none, &error), VIGIL_ERROR_SYSTEM);
    assert_non_null(strstr(error.text, "16 clients"));
    /* What the store itself needs is not taken from the clients. */
    assert_int_equal(vigil_embedded_listen(clients[0], "http://127.0.0.1:0", NULL, NULL, 0, &error),
                     VIGIL_OK);
    vigil_client_free(clients[3]);
    clients[3] = open_store();
    for (int i = 0; i < VIGIL_EMBEDDED_CLIENTS_MAX; i++)
        vigil_client_free(clients[i]);
}

/* The writer must find the shard that has taken the place of another. */
static void watch_of_a_later_client_gets_events(void **state)
{
    (void)state;
    vigil_client *first = open_store();
    for (int i = 0; i < 20; i++) {
        struct seen seen = {0};
        vigil_client *later = open_store();
        vigil_watch *watch = watch_all(later, &seen, 1);
        assert_int_equal(put(first, "k", "v"), VIGIL_OK);
        AWAIT(atomic_load(&seen.events) > i);
        assert_int_equal(put(first, "k", "again"), VIGIL_OK); /* perhaps on its way at the end */
        vigil_client_free(later);
        vigil_watch_free(watch);
    }
    vigil_client_free(first);
}

/* The first client is freed before it has received what the writer has sent to its shard. */
static void watch_gets_events_where_another_missed_some(void **state)
{
    (void)state;
    struct seen missed = {0}, seen = {0};
    vigil_client *first = open_store(), *idle = open_in_own_loop();
    vigil_watch *watch = watch_all(idle, &missed, 1);
    assert_int_equal(put(first, "k", "1"), VIGIL_OK);
    for (int i = 0; i < 60000 && !atomic_load(&missed.events); i++) {
        vigil_client_process(idle);
        usleep(100);
    }
    assert_int_equal(atomic_load(&missed.events), 1);
    for (int i = 0; i < 100; i++)
        vigil_client_process(idle); /* until it waits for news */
    assert_int_equal(put(first, "k", "2"), VIGIL_OK);
    vigil_client_free(idle);
    vigil_watch_free(watch);
    vigil_client *later = open_store();
    watch = watch_all(later, &seen, 1);
    AWAIT(atomic_load(&seen.events) == 2);
    usleep(50000); /* it has read everything, and waits; the test is correct without it */
    assert_int_equal(put(first, "k", "3"), VIGIL_OK);
    AWAIT(atomic_load(&seen.events) == 3);
    vigil_client_free(later);
    vigil_watch_free(watch);
    vigil_client_free(first);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    vigil_client *client;
    vigil_error error;
    vigil_embedded_options options = {0};
    assert_int_equal(vigil_open_embedded(dir, &options, &client, &error), VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_open_embedded("", NULL, &client, &error), VIGIL_ERROR_ARGUMENT);
    vigil_embedded_options_init(&options);
    options.keep_history_ms = options.keep_history_revisions = 5;
    assert_int_equal(vigil_open_embedded(dir, &options, &client, &error), VIGIL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "keep_history_ms"));
    vigil_embedded_options_init(&options);
    options.quota_bytes = -1;
    assert_int_equal(vigil_open_embedded(dir, &options, &client, NULL), VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_open_embedded("/proc/1/none", NULL, &client, &error),
                     VIGIL_ERROR_SYSTEM);
    assert_non_null(strstr(error.text, "/proc/1/none"));
}

static bool is_compacted(vigil_client *client, int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("a");
    request.revision = revision;
    return run(vigil_range(client, &request)) == VIGIL_ERROR_COMPACTED;
}

/* The program only makes blocking calls, which need no turn of the loop. */
static void history_is_compacted(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_embedded_options_init(&options);
    options.keep_history_ms = 200;
    vigil_client *client = open_with(&options);
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    AWAIT(is_compacted(client, 2));
    vigil_client_free(client);
}

/* The client that has opened the store is freed, and another one is not driven by the program. */
static void history_is_compacted_when_clients_leave(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_options own;
    vigil_embedded_options_init(&options);
    options.keep_history_ms = 200;
    vigil_client *first = open_with(&options);
    vigil_options_init(&own);
    own.own_thread = 0;
    options.client = &own;
    vigil_client *idle = open_with(&options), *last = open_store();
    vigil_client_free(first);
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(last, "a", "1"), VIGIL_OK);
    AWAIT(is_compacted(last, 2));
    vigil_client_free(idle);
    vigil_client_free(last);
}

static void quota_is_enforced(void **state)
{
    (void)state;
    vigil_embedded_options options;
    static char value[64 * 1024];
    vigil_embedded_options_init(&options);
    options.quota_bytes = 1 << 20;
    vigil_client *client = open_with(&options);
    vigil_call *call = NULL;
    int code = VIGIL_OK;
    for (int i = 0; i < 100 && code == VIGIL_OK; i++) {
        vigil_call_free(call);
        call = vigil_put(client, vigil_text("k"), vigil_bytes_of(value, sizeof(value)), 0);
        code = vigil_call_run(call);
    }
    assert_int_equal(code, VIGIL_ERROR_NO_SPACE);
    assert_int_equal(vigil_call_error(call)->outcome, VIGIL_REFUSED);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void too_large_requests_are_refused(void **state)
{
    (void)state;
    vigil_embedded_options options;
    static char value[4096];
    vigil_embedded_options_init(&options);
    options.request_bytes_max = 1024;
    vigil_client *client = open_with(&options);
    assert_int_equal(run(vigil_put(client, vigil_text("k"), vigil_bytes_of(value, 4096), 0)),
                     VIGIL_ERROR_REQUEST_TOO_LARGE);
    assert_int_equal(put(client, "k", "v"), VIGIL_OK);
    vigil_client_free(client);
}

/* -- Threads -- */

static vigil_client *shared;

/* Adds one to a number, by transactions that fail if another thread was faster. */
static void add_one(void)
{
    for (bool done = false; !done;) {
        char next[24];
        vigil_call *get = vigil_get(shared, vigil_text("number"));
        assert_int_equal(vigil_call_run(get), VIGIL_OK);
        const vigil_range_response *found = vigil_range_result(get);
        long number = found->kv_count ? strtol(found->kvs[0].value.data, NULL, 10) : 0;
        vigil_txn *txn = vigil_txn_new(shared);
        vigil_txn_if_mod_revision(txn, vigil_text("number"), VIGIL_EQUAL,
                                  found->kv_count ? found->kvs[0].mod_revision : 0);
        snprintf(next, sizeof(next), "%ld;", number + 1);
        vigil_txn_put(txn, vigil_text("number"), vigil_text(next), 0);
        vigil_txn_else(txn);
        vigil_txn_get(txn, vigil_text("number"));
        vigil_call *call = vigil_txn_call(txn);
        assert_int_equal(vigil_call_run(call), VIGIL_OK);
        done = vigil_txn_result(call)->succeeded;
        vigil_call_free(call);
        vigil_call_free(get);
        vigil_txn_free(txn);
    }
}

static void *use_handle(void *arg)
{
    char key[32];
    for (int i = 0; i < ROUNDS; i++) {
        add_one();
        snprintf(key, sizeof(key), "key/%zu/%d", (size_t)arg, i);
        assert_int_equal(put(shared, key, "v"), VIGIL_OK);
        assert_int_equal(count(shared, key, false), 1);
        if (i % 2)
            assert_int_equal(run(vigil_delete(shared, vigil_text(key))), VIGIL_OK);
    }
    return NULL;
}

static void run_threads(size_t threads, void *(*fn)(void *arg))
{
    pthread_t ids[MANY_THREADS];
    for (size_t i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, fn, (void *)i), 0);
    for (size_t i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static void threads_share_a_handle(void **state)
{
    (void)state;
    struct seen seen = {0};
    shared = open_store();
    vigil_watch *watch = watch_all(shared, &seen, 1);
    run_threads(THREADS, use_handle);
    vigil_call *get = vigil_get(shared, vigil_text("number"));
    assert_int_equal(vigil_call_run(get), VIGIL_OK);
    assert_int_equal(strtol(vigil_range_result(get)->kvs[0].value.data, NULL, 10),
                     THREADS * ROUNDS);
    vigil_call_free(get);
    assert_int_equal(count(shared, "key/", true), THREADS * ROUNDS / 2);
    AWAIT(atomic_load(&seen.events) == THREADS * ROUNDS * 5 / 2);
    vigil_watch_free(watch);
    vigil_client_free(shared);
}

/* A write that returns what was before needs a reader, of which there are fewer than threads; the
 * others use the connection. */
static void *replace(void *arg)
{
    (void)arg;
    vigil_put_request request;
    vigil_put_request_init(&request);
    request.key = vigil_text("k");
    request.value = vigil_text("v");
    request.prev_kv = 1;
    vigil_call *call = vigil_put_with(shared, &request);
    assert_int_equal(vigil_call_run(call), VIGIL_OK);
    assert_non_null(vigil_put_result(call)->prev_kv);
    vigil_call_free(call);
    return NULL;
}

static void more_threads_than_readers_may_wait(void **state)
{
    (void)state;
    shared = open_store();
    assert_int_equal(put(shared, "k", "v"), VIGIL_OK);
    atomic_store(&sync_waits, true);
    pthread_t ids[MANY_THREADS];
    for (size_t i = 0; i < MANY_THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, replace, NULL), 0);
    usleep(100000); /* most of them wait now; the test is correct without it, but tests less */
    atomic_store(&sync_waits, false);
    for (size_t i = 0; i < MANY_THREADS; i++)
        pthread_join(ids[i], NULL);
    vigil_call *get = vigil_get(shared, vigil_text("k"));
    assert_int_equal(vigil_call_run(get), VIGIL_OK);
    assert_int_equal(vigil_range_result(get)->kvs[0].version, MANY_THREADS + 1);
    vigil_call_free(get);
    vigil_client_free(shared);
}

static void *use_until_it_ends(void *arg)
{
    char key[32];
    snprintf(key, sizeof(key), "%zu", (size_t)arg);
    for (;;) {
        vigil_call *call = (size_t)arg % 2 ? vigil_put(shared, vigil_text(key), vigil_text("v"), 0)
                                           : vigil_get_prefix(shared, vigil_text(""));
        int code = vigil_call_run(call);
        vigil_call_free(call);
        if (code != VIGIL_OK) {
            assert_int_equal(code, VIGIL_ERROR_CANCELED);
            return NULL;
        }
    }
}

/* The client is shut down, so that its memory remains until the threads have seen it. */
static void client_may_end_while_calls_run(void **state)
{
    (void)state;
    pthread_t ids[THREADS];
    struct seen seen = {0};
    shared = open_store();
    vigil_watch *watch = watch_all(shared, &seen, 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, use_until_it_ends, (void *)i), 0);
    AWAIT(atomic_load(&seen.events) > 10);
    vigil_client_shutdown(shared);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    AWAIT(atomic_load(&seen.ended));
    assert_int_equal(seen.code, VIGIL_ERROR_CANCELED);
    vigil_watch_free(watch);
    vigil_client_free(shared);
}

static void *run_one(void *call)
{
    return (void *)(intptr_t)vigil_call_run(call);
}

static void free_waits_for_a_write_that_was_begun(void **state)
{
    (void)state;
    pthread_t id, closer;
    void *code;
    vigil_client *client = open_store();
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    atomic_store(&sync_waits, true);
    vigil_call *call = vigil_put(client, vigil_text("b"), vigil_text("1"), 0);
    assert_int_equal(pthread_create(&id, NULL, run_one, call), 0);
    vigil_call *late = vigil_put(client, vigil_text("c"), vigil_text("1"), 0);
    vigil_call_set_timeout(late, 50);
    assert_int_equal(vigil_call_run(late), VIGIL_ERROR_TIMEOUT);
    assert_int_equal(vigil_call_error(late)->outcome, VIGIL_UNKNOWN);
    vigil_call_free(late);
    assert_int_equal(
        pthread_create(&closer, NULL, (void *(*)(void *))(void (*)(void))vigil_client_free, client),
        0);
    atomic_store(&sync_waits, false);
    pthread_join(closer, NULL);
    pthread_join(id, &code);
    vigil_call_free(call);
    client = open_store();
    if ((intptr_t)code == VIGIL_OK)
        assert_int_equal(count(client, "b", false), 1);
    assert_int_equal(count(client, "a", false), 1);
    vigil_client_free(client);
}

/* -- In the program's loop -- */

static void note_done(vigil_call *call, void *user)
{
    *(int *)user = vigil_call_error(call)->code == VIGIL_OK ? 1 : -1;
}

static void program_drives_the_store(void **state)
{
    (void)state;
    int done = 0;
    vigil_client *client = open_in_own_loop();
    struct seen seen = {0};
    vigil_watch *watch = watch_all(client, &seen, 1);
    vigil_call *call = vigil_put(client, vigil_text("a"), vigil_text("1"), 0);
    assert_int_equal(vigil_call_start(call, note_done, &done), VIGIL_OK);
    assert_true(vigil_client_fd(client) >= 0);
    for (int i = 0; i < 60000 && (!done || !atomic_load(&seen.events)); i++) {
        vigil_client_process(client);
        usleep(100);
    }
    assert_int_equal(done, 1);
    assert_int_equal(atomic_load(&seen.events), 1);
    vigil_call_free(call);
    assert_int_equal(put(client, "b", "1"), VIGIL_OK);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

/* -- Users -- */

static void users_need_their_permissions(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    assert_int_equal(run(vigil_user_add(client, "root", "secret")), VIGIL_OK);
    assert_int_equal(run(vigil_user_grant_role(client, "root", "root")), VIGIL_OK);
    assert_int_equal(run(vigil_auth_enable(client)), VIGIL_OK);
    assert_int_equal(count(client, "a", false), -1);
    assert_int_equal(put(client, "a", "2"), VIGIL_ERROR_UNAUTHENTICATED);
    vigil_client *root = open_as("root", "secret");
    assert_int_equal(put(root, "a", "3"), VIGIL_OK);
    assert_int_equal(count(root, "a", false), 1);
    vigil_client_free(root);
    vigil_client_free(client);
}

/* -- Listening -- */

static void store_serves_other_clients(void **state)
{
    (void)state;
    char urls[256];
    vigil_error error;
    vigil_options options;
    vigil_client *client = open_store(), *remote;
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    assert_int_equal(
        vigil_embedded_listen(client, "http://127.0.0.1:0", NULL, urls, sizeof(urls), &error),
        VIGIL_OK);
    vigil_options_init(&options);
    options.endpoints = urls;
    assert_int_equal(vigil_client_new(&options, &remote, &error), VIGIL_OK);
    assert_int_equal(count(remote, "a", false), 1);
    assert_int_equal(put(remote, "b", "1"), VIGIL_OK);
    assert_int_equal(count(client, "b", false), 1);
    assert_int_equal(vigil_embedded_listen(client, "http://127.0.0.1:0", NULL, NULL, 0, &error),
                     VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_embedded_listen(remote, "http://127.0.0.1:0", NULL, NULL, 0, &error),
                     VIGIL_ERROR_ARGUMENT);
    vigil_client_free(remote);
    vigil_client_free(client);
}

static void only_this_machine_is_served(void **state)
{
    (void)state;
    static const char *const refused[] = {"http://0.0.0.0:0", "https://127.0.0.1:0", "x", ""};
    vigil_error error;
    vigil_client *client = open_store();
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_int_equal(vigil_embedded_listen(client, refused[i], NULL, NULL, 0, &error),
                         VIGIL_ERROR_ARGUMENT);
    vigil_client_free(client);
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_was_written_is_there_after_a_reopen),
        STORE_TEST(clients_of_a_directory_share_its_store),
        STORE_TEST(store_has_a_limit_of_clients),
        STORE_TEST(watch_of_a_later_client_gets_events),
        STORE_TEST(watch_gets_events_where_another_missed_some),
        STORE_TEST(bad_options_are_refused),
        STORE_TEST(history_is_compacted),
        STORE_TEST(history_is_compacted_when_clients_leave),
        STORE_TEST(quota_is_enforced),
        STORE_TEST(too_large_requests_are_refused),
        STORE_TEST(threads_share_a_handle),
        STORE_TEST(more_threads_than_readers_may_wait),
        STORE_TEST(client_may_end_while_calls_run),
        STORE_TEST(free_waits_for_a_write_that_was_begun),
        STORE_TEST(program_drives_the_store),
        STORE_TEST(users_need_their_permissions),
        STORE_TEST(store_serves_other_clients),
        STORE_TEST(only_this_machine_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
