#include "base/clock.h"
#include "base/xalloc.h"
#include "kube/api/call.h"
#include "kube/api/definition.h"
#include "kube/api/keeper.h"
#include "kube/api/purge.h"

/* Frees itself when it is through; meanwhile the face is busy. One definition after the other. */
struct keeper {
    struct kube_face *face;
    struct kube_registry_wait wait;
    struct kube_kinds *kinds;
    size_t at;
    struct arena arena;
    struct buf value;
    struct pb_range_request request;
    struct engine_range range;
    struct kube_write write;
    struct deferred next;
    bool failed; /* one could not be looked after */
};

static void keeper_free(struct keeper *keeper)
{
    if (keeper->failed)
        kube_keep_again(keeper->face);
    keeper->face->under_way--;
    kube_kinds_unref(keeper->kinds);
    arena_fini(&keeper->arena);
    buf_fini(&keeper->value);
    free(keeper);
}

static void go_on(struct keeper *keeper)
{
    loop_defer(keeper->face->loop, &keeper->next);
}

static void on_written(struct engine_op *op)
{
    struct keeper *keeper = CONTAINER_OF(op, struct keeper, write.engine.op);
    keeper->failed |= op->status != ST_OK;
    engine_write_close(&keeper->write.engine); /* who was faster has settled it, too */
    go_on(keeper);
}

/* False: it is as it should be, or cannot be helped. */
static bool settle(struct keeper *keeper, struct kube_kv kv)
{
    struct kube_status status = {0};
    struct json_node *object, *was;
    struct error error;
    struct kube_meta meta = {
        .arena = &keeper->arena,
        .kind = kube_builtin_find(SLICE_LITERAL("apiextensions.k8s.io"), SLICE_LITERAL("v1"),
                                  SLICE_LITERAL("customresourcedefinitions")),
        .now_s = clock_real_ns(keeper->face->clock) / 1000000000,
        .random = &keeper->face->random,
        .status = &status,
    };
    struct slice text;
    buf_reset(&keeper->value, SIZE_MAX);
    return arena_dup(&keeper->arena, kv.value, &text) == ST_OK &&
           json_tree_read(&keeper->arena, text, &object, &error) == ST_OK &&
           json_node_path(object, "metadata.name") && json_node_path(object, "spec.names") &&
           (was = json_node_copy(&keeper->arena, object)) != NULL &&
           kube_definition_settle(&meta, object, keeper->kinds) && !json_node_equal(was, object) &&
           kube_meta_check(&meta, object) && kube_meta_order(&meta, object) &&
           json_tree_write(object, &keeper->value) == ST_OK;
}

static void on_read(struct engine_op *op)
{
    struct keeper *keeper = CONTAINER_OF(op, struct keeper, range.op);
    struct slice field;
    struct kube_kv kv = {0};
    if (op->status == ST_OK && engine_range_next(&keeper->range, &field))
        kv = kube_kv_of(field);
    bool changed = kv.mod_revision && settle(keeper, kv);
    keeper->failed |= op->status != ST_OK || arena_ran_out(&keeper->arena);
    engine_range_close(&keeper->range);
    if (!changed) {
        go_on(keeper);
        return;
    }
    keeper->write = (struct kube_write){.key = keeper->request.key,
                                        .value = buf_slice(&keeper->value),
                                        .expected = kv.mod_revision};
    keeper->write.engine.op =
        (struct engine_op){.done = on_written, .arena = &keeper->arena, .principal = ENGINE_SERVER};
    kube_storage_put(keeper->face->shard, &keeper->write);
}

static void read_one(struct keeper *keeper, struct slice name)
{
    arena_fini(&keeper->arena);
    arena_init(&keeper->arena, NULL, 0, SCHEMA_BYTES_MAX);
    keeper->request = (struct pb_range_request){0};
    if (kube_key_make(&keeper->arena, KUBE_DEFINITIONS_PREFIX, SLICE_EMPTY, name,
                      &keeper->request.key) != ST_OK) {
        keeper->failed = true;
        go_on(keeper);
        return;
    }
    keeper->range.op =
        (struct engine_op){.done = on_read, .arena = &keeper->arena, .principal = ENGINE_SERVER};
    engine_range_start(keeper->face->shard, &keeper->range, &keeper->request);
}

static void on_next(struct deferred *deferred)
{
    struct keeper *keeper = CONTAINER_OF(deferred, struct keeper, next);
    size_t count;
    struct kube_definition *const *all = kube_kinds_definitions(keeper->kinds, &count);
    while (keeper->at < count && !keeper->face->stopped) {
        struct kube_definition *d = all[keeper->at++];
        if (d->terminating) {
            kube_purge_definition(keeper->face, d->name);
        } else if (!d->established || !d->accepted) {
            read_one(keeper, d->name);
            return;
        }
    }
    keeper_free(keeper);
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct keeper *keeper = CONTAINER_OF(wait, struct keeper, wait);
    keeper->kinds = kube_kinds_ref(kube_registry_kinds(keeper->face->registry));
    keeper->failed = wait->status != ST_OK;
    go_on(keeper);
}

void kube_definitions_keep(struct kube_face *face)
{
    if (face->stopped || !face->loop)
        return;
    struct keeper *keeper = xcalloc(1, sizeof(*keeper));
    keeper->face = face;
    keeper->next.fn = on_next;
    keeper->wait.go = on_kinds;
    face->under_way++;
    kube_registry_read(face->registry, &keeper->wait);
}
