/* A client of three members, of which the driver kills some. */
#include "suite.h"

#include <unistd.h>

enum { WATCHES = 1000, PUTS_A_ROUND = 100 };

/* What one watch has seen, so that watches can be compared without keeping all events. */
struct seen {
    long count;
    uint64_t hash;
    int64_t last_revision;
};

static struct latch all_events = LATCH_INIT;

static int note_all(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct seen *seen = user;
    (void)watch;
    if (batch->what == VIGIL_WATCH_ENDED) {
        fprintf(stderr, "a watch has ended: %s\n", batch->error->text);
        abort();
    }
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_kv *kv = batch->events[i].kv;
        CHECK(kv->mod_revision > seen->last_revision);
        seen->last_revision = kv->mod_revision;
        seen->count++;
        seen->hash = seen->hash * 1000003 + (uint64_t)kv->mod_revision;
        for (size_t at = 0; at < kv->value.size; at++)
            seen->hash = seen->hash * 31 + ((const unsigned char *)kv->value.data)[at];
    }
    latch_add(&all_events, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

static vigil_watch *watch_from(vigil_client *client, int64_t revision, struct seen *seen)
{
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_watch_options_init(&options);
    options.key = vigil_text("c");
    options.revision = revision;
    CHECK(vigil_watch_new(client, &options, note_all, seen, &watch) == VIGIL_OK);
    return watch;
}

/* Until it is acknowledged. A put whose outcome is unknown may have happened; then it happens
 * twice, and the watches must agree on that, too. */
static void put_stubbornly(vigil_client *client, long number)
{
    char text[32];
    int code;
    snprintf(text, sizeof(text), "%ld", number);
    do {
        vigil_call *call = vigil_put(client, vigil_text("c"), vigil_text(text), 0);
        vigil_call_set_timeout(call, 2000);
        code = vigil_call_run(call);
        vigil_call_free(call);
    } while (code != VIGIL_OK);
}

static long events_since(vigil_client *client, int64_t first)
{
    vigil_call *call = vigil_get(client, vigil_text("c"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    long count = (long)vigil_range_result(call)->kvs[0].version;
    CHECK(vigil_range_result(call)->kvs[0].create_revision == first);
    vigil_call_free(call);
    return count;
}

static void watches_survive_the_loss_of_members(void)
{
    static struct seen seen[WATCHES + 1];
    static vigil_watch *watches[WATCHES + 1];
    vigil_client *client = new_client();
    int64_t first = put(client, "c", "first");
    for (int i = 0; i < WATCHES; i++)
        watches[i] = watch_from(client, first, &seen[i]);
    long number = 0;
    static const char *const faults[] = {"kill leader", "kill 0", "kill 1", "kill 2"};
    for (size_t round = 0; round < sizeof(faults) / sizeof(faults[0]); round++) {
        for (int i = 0; i < PUTS_A_ROUND; i++)
            put_stubbornly(client, number++);
        ask(faults[round]);
        for (int i = 0; i < PUTS_A_ROUND; i++)
            put_stubbornly(client, number++);
        ask("start");
    }
    sleep(3); /* a put whose answer was lost may still take effect */
    long count = events_since(client, first);
    CHECK(count > number);
    latch_wait(&all_events, count * WATCHES);
    watches[WATCHES] =
        watch_from(client, first, &seen[WATCHES]); /* the history, read undisturbed */
    latch_wait(&all_events, count * (WATCHES + 1));
    for (int i = 0; i <= WATCHES; i++) {
        CHECK(seen[i].count == count && seen[i].hash == seen[WATCHES].hash);
        vigil_watch_free(watches[i]);
    }
    vigil_client_free(client);
}

struct end {
    struct latch count;
    vigil_error error;
};

static int note_end(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct end *end = user;
    (void)watch;
    if (batch->what == VIGIL_WATCH_ENDED) {
        end->error = *batch->error;
        latch_add(&end->count, 1);
    }
    return VIGIL_WATCH_CONTINUE;
}

static void watch_that_requires_a_leader_ends_without_one(void)
{
    static struct end strict = {LATCH_INIT, {0, 0, 0, 0, ""}};
    static struct seen patient;
    vigil_client *client = new_client();
    vigil_watch_options options;
    vigil_watch *watch;
    int64_t first = put(client, "c", "first");
    vigil_watch *other = watch_from(client, first, &patient);
    vigil_watch_options_init(&options);
    options.key = vigil_text("c");
    options.require_leader = 1;
    CHECK(vigil_watch_new(client, &options, note_end, &strict, &watch) == VIGIL_OK);
    latch_wait(&all_events, 1);
    ask("kill 0");
    ask("kill 1");
    latch_wait(&strict.count, 1);
    CHECK(strict.error.code == VIGIL_ERROR_NO_LEADER);
    vigil_call *call = vigil_put(client, vigil_text("c"), vigil_text("x"), 0);
    vigil_call_set_timeout(call, 500);
    CHECK(vigil_call_run(call) != VIGIL_OK);
    vigil_call_free(call);
    ask("start");
    put_stubbornly(client, 1);
    latch_wait(&all_events, 2);
    vigil_watch_free(watch);
    vigil_watch_free(other);
    vigil_client_free(client);
}

const struct suite_test cluster_tests[] = {
    {"watches_survive_the_loss_of_members", watches_survive_the_loss_of_members},
    {"watch_that_requires_a_leader_ends_without_one",
     watch_that_requires_a_leader_ends_without_one},
    {NULL, NULL},
};
