#include "kube/jobs/purge.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "codec/json/string.h"
#include "kube/custom/definition_rules.h"
#include "kube/jobs/job.h"
#include "kube/jobs/manager_lease.h"
#include "kube/jobs/namespace_conditions.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/object/object.h"
#include "kube/types/object/strategy.h"

enum {
    PAGE_KEYS = 50,
    PAGE_BYTES_MAX = 8 << 20, /* memory for the keys of a page; one may be as long as a request */
    RANGE_KEYS = 8,           /* an upper bound of the keys made of the name for one range */
    /* Size of the objects examined in one turn; the last may be longer. */
    LOOKED_BYTES_MAX = 256 << 10,
    DELAY_MAX_S = 30,
};

/* Memory for one object: as much as for a request, and more in proportion to its length. */
enum { OBJECT_BYTES_MAX = KUBE_CALL_ARENA_BYTES_MAX, TREE_BYTES_PER_BYTE = 48 };

/* A write that an object of the page needs. */
struct purge_write {
    struct slice key;
    struct slice value; /* value of a put; empty: delete */
    int64_t revision;
    bool marks; /* the object is read again and marked for deletion */
};

/* Freed when the namespace or definition is gone, or when the API stops. */
struct purge {
    struct kube_job job; /* its arena has the keys of a page */
    enum kube_purge_target target;
    struct buf name; /* name of the namespace, or of the definition */
    void (*on_end)(struct kube_api *api);
    struct kube_kinds *kinds; /* a reference; of this round, NULL before it */
    size_t kind_at;           /* position among those to be emptied (kind_now) */
    struct buf from;          /* first key of the next page; empty: that of its kind */
    struct arena object;      /* memory of the one object that is examined or written */
    const struct kube_kind *page_kind;
    struct purge_write steps[PAGE_KEYS];
    size_t count, at;
    struct kube_remaining remaining; /* found in this round */
    bool page_open;                  /* its range has objects that have not been examined */
    bool pods_gone;                  /* in this round: the other kinds may be deleted, too */
    bool left;                       /* something remains for now */
    bool lease_known;                /* in this round */
    bool stands_back;                /* in this round: kube-controller-manager empties it */
    bool noted;                      /* the log says that it stands back */
    struct kube_manager_lease lease; /* as of this round */
    bool over;                       /* the target is gone, or not to be deleted */
    bool done;                       /* the target itself has been examined */
    int64_t delay_s;
};

static bool is_definition(const struct purge *purge)
{
    return purge->target == KUBE_PURGE_DEFINITION;
}

static struct purge *purge_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct purge, job);
}

static void purge_fini(struct kube_job *job)
{
    struct purge *purge = purge_of(job);
    if (purge->page_open)
        engine_range_close(&job->range);
    arena_fini(&purge->object);
    kube_remaining_fini(&purge->remaining);
    buf_fini(&purge->name);
    kube_kinds_unref(purge->kinds);
    buf_fini(&purge->from);
}

/* -- Writes -- */

static void on_written(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_write(op));
    struct kube_kv current;
    bool failed = op->status != ST_OK;
    bool written = !failed && kube_write_succeeded(&purge->job.write, &current);
    bool gone = !failed && !written && !current.mod_revision;
    /* An object that has changed meanwhile is examined again in the next round; one that another
     * client has deleted is done. */
    if (!written && !gone) {
        purge->left = true;
        purge->over = false;
    }
    /* An object to be marked is counted already. */
    if (!written && !gone && !purge->done && !purge->job.write.value.len)
        kube_remaining_add(&purge->remaining, purge->page_kind, failed);
    engine_write_close(&purge->job.write.engine);
    kube_job_next(&purge->job);
}

/* -- Changing an object -- */

static struct kube_meta meta_of(struct purge *purge, const struct kube_kind *kind,
                                struct kube_status *status)
{
    return (struct kube_meta){
        .arena = &purge->object,
        .kind = kind,
        .now_s = clock_real_ns(purge->job.api->clock) / NS_PER_S,
        .random = &purge->job.api->random,
        .status = status,
    };
}

static bool encode(struct purge *purge, const struct kube_meta *meta, struct json_node *object,
                   struct slice *ret_value)
{
    AUTO(buf_fini) struct buf text = {0};
    return kube_meta_order(meta, object) && json_tree_write(object, &text) == ST_OK &&
           arena_dup(&purge->object, buf_slice(&text), ret_value) == ST_OK;
}

/* Copies the object, whose bytes are valid only until the range is closed. */
static enum status read_tree(struct purge *purge, struct slice json, struct json_node **ret_object)
{
    struct slice text;
    struct error error;
    arena_fini(&purge->object);
    arena_init(&purge->object, NULL, 0, OBJECT_BYTES_MAX + json.len * TREE_BYTES_PER_BYTE);
    TRY(arena_dup(&purge->object, json, &text));
    return json_tree_read(&purge->object, text, ret_object, &error);
}

static bool mark(struct purge *purge, struct slice json, struct purge_write *step)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, purge->page_kind, &status);
    struct json_node *object;
    return read_tree(purge, json, &object) == ST_OK && json_node_path(object, "metadata.name") &&
           kube_meta_set_deleting(&meta, object,
                                  kube_strategy_grace_s(purge->page_kind, object, -1)) &&
           encode(purge, &meta, object, &step->value);
}

/* Marks the object if it still has the revision that was examined. */
static void on_object(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_range(op));
    struct purge_write *step = &purge->steps[purge->at - 1];
    struct slice field;
    struct kube_kv kv = {0};
    if (op->status == ST_OK && engine_range_next(&purge->job.range, &field))
        kv = kube_kv_of(field);
    step->marks = false;
    /* The same write again, now with a value; an object that cannot be marked now is left for the
     * next round. */
    if (kv.mod_revision == step->revision && mark(purge, kv.value, step))
        purge->at--;
    engine_range_close(&purge->job.range);
    kube_job_next(&purge->job);
}

static void do_step(struct purge *purge)
{
    struct purge_write *step = &purge->steps[purge->at++];
    if (!step->marks) {
        purge->job.write = (struct kube_write){.key = step->key,
                                               .value = step->value,
                                               .expected = step->revision,
                                               .keeps_lease = true};
        if (step->value.len)
            kube_job_put(&purge->job, on_written);
        else
            kube_job_delete(&purge->job, on_written);
        return;
    }
    purge->job.request = (struct pb_range_request){.key = step->key};
    kube_job_read(&purge->job, on_object);
}

/* -- Examining objects -- */

struct purge_scan {
    bool finalizers;
    bool deleting;
};

/* After the key "finalizers". */
static bool scan_finalizers(struct purge *purge, struct json_scanner *s, struct purge_scan *scan)
{
    enum json_token token = json_next(s);
    if (token != JSON_ARRAY)
        return json_skip(s, token);
    while ((token = json_next(s)) != JSON_ARRAY_END) {
        if (token == JSON_STRING) {
            uint8_t decoded[KUBE_REMAINING_NAME_BYTES_MAX + 2];
            struct slice name;
            if (s->raw.len <= sizeof(decoded) &&
                json_string_get(s, decoded, &name) == JSON_STRING_FINE)
                kube_remaining_add_finalizer(&purge->remaining, name);
        }
        if (!json_skip(s, token))
            return false;
        scan->finalizers = true;
    }
    return true;
}

/* Needs no memory, so that it works for objects of any size and depth. */
static struct purge_scan scan_metadata(struct purge *purge, struct slice metadata)
{
    struct purge_scan scan = {0};
    struct json_scanner s;
    bool fine = true;
    json_scanner_init(&s, metadata);
    (void)json_next(&s);
    while (fine && json_next(&s) == JSON_KEY) {
        if (json_token_is(&s, SLICE_LITERAL("finalizers"))) {
            fine = scan_finalizers(purge, &s, &scan);
        } else if (json_token_is(&s, SLICE_LITERAL("deletionTimestamp"))) {
            enum json_token token = json_next(&s);
            scan.deleting = token == JSON_STRING;
            fine = json_skip(&s, token);
        } else {
            fine = json_skip(&s, JSON_KEY);
        }
    }
    return scan;
}

/* The grace period of a pod; one that cannot be parsed does not run. */
static enum status find_grace(struct purge *purge, struct slice json, int64_t *ret_grace_s)
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

/* Decides what to do with an object. A value that is not an object is deleted, because it has no
 * finalizers that could ever be removed. */
static enum status examine(struct purge *purge, struct kube_kv kv)
{
    struct purge_write *step = &purge->steps[purge->count];
    struct purge_scan scan = {0};
    struct kube_object object;
    int64_t grace_s = 0;
    if (kube_object_parse(kv.value, &object) == ST_OK) {
        scan = scan_metadata(purge, object.metadata);
        TRY(find_grace(purge, kv.value, &grace_s));
    }
    bool stays = scan.finalizers || grace_s > 0;
    *step = (struct purge_write){.revision = kv.mod_revision, .marks = stays};
    TRY(arena_dup(&purge->job.arena, kv.key, &step->key));
    if (stays) {
        purge->left = true;
        kube_remaining_add(&purge->remaining, purge->page_kind, false);
    }
    purge->count += !stays || !scan.deleting;
    return ST_OK;
}

/* -- Pages -- */

/* Pods first, then every namespaced kind; NULL: there are no more. */
static const struct kube_kind *namespace_kind(const struct purge *purge)
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

/* For a definition its own kind, served or not. */
static const struct kube_kind *kind_now(const struct purge *purge)
{
    if (!is_definition(purge))
        return namespace_kind(purge);
    const struct kube_definition *d = kube_kinds_definition(purge->kinds, buf_slice(&purge->name));
    return d && purge->kind_at == 0 ? &d->versions[0].kind : NULL;
}

/* Another version of a kind that was listed before: the objects are the same. */
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

static bool is_emptied(const struct purge *purge, const struct kube_kind *kind)
{
    if (is_definition(purge) || purge->kind_at == 0)
        return true;
    bool pods = !kind->group[0] && strcmp(kind->plural, "pods") == 0;
    return kind->flags & KUBE_NAMESPACED && !(kind->flags & KUBE_CREATE_ONLY) && !pods &&
           !is_again(kind);
}

/* False: there are no more kinds, or they must wait for pods that are left. */
static bool next_kind(struct purge *purge)
{
    if (!is_definition(purge) && purge->kind_at > 0 && !purge->pods_gone) {
        if (purge->left)
            return false;
        purge->pods_gone = true;
    }
    while (kind_now(purge) && !is_emptied(purge, kind_now(purge)))
        purge->kind_at++;
    return kind_now(purge);
}

static enum status take_next(struct purge *purge, struct slice field)
{
    struct kube_kv kv = kube_kv_of(field);
    buf_reset(&purge->from, SIZE_MAX);
    TRY(buf_append(&purge->from, kv.key));
    TRY(buf_append(&purge->from, slice_of("", 1)));
    /* An object that does not fit into memory is left; others may be smaller. */
    if (examine(purge, kv) != ST_OK) {
        purge->left = true;
        kube_remaining_add(&purge->remaining, purge->page_kind, true);
    }
    return ST_OK;
}

static void close_page(struct purge *purge, enum status status)
{
    bool more = purge->job.range.more;
    if (status != ST_OK) {
        purge->left = true;
        kube_remaining_add(&purge->remaining, purge->page_kind, true);
        more = false;
    }
    engine_range_close(&purge->job.range);
    purge->page_open = false;
    if (!more) {
        purge->kind_at++;
        buf_reset(&purge->from, SIZE_MAX);
    }
}

/* Examines some objects per turn. */
static void examine_some(struct purge *purge)
{
    struct slice field;
    size_t looked = 0;
    enum status status = ST_OK;
    while (looked < LOOKED_BYTES_MAX && status == ST_OK) {
        if (!engine_range_next(&purge->job.range, &field)) {
            close_page(purge, purge->job.range.op.status);
            break;
        }
        looked += field.len;
        status = take_next(purge, field);
    }
    if (status != ST_OK)
        close_page(purge, status);
    kube_job_next(&purge->job);
}

static void on_page(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_range(op));
    purge->page_open = true;
    if (op->status != ST_OK)
        close_page(purge, op->status);
    kube_job_next(&purge->job);
}

static enum status make_range(struct purge *purge, const char *prefix, bool whole)
{
    struct slice name = buf_slice(&purge->name), key, end = SLICE_EMPTY;
    struct slice namespace = is_definition(purge) ? SLICE_EMPTY : name;
    if (whole) {
        TRY(kube_key_make(&purge->job.arena, prefix, namespace, SLICE_EMPTY, &key));
        TRY(kube_prefix_end(&purge->job.arena, key, &end));
    } else {
        TRY(kube_key_make(&purge->job.arena, prefix, SLICE_EMPTY, name, &key));
    }
    if (purge->from.len)
        TRY(arena_dup(&purge->job.arena, buf_slice(&purge->from), &key));
    purge->job.request =
        (struct pb_range_request){.key = key, .range_end = end, .limit = whole ? PAGE_KEYS : 0};
    return ST_OK;
}

static void read_keys(struct purge *purge, const struct kube_kind *kind, bool whole,
                      void (*done)(struct engine_op *op))
{
    kube_job_reset_arena(&purge->job,
                         PAGE_BYTES_MAX + RANGE_KEYS * (purge->name.len + purge->from.len));
    purge->count = purge->at = 0;
    purge->page_kind = kind;
    if (make_range(purge, kind->storage_prefix, whole) != ST_OK) {
        xalloc_check(NULL, PAGE_BYTES_MAX);
        return;
    }
    kube_job_read(&purge->job, done);
}

/* -- The namespace or definition itself -- */

/* The namespace is empty. *ret_held: it has finalizers of others. */
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

/* With finalizers of others the target is removed by the client that removes the last one. */
static bool plan_release(struct purge *purge, const struct kube_meta *meta,
                         struct json_node *object, struct purge_write *step)
{
    bool ours = false, held = false;
    if (!(is_definition(purge) ? kube_definition_release : release_namespace)(meta, object, &ours,
                                                                              &held))
        return false;
    if (held && ours && !encode(purge, meta, object, &step->value))
        return false;
    purge->over = held;
    purge->count = !held || ours;
    return true;
}

static bool plan_target(struct purge *purge, const struct kube_meta *meta, struct json_node *object,
                        struct purge_write *step)
{
    bool remains = purge->left || purge->remaining.undiscovered;
    if (is_definition(purge))
        return remains || plan_release(purge, meta, object, step);
    struct json_node *was = json_node_copy(&purge->object, object);
    if (!was ||
        !kube_remaining_set_conditions(&purge->remaining, meta, object, buf_slice(&purge->name)))
        return false;
    if (!remains)
        return plan_release(purge, meta, object, step);
    if (json_node_equal(was, object))
        return true;
    purge->count = 1;
    return encode(purge, meta, object, &step->value);
}

/* Puts the write of the target into steps[0]. ST_NOMEM: it cannot be decided now. */
static enum status examine_target(struct purge *purge, struct kube_kv kv)
{
    struct kube_status status = {0};
    struct kube_meta meta = meta_of(purge, purge->page_kind, &status);
    struct purge_write *step = &purge->steps[0];
    struct json_node *object;
    *step = (struct purge_write){.revision = kv.mod_revision};
    enum status read = read_tree(purge, kv.value, &object);
    if (read == ST_NOMEM)
        return read;
    purge->over = read != ST_OK || !kube_meta_is_deleting(object);
    if (purge->over)
        return ST_OK;
    TRY(arena_dup(&purge->job.arena, kv.key, &step->key));
    if (plan_target(purge, &meta, object, step))
        return ST_OK;
    purge->count = 0;
    return ST_NOMEM;
}

static void on_target(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_range(op));
    enum status status = op->status;
    struct slice field;
    purge->done = true;
    purge->left |= purge->remaining.undiscovered;
    if (status == ST_OK && !engine_range_next(&purge->job.range, &field))
        purge->over = purge->job.range.op.status == ST_OK;
    else if (status == ST_OK)
        status = examine_target(purge, kube_kv_of(field));
    if (status != ST_OK)
        purge->left = true;
    engine_range_close(&purge->job.range);
    kube_job_next(&purge->job);
}

static const struct kube_kind *target_kind(const struct purge *purge)
{
    if (is_definition(purge))
        return kube_builtin_find(SLICE_LITERAL("apiextensions.k8s.io"), SLICE_LITERAL("v1"),
                                 SLICE_LITERAL("customresourcedefinitions"));
    return kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
}

/* -- Standing back -- */

static void on_lease(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_range(op));
    struct slice field;
    struct kube_kv kv = {0};
    if (op->status == ST_OK && engine_range_next(&purge->job.range, &field))
        kv = kube_kv_of(field);
    /* Without an answer the round ends, and the next one asks again. */
    bool failed = purge->job.range.op.status != ST_OK;
    if (!failed)
        kube_manager_lease_note(&purge->lease, kv.mod_revision, kv.value,
                                loop_now_ns(purge->job.api->loop),
                                clock_real_ns(purge->job.api->clock));
    purge->lease_known = true;
    purge->stands_back =
        failed || kube_manager_lease_held(&purge->lease, loop_now_ns(purge->job.api->loop));
    engine_range_close(&purge->job.range);
    kube_job_next(&purge->job);
}

/* Ends when the manager has removed the namespace, even if there is a new one. */
static void on_looked_after(struct engine_op *op)
{
    struct purge *purge = purge_of(kube_job_of_range(op));
    struct slice field;
    struct kube_object object;
    bool exists = op->status == ST_OK && engine_range_next(&purge->job.range, &field);
    bool deleting = exists && kube_object_parse(kube_kv_of(field).value, &object) == ST_OK &&
                    kube_object_is_deleting(&object);
    purge->done = true;
    purge->over = !deleting && purge->job.range.op.status == ST_OK;
    engine_range_close(&purge->job.range);
    kube_job_next(&purge->job);
}

/* -- Rounds -- */

static void begin_round(struct purge *purge)
{
    kube_kinds_unref(purge->kinds);
    purge->kinds = NULL;
    purge->kind_at = 0;
    purge->left = purge->pods_gone = purge->over = purge->done = false;
    purge->lease_known = purge->stands_back = false;
    purge->count = purge->at = 0;
    buf_reset(&purge->from, SIZE_MAX);
    arena_fini(&purge->object);
    purge->object = (struct arena){0};
}

static void wait_a_while(struct purge *purge)
{
    begin_round(purge);
    kube_job_wait(&purge->job, purge->delay_s);
    purge->delay_s = purge->delay_s * 2 < DELAY_MAX_S ? purge->delay_s * 2 : DELAY_MAX_S;
}

/* Until the lease ends unless it is renewed: the next round sees whether it was. */
static void wait_for_manager(struct purge *purge)
{
    if (!kube_manager_lease_held(&purge->lease, loop_now_ns(purge->job.api->loop))) {
        wait_a_while(purge);
        return;
    }
    if (!purge->noted)
        log_info("kube-controller-manager empties a namespace",
                 LOG_SLICE("namespace", buf_slice(&purge->name)));
    purge->noted = true;
    begin_round(purge);
    kube_job_wait(&purge->job,
                  kube_manager_lease_left_s(&purge->lease, loop_now_ns(purge->job.api->loop)));
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct purge *purge = purge_of(kube_job_of_kinds(wait));
    purge->kinds = kube_kinds_ref(kube_registry_kinds(purge->job.api->registry));
    kube_remaining_reset(&purge->remaining);
    purge->remaining.undiscovered = !wait->complete;
    kube_job_next(&purge->job);
}

static void finish(struct purge *purge)
{
    struct kube_api *api = purge->job.api;
    void (*on_end)(struct kube_api * api) = purge->on_end;
    kube_job_end(&purge->job);
    if (on_end)
        on_end(api);
}

static void purge_step(struct kube_job *job)
{
    struct purge *purge = purge_of(job);
    /* Namespaces are left to kube-controller-manager while it is at work. */
    if (!is_definition(purge) && !purge->lease_known) {
        kube_job_reset_arena(job, PAGE_BYTES_MAX);
        job->request = (struct pb_range_request){.key = SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY)};
        kube_job_read(job, on_lease);
    } else if (purge->stands_back) {
        if (!purge->done)
            read_keys(purge, target_kind(purge), false, on_looked_after);
        else if (purge->over)
            finish(purge);
        else
            wait_for_manager(purge);
    } else if (purge->page_open) {
        examine_some(purge);
    } else if (purge->at < purge->count) {
        do_step(purge);
    } else if (!purge->kinds) {
        /* Each round uses the current kinds. */
        kube_job_read_kinds(job, on_kinds);
    } else if (!purge->done && next_kind(purge)) {
        read_keys(purge, kind_now(purge), true, on_page);
    } else if (!purge->done) {
        read_keys(purge, target_kind(purge), false, on_target);
    } else if (purge->over || !purge->left) {
        finish(purge);
    } else {
        wait_a_while(purge);
    }
}

static const struct kube_job_type purge_type = {.step = purge_step, .fini = purge_fini};

static struct purge *find(struct kube_api *api, enum kube_purge_target target, struct slice name)
{
    struct kube_job *job = NULL;
    while ((job = kube_jobs_find(api->jobs, &purge_type, job)) != NULL)
        if (purge_of(job)->target == target && slice_equal(buf_slice(&purge_of(job)->name), name))
            return purge_of(job);
    return NULL;
}

void kube_purge_start(struct kube_api *api, enum kube_purge_target target, struct slice name,
                      void (*on_end)(struct kube_api *api))
{
    bool left_to_others = target == KUBE_PURGE_NAMESPACE && api->config->leaves_namespaces;
    if (api->jobs->stopped || left_to_others)
        return;
    struct purge *purge = find(api, target, name);
    if (purge) {
        purge->delay_s = 1;
        kube_job_hurry(&purge->job);
        return;
    }
    purge = xcalloc(1, sizeof(*purge));
    purge->target = target;
    purge->on_end = on_end;
    purge->delay_s = 1;
    if (buf_append(&purge->name, name) != ST_OK) {
        free(purge);
        return;
    }
    kube_job_start(&purge->job, &purge_type, api);
}
