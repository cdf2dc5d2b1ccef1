#include "suite.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>
#include <vigil/poll.h>

static void unreachable_server_is_named(void)
{
    vigil_options options;
    vigil_client *client;
    vigil_options_init(&options);
    options.endpoints = "http://127.0.0.1:1";
    options.call_timeout_ms = 300;
    options.own_thread = getenv("VIGIL_OWN_LOOP") == NULL;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_call *call = vigil_put(client, vigil_text("k"), vigil_text("v"), 0);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_UNAVAILABLE);
    CHECK(vigil_call_error(call)->outcome == VIGIL_NOT_SENT);
    CHECK(strstr(vigil_call_error(call)->text, "127.0.0.1:1"));
    CHECK(strstr(vigil_call_error(call)->text, "refused"));
    vigil_call_free(call);
    vigil_client_free(client);
}

static void bad_options_are_refused_with_a_reason(void)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_options_init(&options);
    options.endpoints = "ftp://x:1";
    CHECK(vigil_client_new(&options, &client, &error) == VIGIL_ERROR_ARGUMENT);
    CHECK(error.text[0]);
    vigil_options_init(&options);
    options.endpoints = "";
    CHECK(vigil_client_new(&options, &client, &error) == VIGIL_ERROR_ARGUMENT);
    vigil_options_init(&options);
    options.endpoints = "https://127.0.0.1:1";
    options.ca_file = "/nonexistent";
    CHECK(vigil_client_new(&options, &client, &error) != VIGIL_OK);
    CHECK(strstr(error.text, "/nonexistent"));
    vigil_options_init(&options);
    options.cert_file = "/certificate";
    CHECK(vigil_client_new(&options, &client, &error) == VIGIL_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "key_file"));
    vigil_options_init(&options);
    options.password = "secret";
    CHECK(vigil_client_new(&options, &client, &error) == VIGIL_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "without user"));
    memset(&options, 0, sizeof(options));
    CHECK(vigil_client_new(&options, &client, &error) == VIGIL_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "vigil_options_init"));
}

static void token_that_cannot_be_sent_is_an_error(void)
{
    static char long_token[70000];
    const char *tokens[] = {"with\nnewline", long_token};
    memset(long_token, 't', sizeof(long_token) - 1);
    for (int i = 0; i < 2; i++) {
        vigil_options options;
        vigil_client *client;
        default_options(&options);
        options.token = tokens[i];
        CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
        vigil_call *call = vigil_get(client, vigil_text("k"));
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_ERROR_ARGUMENT);
        CHECK(vigil_call_error(call)->outcome == VIGIL_NOT_SENT);
        vigil_call_free(call);
        vigil_client_free(client);
    }
}

static struct latch done = LATCH_INIT;

static void count_and_free(vigil_call *call, void *user)
{
    (void)user;
    int code = vigil_call_error(call)->code;
    CHECK(code == VIGIL_OK || code == VIGIL_ERROR_CANCELED);
    vigil_call_free(call);
    latch_add(&done, 1);
}

static void note_completion(vigil_call *call, void *user)
{
    int code = vigil_call_error(call)->code;
    CHECK(code == VIGIL_OK || code == VIGIL_ERROR_CANCELED);
    ++*(int *)user;
    latch_add(&done, 1);
}

static void cancelled_calls_complete_once(void)
{
    enum { CALLS = 1000 };
    static int completions[CALLS];
    vigil_client *client;
    vigil_options options;
    vigil_call *calls[CALLS];
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    for (int i = 0; i < CALLS; i++) {
        calls[i] = vigil_get(client, vigil_text("x"));
        CHECK(vigil_call_start(calls[i], note_completion, &completions[i]) == VIGIL_OK);
        if (i % 3 == 0)
            vigil_call_cancel(calls[i]);
        if (i % 7 == 0)
            vigil_call_cancel(calls[i]);
    }
    latch_wait(&done, CALLS);
    put(client, "after", "x"); /* everything that was posted before has been done */
    CHECK(latch_count(&done) == CALLS);
    for (int i = 0; i < CALLS; i++) {
        CHECK(completions[i] == 1);
        vigil_call_free(calls[i]);
    }
    vigil_client_free(client);
}

static void shutdown_completes_everything(void)
{
    enum { CALLS = 100 };
    vigil_client *client;
    vigil_options options;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    for (int i = 0; i < CALLS; i++)
        CHECK(vigil_call_start(vigil_get(client, vigil_text("x")), count_and_free, NULL) ==
              VIGIL_OK);
    vigil_client_shutdown(client);
    latch_wait(&done, CALLS);
    vigil_call *call = vigil_get(client, vigil_text("x"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_CANCELED);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void free_the_client(vigil_call *call, void *user)
{
    vigil_call_free(call);
    vigil_client_free(user);
    latch_add(&done, 1);
}

static void client_may_be_freed_inside_a_callback(void)
{
    vigil_client *client;
    vigil_options options;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    CHECK(vigil_call_start(vigil_get(client, vigil_text("x")), free_the_client, client) ==
          VIGIL_OK);
    latch_wait(&done, 1);
}

static void run_inside(vigil_call *call, void *user)
{
    vigil_client *client = user;
    vigil_call *inner = vigil_get(client, vigil_text("x"));
    CHECK(vigil_call_error(inner)->code == VIGIL_OK);
    CHECK(vigil_call_run(inner) == VIGIL_ERROR_WOULD_BLOCK);
    CHECK(vigil_call_error(inner)->code == VIGIL_ERROR_WOULD_BLOCK);
    CHECK(strstr(vigil_call_error(inner)->text, "inside a callback"));
    CHECK(vigil_call_start(inner, NULL, NULL) == VIGIL_OK);
    CHECK(vigil_call_error(inner)->code == VIGIL_OK); /* it runs */
    vigil_call_free(inner);
    vigil_call_free(call);
    latch_add(&done, 1);
}

static void blocking_inside_a_callback_is_refused(void)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    CHECK(vigil_call_start(vigil_get(client, vigil_text("x")), run_inside, client) == VIGIL_OK);
    latch_wait(&done, 1);
    vigil_client_free(client);
}

static void note_done(vigil_call *call, void *user)
{
    CHECK_CODE(call, VIGIL_OK);
    vigil_call_free(call);
    ++*(int *)user;
}

static int note_events(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    CHECK(batch->what != VIGIL_WATCH_ENDED);
    *(int *)user += (int)batch->event_count;
    return VIGIL_WATCH_CONTINUE;
}

static void program_drives_the_client_with_poll(void)
{
    vigil_options options;
    vigil_watch_options watch_options;
    vigil_client *client;
    vigil_watch *watch;
    int completed = 0, events = 0;
    default_options(&options);
    options.own_thread = 0;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_watch_options_init(&watch_options);
    watch_options.key = vigil_text("poll");
    watch_options.revision = put(client, "before", "x") + 1;
    CHECK(vigil_watch_new(client, &watch_options, note_events, &events, &watch) == VIGIL_OK);
    for (int i = 0; i < 100; i++)
        CHECK(vigil_call_start(vigil_put(client, vigil_text("poll"), vigil_text("x"), 0), note_done,
                               &completed) == VIGIL_OK);
    CHECK(completed == 0); /* callbacks are made in vigil_client_process only */
    while (completed < 100 || events < 100) {
        struct pollfd fd;
        int timeout_ms = 60000;
        vigil_poll_prepare(client, &fd, &timeout_ms);
        CHECK(poll(&fd, 1, timeout_ms) >= 0);
        vigil_client_process(client);
    }
    vigil_watch_free(watch);
    vigil_client_free(client);
}

/* A put that was sent and not answered is not repeated. */
static void unanswered_put_has_an_unknown_outcome(void)
{
    vigil_client *client = new_client();
    put(client, "u", "1");
    ask("pause"); /* the server is stopped by a signal: it accepts and does not answer */
    vigil_call *call = vigil_put(client, vigil_text("u"), vigil_text("2"), 0);
    vigil_call_set_timeout(call, 500);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_TIMEOUT);
    CHECK(vigil_call_error(call)->outcome == VIGIL_UNKNOWN);
    vigil_call_free(call);
    ask("continue");
    put(client, "u", "3");
    vigil_client_free(client);
}

static void reads_are_repeated_after_a_restart(void)
{
    vigil_client *client = new_client();
    put(client, "again", "1");
    for (int i = 0; i < 3; i++) {
        ask("restart");
        vigil_call *call = vigil_get(client, vigil_text("again"));
        CHECK(vigil_call_run(call) == VIGIL_OK);
        CHECK(vigil_range_result(call)->kv_count == 1);
        vigil_call_free(call);
    }
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.connects == 4 && stats.disconnects == 3);
    vigil_client_free(client);
}

static void concurrent_reads_succeed(void)
{
    vigil_client *client = new_client();
    vigil_call *calls[2];
    for (int i = 0; i < 2; i++) {
        calls[i] = vigil_get(client, vigil_text("x"));
        CHECK(vigil_call_start(calls[i], NULL, NULL) == VIGIL_OK);
    }
    for (int i = 0; i < 2; i++) {
        while (!vigil_call_header(calls[i]) && vigil_call_error(calls[i])->code == VIGIL_OK)
            usleep(1000);
        CHECK_CODE(calls[i], VIGIL_OK);
        vigil_call_free(calls[i]);
    }
    vigil_client_free(client);
}

/* Until a call has completed, it has no result; then the whole result is there. */
static void results_may_be_read_at_any_time(void)
{
    vigil_client *client = new_client();
    put(client, "x", "1");
    for (int i = 0; i < 200; i++) {
        vigil_call *call = vigil_get(client, vigil_text("x"));
        CHECK(vigil_call_start(call, NULL, NULL) == VIGIL_OK);
        while (!vigil_range_result(call)) {
            CHECK_CODE(call, VIGIL_OK);
            sched_yield();
        }
        CHECK(vigil_call_header(call) && vigil_range_result(call)->kv_count == 1);
        CHECK(vigil_call_error(call)->grpc_code == 0);
        vigil_call_free(call);
    }
    vigil_client_free(client);
}

/* A new descriptor gets the lowest number that is free. */
static int lowest_free_descriptor(void)
{
    int fd = dup(0);
    CHECK(fd >= 0 && close(fd) == 0);
    return fd;
}

static void free_the_client_only(vigil_call *call, void *user)
{
    vigil_client **client = user;
    (void)call;
    vigil_client_free(*client);
    *client = NULL;
}

static void client_may_be_freed_while_a_call_runs_in_the_programs_loop(void)
{
    vigil_client *client;
    vigil_options options;
    default_options(&options);
    options.own_thread = 0;
    int descriptor = lowest_free_descriptor();
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_call *first = vigil_get(client, vigil_text("x")), *second = NULL;
    CHECK(vigil_call_start(first, free_the_client_only, &client) == VIGIL_OK);
    second = vigil_get(client, vigil_text("x"));
    int code = vigil_call_run(second);
    CHECK(code == VIGIL_OK || code == VIGIL_ERROR_CANCELED);
    vigil_call_free(first);
    vigil_call_free(second);
    vigil_client_free(client);                     /* etcd may answer the second call first */
    CHECK(lowest_free_descriptor() == descriptor); /* the client is really freed */
}

enum { OBJECTS = 16 };

struct objects {
    pthread_barrier_t barrier;
    vigil_watch *watches[OBJECTS];
    vigil_call *calls[OBJECTS];
};

static void *free_objects(void *arg)
{
    struct objects *objects = arg;
    pthread_barrier_wait(&objects->barrier);
    for (int i = 0; i < OBJECTS; i++) {
        int code = vigil_call_start(objects->calls[i], NULL, NULL);
        CHECK(code == VIGIL_OK || code == VIGIL_ERROR_CANCELED); /* before the end, or after it */
        vigil_watch_resume(objects->watches[i]);
        vigil_watch_free(objects->watches[i]);
        vigil_call_free(objects->calls[i]);
    }
    return NULL;
}

static int ignore_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch, (void)batch, (void)user;
    return VIGIL_WATCH_CONTINUE;
}

static void free_client_and_objects(void)
{
    vigil_client *client = new_client();
    vigil_watch_options options;
    struct objects objects;
    pthread_t thread;
    pthread_barrier_init(&objects.barrier, NULL, 2);
    vigil_watch_options_init(&options);
    options.key = vigil_text("x");
    CHECK(pthread_create(&thread, NULL, free_objects, &objects) == 0);
    for (int i = 0; i < OBJECTS; i++) {
        CHECK(vigil_watch_new(client, &options, ignore_batch, NULL, &objects.watches[i]) ==
              VIGIL_OK);
        objects.calls[i] = vigil_get(client, vigil_text("x"));
    }
    pthread_barrier_wait(&objects.barrier);
    vigil_client_free(client);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&objects.barrier);
}

static void objects_may_be_freed_while_the_client_is_freed(void)
{
    for (int i = 0; i < 300; i++)
        free_client_and_objects();
}

static void very_long_times_are_accepted(void)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.backoff_min_ms = -1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_ERROR_ARGUMENT);
    options.backoff_min_ms = options.backoff_max_ms = options.connect_timeout_ms = INT64_MAX;
    options.keepalive_ms = options.keepalive_timeout_ms = INT64_MAX;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_call *call = vigil_get(client, vigil_text("x"));
    vigil_call_set_timeout(call, INT64_MAX);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_OK);
    vigil_call_free(call);
    vigil_client_free(client);
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    CHECK(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void free_itself(vigil_call *call, void *user)
{
    latch_add(user, 1);
    vigil_call_free(call);
}

/* Their callbacks free them, also those that are made because the client is freed. */
static void forgotten_calls_keep_nothing(void)
{
    enum { ROUNDS = 30, CALLS = 4 };
    struct latch freed = LATCH_INIT;
    int before = open_descriptors();
    for (int i = 0; i < ROUNDS; i++) {
        vigil_client *client = new_client();
        for (int k = 0; k < CALLS; k++) {
            vigil_call *call = vigil_put(client, vigil_text("k"), vigil_text("v"), 0);
            CHECK(vigil_call_start(call, free_itself, &freed) == VIGIL_OK);
        }
        vigil_client_free(client);
        CHECK(latch_count(&freed) == (i + 1) * CALLS);
    }
    CHECK(open_descriptors() <= before + 4); /* the sanitizers may have some */
}

const struct suite_test life_tests[] = {
    {"forgotten_calls_keep_nothing", forgotten_calls_keep_nothing},
    {"concurrent_reads_succeed", concurrent_reads_succeed},
    {"results_may_be_read_at_any_time", results_may_be_read_at_any_time},
    {"client_may_be_freed_while_a_call_runs_in_the_programs_loop",
     client_may_be_freed_while_a_call_runs_in_the_programs_loop},
    {"objects_may_be_freed_while_the_client_is_freed",
     objects_may_be_freed_while_the_client_is_freed},
    {"very_long_times_are_accepted", very_long_times_are_accepted},
    {"unreachable_server_is_named", unreachable_server_is_named},
    {"bad_options_are_refused_with_a_reason", bad_options_are_refused_with_a_reason},
    {"token_that_cannot_be_sent_is_an_error", token_that_cannot_be_sent_is_an_error},
    {"cancelled_calls_complete_once", cancelled_calls_complete_once},
    {"shutdown_completes_everything", shutdown_completes_everything},
    {"client_may_be_freed_inside_a_callback", client_may_be_freed_inside_a_callback},
    {"blocking_inside_a_callback_is_refused", blocking_inside_a_callback_is_refused},
    {"program_drives_the_client_with_poll", program_drives_the_client_with_poll},
    {"unanswered_put_has_an_unknown_outcome", unanswered_put_has_an_unknown_outcome},
    {"reads_are_repeated_after_a_restart", reads_are_repeated_after_a_restart},
    {NULL, NULL},
};
