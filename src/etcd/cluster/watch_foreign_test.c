/* The Watch service with watches of keys that are not mirrored: those that begin with "f". */
#include "etcd/cluster/watch_foreign.h"

#include "base/memory/budget.h"
#include "engine/forward.h"
#include "etcd/cluster/forward.h"
#include "etcd/service/services.h"
#include "etcd/service/watch_calls_test.h"

static struct engine_ops ops; /* the fake's, and the functions below */

static struct {
    struct engine_forward *forward; /* the call at the cluster; NULL: none */
    size_t opened;
    bool paused, rights_taken;
    char requests[4096]; /* as text */
    size_t requests_len;
} cluster;

/* -- The engine -- */

static void watch_admit(struct engine_op *op)
{
    struct engine_admission *asked = CONTAINER_OF(op, struct engine_admission, op);
    asked->is_foreign = asked->key.len && asked->key.ptr[0] == 'f';
    op->status = ST_OK;
    op->done(op);
}

static enum status watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end)
{
    (void)shard, (void)principal, (void)range_end;
    return slice_is(key, "f-taken") && cluster.rights_taken ? ST_PERMISSION_DENIED : ST_OK;
}

static void forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    (void)shard;
    assert_null(cluster.forward);
    assert_true(slice_is(forward->principal.token, "anna.1"));
    assert_false(forward->principal.is_server);
    cluster.forward = forward;
    cluster.opened++;
}

static enum status forward_send(struct engine_forward *forward, struct slice message)
{
    struct arena arena;
    struct pb_watch_request request;
    assert_ptr_equal(forward, cluster.forward);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(pb_decode(&pb_watch_request_table, message, &arena, &request), ST_OK);
    char *to = cluster.requests + cluster.requests_len;
    size_t room = sizeof(cluster.requests) - cluster.requests_len;
    int len = 0;
    if (request.request_union_case == PB_WATCH_REQUEST_CREATE_REQUEST)
        len = snprintf(to, room, "create %.*s %lld;", SLICE_ARGS(request.create_request->key),
                       (long long)request.create_request->watch_id);
    else if (request.request_union_case == PB_WATCH_REQUEST_CANCEL_REQUEST)
        len = snprintf(to, room, "cancel %lld;", (long long)request.cancel_request->watch_id);
    else
        len = snprintf(to, room, "progress;");
    cluster.requests_len += size_min((size_t)len, room);
    arena_fini(&arena);
    return ST_OK;
}

static void forward_pause(struct engine_forward *forward, bool paused)
{
    assert_ptr_equal(forward, cluster.forward);
    cluster.paused = paused;
}

static void forward_cancel(struct engine_forward *forward)
{
    assert_ptr_equal(forward, cluster.forward);
    cluster.forward = NULL;
}

static void prepare(struct engine *engine)
{
    ops = *engine->ops;
    ops.start[ENGINE_WATCH_ADMIT] = watch_admit;
    ops.watch_recheck = watch_recheck;
    ops.forward_start = forward_start;
    ops.forward_send = forward_send;
    ops.forward_pause = forward_pause;
    ops.forward_cancel = forward_cancel;
    engine->ops = &ops;
}

static const char *requests(void)
{
    cluster.requests[cluster.requests_len] = 0;
    cluster.requests_len = 0;
    return cluster.requests;
}

static void respond(struct pb_watch_response response)
{
    struct pb_response_header header = {.revision = 3};
    struct buf message = {0};
    if (!response.header)
        response.header = &header;
    assert_int_equal(pb_append(&pb_watch_response_table, &response, &message), ST_OK);
    cluster.forward->ops->on_message(cluster.forward, buf_slice(&message));
    buf_fini(&message);
}

static void respond_events(int64_t id, size_t value_len, bool fragment)
{
    uint8_t *value = calloc(1, value_len + 1);
    struct pb_key_value kv = {.key = SLICE_LITERAL("f"), .value = slice_of(value, value_len)};
    struct pb_event event = {.kv = &kv};
    respond((struct pb_watch_response){
        .watch_id = id, .events = &event, .events_count = 1, .fragment = fragment});
    free(value);
}

static void end_forward(enum grpc_code code, const char *text)
{
    struct engine_forward *forward = cluster.forward;
    cluster.forward = NULL;
    forward->ops->on_end(forward, code, slice_from_text(text));
}

/* -- The client -- */

static int set_up(void **state)
{
    memset(&cluster, 0, sizeof(cluster));
    peer_prepare = prepare;
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    struct fake_options options = {.seed = 1, .inline_percent = 100, .identity = peer_identity};
    peer_init(p, &peer_config, &options, 1 << 30, 16 << 20);
    p->metadata = token;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    peer_free(*state);
    assert_null(cluster.forward); /* the call at the cluster ends with the client's */
    return 0;
}

static void put_is_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

/* In the mirror. */
static void put(struct peer *p, const char *key)
{
    struct pb_put_request request = {.key = slice_from_text(key)};
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct engine_write write = {
        .op = {.done = put_is_done, .arena = &arena, .principal = ENGINE_SERVER}};
    engine_put(p->shard, &write, &request);
    engine_write_close(&write);
    arena_fini(&arena);
    peer_turn(p);
}

/* -- Tests -- */

static void watches_are_made_at_the_cluster_with_the_ids_of_the_client(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "f1", 7);
    assert_string_equal(requests(), "create f1 7;");
    create(p, id, "f2", 0);
    create(p, id, "b", 0);
    assert_string_equal(responses(p, id, &at), "0 created;");
    assert_string_equal(requests(), ""); /* until the first is answered */
    respond((struct pb_watch_response){.watch_id = 7, .created = true});
    assert_string_equal(responses(p, id, &at), "7 created;");
    assert_string_equal(requests(), "create f2 4294967296;");
    respond_events(7, 3, false);
    respond((struct pb_watch_response){.watch_id = INT64_C(1) << 32, .created = true});
    assert_string_equal(responses(p, id, &at), "7 events;4294967296 created;1 created;");
    cancel(p, id, 7);
    cancel(p, id, 0);
    assert_string_equal(requests(), "cancel 7;");
    respond((struct pb_watch_response){.watch_id = 7, .canceled = true});
    assert_string_equal(responses(p, id, &at), "0 canceled;7 canceled;");
    create(p, id, "a", 7); /* the id is free again */
    assert_string_equal(responses(p, id, &at), "7 created;");
    assert_int_equal(cluster.opened, 1);
}

/* The cluster itself would let it continue, and what it sends meanwhile reaches no client. */
static void a_watch_ends_when_its_right_is_taken_away(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "f-taken", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    assert_string_equal(responses(p, id, &at), "5 created;");
    create(p, id, "f-kept", 6);
    respond((struct pb_watch_response){.watch_id = 6, .created = true});
    watch_service_rights_changed(p->api);
    respond_events(5, 3, false);
    assert_string_equal(responses(p, id, &at), "6 created;5 events;");
    requests();
    cluster.rights_taken = true;
    watch_service_rights_changed(p->api);
    assert_string_equal(requests(), "cancel 5;");
    respond_events(5, 3, false);
    respond((struct pb_watch_response){.watch_id = 5, .canceled = true});
    respond_events(6, 3, false);
    assert_string_equal(responses(p, id, &at),
                        "5 canceled: rpc error: code = PermissionDenied desc = etcdserver: "
                        "permission denied;6 events;");
    create(p, id, "f", 5); /* the id is free again */
    assert_string_equal(requests(), "create f 5;");
}

static void ids_are_unique_on_the_call(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    const char *duplicate = "-1 created canceled: mvcc: duplicate watch ID provided on the "
                            "WatchStream;";
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    assert_string_equal(responses(p, id, &at), "5 created;");
    create(p, id, "a", 5);
    assert_string_equal(responses(p, id, &at), duplicate);
    create(p, id, "a", 6);
    create(p, id, "f", 6);
    create(p, id, "f", 5);
    char text[1024];
    snprintf(text, sizeof(text), "6 created;%s%s", duplicate, duplicate);
    assert_string_equal(responses(p, id, &at), text);
    assert_string_equal(requests(), "create f 5;");
}

/* Nothing is written between the fragments of a response. */
static void fragments_stay_together(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 1);
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    assert_string_equal(responses(p, id, &at), "1 created;5 created;");
    respond_events(5, 100, true);
    assert_string_equal(responses(p, id, &at), "5 events fragment;");
    put(p, "a");
    assert_string_equal(responses(p, id, &at), "");
    respond_events(5, 100, true);
    respond_events(5, 100, false);
    respond_events(5, 100, false);
    assert_string_equal(responses(p, id, &at), "5 events fragment;5 events;5 events;1 events;");
}

/* Progress is reported as far as the cluster has confirmed it, after everything before it. */
static void progress_holds_for_all_watches(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 1);
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    for (int i = 0; i < 5; i++)
        put(p, "b");
    requests();
    assert_string_equal(responses(p, id, &at), "1 created;5 created;");
    ask_progress(p, id);
    assert_string_equal(responses(p, id, &at), ""); /* the cluster has not answered */
    assert_string_equal(requests(), "progress;");
    respond_events(5, 10, false);
    respond((struct pb_watch_response){.watch_id = -1});
    struct pb_watch_response r;
    peer_turn(p);
    assert_true(next_message(p, id, &at, &pb_watch_response_table, &r));
    assert_int_equal(r.watch_id, 5);
    assert_true(next_message(p, id, &at, &pb_watch_response_table, &r));
    assert_int_equal(r.watch_id, -1);
    assert_int_equal(r.header->revision, 3); /* although this server is further */
    assert_false(next_message(p, id, &at, &pb_watch_response_table, &r));
    cancel(p, id, 1); /* then the cluster's answer is that of the call */
    ask_progress(p, id);
    respond_events(5, 10, false);
    respond((struct pb_watch_response){.watch_id = -1});
    assert_string_equal(responses(p, id, &at), "1 canceled;5 events;-1;");
}

static void a_client_that_does_not_read_stops_the_cluster(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    size_t sent = 0, before = account_held_bytes(p->memory.account);
    for (; !cluster.paused && sent < 1000; sent++)
        respond_events(5, 10000, false); /* nothing is written within a turn */
    assert_true(cluster.paused);
    assert_true(sent * 10000 < FORWARD_QUEUED_BYTES_MAX + 20000);
    assert_true(account_held_bytes(p->memory.account) >= before + sent * 10000);
}

static void memory_that_a_client_may_hold_is_respected(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    peer_turn(p);
    size_t charged = 0;
    while (account_charge(p->memory.account, 500))
        charged += 500;
    respond_events(5, 1 << 20, false);
    assert_null(cluster.forward);
    account_release(p->memory.account, charged);
    peer_turn(p);
}

static void the_call_ends_as_that_of_the_cluster(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p), other = open_watch(p);
    create(p, id, "f", 5);
    respond((struct pb_watch_response){.watch_id = 5, .created = true});
    create(p, other, "a", 1);
    peer_turn(p);
    end_forward(GRPC_UNAVAILABLE, "etcdserver: no leader");
    peer_turn(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNAVAILABLE);
    assert_int_equal(peer_stream(p, other)->code, -1);
}

static void malformed_bytes_end_the_call(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "f", 5);
    cluster.forward->ops->on_message(cluster.forward, SLICE_LITERAL("\xff\xff"));
    peer_turn(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNAVAILABLE);
}

static void a_call_has_a_limit_of_such_watches(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    for (int64_t i = 1; i <= WATCH_FOREIGN_MAX; i++) {
        create(p, id, "f", i);
        respond((struct pb_watch_response){.watch_id = i, .created = true});
        peer_turn(p);
        requests();
    }
    at = peer_stream(p, id)->body.len;
    create(p, id, "f", 0);
    assert_string_equal(responses(p, id, &at),
                        "-1 created canceled: vigil: too many watches outside of the mirrored "
                        "prefixes;");
    assert_string_equal(requests(), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watches_are_made_at_the_cluster_with_the_ids_of_the_client),
        TEST(a_watch_ends_when_its_right_is_taken_away),
        TEST(ids_are_unique_on_the_call),
        TEST(fragments_stay_together),
        TEST(progress_holds_for_all_watches),
        TEST(a_client_that_does_not_read_stops_the_cluster),
        TEST(memory_that_a_client_may_hold_is_respected),
        TEST(the_call_ends_as_that_of_the_cluster),
        TEST(malformed_bytes_end_the_call),
        TEST(a_call_has_a_limit_of_such_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
