#include "kube/api/purge.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "kube/api/call.h"
#include "kube/api/definition.h"
#include "kube/api/keeper.h"
#include "kube/object/strategy.h"

enum { PAGE_KEYS = 50, ARENA_BYTES_MAX = 64 << 20, DELAY_MAX_S = 30 };
#define SECOND_NS INT64_C(1000000000)

/* A write that a page asks for. */
struct step {
    struct slice key, value; /* empty: delete */
    int64_t revision;
};

/* Owned by its face; freed when the namespace or definition is gone, or with the face. */
struct kube_purge {
    struct list in_face; /* links kube_face.purges */
    struct kube_face *face;
    struct buf name;          /* of the namespace, or of the definition */
    bool definition;          /* which of the two */
    struct kube_kinds *kinds; /* counted; of this round, NULL before it */
    struct kube_registry_wait wait;
    size_t kind_at;  /* of those to be emptied; their count: the namespace or definition itself */
    struct buf from; /* where the next page begins; empty: at the beginning of its kind */
    struct pb_range_request request;
    struct engine_range range;
    struct kube_write write;
    struct arena arena; /* of a page: its keys and values */
    struct step steps[PAGE_KEYS];
    size_t count, at;
    bool more; /* this kind has another page */
    bool left; /* something stays for now */
    bool over; /* it is gone, or not to be deleted */
    bool done; /* it was looked at itself */
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
    buf_fini(&purge->name);
    kube_kinds_unref(purge->kinds);
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

/* What is to be removed itself, as a tree; false: there is nothing to do any more. */
static bool read_last(struct kube_purge *purge, struct kube_kv kv, struct step *step,
                      struct json_node **ret_object)
{
    struct error error;
    *step = (struct step){.revision = kv.mod_revision};
    purge->over = arena_dup(&purge->arena, kv.key, &step->key) != ST_OK ||
                  json_tree_read(&purge->arena, kv.value, ret_object, &error) != ST_OK ||
                  !kube_meta_is_deleting(*ret_object);
    return !purge->over;
}

/* The namespace itself, when nothing is in it any more. */
static bool plan_namespace(struct kube_purge *purge, const struct kube_meta *meta,
                           struct json_node *object, struct step *step)
{
    struct json_node *list = json_node_path(object, "spec.finalizers");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    while (item && !json_node_is_text(item, "kubernetes"))
        item = json_node_next(item);
    bool ours = item;
    if (ours)
        json_node_remove(list, item);
    bool held =
        kube_meta_has_finalizers(object) || (list && list->type == JSON_TYPE_ARRAY && list->first);
    /* Who has the last finalizer removes the namespace with it. */
    purge->over = held;
    return !held || (ours && encode(purge, meta, object, &step->value));
}

/* The definition itself, when there is nothing of its kind any more. */
static bool plan_definition(struct kube_purge *purge, const struct kube_meta *meta,
                            struct json_node *object, struct step *step)
{
    bool held, ours = kube_definition_release(meta, object, &held);
    purge->over = held;
    return !held || (ours && encode(purge, meta, object, &step->value));
}

/* -- Pages -- */

/* Namespaces have something of every kind; unserved ones of definitions are emptied, too. NULL: all
 * are empty. */
static const struct kube_kind *kind_now(const struct kube_purge *purge)
{
    size_t own, custom, at = purge->kind_at;
    const struct kube_kind *kinds = kube_builtin_kinds(&own);
    struct kube_definition *const *definitions = kube_kinds_definitions(purge->kinds, &custom);
    if (purge->definition) {
        const struct kube_definition *d =
            kube_kinds_definition(purge->kinds, buf_slice(&purge->name));
        return d && at == 0 ? &d->versions[0].kind : NULL;
    }
    if (at < own)
        return &kinds[at];
    return at - own < custom ? &definitions[at - own]->versions[0].kind : NULL;
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

static const struct kube_kind *last_kind(const struct kube_purge *purge)
{
    if (purge->definition)
        return kube_builtin_find(SLICE_LITERAL("apiextensions.k8s.io"), SLICE_LITERAL("v1"),
                                 SLICE_LITERAL("customresourcedefinitions"));
    return kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
}

static void on_last(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, last_kind(purge), &status);
    struct step *step = &purge->steps[0];
    struct json_node *object;
    struct slice field;
    purge->done = true;
    if (op->status != ST_OK)
        purge->left = true;
    else if (!engine_range_next(&purge->range, &field))
        purge->over = true;
    else if (read_last(purge, kube_kv_of(field), step, &object) &&
             (purge->definition ? plan_definition : plan_namespace)(purge, &meta, object, step))
        purge->count = 1;
    engine_range_close(&purge->range);
    end_op(purge);
}

static enum status make_range(struct kube_purge *purge, const char *prefix, bool whole)
{
    struct slice name = buf_slice(&purge->name), key, end = SLICE_EMPTY;
    struct slice namespace = purge->definition ? SLICE_EMPTY : name;
    if (whole) {
        TRY(kube_key_make(&purge->arena, prefix, namespace, SLICE_EMPTY, &key));
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
    const char *prefix = kind ? kind->storage_prefix : last_kind(purge)->storage_prefix;
    if (make_range(purge, prefix, kind) != ST_OK) {
        xalloc_check(NULL, PAGE_KEYS);
        return;
    }
    begin_op(purge, &purge->range.op, kind ? on_page : on_last);
    engine_range_start(purge->face->shard, &purge->range, &purge->request);
}

/* -- Rounds -- */

static void begin_round(struct kube_purge *purge)
{
    kube_kinds_unref(purge->kinds);
    purge->kinds = NULL;
    purge->kind_at = 0;
    purge->left = purge->more = purge->over = purge->done = false;
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

static void on_kinds(struct kube_registry_wait *wait)
{
    struct kube_purge *purge = CONTAINER_OF(wait, struct kube_purge, wait);
    purge->kinds = kube_kinds_ref(kube_registry_kinds(purge->face->registry));
    end_op(purge);
}

/* Each round sees the kinds there are now. */
static void read_kinds(struct kube_purge *purge)
{
    purge->under_way = true;
    purge->face->under_way++;
    purge->wait.go = on_kinds;
    kube_registry_read(purge->face->registry, &purge->wait);
}

static bool is_emptied(const struct kube_purge *purge, const struct kube_kind *kind)
{
    return purge->definition ||
           (kind->flags & KUBE_NAMESPACED && !(kind->flags & KUBE_CREATE_ONLY));
}

static void finish(struct kube_purge *purge)
{
    struct kube_face *face = purge->face;
    bool names_free = purge->definition;
    purge_free(purge);
    if (names_free)
        kube_definitions_keep(face);
}

static void on_next(struct deferred *deferred)
{
    struct kube_purge *purge = CONTAINER_OF(deferred, struct kube_purge, next);
    assert(!purge->under_way);
    /* Who asked again came before it: it must not find an operation under way. */
    loop_timer_cancel(purge->face->loop, &purge->retry);
    if (purge->at < purge->count) {
        write_step(purge, &purge->steps[purge->at++]);
        return;
    }
    if (!purge->kinds) {
        read_kinds(purge);
        return;
    }
    while (kind_now(purge) && !is_emptied(purge, kind_now(purge)))
        purge->kind_at++;
    if (purge->over || (purge->done && !purge->left))
        finish(purge);
    else if (purge->left && !kind_now(purge))
        wait_a_while(purge);
    else
        read_page(purge);
}

static void on_retry(struct timer *timer)
{
    struct kube_purge *purge = CONTAINER_OF(timer, struct kube_purge, retry);
    loop_defer(purge->face->loop, &purge->next);
}

static void start(struct kube_face *face, struct slice name, bool definition)
{
    if (face->stopped || !face->loop)
        return;
    for (struct list *at = face->purges.next; at != &face->purges; at = at->next) {
        struct kube_purge *same = CONTAINER_OF(at, struct kube_purge, in_face);
        if (same->definition != definition || !slice_equal(buf_slice(&same->name), name))
            continue;
        same->delay_s = 1;
        if (!same->under_way)
            loop_defer(face->loop, &same->next);
        return;
    }
    struct kube_purge *purge = xcalloc(1, sizeof(*purge));
    purge->face = face;
    purge->definition = definition;
    purge->delay_s = 1;
    purge->next.fn = on_next;
    purge->retry.fn = on_retry;
    list_push_back(&face->purges, &purge->in_face);
    if (buf_append(&purge->name, name) != ST_OK) {
        purge_free(purge);
        return;
    }
    loop_defer(face->loop, &purge->next);
}

void kube_purge_start(struct kube_face *face, struct slice namespace)
{
    start(face, namespace, false);
}

void kube_purge_definition(struct kube_face *face, struct slice name)
{
    start(face, name, true);
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
