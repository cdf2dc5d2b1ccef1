/*
 * An API over the fake engine, and clients without connections, for tests of the handlers: each
 * request is an exchange whose answer is collected, pulled as slowly as the test wants.
 */
#ifndef VIGIL_KUBE_SERVER_BED_TEST_H
#define VIGIL_KUBE_SERVER_BED_TEST_H

#include "kube/call/call.h"
#include "kube/jobs/job.h"
#include "kube/server/api.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "engine/engine.h"
#include "fake/fake.h"
#include "wire/http/exchange_private.h"
#include "wire/http/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EXCHANGES_MAX = 2048 };

struct peer {
    struct http_exchange x; /* first */
    struct http_opening opening;
    struct http_field field;
    const struct http_routes *routes;
    struct buf answer;
    char *text; /* text of the request; freed when the peer has left */
    unsigned code;
    bool over;
};

struct fixture {
    struct clock_sim clock;
    struct engine *engine;
    struct engine_shard *shard, *other_shard;
    struct loop *loop;
    struct kube_config config;
    struct kube_api *api;
    struct kube_api *other; /* like one on another thread: it shares only the engine */
    bool spread;            /* every second request uses the other API */
    struct peer *peers[EXCHANGES_MAX];
    size_t count;
    uint64_t seed;
    struct account *account; /* account of further requests; NULL: nothing is charged */
    struct wire_peer peer;   /* peer of further requests */
    const char *peer_name;   /* the same */
};

static struct fixture *bed;
static void (*bed_alter)(struct engine *engine);       /* the next fixture's; NULL: nothing */
static int64_t bed_compaction_s;                       /* for the next fixture */
static struct worker *bed_worker;                      /* for the next fixture; NULL: none */
static enum kube_authorization bed_authorization;      /* for the next fixture */
static struct kube_lookup_pool *bed_lookups;           /* the same; NULL: each API has its own */
static const struct kube_admission_set *bed_admission; /* for the next fixture; NULL: the least */

/* -- A peer without a connection -- */

static enum status on_begin(struct http_exchange *x, unsigned status, struct slice content_type,
                            const size_t *length)
{
    (void)content_type;
    (void)length;
    ((struct peer *)x)->code = status;
    return ST_OK;
}

static enum status on_reserve(struct http_exchange *x, size_t bytes)
{
    (void)x;
    (void)bytes;
    return ST_OK;
}

static enum status on_write(struct http_exchange *x, struct slice bytes)
{
    return buf_append(&((struct peer *)x)->answer, bytes);
}

static void on_over(struct http_exchange *x)
{
    (void)x;
}

static int64_t on_now(const struct http_exchange *x)
{
    (void)x;
    return bed->clock.mono_ns;
}

/* The whole request is there already. */
static void on_authorized(struct http_exchange *x)
{
    http_routes_dispatch(((struct peer *)x)->routes, x);
}

static const struct http_exchange_ops ops = {.authorized = on_authorized,
                                             .begin = on_begin,
                                             .reserve = on_reserve,
                                             .write = on_write,
                                             .end = on_over,
                                             .abort = on_over,
                                             .wake = on_over,
                                             .now = on_now};

static struct peer *send_with(const char *method, const char *path, const char *field,
                              const char *value, const char *body)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    assert_true(bed->count < EXCHANGES_MAX);
    bed->peers[bed->count++] = peer;
    peer->text = strdup(path);
    peer->x.ops = &ops;
    peer->x.opening = &peer->opening;
    peer->x.account = bed->account;
    peer->field = (struct http_field){slice_from_text(field), slice_from_text(value)};
    peer->opening.request = (struct http_request){.method = slice_from_text(method),
                                                  .target = slice_from_text(peer->text),
                                                  .host = SLICE_LITERAL("127.0.0.1"),
                                                  .peer = bed->peer,
                                                  .peer_name = bed->peer_name,
                                                  .fields = &peer->field,
                                                  .field_count = 1};
    http_split_target(peer->opening.request.target, &peer->opening.request);
    assert_int_equal(account_append(bed->account, &peer->opening.body, slice_from_text(body)),
                     ST_OK);
    peer->routes = kube_api_routes(bed->spread && bed->count % 2 ? bed->other : bed->api);
    http_routes_dispatch(peer->routes, &peer->x);
    return peer;
}

static inline struct peer *send(const char *method, const char *path, const char *type,
                                const char *body)
{
    return send_with(method, path, "content-type", type, body);
}

static inline struct peer *send_json(const char *method, const char *path, const char *body)
{
    return send(method, path, "application/json", body);
}

static inline struct peer *send_patch(const char *path, const char *body)
{
    return send("PATCH", path, "application/merge-patch+json", body);
}

/* The client has disconnected, or everything was sent. */
static inline void leave(struct peer *peer)
{
    if (peer->over)
        return;
    peer->over = true;
    http_exchange_end(&peer->x);
    http_exchange_fini(&peer->x);
    free(peer->text);
}

/* One turn of the loop; watches get what was written before it. */
static inline void turn_once(void)
{
    engine_shard_turn_begin(bed->shard);
    engine_shard_turn_begin(bed->other_shard);
    loop_turn(bed->loop, 0);
    engine_shard_turn_end(bed->shard);
    engine_shard_turn_end(bed->other_shard);
}

/* Runs until there is nothing left to do. */
static inline void run(void)
{
    do {
        turn_once();
    } while (fake_step(bed->engine) || loop_next_ns(bed->loop) <= bed->clock.mono_ns);
    kube_jobs_check(bed->api->jobs);
    kube_write_queue_check(&bed->api->write_queue);
}

/* The same with turns of the engine, in which watches are woken. */
static inline void run_watching(void)
{
    for (int i = 0; i < 4; i++) {
        run();
        engine_shard_turn_begin(bed->shard);
        loop_turn(bed->loop, 0);
        engine_shard_turn_end(bed->shard);
        engine_shard_flushed(bed->shard);
    }
    run();
}

static inline bool said(struct peer *peer, const char *text)
{
    return peer->answer.len && memmem(peer->answer.ptr, peer->answer.len, text, strlen(text));
}

static inline void assert_answer(struct peer *peer, unsigned code, const char *part)
{
    if (peer->code != code || (part && !said(peer, part)))
        fail_msg("%u %.*s", peer->code, SLICE_ARGS(buf_slice(&peer->answer)));
}

/* -- The server -- */

static void begin(uint64_t seed, unsigned inline_percent)
{
    bed = calloc(1, sizeof(*bed));
    bed->seed = seed;
    bed->config.worker = bed_worker;
    bed->config.authorization = bed_authorization;
    bed->config.lookups = bed_lookups;
    bed->config.admission = bed_admission;
    bed->config.compaction_s = bed_compaction_s;
    clock_sim_init(&bed->clock, 1700000000 * INT64_C(1000000000));
    bed->engine = fake_new(&(struct fake_options){.seed = seed, .inline_percent = inline_percent});
    if (bed_alter)
        bed_alter(bed->engine);
    assert_int_equal(loop_new(&bed->clock.clock, &bed->loop), ST_OK);
    assert_int_equal(engine_shard_new(bed->engine, bed->loop, &bed->shard), ST_OK);
    assert_int_equal(kube_api_new(&bed->config, bed->engine, bed->shard, bed->loop, &bed->api),
                     ST_OK);
    assert_int_equal(engine_shard_new(bed->engine, bed->loop, &bed->other_shard), ST_OK);
    assert_int_equal(
        kube_api_new(&bed->config, bed->engine, bed->other_shard, bed->loop, &bed->other), ST_OK);
    kube_api_start_jobs(bed->api);
    run();
}

static void end(void)
{
    for (size_t i = 0; i < bed->count; i++) {
        leave(bed->peers[i]);
        buf_fini(&bed->peers[i]->answer);
    }
    kube_api_stop(bed->api);
    kube_api_stop(bed->other);
    run();
    assert_false(kube_api_busy(bed->api) || kube_api_busy(bed->other));
    assert_int_equal(fake_open(bed->engine), 0);
    kube_api_free(bed->api);
    kube_api_free(bed->other);
    engine_shard_free(bed->shard);
    engine_shard_free(bed->other_shard);
    fake_free(bed->engine);
    loop_free(bed->loop);
    for (size_t i = 0; i < bed->count; i++)
        free(bed->peers[i]);
    free(bed);
}

/* -- Without the API -- */

static inline void on_told(struct engine_op *op)
{
    (void)op;
}

/* The number of leases, or of the keys of this one. */
static inline size_t count_leases(int64_t id)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_lease op = {
        .op = {.done = on_told, .arena = &arena}, .id = id, .want_keys = true};
    if (id)
        engine_lease_time_to_live(bed->shard, &op);
    else
        engine_lease_list(bed->shard, &op);
    run();
    arena_fini(&arena);
    return id ? op.key_count : op.id_count;
}

static inline void on_stored(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
    engine_write_close(&CONTAINER_OF(op, struct kube_write, engine.op)->engine);
}

/* Puts a new key directly into the store, as a client of the etcd API would. */
static inline void store(const char *key, struct slice value)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 16);
    struct kube_write write = {.key = slice_from_text(key), .value = value};
    write.engine.op =
        (struct engine_op){.done = on_stored, .arena = &arena, .principal = ENGINE_SERVER};
    kube_storage_put(bed->shard, &write);
    run();
    arena_fini(&arena);
}

/* -- Requests that many tests make -- */

#define CMS "/api/v1/namespaces/default/configmaps"
#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define HATS "/apis/example.com/v1/hats"

static inline struct peer *ask(const char *method, const char *path, const char *body,
                               unsigned code)
{
    struct peer *peer = send_json(method, path, body);
    run();
    assert_answer(peer, code, NULL);
    return peer;
}

/* Defines a custom resource without fields. */
static inline void make_hats(void)
{
    ask("POST", CRDS,
        "{\"metadata\":{\"name\":\"hats.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Cluster\",\"names\":{\"plural\":\"hats\",\"kind\":\"Hat\"},\"versions\":[{"
        "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]}}",
        201);
}

static inline void for_each_seed(void (*test)(void))
{
    static const unsigned percents[] = {0, 50, 100};
    for (uint64_t seed = 0; seed < 30; seed++) {
        begin(seed, percents[seed % 3]);
        test();
        end();
    }
}

#endif
