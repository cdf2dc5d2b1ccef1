#include "embed/fixture_test.h"

/* What a program may do inside the callbacks of a store, and what other threads may do meanwhile.
 */

static char other_dir[TEMP_DIR_BYTES];

static int make_dirs(void **state)
{
    temp_dir_make_fast("embed", other_dir);
    return make_dir(state);
}

static int remove_dirs(void **state)
{
    temp_dir_remove(other_dir);
    return remove_dir(state);
}

static vigil_client *open_other(void)
{
    vigil_client *client;
    assert_int_equal(vigil_open_embedded(other_dir, NULL, &client, NULL), VIGIL_OK);
    return client;
}

/* -- Closing -- */

struct job {
    pthread_t thread;
    vigil_client *client;
    _Atomic bool done;
};

static void *close_client(void *arg)
{
    struct job *job = arg;
    vigil_client_free(job->client);
    atomic_store(&job->done, true);
    return NULL;
}

static void *open_client(void *arg)
{
    struct job *job = arg;
    job->client = open_store();
    atomic_store(&job->done, true);
    return NULL;
}

static void start_job(struct job *job, void *(*fn)(void *arg))
{
    assert_int_equal(pthread_create(&job->thread, NULL, fn, job), 0);
}

static void other_stores_do_not_wait_for_one_that_closes(void **state)
{
    (void)state;
    struct job closing = {.client = open_store()}, opening = {0};
    assert_int_equal(put(closing.client, "a", "1"), VIGIL_OK);
    int before = atomic_load(&keeper_syncs);
    atomic_store(&keeper_waits, true);
    start_job(&closing, close_client);
    AWAIT(atomic_load(&keeper_syncs) > before);
    start_job(&opening, open_client); /* the same directory: it waits */
    vigil_client *other = open_other();
    assert_int_equal(put(other, "b", "1"), VIGIL_OK);
    assert_false(atomic_load(&closing.done));
    assert_false(atomic_load(&opening.done));
    atomic_store(&keeper_waits, false);
    pthread_join(closing.thread, NULL);
    pthread_join(opening.thread, NULL);
    assert_int_equal(count(opening.client, "a", false), 1);
    vigil_client_free(opening.client);
    vigil_client_free(other);
}

enum { OPENERS = 8 };

/* All of them find one store, in a directory that none of them has found. */
static void threads_may_open_a_new_directory_together(void **state)
{
    (void)state;
    struct job jobs[OPENERS] = {0};
    temp_dir_remove(dir);
    for (int i = 0; i < OPENERS; i++)
        start_job(&jobs[i], open_client);
    for (int i = 0; i < OPENERS; i++)
        pthread_join(jobs[i].thread, NULL);
    assert_int_equal(put(jobs[0].client, "a", "1"), VIGIL_OK);
    for (int i = 0; i < OPENERS; i++) {
        assert_int_equal(count(jobs[i].client, "a", false), 1);
        vigil_client_free(jobs[i].client);
    }
}

/* -- Inside the callback for the log -- */

static struct {
    vigil_client *client;
    vigil_queue *queue;
    _Atomic int times;
    int put, get, lease, take, open, listen, started;
    _Atomic int completed;
    vigil_call *call;
} inside;

static void note_completed(vigil_call *call, void *user)
{
    (void)user;
    atomic_store(&inside.completed, vigil_call_error(call)->code);
}

static void use_store_inside(void *user, int level, const char *text)
{
    vigil_client *again;
    const vigil_item *item;
    (void)user;
    (void)level;
    (void)text;
    if (atomic_load(&inside.times))
        return;
    inside.put = put(inside.client, "logged", "1");
    inside.get = run(vigil_get(inside.client, vigil_text("k")));
    inside.lease = run(vigil_lease_grant(inside.client, 60, 0));
    inside.take = vigil_queue_take(inside.queue, -1, &item);
    inside.open = vigil_open_embedded(dir, NULL, &again, NULL);
    inside.listen = vigil_embedded_listen(inside.client, "http://127.0.0.1:0", NULL, NULL, 0, NULL);
    inside.call = vigil_delete(inside.client, vigil_text("k"));
    inside.started = vigil_call_start(inside.call, note_completed, NULL);
    atomic_fetch_add(&inside.times, 1);
}

static void fill_store(vigil_client *client)
{
    static char value[64 * 1024];
    int code = VIGIL_OK;
    for (int i = 0; i < 100 && code == VIGIL_OK; i++)
        code = run(vigil_put(client, vigil_text("k"), vigil_bytes_of(value, sizeof(value)), 0));
    assert_int_equal(code, VIGIL_ERROR_NO_SPACE);
}

/* The writer reports that the store is full, and waits for the callback. */
static void blocking_functions_are_refused_inside_the_log(void **state)
{
    (void)state;
    vigil_embedded_options options;
    memset(&inside, 0, sizeof(inside));
    atomic_store(&inside.completed, -1);
    vigil_embedded_options_init(&options);
    options.quota_bytes = 1 << 20;
    options.log = use_store_inside;
    inside.client = open_with(&options);
    assert_int_equal(vigil_queue_new(inside.client, &inside.queue), VIGIL_OK);
    fill_store(inside.client);
    AWAIT(atomic_load(&inside.times) == 1);
    assert_int_equal(inside.put, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.get, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.lease, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.take, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.open, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.listen, VIGIL_ERROR_WOULD_BLOCK);
    assert_int_equal(inside.started, VIGIL_OK);
    AWAIT(atomic_load(&inside.completed) == VIGIL_OK);
    vigil_call_free(inside.call);
    vigil_queue_free(inside.queue);
    vigil_client_free(inside.client);
}

/* -- Other stores inside the callback -- */

static _Atomic int logged;

static void use_other_store(void *user, int level, const char *text)
{
    vigil_client *again;
    (void)user;
    (void)level;
    (void)text;
    atomic_store(&keeper_fails, false); /* this is the thread whose syncs fail */
    vigil_client *other = open_other();
    int code = put(other, "logged", "1");
    vigil_client_free(other);
    bool refused = vigil_open_embedded(dir, NULL, &again, NULL) == VIGIL_ERROR_WOULD_BLOCK;
    atomic_store(&logged, code == VIGIL_OK && refused ? 1 : -1);
}

/* The last checkpoint fails, which is reported while the store is closed. */
static void another_store_may_be_used_inside_the_log_of_one_that_closes(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_embedded_options_init(&options);
    options.log = use_other_store;
    atomic_store(&logged, 0);
    vigil_client *client = open_with(&options);
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    atomic_store(&keeper_fails, true);
    vigil_client_free(client);
    assert_int_equal(atomic_load(&logged), 1);
}

/* -- Freeing inside a callback -- */

static vigil_client *to_free[2];
static _Atomic int freed;

static void free_inside(void *user, const char *text)
{
    (void)user;
    (void)text;
    vigil_client_free(to_free[0]);
    vigil_client_free(to_free[1]);
    atomic_fetch_add(&freed, 1);
}

/* They are freed, and the store is closed, after the callback has returned. */
static void clients_may_be_freed_when_the_store_fails(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_embedded_options_init(&options);
    options.on_failure = free_inside;
    atomic_store(&freed, 0);
    to_free[0] = open_with(&options);
    to_free[1] = open_in_own_loop();
    assert_int_equal(put(to_free[0], "a", "1"), VIGIL_OK);
    atomic_store(&sync_fails, true);
    assert_int_equal(put(to_free[0], "b", "1"), VIGIL_ERROR_SYSTEM);
    AWAIT(atomic_load(&freed) == 1);
    atomic_store(&sync_fails, false);
    vigil_client *client = NULL;
    AWAIT(vigil_open_embedded(dir, NULL, &client, NULL) == VIGIL_OK || client);
    assert_int_equal(count(client, "a", false), 1);
    vigil_client_free(client);
}

/* The only client, whose loop the program drives, while a thread that listens waits for the writer.
 */
static void client_in_own_loop_may_be_freed_when_the_store_fails(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_options own;
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.own_thread = 0;
    options.client = &own;
    options.on_failure = free_inside;
    atomic_store(&freed, 0);
    to_free[0] = open_with(&options);
    to_free[1] = NULL;
    vigil_client *remote = listen_and_connect(to_free[0]), *client = NULL;
    assert_int_equal(put(remote, "a", "1"), VIGIL_OK);
    atomic_store(&sync_fails, true);
    assert_int_not_equal(put(remote, "b", "1"), VIGIL_OK);
    AWAIT(atomic_load(&freed) == 1);
    atomic_store(&sync_fails, false);
    vigil_client_free(remote);
    AWAIT(vigil_open_embedded(dir, NULL, &client, NULL) == VIGIL_OK || client);
    assert_int_equal(count(client, "a", false), 1);
    vigil_client_free(client);
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dirs, remove_dirs)
    const struct CMUnitTest tests[] = {
        STORE_TEST(other_stores_do_not_wait_for_one_that_closes),
        STORE_TEST(threads_may_open_a_new_directory_together),
        STORE_TEST(blocking_functions_are_refused_inside_the_log),
        STORE_TEST(another_store_may_be_used_inside_the_log_of_one_that_closes),
        STORE_TEST(clients_may_be_freed_when_the_store_fails),
        STORE_TEST(client_in_own_loop_may_be_freed_when_the_store_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
