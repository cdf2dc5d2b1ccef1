/* A cluster of two members in a simulated network, for tests of upstream.h. */
#ifndef VIGIL_MIRROR_LINK_UPSTREAM_FIXTURE_TEST_H
#define VIGIL_MIRROR_LINK_UPSTREAM_FIXTURE_TEST_H

#include "mirror/link/upstream.h"

#include "client/sim/etcd_sim_test.h"
#include "mirror/link/kept_answers.h"
#include "mirror/link/options.h"

enum { MEMBERS = 2, FLOOD_MESSAGES = 400, FLOOD_BYTES = 16 * 1024 };
enum { ANSWER_BYTES = 40 << 20, ANSWER_SENT_BYTES = 1 << 20 };

/* What a member has seen of the last call with this path. */
struct seen {
    bool forwarded, leader;
    int64_t left_ns; /* until the deadline; INT64_MAX: none */
    char token[64], address[GRPC_ADDRESS_BYTES];
    unsigned calls, ended, moves; /* moves: the connection was another one than before */
};

struct world {
    struct sim *sim;
    struct loop *loop;
    struct etcd_cluster cluster;
    struct etcd_member members[MEMBERS];
    struct upstream *upstream;
    struct upstream_options options;
    char endpoints[256];
    struct seen seen;
    enum status refuse; /* calls that are not Authenticate, before anything is done */
    bool rejects_user;
    const void *leader;   /* unless NULL, other members refuse calls */
    const bool *learners; /* unless NULL: of each member; they refuse calls */
    size_t flooded;       /* bytes */
    size_t answers;       /* that were begun */
    size_t answered[4];   /* bytes of each */
    bool whole_answers;   /* not only their beginnings */
};

static struct world *world;

enum test_act { ACT_NOTHING, ACT_CANCEL_IN_MESSAGE, ACT_CANCEL_IN_END, ACT_START_IN_END };

struct test_call {
    struct upstream_call *call; /* NULL: ended */
    enum test_act act;
    unsigned messages, ends;
    size_t bytes;
    bool too_long;
    enum grpc_code code;
    char text[256];
    struct test_call *next; /* started in on_end */
    struct kept_answer kept;
};

/* -- What the members do -- */

static inline enum status admit(void *ctx, struct grpc_call *call, const struct grpc_row *row)
{
    struct slice token, value;
    bool logs_in = row->method->on_message == etcd_authenticate;
    if (logs_in)
        return world->rejects_user ? ST_AUTH_FAILED : ST_OK;
    struct seen *seen = &world->seen;
    bool given = grpc_call_metadata(call, SLICE_LITERAL("token"), &token);
    snprintf(seen->token, sizeof(seen->token), "%.*s", SLICE_ARGS(given ? token : SLICE_EMPTY));
    seen->forwarded = grpc_call_metadata(call, SLICE_LITERAL("grpcgateway-accept"), &value);
    seen->leader = grpc_call_metadata(call, SLICE_LITERAL("hasleader"), &value);
    seen->left_ns = grpc_call_deadline(call);
    if (seen->left_ns != INT64_MAX)
        seen->left_ns -= grpc_call_now(call);
    seen->calls++;
    char address[GRPC_ADDRESS_BYTES];
    grpc_call_peer_address(call, address);
    seen->moves += strcmp(address, seen->address) != 0;
    memcpy(seen->address, address, sizeof(address));
    if (world->leader && world->leader != ctx)
        return ST_NOT_LEADER;
    for (size_t i = 0; world->learners && i < MEMBERS; i++)
        if (world->learners[i] && ctx == &world->members[i])
            return ST_NOT_SUPPORTED_FOR_LEARNER;
    if (world->refuse != ST_OK)
        return world->refuse;
    return etcd_admit(ctx, call, row);
}

/* A source of messages, as fast as they are taken. */
struct flood {
    struct grpc_source source;
    size_t sent; /* bytes */
};

static inline enum grpc_fill flood_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                        size_t *ret_len)
{
    struct flood *f = CONTAINER_OF(source, struct flood, source);
    size_t total = (size_t)FLOOD_MESSAGES * (GRPC_PREFIX_BYTES + FLOOD_BYTES), at = 0;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_prefix_write(prefix, FLOOD_BYTES);
    for (; at < room && f->sent < total; at++, f->sent++) {
        size_t in_message = f->sent % (GRPC_PREFIX_BYTES + FLOOD_BYTES);
        dst[at] = in_message < GRPC_PREFIX_BYTES ? prefix[in_message] : 0;
    }
    world->flooded = f->sent;
    *ret_len = at;
    return f->sent == total ? GRPC_FILL_DONE : GRPC_FILL_MORE;
}

/* The beginning of a message that is too long. */
static inline enum grpc_fill large_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                        size_t *ret_len)
{
    (void)source;
    assert_true(room >= GRPC_PREFIX_BYTES);
    grpc_prefix_write(dst, UPSTREAM_ANSWER_BYTES_MAX + 1);
    *ret_len = GRPC_PREFIX_BYTES;
    return GRPC_FILL_PARKED;
}

static inline void large(struct grpc_call *call, void *service, struct slice message)
{
    static struct grpc_source source = {.fill = large_fill};
    (void)service;
    (void)message;
    grpc_call_set_source(call, &source);
}

/* The beginning of a message that may be received, if there is room. */
struct answer {
    struct grpc_source source;
    size_t *sent;
};

static inline enum grpc_fill answer_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                         size_t *ret_len)
{
    struct answer *a = CONTAINER_OF(source, struct answer, source);
    size_t all = world->whole_answers ? ANSWER_BYTES + GRPC_PREFIX_BYTES : ANSWER_SENT_BYTES;
    size_t n = size_min(room, all - *a->sent);
    memset(dst, 0, n);
    if (!*a->sent) {
        assert_true(n > GRPC_PREFIX_BYTES);
        grpc_prefix_write(dst, ANSWER_BYTES);
    }
    *a->sent += n;
    *ret_len = n;
    if (*a->sent < all)
        return GRPC_FILL_MORE;
    return world->whole_answers ? GRPC_FILL_DONE : GRPC_FILL_PARKED;
}

static inline void answer(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    (void)message;
    struct answer *a = arena_calloc(grpc_call_arena(call), 1, sizeof(*a));
    assert_non_null(a);
    a->source.fill = answer_fill;
    a->sent = &world->answered[world->answers++];
    grpc_call_set_source(call, &a->source);
}

static inline void flood(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    (void)message;
    struct flood *f = arena_calloc(grpc_call_arena(call), 1, sizeof(*f));
    assert_non_null(f);
    f->source.fill = flood_fill;
    grpc_call_set_source(call, &f->source);
}

/* Answers every message with itself, until the client leaves. */
static inline void echo(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    etcd_send_bytes(call, message);
}

static inline void on_call_end(struct grpc_call *call, void *service)
{
    (void)call;
    (void)service;
    world->seen.ended++;
}

static const struct grpc_method test_methods[] = {
    {.path = "/test/Large", .server_streams = true, .on_message = large, .on_end = on_call_end},
    {.path = "/test/Answer", .server_streams = true, .on_message = answer, .on_end = on_call_end},
    {.path = "/test/Flood", .server_streams = true, .on_message = flood, .on_end = on_call_end},
    {.path = "/test/Echo",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = echo,
     .on_end = on_call_end},
};

/* -- The world -- */

static inline void add_endpoint(struct world *w, size_t i)
{
    char address[ADDRESS_TEXT_BYTES];
    size_t len = strlen(w->endpoints);
    address_format(&w->members[i].bound.address, address);
    snprintf(w->endpoints + len, sizeof(w->endpoints) - len, "%shttp://%s", i ? "," : "", address);
}

static inline void world_open(struct world *w, const struct sim_options *options, size_t members)
{
    struct error error;
    *w = (struct world){.sim = sim_new(options), .options = w->options};
    world = w;
    etcd_cluster_init(&w->cluster);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct etcd_member *m = &w->members[i];
        etcd_member_init(m, &w->cluster);
        m->guard = (struct grpc_guard){admit, m};
        assert_int_equal(grpc_services_add(m->services, test_methods, COUNT_OF(test_methods), m),
                         ST_OK);
        grpc_services_guard(m->services, &m->guard);
    }
    for (size_t i = 0; i < members; i++) {
        etcd_member_start(&w->members[i], sim_network(w->sim));
        add_endpoint(w, i);
    }
    w->options.endpoints = w->endpoints;
    assert_int_equal(network_loop_new(sim_network(w->sim), &w->loop), ST_OK);
    if (upstream_new(w->loop, sim_network(w->sim), &w->options, &w->upstream, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static inline void begin(struct world *w, size_t members)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    world_open(w, &options, members);
}

static inline void finish(struct world *w)
{
    upstream_free(w->upstream);
    for (size_t i = 0; i < MEMBERS; i++)
        etcd_member_fini(&w->members[i]);
    loop_free(w->loop);
    sim_free(w->sim);
}

static inline int64_t now(const struct world *w)
{
    return clock_mono_ns(sim_clock(w->sim));
}

static inline void run(struct world *w, int64_t ns)
{
    int64_t until = now(w) + ns;
    while (now(w) < until && sim_step(w->sim))
        upstream_check(w->upstream);
}

static inline void run_until_end(struct world *w, const struct test_call *c)
{
    int64_t until = now(w) + 60 * NS_PER_S;
    while (!c->ends && now(w) < until && sim_step(w->sim))
        upstream_check(w->upstream);
    assert_int_equal(c->ends, 1);
}

/* -- Calls -- */

static inline void on_message(struct upstream_call *call, struct slice message)
{
    struct test_call *c = upstream_call_user(call);
    assert_ptr_equal(c->call, call);
    c->messages++;
    c->bytes += message.len;
    upstream_keep_answer(call, &c->kept);
    if (c->act == ACT_CANCEL_IN_MESSAGE)
        upstream_cancel(TAKE(c->call));
}

static inline void start_get(struct world *w, struct test_call *c, const char *token);

static inline void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct test_call *c = upstream_call_user(call);
    assert_ptr_equal(c->call, call);
    c->ends++;
    c->code = code;
    c->too_long = upstream_call_is_too_long(call);
    snprintf(c->text, sizeof(c->text), "%.*s", SLICE_ARGS(text));
    c->call = NULL;
    if (c->act == ACT_CANCEL_IN_END)
        upstream_cancel(call);
    if (c->act == ACT_START_IN_END)
        start_get(world, c->next, NULL);
}

static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};

/* token: NULL for Vigil's own name. */
static inline struct upstream_request request_of(const char *path, const char *token)
{
    return (struct upstream_request){
        .path = slice_from_text(path),
        .caller = {.is_self = !token, .token = slice_from_text(token ? token : "")},
        .deadline_ns = CLOCK_NEVER,
    };
}

static inline void start(struct world *w, struct test_call *c,
                         const struct upstream_request *request, struct slice message)
{
    assert_int_equal(upstream_start(w->upstream, request, &ops, c, &c->call), ST_OK);
    assert_int_equal(c->ends, 0);
    assert_int_equal(upstream_send(c->call, message), ST_OK);
    if (!request->lasts)
        upstream_half_close(c->call);
    upstream_check(w->upstream);
}

static inline void start_get(struct world *w, struct test_call *c, const char *token)
{
    struct upstream_request request = request_of("/etcdserverpb.KV/Range", token);
    request.reads = true;
    start(w, c, &request, SLICE_LITERAL("\x0a\x01k"));
}

/* A put of the value "1" to "9", which the members count. */
static inline void start_put(struct world *w, struct test_call *c, unsigned number,
                             int64_t deadline_ns)
{
    struct upstream_request request = request_of("/etcdserverpb.KV/Put", "t");
    uint8_t message[] = {
        0x0a, 1, 'k', 0x12, 2, (uint8_t)('0' + number / 10), (uint8_t)('0' + number % 10)};
    request.deadline_ns = deadline_ns;
    start(w, c, &request, slice_of(message, sizeof(message)));
}

#endif
