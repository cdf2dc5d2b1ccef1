/* A client behind a network that breaks: VIGIL_ENDPOINTS leads through a proxy that cuts, delays
 * and garbles, VIGIL_DIRECT to the server itself. */
#include "suite.h"

enum { WATCHES = 20, PUTS = 600 };

struct follower {
    struct latch *events;
    long next;
};

static int follow(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct follower *follower = user;
    (void)watch;
    CHECK(batch->what != VIGIL_WATCH_ENDED);
    for (size_t i = 0; i < batch->event_count; i++) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), "%ld", follower->next++);
        CHECK(bytes_equal(batch->events[i].kv->value, wanted));
    }
    latch_add(follower->events, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

static void watches_lose_nothing_when_connections_break(void)
{
    static struct latch events = LATCH_INIT;
    struct follower followers[WATCHES];
    vigil_watch *watches[WATCHES];
    vigil_watch_options options;
    vigil_client *writer = direct_client(), *client = new_client();
    int64_t first = put(writer, "f", "0");
    vigil_watch_options_init(&options);
    options.key = vigil_text("f");
    options.revision = first;
    options.progress_notify = 1;
    for (int i = 0; i < WATCHES; i++) {
        followers[i] = (struct follower){&events, 0};
        CHECK(vigil_watch_new(client, &options, follow, &followers[i], &watches[i]) == VIGIL_OK);
    }
    for (long i = 1; i < PUTS; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%ld", i);
        put(writer, "f", text);
    }
    latch_wait(&events, (long)PUTS * WATCHES);
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.watch_resumes > WATCHES); /* otherwise nothing was shown */
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(watches[i]);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void reads_succeed_and_writes_tell_their_outcome(void)
{
    vigil_client *direct = direct_client(), *client = new_client();
    long unknown = 0;
    put(direct, "r", "0");
    for (long i = 1; i <= 500; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%ld", i);
        vigil_call *call = vigil_put(client, vigil_text("r"), vigil_text(text), 0);
        int code = vigil_call_run(call);
        int outcome = vigil_call_error(call)->outcome;
        CHECK(code == VIGIL_OK || outcome == VIGIL_UNKNOWN);
        vigil_call_free(call);
        unknown += code != VIGIL_OK;
        call = vigil_get(client, vigil_text("r"));
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_OK);
        if (code == VIGIL_OK) /* what was acknowledged is there */
            CHECK(bytes_equal(vigil_range_result(call)->kvs[0].value, text));
        vigil_call_free(call);
    }
    CHECK(unknown > 0 && unknown < 500);
    vigil_client_free(client);
    vigil_client_free(direct);
}

/* Takes one item, if there is one within this time. True: it was taken, and must be released. */
static bool follow_queue(vigil_queue *queue, int timeout_ms, const vigil_item **ret_item)
{
    int code = vigil_queue_take(queue, timeout_ms, ret_item);
    CHECK(code == VIGIL_OK || code == VIGIL_ERROR_TIMEOUT);
    if (code == VIGIL_OK)
        follow((*ret_item)->watch, (*ret_item)->batch, (*ret_item)->user);
    return code == VIGIL_OK;
}

/* The buffers are small, and in each round the batch of another watch is kept while the others are
 * taken, so that watches are cancelled and created again while connections break. */
static void queue_loses_nothing_when_connections_break(void)
{
    enum { QUEUED = 5, ROUNDS = 10, ROUND = PUTS / ROUNDS };
    struct latch events = LATCH_INIT;
    struct follower followers[QUEUED];
    vigil_watch *watches[QUEUED];
    vigil_watch_options options;
    vigil_client *writer = direct_client(), *client = new_client();
    vigil_queue *queue;
    const vigil_item *item, *kept = NULL;
    CHECK(vigil_queue_new(client, &queue) == VIGIL_OK);
    vigil_watch_options_init(&options);
    options.key = vigil_text("f");
    options.revision = put(writer, "before", "0") + 1;
    options.buffer_bytes = 2000;
    for (int i = 0; i < QUEUED; i++) {
        followers[i] = (struct follower){&events, 0};
        CHECK(vigil_queue_watch(queue, &options, &followers[i], &watches[i]) == VIGIL_OK);
    }
    for (long i = 0; i < PUTS; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%ld", i);
        put(writer, "f", text);
        if (i % ROUND == 0) {
            vigil_item_release(kept);
            kept = follow_queue(queue, 60000, &item) ? item : NULL;
        }
        while (follow_queue(queue, 0, &item))
            vigil_item_release(item);
    }
    vigil_item_release(kept);
    while (latch_count(&events) < (long)PUTS * QUEUED) {
        CHECK(follow_queue(queue, 60000, &item));
        vigil_item_release(item);
    }
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.watch_resumes > QUEUED + ROUNDS && stats.disconnects > 0);
    for (int i = 0; i < QUEUED; i++)
        vigil_watch_free(watches[i]);
    vigil_queue_free(queue);
    vigil_client_free(client);
    vigil_client_free(writer);
}

const struct suite_test fault_tests[] = {
    {"queue_loses_nothing_when_connections_break", queue_loses_nothing_when_connections_break},
    {"watches_lose_nothing_when_connections_break", watches_lose_nothing_when_connections_break},
    {"reads_succeed_and_writes_tell_their_outcome", reads_succeed_and_writes_tell_their_outcome},
    {NULL, NULL},
};
