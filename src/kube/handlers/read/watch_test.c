/* How watches end: at their deadline, or when their definition is removed. */
#include "kube/server/bed_test.h"

#include "base/clock.h"
#include "base/memory/budget.h"

static void pass(int64_t ns)
{
    clock_sim_advance(&bed->clock, ns);
    fake_set_now(bed->engine, bed->clock.mono_ns);
    engine_shard_turn_begin(bed->shard);
    engine_shard_turn_end(bed->shard);
    run();
}

static void pull(struct peer *peer)
{
    uint8_t bytes[64];
    engine_shard_turn_begin(bed->shard);
    while (http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    engine_shard_turn_end(bed->shard);
}

static void deletions_with_the_definition_are_sent_before_the_end(void **state)
{
    (void)state;
    begin(1, 100);
    make_hats();
    ask("POST", HATS,
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":\"kept\","
        "\"finalizers\":[\"example.com/a\"]}}",
        201);
    ask("DELETE", CRDS "/hats.example.com", "", 200);
    struct peer *watch = send_json("GET", HATS "?watch=1", "");
    run();
    pull(watch);
    assert_answer(watch, 200, "\"type\":\"ADDED\"");
    struct peer *freed = send_patch(HATS "/kept", "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_answer(freed, 200, NULL);
    for (int i = 0; i < 4; i++)
        pass(10 * NS_PER_S); /* the client reads nothing for less than a minute */
    ask("GET", HATS, "", 404);
    assert_false(said(watch, "\"type\":\"DELETED\""));
    pull(watch);
    assert_answer(watch, 200, "\"type\":\"DELETED\"");
    assert_false(http_exchange_flows(&watch->x));
    end();
}

static unsigned bookmarks(const struct peer *peer)
{
    static const char mark[] = "\"type\":\"BOOKMARK\"";
    size_t mark_len = sizeof(mark) - 1, at = 0;
    unsigned n = 0;
    for (; peer->answer.len - at >= mark_len; at++)
        n += memcmp(peer->answer.ptr + at, mark, mark_len) == 0;
    return n;
}

static struct peer *watch_for(unsigned seconds, const char *more)
{
    char path[128];
    snprintf(path, sizeof(path), CMS "?watch=1&resourceVersion=1&timeoutSeconds=%u%s", seconds,
             more);
    struct peer *watch = send_json("GET", path, "");
    run();
    pull(watch);
    return watch;
}

/* The bookmarks of a watch, second by second, until it ends. */
static unsigned count_until_end(struct peer *watch, unsigned seconds, unsigned *ret_last_s)
{
    unsigned before = bookmarks(watch);
    for (unsigned s = 1; s <= seconds; s++) {
        pass(NS_PER_S);
        pull(watch);
        if (bookmarks(watch) != before)
            *ret_last_s = s;
        before = bookmarks(watch);
    }
    return before;
}

/* There is no HTTP connection here, so the test calls the deadline. */
static void reach_deadline(struct peer *watch)
{
    assert_non_null(watch->x.on_deadline);
    assert_true(watch->x.deadline_ns <= bed->clock.mono_ns);
    watch->x.on_deadline(&watch->x);
    pull(watch);
    assert_false(http_exchange_flows(&watch->x));
}

static void the_last_bookmark_comes_two_seconds_before_the_deadline(void **state)
{
    unsigned last_s = 0;
    (void)state;
    begin(1, 100);
    struct peer *watch = watch_for(10, "&allowWatchBookmarks=1");
    assert_int_equal(count_until_end(watch, 10, &last_s), 1);
    assert_int_equal(last_s, 8);
    reach_deadline(watch);
    assert_int_equal(bookmarks(watch), 1); /* and none with the end */
    end();
}

static void bookmarks_come_every_minute_before_the_last_one(void **state)
{
    unsigned last_s = 0;
    (void)state;
    begin(1, 100);
    struct peer *watch = watch_for(150, "&allowWatchBookmarks=1");
    assert_int_equal(count_until_end(watch, 150, &last_s), 3);
    assert_int_equal(last_s, 148);
    end();
}

static void no_bookmark_is_sent_without_time_or_request_for_it(void **state)
{
    unsigned last_s = 0;
    (void)state;
    begin(1, 100);
    struct peer *brief = watch_for(2, "&allowWatchBookmarks=1");
    assert_int_equal(count_until_end(brief, 2, &last_s), 0);
    reach_deadline(brief);
    assert_int_equal(bookmarks(brief), 0);
    struct peer *plain = watch_for(10, "");
    assert_int_equal(count_until_end(plain, 10, &last_s), 0);
    end();
}

/* A watch whose client has read the first bytes of an event. */
static struct peer *half_taken(size_t budget_bytes, struct budget **ret_budget)
{
    uint8_t bytes[64];
    static char body[40000];
    int n = snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\"");
    memset(body + n, 'x', sizeof(body) - (size_t)n - 10);
    memcpy(body + sizeof(body) - 10, "\"}}", 4);
    assert_int_equal(budget_new(budget_bytes, ret_budget), ST_OK);
    assert_int_equal(account_new(*ret_budget, &bed->account), ST_OK);
    struct peer *watch = watch_for(1000, "");
    bed->account = NULL;
    ask("POST", CMS, body, 201);
    pass(NS_PER_MS);
    engine_shard_turn_begin(bed->shard);
    assert_true(http_exchange_flows(&watch->x));
    (void)http_exchange_fill(&watch->x, bytes, sizeof(bytes));
    engine_shard_turn_end(bed->shard);
    return watch;
}

static void rest_of_an_event_is_charged(void **state)
{
    struct budget *budget;
    (void)state;
    begin(1, 100);
    struct peer *watch = half_taken(1 << 20, &budget);
    struct account *account = watch->x.account;
    assert_true(account_held_bytes(account) >= 30000);
    pull(watch);
    assert_true(said(watch, "x\"}}}\n"));            /* it is complete */
    assert_true(account_held_bytes(account) < 4096); /* fields of the answer */
    end();
    assert_int_equal(account_held_bytes(account), 0);
    account_unref(account);
    budget_free(budget);
}

static void rest_without_memory_cuts_the_watch_off(void **state)
{
    struct budget *budget;
    (void)state;
    begin(1, 100);
    struct peer *watch = half_taken(20000, &budget);
    struct account *account = watch->x.account;
    assert_true(http_exchange_complete(&watch->x));
    end();
    assert_int_equal(account_held_bytes(account), 0);
    account_unref(account);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deletions_with_the_definition_are_sent_before_the_end),
        cmocka_unit_test(the_last_bookmark_comes_two_seconds_before_the_deadline),
        cmocka_unit_test(bookmarks_come_every_minute_before_the_last_one),
        cmocka_unit_test(no_bookmark_is_sent_without_time_or_request_for_it),
        cmocka_unit_test(rest_of_an_event_is_charged),
        cmocka_unit_test(rest_without_memory_cuts_the_watch_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
