/* A store in a directory of its own, and syncs that fail or wait when a test wants it. The programs
 * are linked with --wrap=fdatasync. */
#ifndef VIGIL_EMBED_FIXTURE_TEST_H
#define VIGIL_EMBED_FIXTURE_TEST_H

#include "base/temp_dir_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <vigil/embed.h>
#include <vigil/vigil.h>

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static _Atomic bool sync_fails, sync_waits;
static _Atomic int syncs, syncs_waiting; /* that have begun; that have not ended */
/* The same for the keeper, which writes checkpoints, and prepares segments at any time. */
static _Atomic bool keeper_fails, keeper_waits;
static _Atomic int keeper_syncs;

static inline bool is_keeper(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
           strcmp(name, "vigil-keeper") == 0;
}

static inline int sync_of_keeper(int fd)
{
    atomic_fetch_add(&keeper_syncs, 1);
    while (atomic_load(&keeper_waits))
        usleep(1000);
    if (!atomic_load(&keeper_fails))
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

/* Whether it fails is decided when it begins. */
int __wrap_fdatasync(int fd)
{
    if (is_keeper())
        return sync_of_keeper(fd);
    bool fails = atomic_load(&sync_fails);
    atomic_fetch_add(&syncs, 1);
    atomic_fetch_add(&syncs_waiting, 1);
    while (atomic_load(&sync_waits))
        usleep(1000);
    atomic_fetch_sub(&syncs_waiting, 1);
    if (!fails)
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

static char dir[TEMP_DIR_BYTES];

static inline int make_dir(void **state)
{
    (void)state;
    temp_dir_make_fast("embed", dir);
    return 0;
}

static inline int remove_dir(void **state)
{
    (void)state;
    atomic_store(&sync_fails, false);
    atomic_store(&sync_waits, false);
    atomic_store(&keeper_fails, false);
    atomic_store(&keeper_waits, false);
    temp_dir_remove(dir);
    return 0;
}

static inline vigil_client *open_with(const vigil_embedded_options *options)
{
    vigil_client *client = NULL;
    vigil_error error;
    if (vigil_open_embedded(dir, options, &client, &error) != VIGIL_OK)
        fail_msg("%s", error.text);
    return client;
}

static inline vigil_client *open_store(void)
{
    return open_with(NULL);
}

static inline vigil_client *open_in_own_loop(void)
{
    vigil_embedded_options options;
    vigil_options own;
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.own_thread = 0;
    options.client = &own;
    return open_with(&options);
}

static inline vigil_client *open_as(const char *user, const char *password)
{
    vigil_embedded_options options;
    vigil_options own;
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.user = user;
    own.password = password;
    options.client = &own;
    return open_with(&options);
}

/* A client of the store that uses a socket. */
static inline vigil_client *listen_and_connect(vigil_client *client)
{
    char urls[256];
    vigil_options options;
    vigil_client *remote = NULL;
    assert_int_equal(
        vigil_embedded_listen(client, "http://127.0.0.1:0", NULL, urls, sizeof(urls), NULL),
        VIGIL_OK);
    vigil_options_init(&options);
    options.endpoints = urls;
    assert_int_equal(vigil_client_new(&options, &remote, NULL), VIGIL_OK);
    return remote;
}

/* Runs a call and frees it. */
static inline int run(vigil_call *call)
{
    int code = vigil_call_run(call);
    vigil_call_free(call);
    return code;
}

static inline int put(vigil_client *client, const char *key, const char *value)
{
    return run(vigil_put(client, vigil_text(key), vigil_text(value), 0));
}

/* The number of keys that a get finds. */
static inline long count(vigil_client *client, const char *key, bool prefix)
{
    vigil_call *call = (prefix ? vigil_get_prefix : vigil_get)(client, vigil_text(key));
    long found = vigil_call_run(call) == VIGIL_OK ? (long)vigil_range_result(call)->kv_count : -1;
    vigil_call_free(call);
    return found;
}

/* Forks; the child never returns to cmocka. */
#define IN_CHILD(pid) if (((pid) = fork()) == 0)

static inline int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* What a watch has delivered. */
struct seen {
    _Atomic long events;
    _Atomic bool ended;
    int code;
};

static inline int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct seen *seen = user;
    (void)watch;
    atomic_fetch_add(&seen->events, (long)batch->event_count);
    if (batch->what == VIGIL_WATCH_ENDED) {
        seen->code = batch->error->code;
        atomic_store(&seen->ended, true);
    }
    return VIGIL_WATCH_CONTINUE;
}

/* A watch of all keys from a revision on. */
static inline vigil_watch *watch_all(vigil_client *client, struct seen *seen, int64_t revision)
{
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_watch_options_init(&options);
    options.key = vigil_text("");
    options.prefix = 1;
    options.revision = revision;
    assert_int_equal(vigil_watch_new(client, &options, on_batch, seen, &watch), VIGIL_OK);
    return watch;
}

/* Until the condition is true; a minute at most. */
#define AWAIT(condition)                                   \
    do {                                                   \
        for (int i_ = 0; !(condition) && i_ < 60000; i_++) \
            usleep(1000);                                  \
        assert_true(condition);                            \
    } while (0)

#endif
