/* For tests: a connection to the API over the fake engine, with users and roles. */
#ifndef VIGIL_ETCD_AUTH_PEER_TEST_H
#define VIGIL_ETCD_AUTH_PEER_TEST_H

#include "codec/pb/rpc.pb.h"
#include "engine/hasher.h"
#include "etcd/auth_fixture_test.h"
#include "etcd/peer_calls_test.h"

#define TTL_NS (300 * NS_PER_S)

struct fixture {
    struct peer peer;
    struct etcd_config config;
    struct worker *hasher;
    bool hashing; /* the hasher's thread runs */
    struct loop *loop;
    char token[AUTH_TOKEN_ROOM];
    struct peer_field metadata[3];
};

static inline void fixture_init(struct fixture *f, unsigned inline_percent, const char *certificate)
{
    struct error error;
    memset(f, 0, sizeof(*f));
    f->hasher = hasher_new();
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    f->config = peer_config;
    f->config.hasher = f->hasher;
    f->config.bcrypt_cost = 4;
    f->config.names_from_certificates = true;
    assert_int_equal(auth_issuer_new(&(struct auth_issuer_settings){.simple_ttl_ns = TTL_NS},
                                     &f->config.issuer, &error),
                     ST_OK);
    struct fake_options options = {
        .seed = 3, .inline_percent = inline_percent, .identity = peer_identity};
    peer_init_named(&f->peer, &f->config, &options, 1 << 30, 0, certificate);
    etcd_api_set_loop(f->peer.api, f->loop);
}

static inline void start_hasher(struct fixture *f)
{
    if (!f->hashing)
        assert_int_equal(worker_start(f->hasher), ST_OK);
    f->hashing = true;
}

static inline void fixture_fini(struct fixture *f)
{
    struct peer *p = &f->peer;
    wire_connection_free(p->connection);
    while (fake_step(p->engine))
        ;
    start_hasher(f); /* so that its waiting jobs are done */
    while (etcd_api_busy(p->api))
        loop_turn(f->loop, NS_PER_MS);
    p->connection = NULL;
    peer_fini(p);
    worker_free(f->hasher);
    auth_issuer_free(f->config.issuer);
    loop_free(f->loop);
}

static inline int setup(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    fixture_init(f, 100, NULL);
    start_hasher(f);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    fixture_fini(*state);
    free(*state);
    return 0;
}

/* Waits until the engine and the hasher's thread have answered everything. */
static inline void settle(struct fixture *f)
{
    for (int i = 0; i < 30000 && etcd_api_busy(f->peer.api); i++) {
        (void)fake_step(f->peer.engine);
        loop_turn(f->loop, NS_PER_MS);
    }
    assert_false(etcd_api_busy(f->peer.api));
    peer_pump(&f->peer);
}

/* -- The user of a call -- */

static inline void show(struct fixture *f, const char *name, const char *value)
{
    f->metadata[0] = (struct peer_field){name, value};
    f->metadata[1] = (struct peer_field){0};
    f->peer.metadata = name ? f->metadata : NULL;
}

/* Sends a token of this user from now on; NULL: no token. */
static inline void be(struct fixture *f, const char *user)
{
    if (user)
        auth_token(f->config.issuer, user, f->peer.now_ns, f->token);
    show(f, user ? "token" : NULL, f->token);
}

static inline void begin(struct fixture *f)
{
    auth_begin(f->peer.engine, f->peer.shard);
}

static inline void change(struct fixture *f, struct engine_auth auth)
{
    auth_change(f->peer.engine, f->peer.shard, auth);
}

static inline uint32_t call(struct fixture *f, const char *path, const struct pb_message *type,
                            const void *request)
{
    uint32_t id = peer_call(&f->peer, path, type, request);
    settle(f);
    return id;
}

static inline uint32_t put(struct fixture *f, const char *key)
{
    struct pb_put_request request = {.key = slice_from_text(key), .value = SLICE_LITERAL("v")};
    return call(f, PB_KV_PUT_PATH, &pb_put_request_table, &request);
}

static inline void assert_fine(struct fixture *f, uint32_t id)
{
    assert_string_equal(peer_stream(&f->peer, id)->text, "");
    assert_int_equal(peer_stream(&f->peer, id)->code, GRPC_OK);
}

static inline void assert_refused(struct fixture *f, uint32_t id, enum status status)
{
    assert_fails(&f->peer, id, status_code(status), status_text(status));
}

#endif
