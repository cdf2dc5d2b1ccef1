#include "kube/api/purge.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "kube/api/call.h"
#include "kube/object/strategy.h"

enum { PAGE_KEYS = 50, ARENA_BYTES_MAX = 64 << 20, DELAY_MAX_S = 30 };
#define SECOND_NS INT64_C(1000000000)

/* A write that a page asks for. */
struct step {
    struct slice key, value; /* empty: delete */
    int64_t revision;
};

/* Owned by its face; freed when the namespace is gone, or with the face. */
struct kube_purge {
    struct list in_face; /* links kube_face.purges */
    struct kube_face *face;
    struct buf namespace;
    size_t kind_at;  /* of the built-in kinds; their count: the namespace itself */
    struct buf from; /* where the next page begins; empty: at the beginning of its kind */
    struct pb_range_request request;
    struct engine_range range;
    struct kube_write write;
    struct arena arena; /* of a page: its keys and values */
    struct step steps[PAGE_KEYS];
    size_t count, at;
    bool more; /* this kind has another page */
    bool left; /* something stays for now */
    bool over; /* the namespace is gone, or not to be deleted */
    bool under_way;
    int64_t delay_s;
    struct deferred next;
    struct timer retry;
};

static void purge_free(struct kube_purge *purge)
{
    list_remove(&purge->in_face);
    loop_defer_cancel(&purge->next);
    loop_timer_cancel(purge->face->loop, &purge->retry);
    arena_fini(&purge->arena);
    buf_fini(&purge->namespace);
    buf_fini(&purge->from);
    free(purge);
}

static void begin_op(struct kube_purge *purge, struct engine_op *op,
                     void (*done)(struct engine_op *op))
{
    *op = (struct engine_op){.done = done, .arena = &purge->arena, .principal = ENGINE_SERVER};
    purge->under_way = true;
    purge->face->under_way++;
}

/* Afterwards it may be gone. */
static void end_op(struct kube_purge *purge)
{
    purge->under_way = false;
    purge->face->under_way--;
    if (purge->face->stopped)
        purge_free(purge);
    else
        loop_defer(purge->face->loop, &purge->next);
}

/* -- Writes -- */

static void on_written(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, write.engine.op);
    struct kube_kv current;
    /* What has changed meanwhile is found again in the next round. */
    if (op->status != ST_OK || !kube_write_succeeded(&purge->write, &current))
        purge->left = true;
    engine_write_close(&purge->write.engine);
    end_op(purge);
}

static void write_step(struct kube_purge *purge, const struct step *step)
{
    purge->write =
        (struct kube_write){.key = step->key, .value = step->value, .expected = step->revision};
    begin_op(purge, &purge->write.engine.op, on_written);
    if (step->value.len)
        kube_storage_put(purge->face->shard, &purge->write);
    else
        kube_storage_delete(purge->face->shard, &purge->write);
}

/* -- What is to be done with an object -- */

static struct kube_meta meta_of(struct kube_purge *purge, const struct kube_kind *kind,
                                struct kube_status *status)
{
    return (struct kube_meta){
        .arena = &purge->arena,
        .kind = kind,
        .now_s = clock_real_ns(purge->face->clock) / SECOND_NS,
        .random = &purge->face->random,
        .status = status,
    };
}

static bool encode(struct kube_purge *purge, const struct kube_meta *meta, struct json_node *object,
                   struct slice *ret_value)
{
    struct buf text = {0};
    bool made = kube_meta_order(meta, object) && json_tree_write(object, &text) == ST_OK &&
                arena_dup(&purge->arena, buf_slice(&text), ret_value) == ST_OK;
    buf_fini(&text);
    return made;
}

/* False: it stays as it is for now. */
static bool plan(struct kube_purge *purge, const struct kube_kind *kind, struct kube_kv kv,
                 struct step *step)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, kind, &status);
    struct json_node *object;
    struct error error;
    if (arena_dup(&purge->arena, kv.key, &step->key) != ST_OK)
        return false;
    step->value = SLICE_EMPTY;
    step->revision = kv.mod_revision;
    if (json_tree_read(&purge->arena, kv.value, &object, &error) != ST_OK)
        return true; /* nobody could ever finish it */
    int64_t grace_s = kube_strategy_grace_s(kind, object, -1);
    if (!kube_meta_has_finalizers(object) && grace_s == 0)
        return true;
    purge->left = true;
    return !kube_meta_is_deleting(object) && json_node_path(object, "metadata.name") &&
           kube_meta_set_deleting(&meta, object, grace_s) &&
           encode(purge, &meta, object, &step->value);
}

/* The namespace itself, when nothing is in it any more. */
static bool plan_namespace(struct kube_purge *purge, const struct kube_kind *kind,
                           struct kube_kv kv, struct step *step)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, kind, &status);
    struct json_node *object;
    struct error error;
    *step = (struct step){.revision = kv.mod_revision};
    purge->over = arena_dup(&purge->arena, kv.key, &step->key) != ST_OK ||
                  json_tree_read(&purge->arena, kv.value, &object, &error) != ST_OK ||
                  !kube_meta_is_deleting(object);
    if (purge->over)
        return false;
    struct json_node *list = json_node_path(object, "spec.finalizers");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? list->first : NULL;
    while (item && !json_node_is_text(item, "kubernetes"))
        item = item->next;
    bool ours = item;
    if (ours)
        json_node_remove(list, item);
    bool held =
        kube_meta_has_finalizers(object) || (list && list->type == JSON_TYPE_ARRAY && list->first);
    /* Who has the last finalizer removes the namespace with it. */
    purge->over = held;
    return !held || (ours && encode(purge, &meta, object, &step->value));
}

/* -- Pages -- */

static const struct kube_kind *kind_now(const struct kube_purge *purge)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    return purge->kind_at < count ? &kinds[purge->kind_at] : NULL;
}

static enum status take_page(struct kube_purge *purge)
{
    const struct kube_kind *kind = kind_now(purge);
    struct slice field;
    TRY(purge->range.op.status);
    purge->more = purge->range.more;
    while (engine_range_next(&purge->range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        if (plan(purge, kind, kv, &purge->steps[purge->count]))
            purge->count++;
        buf_reset(&purge->from, SIZE_MAX);
        TRY(buf_append(&purge->from, kv.key));
        TRY(buf_append(&purge->from, slice_of("", 1)));
    }
    return purge->range.op.status;
}

static void on_page(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    if (take_page(purge) != ST_OK) {
        purge->left = true;
        purge->more = false;
    }
    engine_range_close(&purge->range);
    if (!purge->more) {
        purge->kind_at++;
        buf_reset(&purge->from, SIZE_MAX);
    }
    end_op(purge);
}

static void on_namespace(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    struct slice field;
    const struct kube_kind *kind =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
    purge->kind_at++;
    if (op->status != ST_OK) {
        purge->left = true;
    } else if (!engine_range_next(&purge->range, &field)) {
        purge->over = true;
    } else if (plan_namespace(purge, kind, kube_kv_of(field), &purge->steps[0])) {
        purge->count = 1;
    }
    engine_range_close(&purge->range);
    end_op(purge);
}

static enum status make_range(struct kube_purge *purge, const char *prefix, bool whole)
{
    struct slice name = buf_slice(&purge->namespace), key, end = SLICE_EMPTY;
    if (whole) {
        TRY(kube_key_make(&purge->arena, prefix, name, SLICE_EMPTY, &key));
        TRY(kube_prefix_end(&purge->arena, key, &end));
    } else {
        TRY(kube_key_make(&purge->arena, prefix, SLICE_EMPTY, name, &key));
    }
    if (purge->from.len)
        TRY(arena_dup(&purge->arena, buf_slice(&purge->from), &key));
    purge->request =
        (struct pb_range_request){.key = key, .range_end = end, .limit = whole ? PAGE_KEYS : 0};
    return ST_OK;
}

static void read_page(struct kube_purge *purge)
{
    const struct kube_kind *kind = kind_now(purge);
    arena_fini(&purge->arena);
    arena_init(&purge->arena, NULL, 0, ARENA_BYTES_MAX);
    purge->count = purge->at = 0;
    if (make_range(purge, kind ? kind->storage_prefix : "/registry/namespaces/", kind) != ST_OK) {
        xalloc_check(NULL, PAGE_KEYS);
        return;
    }
    begin_op(purge, &purge->range.op, kind ? on_page : on_namespace);
    engine_range_start(purge->face->shard, &purge->range, &purge->request);
}

/* -- Rounds -- */

static void begin_round(struct kube_purge *purge)
{
    purge->kind_at = 0;
    purge->left = purge->more = purge->over = false;
    purge->count = purge->at = 0;
    buf_reset(&purge->from, SIZE_MAX);
}

static void wait_a_while(struct kube_purge *purge)
{
    begin_round(purge);
    loop_timer_set(purge->face->loop, &purge->retry,
                   clock_add(loop_now_ns(purge->face->loop), purge->delay_s * SECOND_NS));
    purge->delay_s = purge->delay_s * 2 < DELAY_MAX_S ? purge->delay_s * 2 : DELAY_MAX_S;
}

static void on_next(struct deferred *deferred)
{
    struct kube_purge *purge = CONTAINER_OF(deferred, struct kube_purge, next);
    size_t kinds;
    kube_builtin_kinds(&kinds);
    if (purge->at < purge->count) {
        write_step(purge, &purge->steps[purge->at++]);
        return;
    }
    while (kind_now(purge) && (!(kind_now(purge)->flags & KUBE_NAMESPACED) ||
                               kind_now(purge)->flags & KUBE_CREATE_ONLY))
        purge->kind_at++;
    if (purge->over || (purge->kind_at > kinds && !purge->left))
        purge_free(purge);
    else if (purge->left && purge->kind_at >= kinds)
        wait_a_while(purge);
    else
        read_page(purge);
}

static void on_retry(struct timer *timer)
{
    struct kube_purge *purge = CONTAINER_OF(timer, struct kube_purge, retry);
    loop_defer(purge->face->loop, &purge->next);
}

void kube_purge_start(struct kube_face *face, struct slice namespace)
{
    if (face->stopped || !face->loop)
        return;
    for (struct list *at = face->purges.next; at != &face->purges; at = at->next) {
        struct kube_purge *same = CONTAINER_OF(at, struct kube_purge, in_face);
        if (!slice_equal(buf_slice(&same->namespace), namespace))
            continue;
        same->delay_s = 1;
        if (!same->under_way)
            loop_defer(face->loop, &same->next);
        return;
    }
    struct kube_purge *purge = xcalloc(1, sizeof(*purge));
    purge->face = face;
    purge->delay_s = 1;
    purge->next.fn = on_next;
    purge->retry.fn = on_retry;
    list_push_back(&face->purges, &purge->in_face);
    if (buf_append(&purge->namespace, namespace) != ST_OK) {
        purge_free(purge);
        return;
    }
    loop_defer(face->loop, &purge->next);
}

void kube_purges_stop(struct kube_face *face)
{
    face->stopped = true;
    struct list *next;
    for (struct list *at = face->purges.next; at != &face->purges; at = next) {
        struct kube_purge *purge = CONTAINER_OF(at, struct kube_purge, in_face);
        next = at->next;
        if (!purge->under_way)
            purge_free(purge);
    }
}
