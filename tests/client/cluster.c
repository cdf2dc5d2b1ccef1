/* A client of three members, of which the driver kills some. */
#include "suite.h"

enum { WATCHES = 1000, PUTS_A_ROUND = 100, ENDPOINT_BYTES = 64 };

/* What one watch has seen, so that watches can be compared without keeping all events. */
struct seen {
    long count;
    uint64_t hash;
    int64_t last_revision;
    bool gaps;  /* other keys are written as well */
    bool ended; /* it has seen the value END; what follows does not count */
};

#define END "end"

static struct latch all_events = LATCH_INIT;

static void count_event(struct seen *seen, const vigil_kv *kv)
{
    seen->count++;
    seen->hash = seen->hash * 1000003 + (uint64_t)kv->mod_revision;
    for (size_t at = 0; at < kv->value.size; at++)
        seen->hash = seen->hash * 31 + ((const unsigned char *)kv->value.data)[at];
    seen->ended = bytes_equal(kv->value, END);
}

static int note_all(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct seen *seen = user;
    long before = seen->count;
    (void)watch;
    if (batch->what == VIGIL_WATCH_ENDED) {
        fprintf(stderr, "a watch has ended: %s\n", batch->error->text);
        abort();
    }
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_kv *kv = batch->events[i].kv;
        CHECK(kv->mod_revision > seen->last_revision);
        CHECK(seen->gaps || seen->count == 0 || kv->mod_revision == seen->last_revision + 1);
        seen->last_revision = kv->mod_revision;
        if (!seen->ended)
            count_event(seen, kv);
    }
    latch_add(&all_events, seen->count - before);
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

/* How many events of the key there are up to this revision; 0: up to now. */
static long events_until(vigil_client *client, int64_t first, int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("c");
    request.revision = revision;
    vigil_call *call = vigil_range(client, &request);
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
    put_stubbornly(client, number++); /* the cluster works again */
    /* A put whose answer was lost may still take effect, so only the past of this one is compared.
     */
    int64_t last = put(client, "c", END);
    long count = events_until(client, first, last);
    CHECK(count >= number + 2);
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

/* -- A past that is compacted -- */

enum { PAUSED = 20 };

/* A watch whose consumer has paused it. */
struct paused {
    vigil_watch *watch;
    struct latch deliveries;
    int64_t last_revision;
    int64_t compact_revision;
    int code; /* code with which it ended */
};

static int pause_always(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct paused *paused = user;
    (void)watch;
    for (size_t i = 0; i < batch->event_count; i++) {
        int64_t revision = batch->events[i].kv->mod_revision;
        CHECK(paused->last_revision == 0 || revision == paused->last_revision + 1);
        paused->last_revision = revision;
    }
    if (batch->what == VIGIL_WATCH_ENDED) {
        paused->code = batch->error->code;
        paused->compact_revision = batch->compact_revision;
    }
    latch_add(&paused->deliveries, 1);
    return VIGIL_WATCH_PAUSE;
}

static void begin_paused(vigil_client *client, int64_t revision, struct paused *paused)
{
    vigil_watch_options options;
    *paused = (struct paused){.deliveries = LATCH_INIT};
    vigil_watch_options_init(&options);
    options.key = vigil_text("c");
    options.revision = revision;
    options.buffer_bytes = 500;
    CHECK(vigil_watch_new(client, &options, pause_always, paused, &paused->watch) == VIGIL_OK);
    latch_wait(&paused->deliveries, 1); /* not all events at once later */
}

/* It delivers what it has kept, and then that the rest is gone. */
static void resume_until_compacted(struct paused *paused, int64_t compacted)
{
    for (long i = latch_count(&paused->deliveries); paused->code == VIGIL_OK; i++) {
        vigil_watch_resume(paused->watch);
        latch_wait(&paused->deliveries, i + 1);
    }
    CHECK(paused->code == VIGIL_ERROR_COMPACTED && paused->compact_revision == compacted);
    CHECK(paused->last_revision < compacted - 1);
    vigil_watch_free(paused->watch);
}

static int64_t compact_stubbornly(vigil_client *client, int64_t revision)
{
    int code;
    do { /* the second attempt may find that the first has succeeded */
        vigil_call *call = vigil_compact(client, revision, 0);
        vigil_call_set_timeout(call, 2000);
        code = vigil_call_run(call);
        vigil_call_free(call);
    } while (code != VIGIL_OK && code != VIGIL_ERROR_COMPACTED);
    return revision;
}

/* A member that is behind could still send what the others have compacted. */
static void wait_until_compacted_everywhere(int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("c");
    request.revision = revision;
    request.serializable = 1;
    for (int i = 0; i < member_count(); i++) {
        vigil_client *member = client_of_member(i);
        int code;
        do {
            vigil_call *call = vigil_range(member, &request);
            code = vigil_call_run(call);
            vigil_call_free(call);
        } while (code != VIGIL_ERROR_COMPACTED);
        vigil_client_free(member);
    }
}

/* Every revision is one of the key, so a watch that has them all without a gap has the history. */
static void watches_survive_a_compaction(void)
{
    static struct seen seen[WATCHES];
    static vigil_watch *watches[WATCHES];
    static struct paused paused[PAUSED];
    vigil_client *client = new_client();
    int64_t first = put(client, "c", "first");
    for (int i = 0; i < WATCHES; i++)
        watches[i] = watch_from(client, first, &seen[i]);
    for (int i = 0; i < PAUSED; i++)
        begin_paused(client, first, &paused[i]);
    for (int i = 0; i < PUTS_A_ROUND; i++)
        put_stubbornly(client, i);
    latch_wait(&all_events, (long)(PUTS_A_ROUND + 1) * WATCHES);
    ask("kill leader");
    int64_t compacted = compact_stubbornly(client, first + PUTS_A_ROUND);
    for (int i = 0; i < PUTS_A_ROUND; i++)
        put_stubbornly(client, i);
    ask("start");
    wait_until_compacted_everywhere(first);
    for (int i = 0; i < PAUSED; i++)
        resume_until_compacted(&paused[i], compacted);
    put_stubbornly(client, 0);
    long count = events_until(client, first, 0);
    latch_wait(&all_events, count * WATCHES);
    for (int i = 0; i < WATCHES; i++) {
        CHECK(seen[i].count == count && seen[i].hash == seen[0].hash);
        CHECK(seen[i].last_revision == first + count - 1);
        vigil_watch_free(watches[i]);
    }
    vigil_client_free(client);
}

/* -- A disk that is full -- */

enum { BIG_BYTES = 1 << 20, BIG_MAX = 64 };

/* Writes until the servers refuse it. */
static void fill(vigil_client *client)
{
    char *value = calloc(1, BIG_BYTES), key[32];
    int code = VIGIL_OK;
    CHECK(value);
    for (int i = 0; code == VIGIL_OK; i++) {
        CHECK(i < BIG_MAX);
        snprintf(key, sizeof(key), "big/%d", i);
        vigil_call *call = vigil_put(client, vigil_text(key), vigil_bytes_of(value, BIG_BYTES), 0);
        code = vigil_call_run(call);
        vigil_call_free(call);
        if (code == VIGIL_OK) {
            call = vigil_put(client, vigil_text("c"), vigil_text("x"), 0);
            code = vigil_call_run(call);
            vigil_call_free(call);
        }
    }
    CHECK(code == VIGIL_ERROR_NO_SPACE);
    free(value);
}

/* How often "c" has been put. Puts that succeeded are not counted instead, because etcd applies the
 * one that finds the quota exceeded. */
static long puts_of_c(vigil_client *client)
{
    vigil_call *call = vigil_get(client, vigil_text("c"));
    CHECK(vigil_call_run(call) == VIGIL_OK && vigil_range_result(call)->kv_count == 1);
    long count = (long)vigil_range_result(call)->kvs[0].version;
    vigil_call_free(call);
    return count;
}

/* For calls whose responses may have no header. */
static void run_and_free(vigil_call *call)
{
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_OK);
    vigil_call_free(call);
}

static void make_room(vigil_client *client)
{
    must(vigil_delete_prefix(client, vigil_text("big/")));
    must(vigil_compact(client, must(vigil_get(client, vigil_text("c"))), 1));
    for (int i = 0; i < member_count(); i++) {
        vigil_client *member = client_of_member(i);
        run_and_free(vigil_defragment(member));
        vigil_client_free(member);
    }
    vigil_call *list = vigil_alarm_list(client);
    CHECK(vigil_call_run(list) == VIGIL_OK);
    const vigil_alarms_response *alarms = vigil_alarms_result(list);
    CHECK(alarms->alarm_count > 0);
    for (size_t i = 0; i < alarms->alarm_count; i++) {
        CHECK(alarms->alarms[i].type == VIGIL_ALARM_NO_SPACE);
        run_and_free(vigil_alarm_disarm(client, alarms->alarms[i].member_id, VIGIL_ALARM_NO_SPACE));
    }
    vigil_call_free(list);
}

static void watches_survive_a_full_disk(void)
{
    static struct seen seen[WATCHES + 1];
    static vigil_watch *watches[WATCHES + 1];
    vigil_client *client = new_client(), *other = new_client();
    int64_t first = put(client, "c", "first");
    for (int i = 0; i <= WATCHES; i++) { /* the last one is alone at its client */
        seen[i].gaps = true;
        watches[i] = watch_from(i < WATCHES ? client : other, first, &seen[i]);
    }
    fill(client);
    for (int i = 0; i < 3; i++) {
        vigil_call *call = vigil_put(client, vigil_text("c"), vigil_text("refused"), 0);
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_ERROR_NO_SPACE);
        CHECK(vigil_call_error(call)->outcome == VIGIL_UNKNOWN);
        vigil_call_free(call);
    }
    long changes = puts_of_c(client);
    latch_wait(&all_events, changes * (WATCHES + 1));
    must(vigil_delete(client, vigil_text("c"))); /* needs no space, and the watches notice */
    latch_wait(&all_events, ++changes * (WATCHES + 1));
    make_room(client);
    for (int i = 0; i < PUTS_A_ROUND; i++)
        put(client, "c", "again");
    changes += PUTS_A_ROUND;
    latch_wait(&all_events, changes * (WATCHES + 1));
    for (int i = 0; i <= WATCHES; i++) {
        CHECK(seen[i].count == changes && seen[i].hash == seen[WATCHES].hash);
        vigil_watch_free(watches[i]);
    }
    vigil_client_free(client);
    vigil_client_free(other);
}

/* -- A cluster without a leader -- */

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

static void note_connection(void *user, int level, const char *text)
{
    char *connected = user;
    (void)level;
    if (strncmp(text, "connected to ", 13) == 0)
        snprintf(connected, ENDPOINT_BYTES, "%s", text + 13);
}

/* A client that is connected to the first endpoint: which one it tries first is random. */
static vigil_client *client_at_first_endpoint(char connected[ENDPOINT_BYTES])
{
    vigil_options options;
    default_options(&options);
    options.log = note_connection;
    options.log_user = connected;
    const char *first = strstr(options.endpoints, "://") + 3;
    size_t len = strcspn(first, ",");
    for (int attempt = 0; attempt < 100; attempt++) {
        vigil_client *client;
        vigil_error error;
        vigil_range_request request;
        CHECK(vigil_client_new(&options, &client, &error) == VIGIL_OK);
        vigil_range_request_init(&request);
        request.key = vigil_text("k");
        request.serializable = 1;
        must(vigil_range(client, &request));
        if (strncmp(connected, first, len) == 0)
            return client;
        vigil_client_free(client);
    }
    CHECK(!"the client never begins with the first endpoint");
    return NULL;
}

/* The first endpoint has lost its quorum, the other one is healthy. etcd 3.7 resets the stream when
 * the deadline has passed, mostly before the client's own timer; etcd 3.4 answers with a status. */
static void calls_leave_a_member_without_a_quorum(void)
{
    char connected[ENDPOINT_BYTES] = "";
    vigil_client *client = client_at_first_endpoint(connected);
    for (int failed = 0;; failed++) {
        vigil_call *call = failed % 2 ? vigil_put(client, vigil_text("k"), vigil_text("v"), 0)
                                      : vigil_get(client, vigil_text("k"));
        vigil_call_set_timeout(call, 2000);
        enum vigil_code code = vigil_call_run(call);
        vigil_call_free(call);
        if (code == VIGIL_OK)
            break;
        CHECK(code == VIGIL_ERROR_TIMEOUT);
        CHECK(failed < 2);
    }
    vigil_client_free(client);
}

const struct suite_test cluster_tests[] = {
    {"watches_survive_the_loss_of_members", watches_survive_the_loss_of_members},
    {"watches_survive_a_compaction", watches_survive_a_compaction},
    {"watches_survive_a_full_disk", watches_survive_a_full_disk},
    {"watch_that_requires_a_leader_ends_without_one",
     watch_that_requires_a_leader_ends_without_one},
    {"calls_leave_a_member_without_a_quorum", calls_leave_a_member_without_a_quorum},
    {NULL, NULL},
};
