/*
 * For tests of views of the graph of nodes: a store, and two threads of a server as two loops that
 * the test turns, each with a view of the same graph. One file of a program includes this.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_VIEW_FIXTURE_TEST_H
#define VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_VIEW_FIXTURE_TEST_H

#include "base/clock.h"
#include "base/memory/budget.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "fake/fake.h"
#include "io/loop.h"
#include "kube/policy/access/node/node_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { VIEWS = 2, MANY = 60, LONG = 16 << 10 };

struct waiter {
    struct kube_node_wait wait;
    unsigned count;
    enum status status;
    int64_t revision; /* that the view had then */
};

struct fixture {
    struct clock_sim clock;
    struct engine *engine;
    struct engine_shard *shard;
    struct budget *budget;
    struct kube_nodes *nodes;
    struct loop *loops[VIEWS];
    struct kube_node_view *views[VIEWS];
    struct waiter waiters[VIEWS];
    size_t under_way;
    int64_t revision; /* the latest write's */
    int64_t compacted;
};

static struct fixture *f;

static inline struct slice text(const char *from)
{
    return slice_from_text(from);
}

/* -- Running -- */

/* One turn of one thread, which reads what was written before it. */
static inline void turn(size_t thread)
{
    engine_shard_turn_begin(f->shard);
    loop_turn(f->loops[thread], 0);
    engine_shard_turn_end(f->shard);
    engine_shard_flushed(f->shard);
}

static inline void run_thread(size_t thread)
{
    for (unsigned quiet = 0; quiet < 4; quiet++) {
        turn(thread);
        while (fake_step(f->engine) || loop_next_ns(f->loops[thread]) <= f->clock.mono_ns) {
            turn(thread);
            quiet = 0;
        }
    }
}

static inline void run(void)
{
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < VIEWS; i++)
            run_thread(i);
        clock_sim_advance(&f->clock, 2 * NS_PER_MS);
    }
}

/* -- Writing -- */

static inline void on_written(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

/* The store has it at once, and no thread has read it. value empty: the key is deleted. */
static inline void write_bytes(const char *key, struct slice value)
{
    struct arena arena;
    struct engine_write write = {
        .op = {.done = on_written, .arena = &arena, .principal = ENGINE_SERVER}};
    struct pb_put_request put = {.key = text(key), .value = value};
    struct pb_delete_range_request gone = {.key = text(key)};
    arena_init(&arena, NULL, 0, 4 << 20);
    if (value.len)
        engine_put(f->shard, &write, &put);
    else
        engine_delete_range(f->shard, &write, &gone);
    while (fake_step(f->engine))
        ;
    f->revision = write.op.revision;
    engine_write_close(&write);
    arena_fini(&arena);
}

/* ' stands for ". */
static inline void write_text(const char *key, const char *value)
{
    char bytes[1024];
    snprintf(bytes, sizeof(bytes), "%s", value);
    for (char *at = bytes; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    write_bytes(key, text(bytes));
}

/* In the namespace "shop". node NULL: it has none; secret NULL: the pod is deleted. */
static inline void write_pod(const char *name, const char *node, const char *secret)
{
    char key[64], value[256];
    snprintf(key, sizeof(key), "/registry/pods/shop/%s", name);
    snprintf(value, sizeof(value),
             "{'metadata':{},'spec':{'nodeName':'%s','imagePullSecrets':[{'name':'%s'}]}}",
             node ? node : "", secret ? secret : "");
    write_text(key, secret ? value : "");
}

/* Some that take more than one turn to be read. */
static inline void write_many(void)
{
    AUTO(buf_fini) struct buf value = {0};
    char key[64];
    assert_int_equal(buf_append_text(&value, "{\"spec\":{\"nodeName\":\"one\",\"x\":\""), ST_OK);
    for (size_t i = 0; i < LONG; i++)
        assert_int_equal(buf_append_text(&value, "x"), ST_OK);
    assert_int_equal(buf_append_text(&value, "\"}}"), ST_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "/registry/pods/shop/many-%02d", i);
        write_bytes(key, buf_slice(&value));
    }
}

static inline void delete_many(void)
{
    char key[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "/registry/pods/shop/many-%02d", i);
        write_text(key, "");
    }
}

/* All before the latest write. */
static inline void compact(void)
{
    struct arena arena;
    struct pb_compaction_request request = {.revision = f->revision};
    struct engine_op op = {.done = on_written, .arena = &arena, .principal = ENGINE_SERVER};
    if (f->compacted == f->revision)
        return;
    f->compacted = f->revision;
    arena_init(&arena, NULL, 0, 1 << 16);
    engine_compact(f->shard, &op, &request);
    while (fake_step(f->engine))
        ;
    arena_fini(&arena);
}

/* -- Views -- */

static inline void open_views(struct budget *budget, size_t bytes_max)
{
    f->nodes = kube_nodes_new(budget, bytes_max);
    for (size_t i = 0; i < VIEWS; i++)
        f->views[i] = kube_node_view_new(&(struct kube_node_view_options){
            .shard = f->shard,
            .loop = f->loops[i],
            .under_way = &f->under_way,
            .nodes = f->nodes,
        });
}

static inline void begin_empty(uint64_t seed, unsigned inline_percent)
{
    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    clock_sim_init(&f->clock, 1700000000 * INT64_C(1000000000));
    f->engine = fake_new(&(struct fake_options){.seed = seed, .inline_percent = inline_percent});
    for (size_t i = 0; i < VIEWS; i++)
        assert_int_equal(loop_new(&f->clock.clock, &f->loops[i]), ST_OK);
    assert_int_equal(engine_shard_new(f->engine, f->loops[0], &f->shard), ST_OK);
}

static inline void begin(uint64_t seed, unsigned inline_percent)
{
    begin_empty(seed, inline_percent);
    open_views(NULL, 0);
}

static inline void end(void)
{
    for (size_t i = 0; i < VIEWS; i++)
        kube_node_view_stop(f->views[i]);
    run();
    assert_int_equal(f->under_way, 0);
    assert_int_equal(fake_open(f->engine), 0);
    for (size_t i = 0; i < VIEWS; i++)
        kube_node_view_free(f->views[i]);
    kube_nodes_free(f->nodes);
    budget_free(f->budget);
    engine_shard_free(f->shard);
    fake_free(f->engine);
    for (size_t i = 0; i < VIEWS; i++)
        loop_free(f->loops[i]);
    free(f);
}

static inline void on_go(struct kube_node_wait *wait)
{
    struct waiter *waiter = CONTAINER_OF(wait, struct waiter, wait);
    waiter->count++;
    waiter->status = wait->status;
    waiter->revision = kube_node_view_revision(f->views[waiter - f->waiters]);
}

static inline struct waiter *start_wait(size_t thread)
{
    struct waiter *waiter = &f->waiters[thread];
    *waiter = (struct waiter){.wait = {.go = on_go}};
    kube_node_view_wait(f->views[thread], &waiter->wait);
    return waiter;
}

/* As the first question of a node does. */
static inline enum status load(size_t thread)
{
    const struct waiter *waiter = start_wait(thread);
    run();
    assert_int_equal(waiter->count, 1);
    assert_int_equal(kube_node_view_ready(f->views[thread]), waiter->status == ST_OK);
    return waiter->status;
}

static inline bool asks(size_t thread, const char *node, enum node_kind kind, const char *namespace,
                        const char *name)
{
    const struct node_object object = {kind, text(namespace), text(name)};
    assert_true(kube_node_view_ready(f->views[thread]));
    return kube_node_view_reaches(f->views[thread], text(node), object);
}

static inline bool reaches(const char *node, enum node_kind kind, const char *namespace,
                           const char *name)
{
    return asks(0, node, kind, namespace, name);
}

static inline bool has_secret(size_t thread, const char *node, const char *secret)
{
    return asks(thread, node, NODE_SECRET, "shop", secret);
}

static inline uint64_t metric(const char *name)
{
    struct metric_page page = {0};
    char wanted[64];
    kube_nodes_write_metrics(f->nodes, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    snprintf(wanted, sizeof(wanted), "\nvigil_kube_node_graph_%s ", name);
    const char *at = strstr((const char *)page.text.ptr, wanted);
    assert_non_null(at);
    uint64_t value = strtoull(at + strlen(wanted), NULL, 10);
    metric_page_fini(&page);
    return value;
}

#endif
