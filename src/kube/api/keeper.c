#include "kube/api/keeper.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/api/call.h"
#include "kube/api/purge.h"
#include "kube/object/strategy.h"

static const char *const namespaces[] = {"default", "kube-node-lease", "kube-public",
                                         "kube-system"};

bool kube_is_default_namespace(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(namespaces); i++) {
        if (slice_equal(name, slice_from_text(namespaces[i])))
            return true;
    }
    return false;
}

enum { PAGE_KEYS = 100, ARENA_BYTES_MAX = 4 << 20 };
#define AGAIN_NS (10 * NS_PER_S)

/* Frees itself when it is through; meanwhile the face is busy. Of either task below. */
struct keeper {
    struct kube_face *face;
    struct arena arena;
    struct buf value, from;
    size_t at;   /* of namespaces */
    bool failed; /* one could not be made */
    struct kube_write write;
    struct engine_range range;
    struct pb_range_request request;
};

static struct keeper *keeper_new(struct kube_face *face)
{
    struct keeper *keeper = xcalloc(1, sizeof(*keeper));
    keeper->face = face;
    face->under_way++;
    return keeper;
}

static void keeper_free(struct keeper *keeper)
{
    keeper->face->under_way--;
    arena_fini(&keeper->arena);
    buf_fini(&keeper->value);
    buf_fini(&keeper->from);
    free(keeper);
}

static void reset(struct keeper *keeper)
{
    arena_fini(&keeper->arena);
    arena_init(&keeper->arena, NULL, 0, ARENA_BYTES_MAX);
}

/* -- Going on with what was begun -- */

#define NAMESPACES_PREFIX "/registry/namespaces/"

static void read_page(struct keeper *keeper);

static void on_page(struct engine_op *op)
{
    struct keeper *keeper = CONTAINER_OF(op, struct keeper, range.op);
    bool fine = op->status == ST_OK, more = keeper->range.more;
    struct slice field, deleted, prefix = SLICE_LITERAL(NAMESPACES_PREFIX);
    while (fine && engine_range_next(&keeper->range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        struct kube_object object;
        buf_reset(&keeper->from, SIZE_MAX);
        fine = buf_append(&keeper->from, kv.key) == ST_OK &&
               buf_append(&keeper->from, slice_of("", 1)) == ST_OK;
        /* Its phase could be anyone's word; only a delete sets this. */
        if (fine && kube_object_parse(kv.value, &object) == ST_OK &&
            kube_object_field(&object, SLICE_LITERAL("metadata.deletionTimestamp"), &deleted) &&
            deleted.len)
            kube_purge_start(keeper->face, slice_sub(kv.key, prefix.len, kv.key.len - prefix.len));
    }
    fine = fine && keeper->range.op.status == ST_OK;
    engine_range_close(&keeper->range);
    if (!fine)
        kube_keep_again(keeper->face);
    if (fine && more && !keeper->face->stopped)
        read_page(keeper);
    else
        keeper_free(keeper);
}

static void read_page(struct keeper *keeper)
{
    reset(keeper);
    keeper->request = (struct pb_range_request){
        .key = keeper->from.len ? buf_slice(&keeper->from) : SLICE_LITERAL(NAMESPACES_PREFIX),
        .range_end = SLICE_LITERAL("/registry/namespaces0"),
        .limit = PAGE_KEYS,
    };
    keeper->range.op =
        (struct engine_op){.done = on_page, .arena = &keeper->arena, .principal = ENGINE_SERVER};
    engine_range_start(keeper->face->shard, &keeper->range, &keeper->request);
}

void kube_keeper_start(struct kube_face *face)
{
    read_page(keeper_new(face));
}

/* -- Making what is missing -- */

static void make_next(struct keeper *keeper);

static void on_made(struct engine_op *op)
{
    struct keeper *keeper = CONTAINER_OF(op, struct keeper, write.engine.op);
    if (op->status != ST_OK) {
        log_warn("cannot make a default namespace", LOG_TEXT("namespace", namespaces[keeper->at]),
                 LOG_TEXT("why", status_text(op->status)));
        keeper->failed = true;
    }
    engine_write_close(&keeper->write.engine);
    keeper->at++;
    make_next(keeper);
}

static bool make_value(struct keeper *keeper, const char *name)
{
    struct kube_status status = {0};
    struct kube_meta meta = {
        .arena = &keeper->arena,
        .kind = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces")),
        .now_s = clock_real_ns(keeper->face->clock) / 1000000000,
        .random = &keeper->face->random,
        .status = &status,
    };
    struct json_node *metadata, *object = json_node_new(&keeper->arena, JSON_TYPE_OBJECT);
    buf_reset(&keeper->value, SIZE_MAX);
    return object && kube_meta_object(&meta, object, "metadata", &metadata) &&
           kube_meta_set_text(&meta, metadata, "name", slice_from_text(name)) &&
           kube_meta_check(&meta, object) && kube_meta_create(&meta, object) &&
           kube_strategy_create(&meta, object) && kube_meta_order(&meta, object) &&
           json_tree_write(object, &keeper->value) == ST_OK;
}

static void finish(struct keeper *keeper)
{
    struct kube_face *face = keeper->face;
    struct kube_namespaces *n = &face->namespaces;
    struct list ready, *link;
    n->making = false;
    n->made = !keeper->failed;
    n->again_ns = clock_add(clock_mono_ns(face->clock), AGAIN_NS);
    keeper_free(keeper);
    list_init(&ready);
    while ((link = list_pop_front(&n->waiting)) != NULL)
        list_push_back(&ready, link);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_namespaces_wait *wait =
            LIST_ENTRY(link, struct kube_namespaces_wait, in_namespaces);
        wait->go(wait);
    }
}

/* One after the other; whichever thread is first makes it, and others find it. */
static void make_next(struct keeper *keeper)
{
    struct slice key;
    if (keeper->at == COUNT_OF(namespaces)) {
        finish(keeper);
        return;
    }
    reset(keeper);
    const char *name = namespaces[keeper->at];
    if (!make_value(keeper, name) || kube_key_make(&keeper->arena, NAMESPACES_PREFIX, SLICE_EMPTY,
                                                   slice_from_text(name), &key) != ST_OK) {
        xalloc_check(NULL, ARENA_BYTES_MAX);
        return;
    }
    keeper->write = (struct kube_write){.key = key, .value = buf_slice(&keeper->value)};
    keeper->write.engine.op =
        (struct engine_op){.done = on_made, .arena = &keeper->arena, .principal = ENGINE_SERVER};
    kube_storage_put(keeper->face->shard, &keeper->write);
}

void kube_namespaces_init(struct kube_namespaces *n)
{
    list_init(&n->waiting);
}

bool kube_namespaces_ready(const struct kube_face *face)
{
    const struct kube_namespaces *n = &face->namespaces;
    return n->made || (!n->making && n->again_ns && clock_mono_ns(face->clock) < n->again_ns);
}

void kube_namespaces_make(struct kube_face *face, struct kube_namespaces_wait *wait)
{
    list_push_back(&face->namespaces.waiting, &wait->in_namespaces);
    if (face->namespaces.making)
        return;
    face->namespaces.making = true;
    make_next(keeper_new(face));
}
