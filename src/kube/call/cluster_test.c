/*
 * The API over an engine in front of a cluster: the fake engine with the functions that only such
 * an engine has.
 */
#include "kube/server/bed_test.h"

#include "engine/forward.h"
#include "kube/request/tokens.h"

#include <unistd.h>

static struct {
    const struct engine_ops *fake;
    struct engine_ops ops;
    bool unsynced;
    enum status admission;
    unsigned asked, awaited;
    int64_t compacted;
    struct auth_principal reader, writer; /* principals of the last range and transaction */
    bool serializable;                    /* the last range was */
    unsigned txns;
    enum status txn_fails; /* every transaction, with txn_text */
    struct slice txn_text;
    bool exhausts; /* a transaction exhausts the arena of its call */
} cluster;

static bool is_synced(const struct engine *engine)
{
    (void)engine;
    return !cluster.unsynced;
}

static void watch_admit(struct engine_op *op)
{
    assert_false(op->principal.is_server);
    assert_int_equal(op->principal.token.len, 0);
    cluster.asked++;
    op->status = cluster.admission;
    op->done(op);
}

static void forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    (void)shard;
    (void)forward;
    abort();
}

static void await_revision(struct engine_shard *shard, int64_t revision)
{
    (void)shard;
    assert_int_equal(revision, 1000);
    cluster.awaited++;
}

static void range_start(struct engine_op *op)
{
    cluster.reader = op->principal;
    cluster.serializable = ((const struct pb_range_request *)op->request)->serializable;
    cluster.fake->start[ENGINE_RANGE](op);
}

static void exhaust(struct arena *arena)
{
    while (arena_alloc(arena, 1 << 20))
        ;
}

static void txn(struct engine_op *op)
{
    cluster.writer = op->principal;
    cluster.txns++;
    if (cluster.exhausts)
        exhaust(op->arena);
    if (cluster.txn_fails != ST_OK)
        fake_fail_next(op->shard->engine, cluster.txn_fails, cluster.txn_text);
    cluster.fake->start[ENGINE_TXN](op);
}

static void compact(struct engine_op *op)
{
    cluster.compacted = ((const struct pb_compaction_request *)op->request)->revision;
    cluster.fake->start[ENGINE_COMPACT](op);
}

static void alter(struct engine *engine)
{
    cluster.fake = engine->ops;
    cluster.ops = *engine->ops;
    cluster.ops.is_synced = is_synced;
    cluster.ops.start[ENGINE_WATCH_ADMIT] = watch_admit;
    cluster.ops.forward_start = forward_start;
    cluster.ops.await_revision = await_revision;
    cluster.ops.start[ENGINE_RANGE] = range_start;
    cluster.ops.start[ENGINE_TXN] = txn;
    cluster.ops.start[ENGINE_COMPACT] = compact;
    engine->ops = &cluster.ops;
}

static void begin_cluster(enum status admission)
{
    memset(&cluster, 0, sizeof(cluster));
    cluster.admission = admission;
    bed_alter = alter;
    begin(1, 100);
}

static void end_cluster(void)
{
    end();
    bed_alter = NULL;
}

static void pass(int64_t ns)
{
    bed->clock.mono_ns += ns;
    run();
}

static void next_answer(enum status admission)
{
    unsigned asked = cluster.asked;
    cluster.admission = admission;
    pass(NS_PER_S);
    assert_true(cluster.asked > asked);
}

static struct peer *get(const char *path)
{
    struct peer *peer = send_json("GET", path, "");
    run();
    return peer;
}

/* -- Before the first sync -- */

static void requests_before_the_first_sync_may_be_repeated_later(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    cluster.unsynced = true;
    struct peer *early[] = {get(CMS), get("/apis"), get(CMS "?watch=1"), get("/openapi/v3")};
    for (size_t i = 0; i < COUNT_OF(early); i++) {
        assert_answer(early[i], 429, "\"message\":\"storage is (re)initializing\"");
        assert_true(said(early[i], "\"reason\":\"TooManyRequests\""));
        assert_true(said(early[i], "\"retryAfterSeconds\":1"));
    }
    assert_answer(get("/version"), 200, NULL);
    cluster.unsynced = false;
    assert_answer(get(CMS), 200, NULL);
    end_cluster();
}

/* -- Access -- */

static void client_without_a_token_is_not_the_server(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_answer(made, 201, NULL);
    assert_false(cluster.writer.is_server);
    assert_answer(get(CMS "/a"), 200, NULL);
    assert_false(cluster.reader.is_server);
    bed->peer_name = "root"; /* the name in a certificate gives no rights of the server */
    assert_answer(get(CMS "/a"), 200, NULL);
    assert_false(cluster.reader.is_server);
    end_cluster();
}

static void unknown_answer_admits_no_client(void **state)
{
    (void)state;
    begin_cluster(ST_TIMEOUT);
    assert_answer(get(CMS), 429, "storage is (re)initializing");
    next_answer(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    end_cluster();
}

static void cluster_with_authentication_needs_a_token_of_the_server(void **state)
{
    (void)state;
    begin_cluster(ST_USER_EMPTY);
    assert_answer(get(CMS), 401, "--kube-token-file");
    bed->peer_name = "root";
    assert_answer(get(CMS), 401, "is not a user of the cluster");
    assert_answer(get("/version"), 200, NULL);
    end_cluster();
}

static void watches_end_when_authentication_is_enabled_in_the_cluster(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    begin_cluster(ST_OK);
    struct peer *watch = get(CMS "?watch=1&resourceVersion=1");
    assert_int_equal(http_exchange_fill(&watch->x, bytes, sizeof(bytes)), 0);
    next_answer(ST_UNHEALTHY); /* it cannot be asked: the last answer stays */
    assert_int_equal(http_exchange_fill(&watch->x, bytes, sizeof(bytes)), 0);
    assert_false(http_exchange_complete(&watch->x));
    next_answer(ST_USER_EMPTY);
    assert_true(http_exchange_flows(&watch->x));
    size_t n = http_exchange_fill(&watch->x, bytes, sizeof(bytes));
    assert_non_null(memmem(bytes, n, "\"type\":\"ERROR\"", 14));
    assert_non_null(memmem(bytes, n, "\"code\":401", 10));
    assert_true(http_exchange_complete(&watch->x));
    next_answer(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    end_cluster();
}

/* A client with a bearer token of the server. */
static struct peer *send_known(const char *method, const char *path, const char *body)
{
    struct peer *peer = send_with(method, path, "authorization", "Bearer t0ken", body);
    run();
    return peer;
}

static struct kube_tokens *read_tokens(void)
{
    struct kube_tokens *tokens;
    struct error error;
    char path[] = "/tmp/vigil-tokens-XXXXXX";
    static const char line[] = "t0ken,admin,1\n";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, strlen(line)), strlen(line));
    close(fd);
    assert_int_equal(kube_tokens_read(path, &tokens, &error), ST_OK);
    unlink(path);
    return tokens;
}

static void client_with_a_token_of_the_server_acts_in_its_name(void **state)
{
    (void)state;
    struct kube_tokens *tokens = read_tokens();
    begin_cluster(ST_USER_EMPTY);
    bed->config.tokens = tokens;
    assert_answer(get(CMS), 401, NULL);
    assert_answer(send_known("GET", CMS, ""), 200, NULL);
    assert_true(cluster.reader.is_server);
    assert_answer(send_known("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}"), 201, NULL);
    assert_true(cluster.writer.is_server);
    cluster.txn_fails = ST_PERMISSION_DENIED;
    cluster.txn_text = SLICE_LITERAL("etcdserver: permission denied");
    assert_answer(send_known("POST", CMS, "{\"metadata\":{\"name\":\"b\"}}"), 500,
                  "--upstream-user");
    bed->config.tokens = NULL;
    end_cluster();
    kube_tokens_free(tokens);
}

/* -- Writes -- */

static void unknown_outcome_of_a_write_is_not_to_be_repeated(void **state)
{
    (void)state;
    static const enum status unknown[] = {ST_TIMEOUT, ST_TIMEOUT_DUE_TO_CONNECTION_LOST,
                                          ST_LEADER_CHANGED, ST_DEADLINE_EXCEEDED};
    begin_cluster(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        cluster.txn_fails = unknown[i];
        struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
        run();
        assert_answer(made, 504, "\"reason\":\"Timeout\"");
        assert_false(said(made, "retryAfterSeconds"));
    }
    end_cluster();
}

/* Running out of memory for the answer does not make it a request to try again. */
static void unknown_outcome_stays_unknown_without_memory(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    cluster.txn_fails = ST_TIMEOUT;
    cluster.exhausts = true;
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_answer(made, 504, NULL);
    assert_false(said(made, "retryAfterSeconds"));
    end_cluster();
}

static void error_of_the_cluster_is_shown(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    cluster.txn_fails = ST_UPSTREAM;
    cluster.txn_text = SLICE_LITERAL("etcdserver: something new");
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_answer(made, 500, "Internal error occurred: etcdserver: something new");
    fake_fail_next(bed->engine, ST_LIMIT, SLICE_LITERAL("too long to be forwarded"));
    assert_answer(get(CMS), 429, "too long to be forwarded");
    fake_fail_next(bed->engine, ST_AGAIN, SLICE_LITERAL("the cluster cannot be reached"));
    assert_answer(get(CMS "/a"), 503, "the cluster cannot be reached");
    end_cluster();
}

/* -- Reads -- */

static void only_reads_of_the_newest_state_are_linearizable(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    assert_answer(get(CMS), 200, NULL);
    assert_false(cluster.serializable);
    assert_answer(get(CMS "?resourceVersion=0"), 200, NULL);
    assert_true(cluster.serializable);
    assert_answer(get(CMS "/a"), 404, NULL);
    assert_false(cluster.serializable);
    assert_answer(get(CMS "/a?resourceVersion=0"), 404, NULL);
    assert_true(cluster.serializable);
    get(CMS "?watch=1");
    assert_false(cluster.serializable);
    get(CMS "?watch=1&resourceVersion=0");
    assert_true(cluster.serializable);
    end_cluster();
}

static void revision_of_the_future_is_requested(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    struct peer *list = get(CMS "?resourceVersion=1000");
    assert_int_equal(list->code, 0);
    assert_true(cluster.awaited > 0);
    pass(2 * NS_PER_S);
    pass(2 * NS_PER_S);
    assert_answer(list, 504, "Too large resource version");
    end_cluster();
}

/* -- Compaction -- */

static void begin_compaction(void)
{
    memset(&cluster, 0, sizeof(cluster));
    bed_alter = alter;
    bed_compaction_s = 300;
    begin(1, 100);
    bed_compaction_s = 0;
}

static int64_t put_object(const char *name)
{
    char body[64];
    struct engine_status now;
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", name);
    struct peer *made = send_json("POST", CMS, body);
    run();
    assert_answer(made, 201, NULL);
    engine_status_get(bed->shard, &now);
    return now.revision;
}

/* -- Jobs -- */

static void done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

static void put_raw(const char *key, const char *value)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_write write = {.op = {.done = done, .arena = &arena, .principal = ENGINE_SERVER}};
    struct pb_put_request put = {.key = slice_from_text(key), .value = slice_from_text(value)};
    engine_put(bed->shard, &write, &put);
    run();
    engine_write_close(&write);
    arena_fini(&arena);
}

/* Another server has marked them, and has stopped then. */
static void deletions_of_other_servers_are_taken_over(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    assert_answer(get("/api/v1/namespaces"), 200, NULL);
    put_raw("/registry/configmaps/old/a",
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
            "\"namespace\":\"old\"}}");
    put_raw("/registry/namespaces/old",
            "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"old\","
            "\"deletionTimestamp\":\"2023-11-14T22:13:20Z\"},\"spec\":{\"finalizers\":["
            "\"kubernetes\"]},\"status\":{\"phase\":\"Terminating\"}}");
    assert_answer(get("/api/v1/namespaces/old"), 200, NULL);
    for (int i = 0; i < 70; i++)
        pass(NS_PER_S);
    assert_answer(get("/api/v1/namespaces/old/configmaps/a"), 404, NULL);
    assert_answer(get("/api/v1/namespaces/old"), 404, NULL);
    end_cluster();
}

/* A request that only reads needs no call of the cluster for them. */
static void default_namespaces_that_exist_are_not_written(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    assert_answer(get("/api/v1/namespaces/default"), 200, NULL);
    assert_int_equal(cluster.txns, 4);
    end_cluster();
    begin_cluster(ST_OK);
    put_raw("/registry/namespaces/default", "{\"metadata\":{\"name\":\"default\"}}");
    put_raw("/registry/namespaces/kube-node-lease", "{}");
    put_raw("/registry/namespaces/kube-public", "{}");
    put_raw("/registry/namespaces/kube-system", "{}");
    assert_answer(get("/api/v1/namespaces/default"), 200, NULL);
    assert_int_equal(cluster.txns, 0);
    end_cluster();
}

/* Each attempt may wait for the cluster. */
static void default_namespaces_are_tried_once_in_a_while(void **state)
{
    (void)state;
    begin_cluster(ST_OK);
    cluster.txn_fails = ST_AGAIN;
    assert_answer(get("/api/v1/configmaps?resourceVersion=0"), 200, NULL);
    assert_answer(get("/api/v1/configmaps?resourceVersion=0"), 200, NULL);
    assert_int_equal(cluster.txns, 1);
    cluster.txn_fails = ST_OK;
    pass(11 * NS_PER_S);
    assert_answer(get("/api/v1/namespaces/default"), 200, NULL);
    assert_int_equal(cluster.txns, 5);
    end_cluster();
}

static void history_is_kept_for_an_interval(void **state)
{
    (void)state;
    begin_compaction();
    put_object("a");
    pass(300 * NS_PER_S); /* the first claim only notes the revision */
    assert_int_equal(cluster.compacted, 0);
    int64_t noted = put_object("b") - 1;
    pass(299 * NS_PER_S);
    assert_int_equal(cluster.compacted, 0);
    pass(NS_PER_S);
    assert_int_equal(cluster.compacted, noted);
    end_cluster();
}

/* What a kube-apiserver does in the same interval. */
static void another_claims(void)
{
    put_raw("compact_rev_key", "7");
}

static void only_one_server_compacts_in_an_interval(void **state)
{
    (void)state;
    begin_compaction();
    pass(300 * NS_PER_S);
    for (int i = 0; i < 3; i++) {
        another_claims();
        pass(300 * NS_PER_S);
        assert_int_equal(cluster.compacted, 0);
    }
    struct engine_status now;
    engine_status_get(bed->shard, &now);
    pass(300 * NS_PER_S); /* the other one is gone: the version is as it was seen */
    assert_int_equal(cluster.compacted, now.revision);
    end_cluster();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_before_the_first_sync_may_be_repeated_later),
        cmocka_unit_test(client_without_a_token_is_not_the_server),
        cmocka_unit_test(unknown_answer_admits_no_client),
        cmocka_unit_test(cluster_with_authentication_needs_a_token_of_the_server),
        cmocka_unit_test(watches_end_when_authentication_is_enabled_in_the_cluster),
        cmocka_unit_test(client_with_a_token_of_the_server_acts_in_its_name),
        cmocka_unit_test(unknown_outcome_of_a_write_is_not_to_be_repeated),
        cmocka_unit_test(unknown_outcome_stays_unknown_without_memory),
        cmocka_unit_test(error_of_the_cluster_is_shown),
        cmocka_unit_test(only_reads_of_the_newest_state_are_linearizable),
        cmocka_unit_test(revision_of_the_future_is_requested),
        cmocka_unit_test(deletions_of_other_servers_are_taken_over),
        cmocka_unit_test(default_namespaces_that_exist_are_not_written),
        cmocka_unit_test(default_namespaces_are_tried_once_in_a_while),
        cmocka_unit_test(history_is_kept_for_an_interval),
        cmocka_unit_test(only_one_server_compacts_in_an_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
