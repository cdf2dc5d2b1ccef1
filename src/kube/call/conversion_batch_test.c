/* Batches of objects that a webhook converts: what the webhook gets, what an answer becomes,
 * limits, the end at any time, and memory that fails. */
#include "kube/call/conversion_fixture_test.h"

#include "io/worker.h"
#include "kube/webhook/answer.h"

struct ask {
    struct kube_conversion_batch *batch;
    struct arena arena; /* the objects */
    unsigned ends;
    int64_t started_ns, ended_ns;
    struct kube_status status; /* valid as long as the batch */
    struct conversion_world *world;
    struct deferred start;
    struct slice json; /* in the arena */
};

/* -- Asking -- */

static void on_done(struct kube_conversion_batch *batch)
{
    struct ask *ask = kube_conversion_batch_owner(batch);
    assert_int_equal(ask->ends++, 0);
    ask->ended_ns = conversion_now(ask->world);
    ask->status = *kube_conversion_batch_status(batch);
}

static void ask_init(struct ask *ask, struct conversion_world *w, struct account *account)
{
    *ask = (struct ask){.world = w};
    arena_init(&ask->arena, NULL, 0, SIZE_MAX);
    ask->batch = kube_conversion_batch_new(&w->api, w->v2, account, 0);
}

static void ask_free(struct ask *ask)
{
    kube_conversion_batch_free(ask->batch);
    arena_fini(&ask->arena);
}

static void ask_add(struct ask *ask, const char *version, const char *name, int64_t revision)
{
    struct kube_kv kv = {.key = slice_from_text(name),
                         .value = conversion_object(&ask->arena, version, name, ""),
                         .mod_revision = revision};
    assert_int_equal(kube_conversion_batch_add(ask->batch, kv), ST_OK);
}

/* In a turn of the loop, whose time is right. */
static void on_start(struct deferred *deferred)
{
    struct ask *ask = CONTAINER_OF(deferred, struct ask, start);
    ask->started_ns = conversion_now(ask->world);
    kube_conversion_batch_start(ask->batch, on_done, ask);
    assert_int_equal(ask->ends, 0);
}

static void ask_start(struct ask *ask)
{
    ask->start.fn = on_start;
    loop_defer(ask->world->api.loop, &ask->start);
}

static void ask_run(struct ask *ask)
{
    ask_start(ask);
    for (int i = 0; i < 400 && !ask->ends; i++)
        hook_run(&ask->world->hooks, 100 * NS_PER_MS);
    assert_int_equal(ask->ends, 1);
}

static void expect_object(const struct ask *ask, size_t i, const char *version, const char *name,
                          int64_t revision)
{
    int64_t added;
    struct kube_kv kv = kube_conversion_batch_get(ask->batch, i, &added);
    conversion_expect(kv.value, version, name);
    assert_true(slice_is(kv.key, name));
    assert_int_equal(added, revision);
}

static void expect_text(const struct ask *ask, const char *text)
{
    struct slice said = ask->status.long_message.len ? ask->status.long_message
                                                     : slice_from_text(ask->status.message);
    assert_int_not_equal(ask->status.reason, KUBE_OK);
    if (!memmem(said.ptr, said.len, text, strlen(text)))
        fail_msg("%.*s", SLICE_ARGS(said));
}

/* Asks for `count` objects of v1. */
static void ask_many(struct ask *ask, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "g%zu", i);
        ask_add(ask, "v1", name, 9);
    }
    ask_run(ask);
}

/* -- Answers -- */

static void objects_of_other_versions_are_converted_in_one_call(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    ask_init(&ask, &w, NULL);
    assert_false(kube_conversion_batch_awaits(ask.batch));
    ask_add(&ask, "v2", "a", 8);
    assert_false(kube_conversion_batch_awaits(ask.batch));
    ask_add(&ask, "v1", "b", 9);
    ask_add(&ask, "v2", "c", 10);
    ask_add(&ask, "v3", "d", 0);
    assert_true(kube_conversion_batch_awaits(ask.batch));
    assert_int_equal(kube_conversion_batch_count(ask.batch), 4);
    ask_run(&ask);
    assert_int_equal(ask.status.reason, KUBE_OK);
    assert_int_equal(kube_conversion_batch_failure(ask.batch), CONVERSION_FINE);
    expect_object(&ask, 0, "v2", "a", 8);
    expect_object(&ask, 1, "v2", "b", 9);
    expect_object(&ask, 2, "v2", "c", 10);
    expect_object(&ask, 3, "v2", "d", 0);
    assert_int_equal(w.hooks.site.requests, 1);
    assert_int_equal(w.converter.counts[0], 2);
    assert_non_null(strstr(w.hooks.site.seen, "POST /hook/convert?timeout=30s 1 host=server.test"));
    assert_non_null(strstr(w.converter.question, "\"desiredAPIVersion\":\"example.com/v2\""));
    ask_free(&ask);
    conversion_world_fini(&w);
}

static void objects_of_the_wanted_version_are_not_sent(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    for (int i = 0; i < 2; i++) {
        ask_init(&ask, &w, NULL);
        if (i)
            ask_add(&ask, "v2", "a", 9);
        ask_run(&ask);
        assert_int_equal(ask.status.reason, KUBE_OK);
        ask_free(&ask);
    }
    assert_int_equal(w.hooks.site.requests, 0);
    conversion_world_fini(&w);
}

/* It is pruned and defaulted as for a client. */
static void object_that_is_older_than_its_definition_is_sent_as_it_is_served(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    for (int64_t revision = 6; revision <= 7; revision++) {
        ask_init(&ask, &w, NULL);
        struct kube_kv kv = {.value = conversion_object(&ask.arena, "v1", "a", ",'unknown':1"),
                             .mod_revision = revision};
        assert_int_equal(kube_conversion_batch_add(ask.batch, kv), ST_OK);
        ask_run(&ask);
        assert_int_equal(ask.status.reason, KUBE_OK);
        bool is_old = revision == 6;
        assert_int_equal(strstr(w.converter.question, "unknown") == NULL, is_old);
        assert_int_equal(strstr(w.converter.question, "\"note\":\"none\"") != NULL, is_old);
        ask_free(&ask);
    }
    conversion_world_fini(&w);
}

static void wrong_answers_fail_the_batch(void **state)
{
    (void)state;
    static const struct {
        enum converter_way way;
        enum conversion_failure failure;
        const char *text;
    } rows[] = {
        {CONVERTER_SAYS_OTHER_UID, CONVERSION_MALFORMED,
         "conversion webhook for example.com/v1, Kind=Gate failed: expected response.uid="},
        {CONVERTER_LEAVES_OUT, CONVERSION_PARTIAL, "returned 2 objects, expected 3"},
        {CONVERTER_ADDS, CONVERSION_PARTIAL, "returned 4 objects, expected 3"},
        {CONVERTER_RENAMES_BAD, CONVERSION_INVALID_OBJECT,
         "conversion webhook for example.com/v1, Kind=Gate returned invalid object: must have the "
         "same name: bad != other"},
        {CONVERTER_REFUSES, CONVERSION_MALFORMED,
         "conversion webhook for example.com/v1, Kind=Gate failed: no"},
        {CONVERTER_SAYS_NONSENSE, CONVERSION_MALFORMED, "failed: couldn't get version/kind"},
    };
    struct conversion_world w;
    conversion_world_init(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ask ask;
        w.converter.way = rows[i].way;
        ask_init(&ask, &w, NULL);
        ask_add(&ask, "v1", "a", 9);
        ask_add(&ask, "v1", "bad", 9);
        ask_add(&ask, "v1", "c", 9);
        ask_run(&ask);
        expect_text(&ask, rows[i].text);
        assert_int_equal(kube_conversion_batch_failure(ask.batch), rows[i].failure);
        ask_free(&ask);
    }
    assert_int_equal(w.hooks.site.requests, COUNT_OF(rows));
    conversion_world_fini(&w);
}

static void converter_that_cannot_be_called_is_named(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    w.hooks.site.code = 500;
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 3);
    expect_text(&ask, "conversion webhook for example.com/v1, Kind=Gate failed: an error on the "
                      "server");
    assert_int_equal(kube_conversion_batch_failure(ask.batch), CONVERSION_CALL_FAILED);
    ask_free(&ask);
    w.hooks.site.code = 200;
    /* The configuration of the definition cannot be used. */
    w.definition->webhook.review_version = NULL;
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 1);
    expect_text(&ask, "no supported conversion review versions");
    ask_free(&ask);
    w.definition->webhook.review_version = "v1";
    w.definition->webhook.target = NULL;
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 1);
    expect_text(&ask, "the configuration of the webhook is not valid");
    ask_free(&ask);
    assert_int_equal(w.hooks.site.requests, 1);
    conversion_world_fini(&w);
}

static void what_is_not_an_object_of_the_definition_is_refused(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    ask_init(&ask, &w, NULL);
    struct kube_kv kv = {.value = SLICE_LITERAL("[]")};
    assert_int_equal(kube_conversion_batch_add(ask.batch, kv), ST_MALFORMED);
    assert_int_equal(kube_conversion_batch_count(ask.batch), 0);
    ask_add(&ask, "v1", "a", 9);
    ask_add(&ask, "v9", "b", 9);
    ask_run(&ask);
    expect_text(&ask, "request to convert CR from an invalid group/version: example.com/v9");
    assert_int_equal(w.hooks.site.requests, 0);
    ask_free(&ask);
    conversion_world_fini(&w);
}

/* -- Limits -- */

static void batch_is_full_by_count_and_by_bytes(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    ask_init(&ask, &w, NULL);
    for (int i = 0; i < KUBE_CONVERSION_OBJECTS_MAX; i++) {
        assert_false(kube_conversion_batch_is_full(ask.batch));
        ask_add(&ask, "v1", "a", 9);
    }
    assert_true(kube_conversion_batch_is_full(ask.batch));
    ask_run(&ask);
    assert_int_equal(ask.status.reason, KUBE_OK);
    assert_int_equal(w.hooks.site.requests, 1);
    ask_free(&ask);
    ask_init(&ask, &w, NULL);
    size_t bytes = 0;
    char *more = conversion_long(100 * 1024);
    while (!kube_conversion_batch_is_full(ask.batch)) {
        assert_true(bytes < KUBE_CONVERSION_BYTES_MAX);
        struct kube_kv kv = {.value = conversion_object(&ask.arena, "v1", "a", more)};
        assert_int_equal(kube_conversion_batch_add(ask.batch, kv), ST_OK);
        bytes += kv.value.len;
        assert_int_equal(kube_conversion_batch_bytes(ask.batch), bytes);
    }
    assert_true(bytes >= KUBE_CONVERSION_BYTES_MAX);
    free(more);
    ask_free(&ask); /* it was not started */
    conversion_world_fini(&w);
}

static void answer_that_is_too_long_comes_in_halves(void **state)
{
    (void)state;
    static const size_t counts[] = {8, 4, 4};
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    w.converter.grows = KUBE_WEBHOOK_ANSWER_BYTES_MAX / 6;
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 8);
    assert_int_equal(ask.status.reason, KUBE_OK);
    assert_int_equal(w.hooks.site.requests, COUNT_OF(counts));
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        assert_int_equal(w.converter.counts[i], counts[i]);
    for (size_t i = 0; i < 8; i++) {
        int64_t revision;
        struct slice made = kube_conversion_batch_get(ask.batch, i, &revision).value;
        char name[32];
        snprintf(name, sizeof(name), "\"name\":\"g%zu\"", i);
        assert_non_null(memmem(made.ptr, made.len, name, strlen(name)));
        assert_true(made.len > w.converter.grows);
    }
    ask_free(&ask);
    /* There is nothing to halve. */
    w.converter.grows = KUBE_WEBHOOK_ANSWER_BYTES_MAX;
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 1);
    expect_text(&ask, "the answer is longer than 8388608 bytes");
    assert_int_equal(kube_conversion_batch_failure(ask.batch), CONVERSION_CALL_FAILED);
    ask_free(&ask);
    conversion_world_fini(&w);
}

static void answer_that_takes_too_much_memory_comes_in_halves(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    w.converter.way = CONVERTER_SAYS_MANY; /* unless it gets one */
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 4);
    assert_int_equal(ask.status.reason, KUBE_OK);
    assert_int_equal(w.hooks.site.requests, 6); /* 4, 2, 1, 1, 1, 1 */
    for (size_t i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "g%zu", i);
        expect_object(&ask, i, "v2", name, 9);
    }
    ask_free(&ask);
    AUTO(buf_fini) struct buf many = {0};
    converter_say_many(&many);
    w.hooks.site.answer = NULL;
    w.hooks.site.body = buf_slice(&many);
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 2);
    expect_text(&ask, "failed: the answer takes too much memory");
    assert_int_equal(kube_conversion_batch_failure(ask.batch), CONVERSION_MALFORMED);
    assert_int_equal(w.hooks.site.requests, 8); /* 2, 1 */
    ask_free(&ask);
    conversion_world_fini(&w);
}

static void converter_that_hangs_fails_the_batch_in_time(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    for (int begins = 0; begins < 2; begins++) {
        w.hooks.site.holds = true;
        w.hooks.site.begins = begins;
        ask_init(&ask, &w, NULL);
        ask_many(&ask, 2);
        expect_text(&ask, "context deadline exceeded");
        assert_int_equal(kube_conversion_batch_failure(ask.batch), CONVERSION_CALL_FAILED);
        assert_true(ask.ended_ns - ask.started_ns >= KUBE_CONVERSION_NS);
        assert_true(ask.ended_ns - ask.started_ns < KUBE_CONVERSION_NS + NS_PER_S);
        ask_free(&ask);
    }
    conversion_world_fini(&w);
}

/* The answer to another question is also that to the one before, which has waited. */
static void answer_held(struct hook_site *site, struct slice question, struct buf *to)
{
    AUTO(buf_fini) struct buf many = {0};
    converter_say_many(&many);
    http_respond(site->held, 200, SLICE_LITERAL("application/json"), buf_slice(&many));
    site->holds = true;
    converter_answer(site, question, to);
}

/* Not each of them. */
static void all_calls_together_are_limited_in_time(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask, other;
    conversion_world_init(&w);
    w.hooks.site.holds = true;
    ask_init(&ask, &w, NULL);
    ask_add(&ask, "v1", "a", 9);
    ask_add(&ask, "v1", "b", 9);
    ask_start(&ask);
    hook_run(&w.hooks, 20 * NS_PER_S);
    assert_non_null(w.hooks.site.held);
    w.hooks.site.answer = answer_held;
    w.hooks.site.holds = false;
    ask_init(&other, &w, NULL);
    ask_many(&other, 1);
    ask_free(&other);
    hook_run(&w.hooks, 2 * NS_PER_S);
    assert_int_equal(w.hooks.site.requests, 3);
    assert_non_null(strstr(w.hooks.site.seen, "timeout=10s"));
    hook_run(&w.hooks, 7 * NS_PER_S);
    assert_int_equal(ask.ends, 0);
    hook_run(&w.hooks, 2 * NS_PER_S);
    assert_int_equal(ask.ends, 1);
    expect_text(&ask, "context deadline exceeded");
    ask_free(&ask);
    conversion_world_fini(&w);
}

static void batches_that_wait_are_limited_and_free_their_places(void **state)
{
    (void)state;
    enum { MORE = 3, ALL = KUBE_WEBHOOK_CALLS_PER_TARGET_MAX + MORE };
    struct conversion_world w;
    struct ask *asks = calloc(ALL, sizeof(*asks)), one;
    conversion_world_init(&w);
    w.hooks.site.holds = true;
    for (int i = 0; i < ALL; i++) {
        ask_init(&asks[i], &w, NULL);
        ask_add(&asks[i], "v1", "a", 9);
        ask_start(&asks[i]);
    }
    hook_run(&w.hooks, NS_PER_S);
    for (int i = 0; i < ALL; i++)
        assert_int_equal(asks[i].ends, i >= KUBE_WEBHOOK_CALLS_PER_TARGET_MAX);
    for (int i = KUBE_WEBHOOK_CALLS_PER_TARGET_MAX; i < ALL; i++) {
        assert_int_equal(asks[i].status.reason, KUBE_TOO_MANY_REQUESTS);
        assert_int_equal(asks[i].status.retry_after_s, 1);
        expect_text(&asks[i], "too many requests wait for the conversion webhook of "
                              "gates.example.com");
    }
    /* What is freed makes room at once. */
    for (int i = 0; i < ALL; i++)
        ask_free(&asks[i]);
    assert_int_equal(w.hooks.under_way, 0);
    w.hooks.site.holds = false;
    ask_init(&one, &w, NULL);
    ask_many(&one, 1);
    assert_int_equal(one.status.reason, KUBE_OK);
    ask_free(&one);
    free(asks);
    conversion_world_fini(&w);
}

/* -- Accounts -- */

/* The client pays for objects, questions, answers and trees; what it cannot pay is refused. */
static void account_is_charged_for_everything(void **state)
{
    (void)state;
    enum { STEP = 16 * 1024, LIMIT_MAX = 8 << 20 };
    struct conversion_world w;
    unsigned refused = 0;
    conversion_world_init(&w);
    w.converter.grows = 20000;
    for (size_t limit = STEP;; limit += STEP) {
        struct budget *budget;
        struct account *account;
        struct ask ask;
        assert_true(limit < LIMIT_MAX);
        assert_int_equal(budget_new(limit, &budget), ST_OK);
        if (account_new(budget, &account) != ST_OK) {
            budget_free(budget);
            continue;
        }
        ask_init(&ask, &w, account);
        struct slice json = conversion_object(&ask.arena, "v1", "a", "");
        bool fine = true;
        for (int i = 0; i < 10 && fine; i++)
            fine = kube_conversion_batch_add(ask.batch, (struct kube_kv){.value = json}) == ST_OK;
        if (fine) {
            ask_run(&ask);
            fine = ask.status.reason == KUBE_OK;
            assert_true(fine || kube_code_is_no_memory(kube_status_code(&ask.status)) ||
                        strstr(ask.status.message, "out of memory"));
            if (fine) /* at least for the objects */
                assert_true(account_held_bytes(account) > 10 * 20000);
        }
        refused += !fine;
        ask_free(&ask);
        assert_int_equal(account_held_bytes(account), 0);
        account_unref(account);
        budget_free(budget);
        if (fine)
            break;
    }
    assert_true(refused > 10);
    conversion_world_fini(&w);
}

static void answer_with_spaces(struct hook_site *site, struct slice question, struct buf *to)
{
    converter_answer(site, question, to);
    assert_int_equal(buf_append_format(to, "%*s", 3 << 20, ""), ST_OK);
}

static void answer_with_items(struct hook_site *site, struct slice question, struct buf *to)
{
    converter_answer(site, question, to);
    to->len--;
    assert_int_equal(buf_append_text(to, ",\"x\":[1"), ST_OK);
    for (int i = 0; i < 60000; i++)
        assert_int_equal(buf_append_text(to, ",1"), ST_OK);
    assert_int_equal(buf_append_text(to, "]}"), ST_OK);
}

/* What an answer takes besides its objects: its bytes, and its tree. */
static void account_is_charged_for_what_is_dropped(void **state)
{
    (void)state;
    struct conversion_world w;
    struct budget *budget;
    struct account *account;
    struct ask ask;
    conversion_world_init(&w);
    assert_int_equal(budget_new(4 << 20, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    for (int i = 0; i < 3; i++) {
        w.hooks.site.answer = i == 0   ? converter_answer
                              : i == 1 ? answer_with_spaces
                                       : answer_with_items;
        for (int charged = 0; charged < 2; charged++) {
            ask_init(&ask, &w, charged ? account : NULL);
            ask_many(&ask, 1);
            bool fine = ask.status.reason == KUBE_OK;
            assert_int_equal(fine, i == 0 || !charged);
            ask_free(&ask);
            assert_int_equal(account_held_bytes(account), 0);
        }
    }
    account_unref(account);
    budget_free(budget);
    conversion_world_fini(&w);
}

/* -- The end at any time -- */

static void batch_may_be_freed_at_any_time(void **state)
{
    (void)state;
    struct conversion_world w;
    unsigned ended = 0, left = 0;
    conversion_world_init(&w);
    for (int turns = 0; !ended; turns++) {
        struct ask ask;
        ask_init(&ask, &w, NULL);
        ask_add(&ask, "v1", "a", 9);
        ask_start(&ask);
        for (int i = 0; i < turns; i++)
            sim_run_until(w.hooks.server.sim, conversion_now(&w) + NS_PER_MS / 20);
        ended += ask.ends;
        left += !ask.ends;
        loop_defer_cancel(&ask.start);
        ask_free(&ask);
        assert_int_equal(w.api.under_way, 0);
        assert_int_equal(w.hooks.under_way, 0);
        hook_run(&w.hooks, 20 * NS_PER_MS);
        assert_int_equal(w.hooks.site.requests, w.hooks.site.ends);
    }
    assert_true(left > 3);
    conversion_world_fini(&w);
}

/* And the converter sees that its answer is not wanted any more. */
static void freeing_ends_the_call(void **state)
{
    (void)state;
    struct conversion_world w;
    conversion_world_init(&w);
    w.hooks.site.holds = true;
    for (unsigned begins = 0; begins < 2; begins++) {
        struct ask ask;
        w.hooks.site.begins = begins;
        ask_init(&ask, &w, NULL);
        ask_add(&ask, "v1", "a", 9);
        ask_start(&ask);
        hook_run(&w.hooks, NS_PER_S);
        assert_int_equal(w.hooks.site.requests, begins + 1);
        assert_int_equal(w.hooks.site.ends, begins);
        ask_free(&ask);
        hook_run(&w.hooks, 100 * NS_PER_MS);
        assert_int_equal(w.hooks.site.ends, begins + 1);
        assert_int_equal(ask.ends, 0);
    }
    conversion_world_fini(&w);
}

static void batch_ends_when_the_server_stops(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask waiting, late;
    conversion_world_init(&w);
    w.hooks.site.holds = true;
    ask_init(&waiting, &w, NULL);
    ask_add(&waiting, "v1", "a", 9);
    ask_start(&waiting);
    hook_run(&w.hooks, NS_PER_S);
    kube_webhook_caller_stop(w.hooks.caller);
    hook_run(&w.hooks, 10 * NS_PER_MS);
    assert_int_equal(waiting.ends, 1);
    assert_int_not_equal(waiting.status.reason, KUBE_OK);
    ask_init(&late, &w, NULL);
    ask_many(&late, 1);
    assert_int_not_equal(late.status.reason, KUBE_OK);
    ask_free(&waiting);
    ask_free(&late);
    conversion_world_fini(&w);
}

/* -- On the worker -- */

static void add_large(struct ask *ask)
{
    char *more = conversion_long(KUBE_WORK_BYTES_MAX);
    struct kube_kv kv = {.value = conversion_object(&ask->arena, "v1", "a", more)};
    assert_int_equal(kube_conversion_batch_add(ask->batch, kv), ST_OK);
    free(more);
}

/* The loop is a real one, since the worker is a real thread; no webhook is called. */
static void batch_on_the_worker_may_be_freed_or_given_back(void **state)
{
    (void)state;
    struct conversion_world w;
    struct loop *loop;
    struct clock_sim clock;
    conversion_world_init(&w);
    clock_sim_init(&clock, NS_PER_S);
    for (int stops = 0; stops < 2; stops++) {
        struct ask ask;
        struct kube_api api = {.webhooks = w.hooks.caller};
        struct worker *worker = worker_new("test", 4); /* not started: jobs stay in its queue */
        assert_int_equal(loop_new(&clock.clock, &loop), ST_OK);
        api.loop = loop;
        random_init(&api.random, 1);
        kube_offload_init(&api.offload, worker, loop);
        ask = (struct ask){.world = &w};
        arena_init(&ask.arena, NULL, 0, SIZE_MAX);
        ask.batch = kube_conversion_batch_new(&api, w.v2, NULL, 0);
        add_large(&ask);
        kube_conversion_batch_start(ask.batch, on_done, &ask);
        assert_int_equal(api.under_way, 1);
        if (stops) {
            worker_free(TAKE(worker)); /* as when the server stops */
        } else {
            kube_conversion_batch_free(TAKE(ask.batch));
            assert_int_equal(worker_start(worker), ST_OK);
        }
        while (api.under_way)
            loop_turn(loop, NS_PER_S);
        assert_int_equal(ask.ends, stops);
        if (stops)
            assert_int_not_equal(ask.status.reason, KUBE_OK);
        ask_free(&ask);
        if (worker)
            kube_offload_fini(&api.offload);
        else
            mailbox_detach(&api.offload.returned);
        worker_free(worker);
        loop_free(loop);
    }
    conversion_world_fini(&w);
}

/* -- Memory -- */

/* In a turn, whose allocations fail. */
static void on_starved_start(struct deferred *deferred)
{
    struct ask *ask = CONTAINER_OF(deferred, struct ask, start);
    ask->batch = kube_conversion_batch_new(&ask->world->api, ask->world->v2, NULL, 0);
    struct kube_kv kv = {.key = SLICE_LITERAL("a"), .value = ask->json, .mod_revision = 6};
    if (kube_conversion_batch_add(ask->batch, kv) == ST_OK)
        kube_conversion_batch_start(ask->batch, on_done, ask);
    else
        ask->ends = 1, ask->status.reason = KUBE_TOO_MANY_REQUESTS;
}

static void convert_with_failing_memory(struct conversion_world *w)
{
    struct ask ask = {.world = w, .start = {.fn = on_starved_start}};
    arena_init(&ask.arena, NULL, 0, SIZE_MAX);
    ask.json = conversion_object(&ask.arena, "v1", "a", "");
    loop_defer(w->api.loop, &ask.start);
    for (int i = 0; i < 400 && !ask.ends; i++)
        hook_run(&w->hooks, 100 * NS_PER_MS);
    assert_int_equal(ask.ends, 1);
    if (ask.status.reason == KUBE_OK) {
        int64_t revision;
        struct slice made = kube_conversion_batch_get(ask.batch, 0, &revision).value;
        assert_non_null(memmem(made.ptr, made.len, "example.com/v2", 14));
    }
    ask_free(&ask);
    hook_run(&w->hooks, 10 * NS_PER_MS);
    assert_int_equal(w->api.under_way, 0);
    assert_int_equal(w->hooks.under_way, 0);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    struct conversion_world w;
    struct ask ask;
    conversion_world_init(&w);
    ask_init(&ask, &w, NULL);
    ask_many(&ask, 1); /* so that there is a connection */
    ask_free(&ask);
    assert_true(conversion_starve(&w, convert_with_failing_memory) > 20);
    conversion_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_other_versions_are_converted_in_one_call),
        cmocka_unit_test(objects_of_the_wanted_version_are_not_sent),
        cmocka_unit_test(object_that_is_older_than_its_definition_is_sent_as_it_is_served),
        cmocka_unit_test(wrong_answers_fail_the_batch),
        cmocka_unit_test(converter_that_cannot_be_called_is_named),
        cmocka_unit_test(what_is_not_an_object_of_the_definition_is_refused),
        cmocka_unit_test(batch_is_full_by_count_and_by_bytes),
        cmocka_unit_test(answer_that_is_too_long_comes_in_halves),
        cmocka_unit_test(answer_that_takes_too_much_memory_comes_in_halves),
        cmocka_unit_test(converter_that_hangs_fails_the_batch_in_time),
        cmocka_unit_test(all_calls_together_are_limited_in_time),
        cmocka_unit_test(batches_that_wait_are_limited_and_free_their_places),
        cmocka_unit_test(account_is_charged_for_everything),
        cmocka_unit_test(account_is_charged_for_what_is_dropped),
        cmocka_unit_test(batch_may_be_freed_at_any_time),
        cmocka_unit_test(freeing_ends_the_call),
        cmocka_unit_test(batch_ends_when_the_server_stops),
        cmocka_unit_test(batch_on_the_worker_may_be_freed_or_given_back),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
