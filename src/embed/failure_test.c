#include "embed/fixture_test.h"

#include <signal.h>

enum { ACKNOWLEDGED = 50 };

/* -- Processes -- */

static void other_process_is_refused(void **state)
{
    (void)state;
    pid_t pid;
    vigil_client *client = open_store();
    IN_CHILD(pid)
    {
        /* It has the parent's stores, which it may not use. */
        execl("/bin/sh", "sh", "-c", "exec flock -n \"$0/LOCK\" true", dir, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(WEXITSTATUS(status_of(pid)), 1);
    vigil_client_free(client);
    IN_CHILD(pid)
    {
        vigil_client *own = open_store();
        raise(SIGSTOP);
        vigil_client_free(own);
        _exit(0);
    }
    int status;
    vigil_error error;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(vigil_open_embedded(dir, NULL, &client, &error), VIGIL_ERROR_SYSTEM);
    assert_non_null(strstr(error.text, "in use by another process"));
    kill(pid, SIGCONT);
    assert_int_equal(status_of(pid), 0);
    vigil_client_free(open_store());
}

static void parent_continues_after_fork(void **state)
{
    (void)state;
    pid_t pid;
    vigil_client *client = open_store();
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    IN_CHILD(pid) _exit(7);
    assert_int_equal(WEXITSTATUS(status_of(pid)), 7);
    assert_int_equal(put(client, "b", "1"), VIGIL_OK);
    assert_int_equal(count(client, "", true), 2);
    vigil_client_free(client);
}

/* Made by the parent: the child allocates nothing, because other threads of the parent may have
 * held locks of the allocator, which sanitizers do not release in a child. */
struct misused {
    vigil_client *client;
    vigil_call *put, *get, *grant;
    vigil_watch *watch;
    struct seen seen;
};

static struct misused misused_of(vigil_client *client)
{
    return (struct misused){
        .client = client,
        .put = vigil_put(client, vigil_text("child"), vigil_text("1"), 0),
        .get = vigil_get(client, vigil_text("a")),
        .grant = vigil_lease_grant(client, 60, 0),
    };
}

static void free_misused(struct misused *m)
{
    vigil_call_free(m->put);
    vigil_call_free(m->get);
    vigil_call_free(m->grant);
}

/* What a child does with its parent's calls: the number of the first that is not refused, or 0. */
static int misuse_calls(const struct misused *m)
{
    if (vigil_call_run(m->put) != VIGIL_ERROR_SYSTEM ||
        !strstr(vigil_call_error(m->put)->text, "forked"))
        return 1;
    if (vigil_call_start(m->put, NULL, NULL) != VIGIL_ERROR_SYSTEM)
        return 2;
    if (vigil_call_run(m->get) != VIGIL_ERROR_SYSTEM)
        return 3;
    return vigil_call_run(m->grant) == VIGIL_ERROR_SYSTEM ? 0 : 4;
}

/* The same with its client. */
static int misuse(struct misused *m)
{
    vigil_client *own;
    vigil_error error;
    vigil_queue *queue;
    vigil_watch_options options;
    int code = misuse_calls(m);
    if (code)
        return code;
    if (vigil_open_embedded(dir, NULL, &own, &error) != VIGIL_ERROR_SYSTEM ||
        !strstr(error.text, "forked"))
        return 5;
    vigil_watch_options_init(&options);
    options.key = vigil_text("a");
    if (vigil_watch_new(m->client, &options, on_batch, &m->seen, &m->watch) != VIGIL_ERROR_SYSTEM)
        return 6;
    if (vigil_queue_new(m->client, &queue) != VIGIL_ERROR_SYSTEM)
        return 7;
    if (vigil_embedded_listen(m->client, "http://127.0.0.1:0", NULL, NULL, 0, &error) !=
        VIGIL_ERROR_SYSTEM)
        return 8;
    vigil_client_process(m->client);
    vigil_client_shutdown(m->client);
    vigil_client_free(m->client);
    return 0;
}

static void check_misuse(vigil_client *client)
{
    pid_t pid;
    struct misused misused = misused_of(client);
    IN_CHILD(pid) _exit(misuse(&misused));
    assert_int_equal(status_of(pid), 0);
    free_misused(&misused);
}

static void child_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    pid_t pid;
    struct seen seen = {0};
    vigil_client *client = open_store(), *looped = open_in_own_loop();
    vigil_watch *watch = watch_all(client, &seen, 1);
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    check_misuse(client);
    check_misuse(looped);
    IN_CHILD(pid)
    {
        vigil_watch_free(watch);
        vigil_client_free(client);
        vigil_client_free(looped);
        _exit(0);
    }
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(put(client, "b", "1"), VIGIL_OK);
    assert_int_equal(put(looped, "c", "1"), VIGIL_OK);
    assert_int_equal(count(client, "", true), 3);
    AWAIT(atomic_load(&seen.events) == 3);
    vigil_watch_free(watch);
    vigil_client_free(looped);
    vigil_client_free(client);
}

/* Writes a byte for each put that was acknowledged. */
static void put_until_killed(int to)
{
    vigil_client *client = open_store();
    for (int i = 0;; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%06d", i);
        if (put(client, key, "v") != VIGIL_OK || write(to, "x", 1) != 1)
            _exit(1);
    }
}

static void killed_process_has_kept_what_it_acknowledged(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    pid_t pid;
    assert_int_equal(pipe(ends), 0);
    IN_CHILD(pid)
    put_until_killed(ends[1]);
    close(ends[1]);
    long acknowledged = 0;
    while (acknowledged < ACKNOWLEDGED && read(ends[0], &byte, 1) == 1)
        acknowledged++;
    kill(pid, SIGKILL);
    while (read(ends[0], &byte, 1) == 1)
        acknowledged++;
    assert_true(WIFSIGNALED(status_of(pid)));
    assert_true(acknowledged >= ACKNOWLEDGED);
    close(ends[0]);
    vigil_client *client = open_store();
    assert_true(count(client, "", true) >= acknowledged);
    vigil_client_free(client);
}

/* -- Syncs that fail -- */

static void failed_sync_ends_the_process(void **state)
{
    (void)state;
    pid_t pid;
    IN_CHILD(pid)
    {
        vigil_client *client = open_store();
        if (put(client, "a", "1") != VIGIL_OK)
            _exit(1);
        signal(SIGABRT, SIG_DFL);
        fclose(stderr);
        atomic_store(&sync_fails, true);
        (void)put(client, "b", "1");
        _exit(2); /* it was acknowledged, or refused */
    }
    int status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    vigil_client *client = open_store();
    assert_int_equal(count(client, "a", false), 1);
    vigil_client_free(client);
}

struct told {
    _Atomic int times;
    char text[200];
};

static void on_failure(void *user, const char *text)
{
    struct told *told = user;
    snprintf(told->text, sizeof(told->text), "%s", text);
    atomic_fetch_add(&told->times, 1);
}

/* Its calls have no timeout: they end with the store, however busy the machine is. */
static vigil_client *open_with_handler(struct told *told)
{
    vigil_embedded_options options;
    vigil_options own;
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.call_timeout_ms = 0;
    options.client = &own;
    options.on_failure = on_failure;
    options.on_failure_user = told;
    return open_with(&options);
}

static void check_refused(vigil_call *call, int outcome)
{
    assert_int_equal(vigil_call_run(call), VIGIL_ERROR_SYSTEM);
    assert_int_equal(vigil_call_error(call)->outcome, outcome);
    assert_non_null(strstr(vigil_call_error(call)->text, "the store has stopped"));
    vigil_call_free(call);
}

static void note_code(vigil_call *call, void *user)
{
    atomic_store((_Atomic int *)user, vigil_call_error(call)->code);
}

static void handler_stops_the_store_instead(void **state)
{
    (void)state;
    struct told told = {0};
    struct seen seen = {0};
    vigil_client *client = open_with_handler(&told), *other = open_store();
    vigil_watch *watch = watch_all(client, &seen, 1);
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    AWAIT(atomic_load(&seen.events) == 1);
    atomic_store(&sync_fails, true);
    check_refused(vigil_put(client, vigil_text("b"), vigil_text("1"), 0), VIGIL_UNKNOWN);
    AWAIT(atomic_load(&told.times) == 1);
    assert_non_null(strstr(told.text, "the log could not be written"));
    atomic_store(&sync_fails, false); /* the disk is well again, but what it has is unknown */
    check_refused(vigil_put(client, vigil_text("c"), vigil_text("1"), 0), VIGIL_NOT_SENT);
    check_refused(vigil_get(other, vigil_text("a")), VIGIL_NOT_SENT);
    check_refused(vigil_lease_grant(other, 60, 0), VIGIL_NOT_SENT);
    AWAIT(atomic_load(&seen.ended));
    assert_int_equal(seen.code, VIGIL_ERROR_SYSTEM);
    assert_int_equal(atomic_load(&seen.events), 1);
    _Atomic int code = -1;
    vigil_call *call = vigil_put(client, vigil_text("d"), vigil_text("1"), 0);
    assert_int_equal(vigil_call_start(call, note_code, &code), VIGIL_OK);
    AWAIT(atomic_load(&code) != -1);
    assert_int_equal(atomic_load(&code), VIGIL_ERROR_SYSTEM);
    vigil_call_free(call);
    vigil_client *again;
    vigil_error error;
    assert_int_equal(vigil_open_embedded(dir, NULL, &again, &error), VIGIL_ERROR_SYSTEM);
    vigil_watch_free(watch);
    vigil_client_free(client);
    vigil_client_free(other);
    client = open_store();
    assert_int_equal(count(client, "a", false), 1);
    assert_int_equal(count(client, "c", false) + count(client, "d", false), 0);
    vigil_client_free(client);
}

static bool has_lost_its_connection(vigil_client *client)
{
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    return stats.disconnects > 0;
}

static int run_soon(vigil_call *call)
{
    vigil_call_set_timeout(call, 100);
    return run(call);
}

static void listener_serves_nothing_after_a_failure(void **state)
{
    (void)state;
    struct told told = {0};
    struct seen seen = {0};
    vigil_client *client = open_with_handler(&told), *remote = listen_and_connect(client);
    assert_int_equal(put(remote, "a", "1"), VIGIL_OK);
    vigil_watch *watch = watch_all(remote, &seen, 1);
    AWAIT(atomic_load(&seen.events) == 1);
    atomic_store(&sync_fails, true);
    assert_int_not_equal(put(client, "b", "1"), VIGIL_OK);
    atomic_store(&sync_fails, false);
    assert_int_not_equal(run_soon(vigil_get(remote, vigil_text("a"))), VIGIL_OK);
    assert_int_not_equal(run_soon(vigil_get_prefix(remote, vigil_text(""))), VIGIL_OK);
    assert_int_not_equal(run_soon(vigil_put(remote, vigil_text("c"), vigil_text("1"), 0)),
                         VIGIL_OK);
    assert_int_not_equal(run_soon(vigil_lease_grant(remote, 60, 0)), VIGIL_OK);
    AWAIT(has_lost_its_connection(remote));
    vigil_error error;
    assert_int_equal(vigil_embedded_listen(client, "http://127.0.0.1:0", NULL, NULL, 0, &error),
                     VIGIL_ERROR_ARGUMENT);
    vigil_watch_free(watch);
    vigil_client_free(client);
    vigil_client_free(remote);
    client = open_store();
    assert_int_equal(count(client, "a", false), 1);
    assert_int_equal(count(client, "c", false), 0);
    vigil_client_free(client);
}

static void failed_store_does_not_begin_to_listen(void **state)
{
    (void)state;
    struct told told = {0};
    vigil_error error;
    vigil_client *client = open_with_handler(&told);
    atomic_store(&sync_fails, true);
    assert_int_equal(put(client, "a", "1"), VIGIL_ERROR_SYSTEM);
    assert_int_equal(vigil_embedded_listen(client, "http://127.0.0.1:0", NULL, NULL, 0, &error),
                     VIGIL_ERROR_SYSTEM);
    assert_non_null(strstr(error.text, "the store has stopped"));
    vigil_client_free(client);
}

static void *put_one(void *client)
{
    return (void *)(intptr_t)put(client, "together", "v");
}

/* All writes of the group fail, and those that wait behind it. */
static void no_write_is_acknowledged_after_a_failure(void **state)
{
    (void)state;
    enum { WRITERS = 16 };
    struct told told = {0};
    pthread_t ids[WRITERS];
    vigil_client *client = open_with_handler(&told);
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    atomic_store(&sync_waits, true);
    atomic_store(&sync_fails, true);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, put_one, client), 0);
    atomic_store(&sync_waits, false);
    for (int i = 0; i < WRITERS; i++) {
        void *code;
        pthread_join(ids[i], &code);
        assert_int_equal((intptr_t)code, VIGIL_ERROR_SYSTEM);
    }
    vigil_client_free(client);
}

static void *put_held(void *client)
{
    return (void *)(intptr_t)put(client, "held", "v");
}

static void count_done(vigil_call *call, void *user)
{
    (void)call;
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* What the client's thread has begun before is with the writer: it posts at the end of a turn. */
static void await_turns(vigil_client *client)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(vigil_status(client)), VIGIL_OK);
}

/* More leases than the writer grants in one group, then a delete, and the group in between fails.
 */
static void calls_of_several_groups_end_after_a_failure(void **state)
{
    (void)state;
    enum { GRANTS = 64 };
    struct told told = {0};
    _Atomic int done = 0;
    pthread_t holder;
    vigil_call *calls[GRANTS + 1];
    vigil_client *client = open_with_handler(&told);
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    atomic_store(&sync_waits, true);
    assert_int_equal(pthread_create(&holder, NULL, put_held, client), 0);
    AWAIT(atomic_load(&syncs_waiting));
    atomic_store(&sync_fails, true); /* the next one, not this one */
    for (int i = 0; i < GRANTS; i++) {
        calls[i] = vigil_lease_grant(client, 60, 1000 + i);
        assert_int_equal(vigil_call_start(calls[i], count_done, &done), VIGIL_OK);
    }
    await_turns(client);
    calls[GRANTS] = vigil_delete(client, vigil_text("a"));
    assert_int_equal(vigil_call_start(calls[GRANTS], count_done, &done), VIGIL_OK);
    await_turns(client);
    atomic_store(&sync_waits, false);
    void *code;
    pthread_join(holder, &code);
    assert_int_equal((intptr_t)code, VIGIL_OK);
    AWAIT(atomic_load(&done) == GRANTS + 1);
    for (int i = 0; i <= GRANTS; i++) {
        assert_int_equal(vigil_call_error(calls[i])->code, VIGIL_ERROR_SYSTEM);
        vigil_call_free(calls[i]);
    }
    vigil_client_free(client);
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        STORE_TEST(other_process_is_refused),
        STORE_TEST(parent_continues_after_fork),
        STORE_TEST(child_is_refused_and_changes_nothing),
        STORE_TEST(killed_process_has_kept_what_it_acknowledged),
        STORE_TEST(failed_sync_ends_the_process),
        STORE_TEST(handler_stops_the_store_instead),
        STORE_TEST(listener_serves_nothing_after_a_failure),
        STORE_TEST(failed_store_does_not_begin_to_listen),
        STORE_TEST(no_write_is_acknowledged_after_a_failure),
        STORE_TEST(calls_of_several_groups_end_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
