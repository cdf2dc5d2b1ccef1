/*
 * Calls whose response comes in parts, against a small server on a simulated network: each kind of
 * call runs once without a fault, and then with one fault at every byte, system call and
 * allocation. Whatever happens, every part is delivered once and in order, and the call completes
 * once. Further tests have servers that violate the protocol.
 */
#include "client/call/parts.h"
#include "client/sim/sim_world_test.h"
#include "codec/pb/election.pb.h"
#include "net/sha256.h"

#include <unistd.h>

enum { KEYS = 11, PAGE_KEYS = 3, BLOBS = 6, BLOB_BYTES = 512, LEADERS_MAX = 16, CALLS_MAX = 4 };
enum { SNAPSHOT_BYTES = BLOBS * BLOB_BYTES + SHA256_BYTES };

/* -- The server -- */

/* What the server does wrong. */
enum wrong {
    NOTHING,
    PAGE_WITHOUT_HEADER,
    PAGE_WITHOUT_KEYS,  /* although it says that more follows */
    PAGE_REPEATED,      /* the same page again and again */
    PART_MALFORMED,     /* after some good ones */
    PARTS_END_EARLY,    /* with a success */
    BLOB_CHANGED,       /* so that the digest is wrong */
    PARTS_ARE_REFUSED,  /* with another status, after some good ones */
    NO_PARTS,           /* a success without any */
    PARTS_COME_BY_HAND, /* by send_part */
};

static struct {
    enum wrong wrong;
    unsigned requests;                 /* requests of this kind of call */
    struct grpc_call *open[CALLS_MAX]; /* that observe, or whose parts come by hand */
    size_t leader;                     /* the number of the current one */
} server;

static void remember(struct grpc_call *call)
{
    size_t i = 0;
    while (server.open[i])
        assert_true(++i < CALLS_MAX);
    server.open[i] = call;
}

static void forget(struct grpc_call *call, void *service)
{
    (void)service;
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (server.open[i] == call)
            server.open[i] = NULL;
}

static void key_of(char key[8], size_t number)
{
    snprintf(key, 8, "p/%02zu", number);
}

/* The keys that a page or a part contains. */
struct keys {
    char text[KEYS][8];
    struct pb_key_value kvs[KEYS];
    struct pb_response_header header;
    struct pb_range_response response;
};

static void keys_fill(struct keys *keys, size_t from, size_t count, bool with_header)
{
    *keys = (struct keys){.header.revision = 7};
    for (size_t i = 0; i < count; i++) {
        key_of(keys->text[i], from + i);
        keys->kvs[i] = (struct pb_key_value){
            .key = slice_from_text(keys->text[i]), .value = SLICE_LITERAL("v"), .mod_revision = 5};
    }
    keys->response = (struct pb_range_response){
        .header = with_header ? &keys->header : NULL, .kvs = keys->kvs, .kvs_count = count};
}

static void range(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_range_request request;
    struct keys keys;
    size_t first = 0;
    (void)service;
    server.requests++;
    assert_int_equal(pb_decode(&pb_range_request_table, message, grpc_call_arena(call), &request),
                     ST_OK);
    /* All pages but the first have the revision of the first one. */
    if (slice_has_prefix(request.key, SLICE_LITERAL("p/")))
        assert_int_equal(request.revision, request.key.len == 2 ? 0 : 7);
    for (char key[8]; first < KEYS; first++) {
        key_of(key, first);
        if (slice_compare(slice_from_text(key), request.key) >= 0)
            break;
    }
    if (server.wrong == PAGE_REPEATED)
        first = 0;
    size_t count = size_min(KEYS - first, request.limit ? (size_t)request.limit : KEYS);
    if (server.wrong == PAGE_WITHOUT_KEYS)
        count = 0;
    keys_fill(&keys, first, count, server.wrong != PAGE_WITHOUT_HEADER);
    keys.response.more = first + count < KEYS;
    etcd_send(call, &pb_range_response_table, &keys.response);
    grpc_call_finish(call);
}

/* Part 0 has keys 0 and 1, and so on. */
static void send_range_part(struct grpc_call *call, size_t part)
{
    struct keys keys;
    bool last = 2 * part + 2 >= KEYS;
    keys_fill(&keys, 2 * part, last ? KEYS - 2 * part : 2, last);
    struct pb_range_stream_response response = {.range_response = &keys.response};
    etcd_send(call, &pb_range_stream_response_table, &response);
}

static void range_stream(struct grpc_call *call, void *service, struct slice message)
{
    (void)service, (void)message;
    server.requests++;
    if (server.wrong == PARTS_COME_BY_HAND) {
        remember(call);
        return;
    }
    for (size_t part = 0; 2 * part < KEYS && server.wrong != NO_PARTS; part++) {
        if (part == 2 && server.wrong == PART_MALFORMED)
            slice_copy(grpc_call_message(call, 1), SLICE_LITERAL("\x07"));
        if (part == 2 && server.wrong == PARTS_ARE_REFUSED) {
            grpc_call_fail(call, ST_COMPACTED);
            return;
        }
        send_range_part(call, part);
    }
    grpc_call_finish(call);
}

static uint8_t snapshot_bytes[SNAPSHOT_BYTES];

static void snapshot_fill(void)
{
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    for (size_t i = 0; i < BLOBS * BLOB_BYTES; i++)
        snapshot_bytes[i] = (uint8_t)(i * 7 + i / 256);
    sha256_add(sum, slice_of(snapshot_bytes, BLOBS * BLOB_BYTES));
    assert_int_equal(sha256_finish(sum, snapshot_bytes + BLOBS * BLOB_BYTES), ST_OK);
}

/* The digest is spread over two messages, which is allowed. */
static void snapshot(struct grpc_call *call, void *service, struct slice message)
{
    uint8_t bytes[SNAPSHOT_BYTES];
    (void)service, (void)message;
    server.requests++;
    memcpy(bytes, snapshot_bytes, sizeof(bytes));
    bytes[100] ^= server.wrong == BLOB_CHANGED;
    for (size_t at = 0, len = 0; at < SNAPSHOT_BYTES; at += len) {
        len = size_min(BLOB_BYTES + 2, SNAPSHOT_BYTES - at);
        struct pb_snapshot_response response = {.remaining_bytes = SNAPSHOT_BYTES - at - len,
                                                .blob = slice_of(bytes + at, len)};
        if (at && server.wrong == PARTS_END_EARLY)
            break;
        etcd_send(call, &pb_snapshot_response_table, &response);
    }
    grpc_call_finish(call);
}

static void send_leader(struct grpc_call *call)
{
    char value[16];
    snprintf(value, sizeof(value), "%zu", server.leader);
    struct pb_response_header header = {.revision = 7};
    struct pb_key_value kv = {.key = SLICE_LITERAL("e/1"),
                              .value = slice_from_text(value),
                              .create_revision = 3,
                              .mod_revision = 10 + (int64_t)server.leader};
    struct pb_leader_response response = {.header = &header, .kv = &kv};
    etcd_send(call, &pb_leader_response_table, &response);
}

static void observe(struct grpc_call *call, void *service, struct slice message)
{
    (void)service, (void)message;
    server.requests++;
    remember(call);
    if (server.leader)
        send_leader(call);
}

static void change_leader(void)
{
    server.leader++;
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (server.open[i])
            send_leader(server.open[i]);
}

static const struct grpc_method methods[] = {
    {.path = "/etcdserverpb.KV/Range", .on_message = range},
    {.path = "/etcdserverpb.KV/RangeStream",
     .server_streams = true,
     .parks = true,
     .on_message = range_stream,
     .on_end = forget},
    {.path = "/etcdserverpb.Maintenance/Snapshot", .server_streams = true, .on_message = snapshot},
    {.path = "/v3electionpb.Election/Observe",
     .server_streams = true,
     .parks = true,
     .on_message = observe,
     .on_end = forget},
};

/* -- The user -- */

/* What has been delivered. */
static struct {
    vigil_call *call;
    size_t parts, keys, bytes, leaders;
    size_t pause_at;  /* this part; 0: none */
    int64_t takes_ns; /* each callback */
    char newest[16];  /* leader */
    bool completed;
} user;

static int answer(void)
{
    assert_false(user.completed);
    clock_sim_advance(CONTAINER_OF(sim_clock(world_checked->sim), struct clock_sim, clock),
                      user.takes_ns);
    return ++user.parts == user.pause_at ? VIGIL_PART_PAUSE : VIGIL_PART_CONTINUE;
}

/* The bytes of the server are changed on the way, so anything may be delivered. */
static bool contents_may_be_wrong;

static int on_range(vigil_call *call, const vigil_range_response *part, void *ctx)
{
    bool checked = !contents_may_be_wrong && server.wrong != PAGE_REPEATED;
    assert_ptr_equal(call, user.call);
    assert_ptr_equal(ctx, &user);
    for (size_t i = 0; i < part->kv_count && checked; i++) {
        char key[8];
        key_of(key, user.keys++);
        assert_true(part->kvs[i].key.size == strlen(key));
        assert_memory_equal(part->kvs[i].key.data, key, strlen(key));
    }
    return answer();
}

static int on_snapshot(vigil_call *call, const vigil_snapshot_part *part, void *ctx)
{
    (void)call, (void)ctx;
    if (contents_may_be_wrong)
        return answer();
    assert_true(user.bytes + part->blob.size <= SNAPSHOT_BYTES);
    if (server.wrong == NOTHING)
        assert_memory_equal(part->blob.data, snapshot_bytes + user.bytes, part->blob.size);
    user.bytes += part->blob.size;
    assert_int_equal(part->remaining_bytes, SNAPSHOT_BYTES - user.bytes);
    return answer();
}

static int on_leader(vigil_call *call, const vigil_leader_response *leader, void *ctx)
{
    char value[16];
    (void)call, (void)ctx;
    if (contents_may_be_wrong)
        return answer();
    snprintf(value, sizeof(value), "%.*s", (int)leader->kv->value.size,
             (const char *)leader->kv->value.data);
    assert_string_not_equal(value, user.newest);
    snprintf(user.newest, sizeof(user.newest), "%s", value);
    user.leaders++;
    return answer();
}

static vigil_range_request all_keys(int64_t limit)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("p/");
    request.range_end = vigil_text("p0");
    request.limit = limit;
    return request;
}

static vigil_call *new_pages(vigil_client *client)
{
    vigil_range_request request = all_keys(PAGE_KEYS);
    return vigil_range_pages(client, &request, on_range, &user);
}

static vigil_call *new_stream(vigil_client *client)
{
    vigil_range_request request = all_keys(0);
    return vigil_range_stream(client, &request, on_range, &user);
}

static vigil_call *new_snapshot(vigil_client *client)
{
    return vigil_snapshot(client, on_snapshot, &user);
}

static vigil_call *new_observe(vigil_client *client)
{
    return vigil_observe(client, vigil_text("e"), on_leader, &user);
}

/* -- Running -- */

struct kind {
    const char *name;
    vigil_call *(*create)(vigil_client *client);
    bool repeats; /* broken connections do not end it */
};

static const struct kind pages_kind = {"pages", new_pages, true};
static const struct kind stream_kind = {"stream", new_stream, false};
static const struct kind snapshot_kind = {"snapshot", new_snapshot, false};
static const struct kind observe_kind = {"observe", new_observe, true};
static const struct kind *const kinds[] = {&pages_kind, &stream_kind, &snapshot_kind,
                                           &observe_kind};

static char context[128]; /* printed if a test fails */

static int teardown(void **state)
{
    (void)state;
    (void)!write(2, context, strlen(context));
    *context = '\0';
    return 0;
}

static void check(void)
{
    world_check();
    if (user.call && world_checked->client)
        parts_check(CONTAINER_OF(user.call, struct parts_call, call));
}

static void start(struct world *w, const char *name, enum fault_kind kind, size_t at)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    snprintf(context, sizeof(context), "in \"%s\" with fault %d at %zu\n", name, (int)kind, at);
    memset(&server, 0, sizeof(server));
    memset(&user, 0, sizeof(user));
    snapshot_fill();
    world_init(w, &options);
    if (kind == FAULT_SILENCE) { /* is noticed before the timeout of the call */
        w->options.connect_timeout_ms = w->options.keepalive_ms = 1000;
        w->options.keepalive_timeout_ms = 500;
    }
    for (size_t i = 0; i < WORLD_MEMBERS; i++) {
        struct etcd_member *member = &w->members[i];
        grpc_services_free(member->services);
        assert_int_equal(grpc_services_new(&member->services), ST_OK);
        assert_int_equal(grpc_services_add(member->services, methods, COUNT_OF(methods), member),
                         ST_OK);
        member->wire.services = member->services;
        member->kind = net_wire_kind(&member->wire);
    }
    faults.check = check;
    faults.kind = kind;
    faults.at = at;
    faulty_memory_at = 0;
}

static struct world_call *begin(struct world *w, const struct kind *kind, int64_t timeout_ms)
{
    faulty_memory_begin();
    user.call = kind->create(w->client);
    faulty_memory_end();
    vigil_call_set_timeout(user.call, timeout_ms);
    return world_begin(w, user.call, 0);
}

static bool is_over(const struct world_call *c)
{
    return c->completions || (server.leader >= 4 && strcmp(user.newest, "4") == 0);
}

/* Pauses twice, once for longer than the timeout; four leaders follow each other. */
static struct world_call *run_kind(struct world *w, const struct kind *kind)
{
    user.pause_at = 2;
    struct world_call *c = begin(w, kind, kind == &observe_kind ? 0 : 2500);
    for (int i = 0; i < 4; i++) {
        change_leader();
        world_run(w, 3 * NS_PER_S);
        if (i == 3)
            break;
        user.pause_at = i == 0 ? 3 : 0;
        vigil_call_resume(user.call);
        world_run(w, NS_PER_MS);
    }
    vigil_call_resume(user.call);
    WORLD_RUN_UNTIL(w, is_over(c));
    return c;
}

static void check_success(const struct kind *kind)
{
    if (kind == &pages_kind || kind == &stream_kind)
        assert_int_equal(user.keys, KEYS);
    else if (kind == &snapshot_kind)
        assert_int_equal(user.bytes, SNAPSHOT_BYTES);
}

static void end(struct world *w)
{
    user.call = NULL; /* is freed now */
    world_fini(w);
    *context = '\0';
}

static struct faults run_clean(const struct kind *kind)
{
    struct world w;
    start(&w, kind->name, FAULT_NONE, 0);
    assert_true(world_start(&w, 1));
    struct world_call *c = run_kind(&w, kind);
    if (kind == &observe_kind)
        assert_int_equal(user.leaders, 4);
    else
        assert_int_equal(c->code, VIGIL_OK);
    assert_int_equal(c->completions, kind != &observe_kind);
    assert_true(kind == &pages_kind || server.requests == 1);
    assert_true(user.parts >= 4);
    check_success(kind);
    struct faults totals = faults;
    end(&w);
    return totals;
}

static void every_kind_succeeds_without_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        (void)run_clean(kinds[i]);
}

static void run_with_fault(const struct kind *kind, enum fault_kind fault, size_t at)
{
    struct world w;
    start(&w, kind->name, fault, at);
    assert_true(world_start(&w, 1));
    contents_may_be_wrong = fault == FAULT_GARBAGE;
    struct world_call *c = run_kind(&w, kind);
    contents_may_be_wrong = false;
    if (fault != FAULT_GARBAGE) {
        assert_true(is_over(c));
        if (c->code == VIGIL_OK && c->completions)
            check_success(kind);
        if (kind->repeats)
            assert_int_equal(c->code, VIGIL_OK);
        else if (c->code != VIGIL_OK)
            assert_true(user.parts && c->code == VIGIL_ERROR_UNAVAILABLE);
    }
    assert_true(c->completions <= 1);
    end(&w);
}

static void each_place(enum fault_kind fault)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct faults totals = run_clean(kinds[i]);
        for (size_t at = 0; at < fault_places(fault, &totals); at++)
            run_with_fault(kinds[i], fault, at);
    }
}

static void connection_may_break_after_every_byte(void **state)
{
    (void)state;
    each_place(FAULT_LOST_READING);
    each_place(FAULT_RESET);
    each_place(FAULT_END);
    each_place(FAULT_LOST_WRITING);
}

static void connection_may_fall_silent(void **state)
{
    (void)state;
    each_place(FAULT_SILENCE);
}

static void bytes_may_be_wrong(void **state)
{
    (void)state;
    each_place(FAULT_GARBAGE);
}

static void every_system_call_may_fail(void **state)
{
    (void)state;
    each_place(FAULT_CALL);
}

/* False: there were fewer allocations. */
static bool run_without_memory(const struct kind *kind, size_t nth, bool all_following)
{
    struct world w;
    start(&w, kind->name, FAULT_NONE, nth);
    memory_fail_on = all_following;
    faulty_memory_at = nth;
    if (world_start(&w, 1)) {
        struct world_call *c = run_kind(&w, kind);
        assert_true(c->completions <= 1);
        if (c->completions && c->code == VIGIL_OK)
            check_success(kind);
    }
    bool failed = faulty_memory_at == (all_following ? 1 : 0);
    faulty_memory_at = 0;
    end(&w);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int all_following = 0; all_following < 2; all_following++) {
            size_t nth = 1;
            while (run_without_memory(kinds[i], nth, all_following))
                nth++;
            assert_true(nth > 20);
        }
}

/* -- Servers that violate the protocol -- */

static void wrong_servers_are_noticed(void **state)
{
    static const struct {
        enum wrong wrong;
        const struct kind *kind;
        int code;
        size_t parts;
        const char *text; /* a part of the error's */
    } cases[] = {
        {PAGE_WITHOUT_HEADER, &pages_kind, VIGIL_ERROR_PROTOCOL, 0, "not valid"},
        {PAGE_WITHOUT_KEYS, &pages_kind, VIGIL_ERROR_PROTOCOL, 0, "not valid"},
        {PAGE_REPEATED, &pages_kind, VIGIL_ERROR_PROTOCOL, 1, "not valid"},
        {NO_PARTS, &stream_kind, VIGIL_ERROR_PROTOCOL, 0, "without a response"},
        {PART_MALFORMED, &stream_kind, VIGIL_ERROR_PROTOCOL, 2, "not valid"},
        {PARTS_ARE_REFUSED, &stream_kind, VIGIL_ERROR_COMPACTED, 2, "compacted"},
        {PARTS_END_EARLY, &snapshot_kind, VIGIL_ERROR_PROTOCOL, 1, "has no digest"},
        {BLOB_CHANGED, &snapshot_kind, VIGIL_ERROR_PROTOCOL, BLOBS + 1, "digest is wrong"},
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        struct world w;
        bool pauses = i % 2;
        start(&w, "wrong server", FAULT_NONE, i / 2);
        server.wrong = cases[i / 2].wrong;
        user.pause_at = pauses;
        assert_true(world_start(&w, 1));
        struct world_call *c = begin(&w, cases[i / 2].kind, 1000);
        if (pauses && cases[i / 2].parts) {
            world_run(&w, 5 * NS_PER_S);
            assert_int_equal(c->completions, 0); /* also an error waits */
            vigil_call_resume(user.call);
        }
        WORLD_RUN_UNTIL(&w, c->completions);
        assert_int_equal(c->code, cases[i / 2].code);
        assert_non_null(strstr(vigil_call_error(user.call)->text, cases[i / 2].text));
        assert_int_equal(user.parts, cases[i / 2].parts);
        end(&w);
    }
}

/* -- Time -- */

static void timeout_counts_from_part_to_part(void **state)
{
    struct world w;
    (void)state;
    start(&w, "timeout", FAULT_NONE, 0);
    server.wrong = PARTS_COME_BY_HAND;
    assert_true(world_start(&w, 1));
    struct world_call *c = begin(&w, &stream_kind, 1000);
    user.pause_at = 4;
    for (size_t i = 0; i < 4; i++) {
        world_run(&w, 800 * NS_PER_MS);
        send_range_part(server.open[0], i);
        (void)world_get(&w); /* lets the server make a turn */
    }
    world_run(&w, 5 * NS_PER_S); /* paused */
    assert_int_equal(user.parts, 4);
    assert_int_equal(c->completions, 0);
    vigil_call_resume(user.call);
    world_run(&w, 900 * NS_PER_MS);
    assert_int_equal(c->completions, 0);
    world_run(&w, 200 * NS_PER_MS);
    assert_int_equal(c->completions, 1);
    assert_int_equal(c->code, VIGIL_ERROR_TIMEOUT);
    assert_null(server.open[0]); /* the server knows it */
    end(&w);
}

/* Only the time in which the server could send something counts. */
static void callback_may_take_longer_than_the_timeout(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w;
        start(&w, kinds[i]->name, FAULT_NONE, 0);
        user.takes_ns = 2 * NS_PER_S;
        assert_true(world_start(&w, 1));
        struct world_call *c = begin(&w, kinds[i], 1000);
        WORLD_RUN_UNTIL(&w, c->completions);
        assert_int_equal(c->code, VIGIL_OK);
        check_success(kinds[i]);
        end(&w);
    }
}

/* -- Observing -- */

/* Meanwhile the server restarts again and again, and each time another message arrives. */
static void paused_observer_keeps_only_the_newest_leader(void **state)
{
    struct world w;
    (void)state;
    start(&w, "paused observer", FAULT_NONE, 0);
    assert_true(world_start(&w, 1));
    user.pause_at = 1;
    (void)begin(&w, &observe_kind, 0);
    change_leader();
    world_run(&w, NS_PER_S);
    for (int i = 0; i < 5; i++) {
        etcd_member_stop(&w.members[0]);
        world_run(&w, 50 * NS_PER_MS);
        change_leader();
        etcd_member_start(&w.members[0], sim_network(w.sim));
        world_run(&w, 5 * NS_PER_S);
    }
    assert_int_equal(server.requests, 6);
    assert_int_equal(user.leaders, 1);
    vigil_call_resume(user.call);
    world_run(&w, NS_PER_S);
    assert_string_equal(user.newest, "6");
    assert_int_equal(user.leaders, 2);
    end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_succeeds_without_faults),
        TEST(connection_may_break_after_every_byte),
        TEST(connection_may_fall_silent),
        TEST(bytes_may_be_wrong),
        TEST(every_system_call_may_fail),
        TEST(every_allocation_may_fail),
        TEST(wrong_servers_are_noticed),
        TEST(timeout_counts_from_part_to_part),
        TEST(callback_may_take_longer_than_the_timeout),
        TEST(paused_observer_keeps_only_the_newest_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
