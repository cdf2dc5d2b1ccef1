/*
 * Watches of objects against a small etcd on a simulated network: each scenario runs once without a
 * fault, and then with one fault at every byte, system call and allocation. Whatever happens, what
 * was delivered is the beginning of what follows from the history; a watch that has not ended has
 * delivered all of it; and every decoded object is released.
 */
#include "client/sim/sim_world_test.h"
#include "client/watch/object_watch.h"

#include <signal.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, PAGE_LIMIT = 2 };

struct object_event {
    int type;
    bool initial;
    char key[ETCD_TEXT_BYTES], value[ETCD_TEXT_BYTES];
    int64_t revision;
};

/* A watch of all keys with the prefix "w". */
struct watcher {
    vigil_object_watch *watch;
    bool selects; /* only values that do not begin with "-" */
    int64_t from;
    struct object_event events[EVENTS_MAX];
    size_t count;
    unsigned batches, bookmarks, states, ended;
    vigil_object_error error; /* if it has ended with one */
    unsigned pause_each;      /* pauses after every so many batches; 0: never */
    bool freed;
};

enum { WATCHERS_MAX = 2 };
static struct watcher watchers[WATCHERS_MAX];
static size_t watcher_count;
static long live; /* decoded objects that have not been released */

/* -- What the program does -- */

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    const struct watcher *watcher = user;
    (void)error;
    assert_false(watcher->freed);
    object->decoded = object->value.size ? (void *)object->value.data : "";
    live++;
    return 0;
}

static void release(void *decoded)
{
    (void)decoded;
    live--;
}

static int matches(const vigil_object *object, void *user)
{
    const struct watcher *watcher = user;
    assert_false(watcher->freed);
    return *(const char *)object->decoded != '-';
}

static void note_event(struct watcher *watcher, const vigil_object_event *event)
{
    assert_non_null(event->object.decoded);
    if (faults.kind == FAULT_GARBAGE)
        return; /* it may be anything */
    assert_true(watcher->count < EVENTS_MAX);
    struct object_event *noted = &watcher->events[watcher->count++];
    *noted = (struct object_event){
        .type = event->type, .initial = event->initial, .revision = event->object.revision};
    etcd_text(noted->key, slice_of(event->object.key.data, event->object.key.size));
    etcd_text(noted->value, slice_of(event->object.value.data, event->object.value.size));
}

static int on_batch(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
{
    struct watcher *watcher = user;
    assert_false(watcher->freed);
    assert_int_equal(watcher->ended, 0);
    assert_int_equal(batch->revision, vigil_object_watch_revision(watch));
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        if (event->type == VIGIL_OBJECT_ERROR) {
            assert_true(batch->ended && i + 1 == batch->event_count);
            watcher->error = *event->error;
        } else if (event->type == VIGIL_OBJECT_BOOKMARK) {
            watcher->bookmarks++;
            watcher->states += event->initial;
            assert_int_equal(event->object.revision, batch->revision);
        } else {
            note_event(watcher, event);
        }
    }
    watcher->ended += batch->ended;
    bool pauses = watcher->pause_each && ++watcher->batches % watcher->pause_each == 0;
    return pauses ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static void watch_from(struct world *w, int64_t revision, bool selects, unsigned pause_each)
{
    vigil_object_options options;
    struct watcher *watcher = &watchers[watcher_count++];
    *watcher = (struct watcher){.selects = selects, .from = revision, .pause_each = pause_each};
    vigil_object_options_init(&options);
    options.key = vigil_text("w");
    options.prefix = 1;
    options.revision = revision;
    options.page_limit = PAGE_LIMIT;
    options.buffer_bytes = 200;
    options.progress_notify = 1;
    options.decode = decode;
    options.release = release;
    options.matches = selects ? matches : NULL;
    faulty_memory_begin();
    int code = vigil_object_watch_new(w->client, &options, on_batch, watcher, &watcher->watch);
    faulty_memory_end();
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        watcher->ended = 1;
    }
}

static void free_watcher(struct watcher *watcher)
{
    watcher->freed = true;
    vigil_object_watch_free(watcher->watch);
    watcher->watch = NULL;
}

/* -- What must have been delivered -- */

static bool is_selected(const struct watcher *watcher, const char *value)
{
    return value && (!watcher->selects || *value != '-');
}

/* Compares one event that follows from the history, unless everything was compared already. */
static void compare(const struct watcher *watcher, size_t *at, const struct object_event *wanted)
{
    const struct object_event *got = &watcher->events[*at];
    if (*at >= watcher->count) {
        ++*at;
        return;
    }
    assert_int_equal(got->revision, wanted->revision);
    assert_string_equal(got->key, wanted->key);
    assert_int_equal(got->type, wanted->type);
    assert_string_equal(got->value, wanted->value);
    assert_int_equal(got->initial, wanted->initial);
    ++*at;
}

static void compare_change(const struct world *w, const struct watcher *watcher, size_t *at,
                           int64_t revision, unsigned i)
{
    const struct etcd_revision *change = &w->cluster.history[revision];
    struct etcd_pair before[ETCD_PAIRS_MAX];
    struct object_event wanted = {.revision = revision};
    etcd_key(change, i, wanted.key);
    size_t existed =
        etcd_pairs(&w->cluster, revision - 1, slice_from_text(wanted.key), SLICE_EMPTY, before);
    const char *old_value = existed ? before[0].value : NULL;
    const char *new_value = change->deleted ? NULL : change->value;
    bool matched = is_selected(watcher, old_value), now = is_selected(watcher, new_value);
    if (!matched && !now)
        return;
    wanted.type = !now      ? VIGIL_OBJECT_DELETED
                  : matched ? VIGIL_OBJECT_MODIFIED
                            : VIGIL_OBJECT_ADDED;
    snprintf(wanted.value, sizeof(wanted.value), "%s", now ? new_value : old_value);
    compare(watcher, at, &wanted);
}

static void compare_state(const struct world *w, const struct watcher *watcher, int64_t revision,
                          size_t *at)
{
    struct etcd_pair pairs[ETCD_PAIRS_MAX];
    size_t count = etcd_pairs(&w->cluster, revision, SLICE_LITERAL("w"), SLICE_LITERAL("x"), pairs);
    for (size_t i = 0; i < count; i++) {
        struct object_event wanted = {
            .type = VIGIL_OBJECT_ADDED, .initial = true, .revision = pairs[i].changed};
        memcpy(wanted.key, pairs[i].key, sizeof(wanted.key));
        memcpy(wanted.value, pairs[i].value, sizeof(wanted.value));
        if (is_selected(watcher, pairs[i].value))
            compare(watcher, at, &wanted);
    }
}

/* Returns how many events follow from the history, and compares those that were delivered. */
static size_t compare_with_history(const struct world *w, const struct watcher *watcher)
{
    size_t at = 0;
    int64_t revision = watcher->from;
    if (!revision) {
        revision = watcher->watch->list_revision;
        compare_state(w, watcher, revision, &at);
    }
    for (int64_t r = revision + 1; r <= w->cluster.revision; r++)
        for (unsigned i = 0; i < w->cluster.history[r].keys; i++)
            if (w->cluster.history[r].key[0] == 'w')
                compare_change(w, watcher, &at, r, i);
    return at;
}

static bool is_done(const struct world *w, const struct watcher *watcher)
{
    if (watcher->ended || !watcher->watch)
        return true;
    return (watcher->from || watcher->states) &&
           vigil_object_watch_revision(watcher->watch) == w->cluster.revision;
}

/* Those that are paused are resumed until all are done, or for a minute. */
static void run_until_done(struct world *w)
{
    for (int i = 0; i < 600; i++) {
        bool done = true;
        for (size_t j = 0; j < watcher_count; j++) {
            done = done && is_done(w, &watchers[j]);
            if (watchers[j].watch)
                vigil_object_watch_resume(watchers[j].watch);
        }
        if (done)
            return;
        world_run(w, 100 * NS_PER_MS);
    }
}

static void check_truth(const struct world *w)
{
    for (size_t i = 0; i < watcher_count; i++) {
        const struct watcher *watcher = &watchers[i];
        if (!watcher->watch)
            continue;
        size_t expected = compare_with_history(w, watcher);
        assert_true(watcher->count <= expected);
        assert_true(watcher->states <= 1 && watcher->ended <= 1);
        if (!watcher->ended)
            assert_int_equal(watcher->count, expected);
    }
}

/* -- Scenarios -- */

struct scenario {
    const char *name;
    size_t members;
    void (*run)(struct world *w);
    /* Without a fault, or with one that the client survives unnoticed: what must have happened. */
    void (*expect)(const struct world *w);
};

static void put(struct world *w, const char *key, const char *value, unsigned keys)
{
    etcd_change(&w->cluster, slice_from_text(key), slice_from_text(value), keys);
}

static void put_state(struct world *w)
{
    put(w, "w1", "a", 1);
    put(w, "w3", "a", 3);
    put(w, "v", "a", 1);
    put(w, "w2", "-", 1);
}

/* Every transition, also in one revision that is sent in fragments. */
static void change_state(struct world *w)
{
    world_run(w, 3 * NS_PER_MS);
    put(w, "w2", "b", 1);
    world_run(w, 3 * NS_PER_MS);
    put(w, "w3", "-", 3);
    put(w, "x", "c", 1);
    world_run(w, 3 * NS_PER_MS);
    etcd_delete(&w->cluster, SLICE_LITERAL("w1"), 1);
    put(w, "w2", "d", 1);
    etcd_progress(&w->cluster);
    run_until_done(w);
    put(w, "w1", "e", 1);
    etcd_delete(&w->cluster, SLICE_LITERAL("w3/1"), 1);
    etcd_delete(&w->cluster, SLICE_LITERAL("w2"), 1);
    run_until_done(w);
}

static void run_state_and_changes(struct world *w)
{
    put_state(w);
    watch_from(w, 0, true, 0);
    change_state(w);
}

static void run_changes(struct world *w)
{
    put_state(w);
    watch_from(w, 2, false, 0);
    watch_from(w, 3, true, 0);
    change_state(w);
}

static void run_paused(struct world *w)
{
    put_state(w);
    watch_from(w, 0, false, 1);
    change_state(w);
}

static void expect_everything(const struct world *w)
{
    for (size_t i = 0; i < watcher_count; i++) {
        assert_int_equal(watchers[i].ended, 0);
        assert_int_equal(watchers[i].states, watchers[i].from == 0);
        assert_true(is_done(w, &watchers[i]));
        if (faults.kind == FAULT_NONE && !watchers[i].pause_each)
            assert_true(watchers[i].bookmarks > watchers[i].states);
    }
}

/* One member after the other is down, also while the state is read. */
static void run_failover(struct world *w)
{
    put_state(w);
    watch_from(w, 0, true, 1);
    for (unsigned i = 0; i < WORLD_MEMBERS; i++) {
        world_run(w, 10 * NS_PER_MS);
        etcd_member_stop(&w->members[i]);
        if (watchers[0].watch)
            vigil_object_watch_resume(watchers[0].watch);
        world_run(w, 100 * NS_PER_MS);
        put(w, "w4", "a", 1);
        etcd_member_start(&w->members[i], sim_network(w->sim));
    }
    run_until_done(w);
}

static void run_compacted(struct world *w)
{
    put_state(w);
    put(w, "w1", "b", 1);
    w->cluster.compacted = 5;
    watch_from(w, 2, true, 0);
    WORLD_RUN_UNTIL(w, watchers[0].ended);
}

static void expect_expired(const struct world *w)
{
    (void)w;
    assert_int_equal(watchers[0].ended, 1);
    assert_int_equal(watchers[0].error.status, 410);
    assert_int_equal(watchers[0].error.compact_revision, 5);
    assert_int_equal(watchers[0].count, 0);
}

/* Freed in the middle of the state, and while it watches. */
static void run_freed(struct world *w)
{
    put_state(w);
    watch_from(w, 0, true, 1);
    watch_from(w, 0, true, 0);
    WORLD_RUN_UNTIL(w, watchers[0].count || watchers[0].ended);
    free_watcher(&watchers[0]);
    world_run(w, 3 * NS_PER_MS);
    put(w, "w1", "b", 1);
    world_run(w, 3 * NS_PER_MS);
    free_watcher(&watchers[1]);
    put(w, "w1", "c", 1);
    world_run(w, 3 * NS_PER_MS);
}

static void expect_nothing(const struct world *w)
{
    (void)w;
}

/* The client ends while one watch reads the state and another one watches. */
static void run_shut_down(struct world *w)
{
    put_state(w);
    watch_from(w, 0, true, 0);
    run_until_done(w);
    watch_from(w, 0, true, 1);
    WORLD_RUN_UNTIL(w, watchers[1].count || watchers[1].ended);
    vigil_client_shutdown(w->client);
    WORLD_RUN_UNTIL(w, watchers[0].ended && watchers[1].ended);
}

static void expect_silent_end(const struct world *w)
{
    (void)w;
    for (size_t i = 0; i < watcher_count; i++) {
        assert_int_equal(watchers[i].ended, 1);
        assert_int_equal(watchers[i].error.status, 0);
    }
}

static const struct scenario scenarios[] = {
    {"state and changes", 1, run_state_and_changes, expect_everything},
    {"changes", 1, run_changes, expect_everything},
    {"paused", 1, run_paused, expect_everything},
    {"failover", WORLD_MEMBERS, run_failover, expect_everything},
    {"compacted", 1, run_compacted, expect_expired},
    {"freed", 1, run_freed, expect_nothing},
    {"shut down", 1, run_shut_down, expect_silent_end},
};

/* -- Running them -- */

static char context[128]; /* printed if a test fails */

static void print_context(int signal)
{
    (void)signal;
    (void)!write(2, context, strlen(context));
}

static int teardown(void **state)
{
    (void)state;
    if (*context)
        print_context(0);
    return 0;
}

static void check(void)
{
    world_check();
    for (size_t i = 0; i < watcher_count; i++)
        if (watchers[i].watch && world_checked->client)
            object_watch_check(watchers[i].watch);
}

static void begin(struct world *w, const struct scenario *s, enum fault_kind kind, size_t at)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    snprintf(context, sizeof(context), "in the scenario \"%s\" with fault %d at %zu\n", s->name,
             (int)kind, at);
    options.seed = 1 + (uint64_t)(s - scenarios);
    world_init(w, &options);
    watcher_count = 0;
    live = 0;
    faults.check = check;
    faults.kind = kind;
    faults.at = at;
    faulty_memory_at = 0;
}

/* Watches may be freed before the client or after it. */
static void finish(struct world *w, bool client_first)
{
    faults.kind = FAULT_NONE;
    if (client_first) {
        vigil_client_free(w->client);
        w->client = NULL;
        faults.loop = NULL;
    }
    for (size_t i = 0; i < watcher_count; i++)
        free_watcher(&watchers[i]);
    world_fini(w);
    assert_int_equal(live, 0);
    *context = '\0';
}

/* Returns what the run did, to be repeated with faults. */
static struct faults run_clean(const struct scenario *s)
{
    struct world w;
    begin(&w, s, FAULT_NONE, 0);
    assert_true(world_start(&w, s->members));
    s->run(&w);
    struct faults totals = faults;
    check_truth(&w);
    s->expect(&w);
    finish(&w, false);
    return totals;
}

static void scenarios_succeed_without_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        assert_true(run_clean(&scenarios[i]).bytes_read > 100);
}

static void run_with_fault(const struct scenario *s, enum fault_kind kind, size_t at)
{
    struct world w;
    begin(&w, s, kind, at);
    assert_true(world_start(&w, s->members));
    s->run(&w);
    if (kind != FAULT_GARBAGE) { /* then what the server seems to say may be wrong */
        check_truth(&w);
        s->expect(&w);
    }
    finish(&w, at % 2);
}

static void each_scenario(enum fault_kind kind)
{
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        struct faults totals = run_clean(&scenarios[i]);
        for (size_t at = 0; at < fault_places(kind, &totals); at++)
            run_with_fault(&scenarios[i], kind, at);
    }
}

static void connection_may_be_lost_after_every_received_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_LOST_READING);
}

static void connection_may_be_lost_after_every_sent_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_LOST_WRITING);
}

static void connection_may_fall_silent_after_every_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_SILENCE);
}

static void bytes_may_be_wrong_anywhere(void **state)
{
    (void)state;
    each_scenario(FAULT_GARBAGE);
}

static void every_system_call_may_fail(void **state)
{
    (void)state;
    each_scenario(FAULT_CALL);
}

/* False: there were fewer allocations. */
static bool run_without_memory(const struct scenario *s, size_t nth, bool all_following)
{
    struct world w;
    begin(&w, s, FAULT_NONE, nth);
    memory_fail_on = all_following;
    faulty_memory_at = nth;
    bool started = world_start(&w, s->members);
    if (started)
        s->run(&w);
    bool failed = faulty_memory_at == (all_following ? 1 : 0);
    faulty_memory_at = 0;
    if (started) {
        run_until_done(&w);
        check_truth(&w);
    }
    finish(&w, nth % 2);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        for (int all_following = 0; all_following < 2; all_following++) {
            size_t nth = 1;
            while (run_without_memory(&scenarios[i], nth, all_following))
                nth++;
            assert_true(nth > 20);
        }
}

/* -- Servers that answer in another way -- */

static const struct scenario none = {"other answers", 1, NULL, NULL};

static void missing_previous_value_is_an_error(void **state)
{
    (void)state;
    struct world w;
    begin(&w, &none, FAULT_NONE, 0);
    assert_true(world_start(&w, 1));
    put(&w, "w\"1", "a", 1);
    watch_from(&w, 2, true, 0);
    w.cluster.forgets_previous = true;
    put(&w, "w0", "a", 1); /* has none */
    put(&w, "w\"1", "b", 1);
    WORLD_RUN_UNTIL(&w, watchers[0].ended);
    assert_int_equal(watchers[0].count, 1);
    assert_int_equal(watchers[0].error.status, 500);
    assert_int_equal(watchers[0].error.error.code, VIGIL_ERROR_COMPACTED);
    assert_string_equal(watchers[0].error.error.text,
                        "Internal error occurred: etcd event received with PrevKv=nil "
                        "(key=\"w\\\"1\", modRevision=4, type=PUT)");
    assert_int_equal(vigil_object_watch_revision(watchers[0].watch), 3);
    finish(&w, false);
}

/* Old servers answer too early: the bookmark has the revision that was delivered. */
static void request_from_another_watch(const char *version, bool is_early)
{
    struct world w;
    begin(&w, &none, FAULT_NONE, 0);
    assert_true(world_start(&w, 1));
    w.cluster.version = version;
    put_state(&w);
    watch_from(&w, 2, false, 0);
    struct world_watch *other = world_watch_from(&w, 2);
    WORLD_RUN_UNTIL(&w, other->count && watchers[0].count);
    int64_t delivered = vigil_object_watch_revision(watchers[0].watch);
    put(&w, "elsewhere", "a", 1);
    vigil_watch_request_progress(other->watch);
    WORLD_RUN_UNTIL(&w, other->progress && watchers[0].bookmarks);
    assert_true(delivered < w.cluster.revision);
    assert_int_equal(vigil_object_watch_revision(watchers[0].watch),
                     is_early ? delivered : w.cluster.revision);
    put(&w, "elsewhere", "b", 1);
    etcd_progress(&w.cluster);
    WORLD_RUN_UNTIL(&w, watchers[0].bookmarks > 1);
    assert_int_equal(vigil_object_watch_revision(watchers[0].watch), w.cluster.revision);
    finish(&w, false);
}

static void requested_progress_is_a_bookmark_unless_it_is_early(void **state)
{
    (void)state;
    request_from_another_watch("3.4.30", true);
    request_from_another_watch("3.7.0", false);
}

static void answer_every_range(struct world *w, const struct pb_range_response *response,
                               struct buf *bytes)
{
    assert_int_equal(pb_append(&pb_range_response_table, response, bytes), ST_OK);
    w->cluster.range_bytes = buf_slice(bytes);
}

static void state_at_an_impossible_revision_is_an_error(void **state)
{
    (void)state;
    static const int64_t revisions[] = {0, -1, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(revisions); i++) {
        struct world w;
        AUTO(buf_fini) struct buf bytes = {0};
        struct pb_response_header header = {.revision = revisions[i], .member_id = 1};
        begin(&w, &none, FAULT_NONE, i);
        assert_true(world_start(&w, 1));
        answer_every_range(&w, &(struct pb_range_response){.header = &header}, &bytes);
        watch_from(&w, 0, false, 0);
        WORLD_RUN_UNTIL(&w, watchers[0].ended);
        assert_int_equal(watchers[0].error.status, 500);
        assert_int_equal(watchers[0].error.error.code, VIGIL_ERROR_PROTOCOL);
        finish(&w, false);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scenarios_succeed_without_faults),
        TEST(connection_may_be_lost_after_every_received_byte),
        TEST(connection_may_be_lost_after_every_sent_byte),
        TEST(connection_may_fall_silent_after_every_byte),
        TEST(bytes_may_be_wrong_anywhere),
        TEST(every_system_call_may_fail),
        TEST(every_allocation_may_fail),
        TEST(missing_previous_value_is_an_error),
        TEST(requested_progress_is_a_bookmark_unless_it_is_early),
        TEST(state_at_an_impossible_revision_is_an_error),
    };
    signal(SIGABRT, print_context);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
