/* A watch with `resume`: client-go's RetryWatcher. */
#include "kubeclient/watch/watch_fixture_test.h"

enum { ITEMS_MAX = 8 };

/* A server that has a history. */
struct history {
    /* Versions of events, or whole events, which are sent with what follows the version before. */
    const char *items[ITEMS_MAX];
    size_t close_after;             /* this many events of a watch; 0: it stays open */
    const struct watch_step *first; /* how the first requests are answered */
    size_t first_count;
};

static struct history history;

static const char *item_text(const char *item)
{
    static char text[200];
    if (item[0] == '{')
        return item;
    snprintf(text, sizeof(text), EVENT("ADDED", "o%s", "%s"), item, item);
    return text;
}

static long version_of(const char *target)
{
    const char *at = strstr(target, "resourceVersion=");
    assert_non_null(at);
    return strtol(at + strlen("resourceVersion="), NULL, 10);
}

static bool is_after(const char *item, long version)
{
    return item[0] != '{' && strtol(item, NULL, 10) > version;
}

static void answer_history(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    size_t from = 0, sent = 0;
    if (reply->number < history.first_count) {
        watch_test_answer(reply, request, ctx);
        return;
    }
    while (from < ITEMS_MAX && history.items[from] &&
           !is_after(history.items[from], version_of(request->target)))
        from++;
    sim_reply_begin(reply, 200, "application/json;stream=watch");
    for (size_t i = from; i < ITEMS_MAX && history.items[i]; i++) {
        sim_reply_text(reply, item_text(history.items[i]));
        if (++sent == history.close_after) {
            sim_reply_end(reply);
            return;
        }
    }
}

static void init(struct watch_test *t, const struct history *h)
{
    history = *h;
    watch_test_prepare(t, SIM_HTTP2, h->first, 1);
    t->w.server.routes[0].answer = answer_history;
    assert_true(kube_world_start(&t->w));
    t->options.resume = 1;
}

#define INTERNAL STATUS_EVENT("500", "InternalError", "")
#define GONE STATUS_EVENT("410", "Expired", "")

static const struct watch_step not_found = {.code = 404}, empty = {.text = ""},
                               forbidden = {.code = 403}, unauthorized = {.code = 401};
static const struct {
    const char *name, *version;
    struct history history;
    unsigned requests;
    const char *log;
} client_go_rows[] = {
    {"recovers if watchClient returns error",
     "1",
     {.first = &not_found, .first_count = 1, .items = {"2"}},
     2,
     "ADDED o2 2\n"},
    {"recovers if watchClient returns nil watcher",
     "1",
     {.first = &empty, .first_count = 1, .items = {"2"}},
     2,
     "ADDED o2 2\n"},
    {"works with empty initialRV", "1", {.items = {"2"}}, 1, "ADDED o2 2\n"},
    {"works with initialRV set, skipping the preceding items but reading those directly "
     "following",
     "1",
     {.items = {"1", "2"}},
     1,
     "ADDED o2 2\n"},
    {"works with initialRV set, skipping the preceding items with none following",
     "3",
     {.items = {"2"}},
     1,
     ""},
    {"fails on Gone (RV too old error)",
     "5",
     {.items = {"5", "6", GONE, "7", "8"}},
     1,
     "ADDED o6 6\nERROR 410 Expired\nENDED error\n"},
    {"fails on Forbidden", "5", {.first = &forbidden, .first_count = 1}, 1, "ENDED refused 403\n"},
    {"fails on Unauthorized",
     "5",
     {.first = &unauthorized, .first_count = 1},
     1,
     "ENDED refused 401\n"},
    {"recovers from timeout error",
     "5",
     {.items = {"6", STATUS_EVENT("504", "Timeout", ""), "7"}},
     2,
     "ADDED o6 6\nADDED o7 7\n"},
    {"recovers from internal server error",
     "5",
     {.items = {"6", INTERNAL, "7"}},
     2,
     "ADDED o6 6\nADDED o7 7\n"},
    {"recovers from unexpected error code",
     "5",
     {.items = {"6", STATUS_EVENT("666", "", ""), "7"}},
     2,
     "ADDED o6 6\nADDED o7 7\n"},
    {"recovers from unexpected error type",
     "5",
     {.items = {"6", "{\"type\":\"ERROR\",\"object\":{}}", "7"}},
     2,
     "ADDED o6 6\nADDED o7 7\n"},
    {"survives 1 closed watch and reads 1 item",
     "5",
     {.items = {"6"}, .close_after = 1},
     2,
     "ADDED o6 6\n"},
    {"survives 2 closed watches and reads 2 items",
     "4",
     {.items = {"5", "6"}, .close_after = 1},
     3,
     "ADDED o5 5\nADDED o6 6\n"},
    {"survives 2 closed watches and reads 2 items for nonconsecutive RVs",
     "4",
     {.items = {"5", "7"}, .close_after = 1},
     3,
     "ADDED o5 5\nADDED o7 7\n"},
    {"survives 2 closed watches and reads 2 items for nonconsecutive RVs starting at much "
     "lower RV",
     "2",
     {.items = {"5", "7"}, .close_after = 1},
     3,
     "ADDED o5 5\nADDED o7 7\n"},
    {"survives 4 closed watches and reads 4 items for nonconsecutive, spread RVs",
     "2",
     {.items = {"5", "6", "7", "11"}, .close_after = 1},
     5,
     "ADDED o5 5\nADDED o6 6\nADDED o7 7\nADDED o11 11\n"},
    {"survives 4 closed watches and reads 4 items for nonconsecutive, spread RVs and skips "
     "those with lower or equal RV",
     "2",
     {.items = {"1", "2", "5", "6", "7", "11"}, .close_after = 1},
     5,
     "ADDED o5 5\nADDED o6 6\nADDED o7 7\nADDED o11 11\n"},
    {"survives 2 closed watches and reads 2+2+1 items skipping those with equal RV",
     "1",
     {.items = {"1", "2", "5", "6", "7", "11"}, .close_after = 2},
     3,
     "ADDED o2 2\nADDED o5 5\nADDED o6 6\nADDED o7 7\nADDED o11 11\n"},
};

/* TestRetryWatcher */
static void cases_of_client_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(client_go_rows); i++) {
        struct watch_test t;
        init(&t, &client_go_rows[i].history);
        watch_test_watch(&t, client_go_rows[i].version);
        watch_test_expect(&t, client_go_rows[i].log);
        if (watch_test_stats(&t).requests != client_go_rows[i].requests)
            fail_msg("%s", client_go_rows[i].name);
        watch_test_fini(&t);
    }
}

/* TestNewRetryWatcher */
static void a_version_is_needed(void **state)
{
    (void)state;
    static const char *const versions[] = {NULL, "", "0"};
    struct watch_test t;
    init(&t, &(struct history){.items = {"1"}});
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        watch_test_watch(&t, versions[i]);
        assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    }
    t.options.initial_events = 1;
    watch_test_watch(&t, "5");
    assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    watch_test_fini(&t);
}

/* TestRetryWatcherToFinishWithUnreadEvents */
static void a_paused_watch_can_be_freed(void **state)
{
    (void)state;
    struct watch_test t;
    init(&t, &(struct history){.items = {"2", "3"}});
    t.pause_every = 1;
    watch_test_watch(&t, "1");
    watch_test_expect(&t, "ADDED o2 2\n");
    vigil_kube_watch_free(t.watch);
    t.watch = NULL;
    watch_test_expect(&t, "ADDED o2 2\n");
    assert_true(list_empty(&t.w.server.replies));
    watch_test_fini(&t);
}

static void a_watch_begins_at_most_once_per_second(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {
        {.text = ""}, {.code = 500}, {.text = INTERNAL}, {.text = "?"}, {.text = BOOKMARK("7")}};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct watch_test t;
        init(&t, &(struct history){.first = &steps[i], .first_count = 1000});
        watch_test_watch(&t, "5");
        faults.turns = 0;
        kube_world_run(&t.w, 50 * NS_PER_S);
        assert_in_range(t.w.server.request_count, 49, 51);
        for (size_t k = 1; k < t.w.server.request_count; k++)
            assert_in_range(t.w.server.requests[k].at_ns - t.w.server.requests[k - 1].at_ns,
                            NS_PER_S - NS_PER_MS, NS_PER_S + NS_PER_S / 10);
        assert_true(faults.turns < 2000);
        watch_test_fini(&t);
    }
}

/* The number of requests is limited by the recorder of the server. */
static void watches_that_are_ended_early_do_not_spin(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = ""};
    struct watch_test t;
    init(&t, &(struct history){.first = &step, .first_count = SIZE_MAX});
    watch_test_watch(&t, "5");
    for (int i = 0; i < 30; i++) {
        faults.turns = 0;
        kube_world_run(&t.w, 100 * NS_PER_S);
        assert_in_range(t.w.server.request_count, 99, 101);
        assert_true(faults.turns < 4000);
        t.w.server.request_count = 0;
    }
    assert_in_range(watch_test_stats(&t).requests, 2990, 3010);
    watch_test_fini(&t);
}

static void a_long_watch_is_continued_at_once(void **state)
{
    (void)state;
    static const struct watch_step first = {
        .text = EVENT("ADDED", "a", "6"), .stays = true, .ends_ns = 10 * NS_PER_S};
    struct watch_test t;
    init(&t, &(struct history){.first = &first, .first_count = 1, .items = {"7"}});
    watch_test_watch(&t, "5");
    kube_world_run(&t.w, 10 * NS_PER_S + NS_PER_S / 4);
    assert_string_equal(t.log, "ADDED a 6\nADDED o7 7\n");
    assert_int_equal(watch_test_stats(&t).ends_complete, 1);
    watch_test_fini(&t);
}

static void the_server_may_ask_for_more_time(void **state)
{
    (void)state;
    static const struct watch_step first = {
        .text = STATUS_EVENT("429", "TooManyRequests", "\"retryAfterSeconds\":20")};
    struct watch_test t;
    init(&t, &(struct history){.first = &first, .first_count = 1, .items = {"7"}});
    watch_test_watch(&t, "5");
    watch_test_expect(&t, "ADDED o7 7\n");
    assert_in_range(t.w.server.requests[1].at_ns - t.w.server.requests[0].at_ns, 20 * NS_PER_S,
                    21 * NS_PER_S);
    watch_test_fini(&t);
}

static void bookmarks_move_the_version(void **state)
{
    (void)state;
    static const struct watch_step first = {.text = BOOKMARK("90")};
    for (uint8_t wanted = 0; wanted < 2; wanted++) {
        struct watch_test t;
        init(&t, &(struct history){.first = &first, .first_count = 1, .items = {"6", "91"}});
        t.options.bookmarks = wanted;
        watch_test_watch(&t, "5");
        watch_test_expect(&t, wanted ? "BOOKMARK 90\nADDED o91 91\n" : "ADDED o91 91\n");
        assert_string_equal(kube_server_last(&t.w.server)->target,
                            "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=90&watch=true");
        assert_int_equal(watch_test_stats(&t).bookmarks, 1);
        watch_test_fini(&t);
    }
}

static void an_event_without_a_version_ends_it(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {
        {.text = EVENT("ADDED", "a", "6") EVENT("ADDED", "a", "")},
        {.text = EVENT("ADDED", "a", "6") BOOKMARK("")},
        {.text = EVENT("ADDED", "a", "6") "{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
                                          "\"name\":\"a\"}}}"},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct watch_test t;
        init(&t, &(struct history){.first = &steps[i], .first_count = 1});
        watch_test_watch(&t, "5");
        watch_test_expect(&t, "ADDED a 6\nERROR 500 InternalError\nENDED error\n");
        watch_test_fini(&t);
    }
}

/* client-go repeats such a request for ever. */
static void a_request_that_is_too_old_ends_it(void **state)
{
    (void)state;
    static const struct watch_step gone = {.code = 410};
    struct watch_test t;
    init(&t, &(struct history){.first = &gone, .first_count = 1});
    watch_test_watch(&t, "5");
    watch_test_expect(&t, "ENDED refused 410\n");
    watch_test_fini(&t);
}

static void it_continues_when_the_server_is_back(void **state)
{
    (void)state;
    struct watch_test t;
    init(&t, &(struct history){.items = {"6", "7"}, .close_after = 1});
    watch_test_watch(&t, "5");
    kube_world_run(&t.w, NS_PER_S / 2);
    assert_string_equal(t.log, "ADDED o6 6\n");
    kube_server_stop(&t.w.server);
    kube_world_run(&t.w, 60 * NS_PER_S);
    assert_string_equal(t.log, "ADDED o6 6\n");
    kube_server_start(&t.w.server);
    watch_test_expect(&t, "ADDED o6 6\nADDED o7 7\n");
    watch_test_fini(&t);
}

/* -- Many watches and a server that is down -- */

enum { WATCHES = 20 };

static int count_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    (void)watch, (void)event;
    ++*(size_t *)user;
    return VIGIL_KUBE_CONTINUE;
}

static void many_watches_do_not_hammer_a_server_that_is_down(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        vigil_kube_watch *watches[WATCHES];
        size_t events = 0;
        struct watch_test t;
        history = (struct history){.items = {"6"}};
        watch_test_prepare(&t, protocol, NULL, 0);
        t.w.server.routes[0].answer = answer_history;
        assert_true(kube_world_start(&t.w));
        t.options.resume = 1;
        t.options.version = "5";
        for (size_t i = 0; i < WATCHES; i++)
            assert_int_equal(
                vigil_kube_watch_new(t.w.kube, &t.options, count_event, &events, &watches[i]),
                VIGIL_OK);
        kube_world_run(&t.w, 5 * NS_PER_S);
        assert_int_equal(events, WATCHES);
        kube_server_stop(&t.w.server);
        size_t connects = faults.connects;
        kube_world_run(&t.w, 100 * NS_PER_S);
        /* Each of them alone would try every second. */
        assert_in_range(faults.connects - connects, 5, 80);
        history.items[1] = "7";
        kube_server_start(&t.w.server);
        kube_world_run(&t.w, 40 * NS_PER_S);
        assert_int_equal(events, 2 * WATCHES);
        for (size_t i = 0; i < WATCHES; i++)
            vigil_kube_watch_free(watches[i]);
        watch_test_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_client_go),
        cmocka_unit_test(a_version_is_needed),
        cmocka_unit_test(a_paused_watch_can_be_freed),
        cmocka_unit_test(a_watch_begins_at_most_once_per_second),
        cmocka_unit_test(watches_that_are_ended_early_do_not_spin),
        cmocka_unit_test(a_long_watch_is_continued_at_once),
        cmocka_unit_test(the_server_may_ask_for_more_time),
        cmocka_unit_test(bookmarks_move_the_version),
        cmocka_unit_test(an_event_without_a_version_ends_it),
        cmocka_unit_test(a_request_that_is_too_old_ends_it),
        cmocka_unit_test(it_continues_when_the_server_is_back),
        cmocka_unit_test(many_watches_do_not_hammer_a_server_that_is_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
