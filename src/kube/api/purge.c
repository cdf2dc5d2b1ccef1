#include "kube/api/purge.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "codec/json/string.h"
#include "kube/api/call.h"
#include "kube/api/definition.h"
#include "kube/api/keeper.h"
#include "kube/api/namespace_conditions.h"
#include "kube/object/kind_rules.h"
#include "kube/object/strategy.h"

enum {
    PAGE_KEYS = 50,
    PAGE_BYTES_MAX = 8 << 20,     /* of the keys of a page; one may be as long as a request */
    RANGE_KEYS = 8,               /* more than are made of a name to read one, however long it is */
    LOOKED_BYTES_MAX = 256 << 10, /* of objects in one turn; the last may be more */
    DELAY_MAX_S = 30,
};
#define SECOND_NS INT64_C(1000000000)

/* One object may take as much as in a request, and in proportion if it is larger than one. */
enum { OBJECT_BYTES_MAX = KUBE_CALL_ARENA_BYTES_MAX, TREE_BYTES_PER_BYTE = 48 };

/* A write that a page asks for. */
struct step {
    struct slice key;
    struct slice value; /* of a put; empty: delete */
    int64_t revision;
    bool marks; /* the object is read again and marked for deletion */
};

/* Owned by its face; freed when the namespace or definition is gone, or with the face. */
struct kube_purge {
    struct list in_face; /* links kube_face.purges */
    struct kube_face *face;
    struct buf name;          /* of the namespace, or of the definition */
    bool definition;          /* which of the two */
    struct kube_kinds *kinds; /* counted; of this round, NULL before it */
    struct kube_registry_wait wait;
    size_t kind_at;  /* of those to be emptied (kind_now) */
    struct buf from; /* where the next page begins; empty: at the beginning of its kind */
    struct pb_range_request request;
    struct engine_range range;
    struct kube_write write;
    struct arena page;   /* keys */
    struct arena object; /* of the one object that is looked at or written */
    const struct kube_kind *page_kind;
    struct step steps[PAGE_KEYS];
    size_t count, at;
    struct kube_remains remains; /* found in this round */
    bool page_open;              /* its range has objects that were not looked at */
    bool pods_gone;              /* in this round: everything else may go, too */
    bool left;                   /* something stays for now */
    bool over;                   /* it is gone, or not to be deleted */
    bool done;                   /* the namespace or definition itself was looked at */
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
    if (purge->page_open)
        engine_range_close(&purge->range);
    arena_fini(&purge->page);
    arena_fini(&purge->object);
    kube_remains_fini(&purge->remains);
    buf_fini(&purge->name);
    kube_kinds_unref(purge->kinds);
    buf_fini(&purge->from);
    free(purge);
}

static void begin_op(struct kube_purge *purge, struct engine_op *op,
                     void (*done)(struct engine_op *op))
{
    *op = (struct engine_op){.done = done, .arena = &purge->page, .principal = ENGINE_SERVER};
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

static void reset_object(struct kube_purge *purge, size_t json_bytes)
{
    arena_fini(&purge->object);
    arena_init(&purge->object, NULL, 0, OBJECT_BYTES_MAX + json_bytes * TREE_BYTES_PER_BYTE);
}

/* -- Writes -- */

static void on_written(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, write.engine.op);
    struct kube_kv current;
    bool failed = op->status != ST_OK;
    bool written = !failed && kube_write_succeeded(&purge->write, &current);
    bool gone = !failed && !written && !current.mod_revision;
    /* What has changed meanwhile is found again in the next round; what others have deleted is
     * what was wanted. */
    if (!written && !gone) {
        purge->left = true;
        purge->over = false;
    }
    /* What was to be marked is counted already. */
    if (!written && !gone && !purge->done && !purge->write.value.len)
        kube_remains_add(&purge->remains, purge->page_kind, failed);
    engine_write_close(&purge->write.engine);
    end_op(purge);
}

static void write_step(struct kube_purge *purge, const struct step *step)
{
    purge->write = (struct kube_write){
        .key = step->key, .value = step->value, .expected = step->revision, .keeps_lease = true};
    begin_op(purge, &purge->write.engine.op, on_written);
    if (step->value.len)
        kube_storage_put(purge->face->shard, &purge->write);
    else
        kube_storage_delete(purge->face->shard, &purge->write);
}

/* -- Changing an object -- */

static struct kube_meta meta_of(struct kube_purge *purge, const struct kube_kind *kind,
                                struct kube_status *status)
{
    return (struct kube_meta){
        .arena = &purge->object,
        .kind = kind,
        .now_s = clock_real_ns(purge->face->clock) / SECOND_NS,
        .random = &purge->face->random,
        .status = status,
    };
}

static bool encode(struct kube_purge *purge, const struct kube_meta *meta, struct json_node *object,
                   struct slice *ret_value)
{
    AUTO(buf_fini) struct buf text = {0};
    return kube_meta_order(meta, object) && json_tree_write(object, &text) == ST_OK &&
           arena_dup(&purge->object, buf_slice(&text), ret_value) == ST_OK;
}

/* Takes the object over: its bytes are gone when its range is closed. */
static enum status read_tree(struct kube_purge *purge, struct slice json,
                             struct json_node **ret_object)
{
    struct slice text;
    struct error error;
    reset_object(purge, json.len);
    TRY(arena_dup(&purge->object, json, &text));
    return json_tree_read(&purge->object, text, ret_object, &error);
}

static bool mark(struct kube_purge *purge, struct slice json, struct step *step)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, purge->page_kind, &status);
    struct json_node *object;
    return read_tree(purge, json, &object) == ST_OK && json_node_path(object, "metadata.name") &&
           kube_meta_set_deleting(&meta, object,
                                  kube_strategy_grace_s(purge->page_kind, object, -1)) &&
           encode(purge, &meta, object, &step->value);
}

/* To be marked: if it is still the one that was looked at. */
static void on_object(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    struct step *step = &purge->steps[purge->at - 1];
    struct slice field;
    struct kube_kv kv = {0};
    if (op->status == ST_OK && engine_range_next(&purge->range, &field))
        kv = kube_kv_of(field);
    step->marks = false;
    /* The same step again, as a write; what cannot be marked now is left for the next round. */
    if (kv.mod_revision == step->revision && mark(purge, kv.value, step))
        purge->at--;
    engine_range_close(&purge->range);
    end_op(purge);
}

static void do_step(struct kube_purge *purge)
{
    struct step *step = &purge->steps[purge->at++];
    if (!step->marks) {
        write_step(purge, step);
        return;
    }
    purge->request = (struct pb_range_request){.key = step->key};
    begin_op(purge, &purge->range.op, on_object);
    engine_range_start(purge->face->shard, &purge->range, &purge->request);
}

/* -- Looking at objects -- */

struct look {
    bool finalizers;
    bool deleting;
};

static void count_finalizer(struct kube_purge *purge, const struct json_scanner *s)
{
    uint8_t decoded[KUBE_REMAINS_NAME_BYTES_MAX + 2];
    struct slice name;
    if (s->raw.len <= sizeof(decoded) && json_string_get(s, decoded, &name) == JSON_STRING_FINE)
        kube_remains_add_finalizer(&purge->remains, name);
}

/* Behind their key. */
static bool look_at_finalizers(struct kube_purge *purge, struct json_scanner *s, struct look *look)
{
    enum json_token token = json_next(s);
    if (token != JSON_ARRAY)
        return json_skip(s, token);
    while ((token = json_next(s)) != JSON_ARRAY_END) {
        if (token == JSON_STRING)
            count_finalizer(purge, s);
        if (!json_skip(s, token))
            return false;
        look->finalizers = true;
    }
    return true;
}

/* Takes no memory, and is not stopped by how large or deep an object is. */
static struct look look_at_metadata(struct kube_purge *purge, struct slice metadata)
{
    struct look look = {0};
    struct json_scanner s;
    bool fine = true;
    json_scanner_init(&s, metadata);
    (void)json_next(&s);
    while (fine && json_next(&s) == JSON_KEY) {
        if (json_token_is(&s, SLICE_LITERAL("finalizers"))) {
            fine = look_at_finalizers(purge, &s, &look);
        } else if (json_token_is(&s, SLICE_LITERAL("deletionTimestamp"))) {
            enum json_token token = json_next(&s);
            look.deleting = token == JSON_STRING;
            fine = json_skip(&s, token);
        } else {
            fine = json_skip(&s, JSON_KEY);
        }
    }
    return look;
}

/* How long a pod may stay; one that cannot be taken apart runs nowhere. */
static enum status find_grace(struct kube_purge *purge, struct slice json, int64_t *ret_grace_s)
{
    struct json_node *object;
    *ret_grace_s = 0;
    if (!(kube_kind_rules(purge->page_kind) & KUBE_HAS_GRACE))
        return ST_OK;
    enum status status = read_tree(purge, json, &object);
    if (status == ST_OK)
        *ret_grace_s = kube_strategy_grace_s(purge->page_kind, object, -1);
    return status == ST_NOMEM ? status : ST_OK;
}

/* What to do about an object. Nobody could ever finish one that is none: it goes. */
static enum status look_at(struct kube_purge *purge, struct kube_kv kv)
{
    struct step *step = &purge->steps[purge->count];
    struct look look = {0};
    struct kube_object object;
    int64_t grace_s = 0;
    if (kube_object_parse(kv.value, &object) == ST_OK) {
        look = look_at_metadata(purge, object.metadata);
        TRY(find_grace(purge, kv.value, &grace_s));
    }
    bool stays = look.finalizers || grace_s > 0;
    *step = (struct step){.revision = kv.mod_revision, .marks = stays};
    TRY(arena_dup(&purge->page, kv.key, &step->key));
    if (stays) {
        purge->left = true;
        kube_remains_add(&purge->remains, purge->page_kind, false);
    }
    purge->count += !stays || !look.deleting;
    return ST_OK;
}

/* -- Pages -- */

/* Pods first, then every kind that a namespace can have objects of; NULL: that was all. */
static const struct kube_kind *namespace_kind(const struct kube_purge *purge)
{
    size_t own, custom, at = purge->kind_at;
    const struct kube_kind *kinds = kube_builtin_kinds(&own);
    struct kube_definition *const *definitions = kube_kinds_definitions(purge->kinds, &custom);
    if (at == 0)
        return kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("pods"));
    at--;
    if (at < own)
        return &kinds[at];
    return at - own < custom ? &definitions[at - own]->versions[0].kind : NULL;
}

/* Of a definition its own kind, served or not. */
static const struct kube_kind *kind_now(const struct kube_purge *purge)
{
    if (!purge->definition)
        return namespace_kind(purge);
    const struct kube_definition *d = kube_kinds_definition(purge->kinds, buf_slice(&purge->name));
    return d && purge->kind_at == 0 ? &d->versions[0].kind : NULL;
}

/* The same objects in another version. */
static bool is_again(const struct kube_kind *kind)
{
    size_t own;
    const struct kube_kind *kinds = kube_builtin_kinds(&own);
    if (kind->flags & KUBE_CUSTOM)
        return false;
    for (const struct kube_kind *k = kinds; k < kind; k++)
        if (strcmp(k->plural, kind->plural) == 0 && strcmp(k->group, kind->group) == 0)
            return true;
    return false;
}

static bool is_emptied(const struct kube_purge *purge, const struct kube_kind *kind)
{
    if (purge->definition || purge->kind_at == 0)
        return true;
    bool pods = !kind->group[0] && strcmp(kind->plural, "pods") == 0;
    return kind->flags & KUBE_NAMESPACED && !(kind->flags & KUBE_CREATE_ONLY) && !pods &&
           !is_again(kind);
}

/* False: there is none, or it has to wait for pods that are left. */
static bool next_kind(struct kube_purge *purge)
{
    if (!purge->definition && purge->kind_at > 0 && !purge->pods_gone) {
        if (purge->left)
            return false;
        purge->pods_gone = true;
    }
    while (kind_now(purge) && !is_emptied(purge, kind_now(purge)))
        purge->kind_at++;
    return kind_now(purge);
}

static enum status take_next(struct kube_purge *purge, struct slice field)
{
    struct kube_kv kv = kube_kv_of(field);
    buf_reset(&purge->from, SIZE_MAX);
    TRY(buf_append(&purge->from, kv.key));
    TRY(buf_append(&purge->from, slice_of("", 1)));
    /* One that there is no memory for is left; others need less. */
    if (look_at(purge, kv) != ST_OK) {
        purge->left = true;
        kube_remains_add(&purge->remains, purge->page_kind, true);
    }
    return ST_OK;
}

static void close_page(struct kube_purge *purge, enum status status)
{
    bool more = purge->range.more;
    if (status != ST_OK) {
        purge->left = true;
        kube_remains_add(&purge->remains, purge->page_kind, true);
        more = false;
    }
    engine_range_close(&purge->range);
    purge->page_open = false;
    if (!more) {
        purge->kind_at++;
        buf_reset(&purge->from, SIZE_MAX);
    }
}

/* Some objects a turn. */
static void look_on(struct kube_purge *purge)
{
    struct slice field;
    size_t looked = 0;
    enum status status = ST_OK;
    while (looked < LOOKED_BYTES_MAX && status == ST_OK) {
        if (!engine_range_next(&purge->range, &field)) {
            close_page(purge, purge->range.op.status);
            break;
        }
        looked += field.len;
        status = take_next(purge, field);
    }
    if (status != ST_OK)
        close_page(purge, status);
    loop_defer(purge->face->loop, &purge->next);
}

static void on_page(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    purge->page_open = true;
    if (op->status != ST_OK)
        close_page(purge, op->status);
    end_op(purge);
}

static enum status make_range(struct kube_purge *purge, const char *prefix, bool whole)
{
    struct slice name = buf_slice(&purge->name), key, end = SLICE_EMPTY;
    struct slice namespace = purge->definition ? SLICE_EMPTY : name;
    if (whole) {
        TRY(kube_key_make(&purge->page, prefix, namespace, SLICE_EMPTY, &key));
        TRY(kube_prefix_end(&purge->page, key, &end));
    } else {
        TRY(kube_key_make(&purge->page, prefix, SLICE_EMPTY, name, &key));
    }
    if (purge->from.len)
        TRY(arena_dup(&purge->page, buf_slice(&purge->from), &key));
    purge->request =
        (struct pb_range_request){.key = key, .range_end = end, .limit = whole ? PAGE_KEYS : 0};
    return ST_OK;
}

static void read_keys(struct kube_purge *purge, const struct kube_kind *kind, bool whole,
                      void (*done)(struct engine_op *op))
{
    arena_fini(&purge->page);
    arena_init(&purge->page, NULL, 0,
               PAGE_BYTES_MAX + RANGE_KEYS * (purge->name.len + purge->from.len));
    purge->count = purge->at = 0;
    purge->page_kind = kind;
    if (make_range(purge, kind->storage_prefix, whole) != ST_OK) {
        xalloc_check(NULL, PAGE_BYTES_MAX);
        return;
    }
    begin_op(purge, &purge->range.op, done);
    engine_range_start(purge->face->shard, &purge->range, &purge->request);
}

/* -- The namespace or definition itself -- */

/* Nothing is in it any more. *ret_held: others have finalizers in it. */
static bool release_namespace(const struct kube_meta *meta, struct json_node *object,
                              bool *ret_ours, bool *ret_held)
{
    (void)meta;
    struct json_node *list = json_node_path(object, "spec.finalizers");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    while (item && !json_node_is_text(item, "kubernetes"))
        item = json_node_next(item);
    *ret_ours = item;
    if (item)
        json_node_remove(list, item);
    *ret_held =
        kube_meta_has_finalizers(object) || (list && list->type == JSON_TYPE_ARRAY && list->first);
    return true;
}

/* Whoever has the last finalizer removes it: then nothing is left to do here. */
static bool plan_release(struct kube_purge *purge, const struct kube_meta *meta,
                         struct json_node *object, struct step *step)
{
    bool ours = false, held = false;
    if (!(purge->definition ? kube_definition_release : release_namespace)(meta, object, &ours,
                                                                           &held))
        return false;
    if (held && ours && !encode(purge, meta, object, &step->value))
        return false;
    purge->over = held;
    purge->count = !held || ours;
    return true;
}

static bool plan_last(struct kube_purge *purge, const struct kube_meta *meta,
                      struct json_node *object, struct step *step)
{
    bool remains = purge->left || purge->remains.undiscovered;
    if (purge->definition)
        return remains || plan_release(purge, meta, object, step);
    struct json_node *was = json_node_copy(&purge->object, object);
    if (!was || !kube_remains_tell(&purge->remains, meta, object, buf_slice(&purge->name)))
        return false;
    if (!remains)
        return plan_release(purge, meta, object, step);
    if (json_node_equal(was, object))
        return true;
    purge->count = 1;
    return encode(purge, meta, object, &step->value);
}

/* What to write, into the first step. ST_NOMEM: what it is cannot be found out now. */
static enum status look_at_last(struct kube_purge *purge, struct kube_kv kv)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, purge->page_kind, &status);
    struct step *step = &purge->steps[0];
    struct json_node *object;
    *step = (struct step){.revision = kv.mod_revision};
    enum status read = read_tree(purge, kv.value, &object);
    if (read == ST_NOMEM)
        return read;
    purge->over = read != ST_OK || !kube_meta_is_deleting(object);
    if (purge->over)
        return ST_OK;
    TRY(arena_dup(&purge->page, kv.key, &step->key));
    if (plan_last(purge, &meta, object, step))
        return ST_OK;
    purge->count = 0;
    return ST_NOMEM;
}

static void on_last(struct engine_op *op)
{
    struct kube_purge *purge = CONTAINER_OF(op, struct kube_purge, range.op);
    enum status status = op->status;
    struct slice field;
    purge->done = true;
    purge->left |= purge->remains.undiscovered;
    if (status == ST_OK && !engine_range_next(&purge->range, &field))
        purge->over = purge->range.op.status == ST_OK;
    else if (status == ST_OK)
        status = look_at_last(purge, kube_kv_of(field));
    if (status != ST_OK)
        purge->left = true;
    engine_range_close(&purge->range);
    end_op(purge);
}

static const struct kube_kind *last_kind(const struct kube_purge *purge)
{
    if (purge->definition)
        return kube_builtin_find(SLICE_LITERAL("apiextensions.k8s.io"), SLICE_LITERAL("v1"),
                                 SLICE_LITERAL("customresourcedefinitions"));
    return kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
}

/* -- Rounds -- */

static void begin_round(struct kube_purge *purge)
{
    kube_kinds_unref(purge->kinds);
    purge->kinds = NULL;
    purge->kind_at = 0;
    purge->left = purge->pods_gone = purge->over = purge->done = false;
    purge->count = purge->at = 0;
    buf_reset(&purge->from, SIZE_MAX);
    arena_fini(&purge->object);
    purge->object = (struct arena){0};
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
    kube_remains_reset(&purge->remains);
    purge->remains.undiscovered = !wait->complete;
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
    if (purge->page_open)
        look_on(purge);
    else if (purge->at < purge->count)
        do_step(purge);
    else if (!purge->kinds)
        read_kinds(purge);
    else if (!purge->done && next_kind(purge))
        read_keys(purge, kind_now(purge), true, on_page);
    else if (!purge->done)
        read_keys(purge, last_kind(purge), false, on_last);
    else if (purge->over || !purge->left)
        finish(purge);
    else
        wait_a_while(purge);
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
