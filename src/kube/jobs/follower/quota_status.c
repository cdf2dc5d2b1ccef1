#include "kube/jobs/follower/quota_status.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/jobs/follower/agenda.h"
#include "kube/jobs/follower/follower.h"
#include "kube/jobs/follower/own_request.h"
#include "kube/policy/admission/amounts/quota.h"
#include "kube/policy/admission/amounts/quota_count.h"
#include "kube/policy/admission/amounts/quota_pod.h"
#include "kube/types/object/object.h"

#include <inttypes.h>

#define REGISTRY SLICE_LITERAL("/registry/")
#define QUOTAS "/registry/resourcequotas/"

enum {
    DELAY_MS = 250,    /* from the first event to the count, for all that follow */
    REST_FACTOR = 9,   /* the pause after a count, in times of its duration */
    REST_MAX_S = 60,   /* but not longer */
    RETRY_S = 10,      /* after a failure */
    QUOTAS_MAX = 4,    /* that are counted together */
    SOURCES_MAX = 512, /* kinds that they can limit: one for each resource */
    PAGE_KEYS = 200,   /* objects in one read */
    /* Size of the objects in one turn; larger ones go to the worker. */
    COUNTED_BYTES_MAX = 64 << 10,
    BATCH_BYTES_MAX = 32 << 20,      /* memory for the quotas that are counted together */
    OBJECT_BYTES_MAX = 64 << 20,     /* and for one object */
    SCRATCH_BYTES = 32 << 10,        /* part of it that needs no allocation */
    DEFINITION_NAMESPACES_MAX = 500, /* namespaces that become due in one turn */
};

enum step { READ_QUOTAS, READ_KINDS, COUNT, WRITE };

struct quota {
    struct slice name;
    int64_t revision;
    struct kube_quota_count count;
};

struct controller {
    struct kube_follower follower;
    struct kube_agenda agenda; /* namespaces with quotas */
    struct list unknown;       /* those with a resource that no kind has */
    bool definitions_changed;  /* some of these resources may be known now */
    struct kube_own_request request;

    /* The namespace that is being counted, and some of its quotas. */
    struct kube_agenda_item *item; /* NULL: none is */
    enum step step;
    int64_t began_ns, took_ns; /* until everything is counted */
    struct buf from;           /* the key of its next quota; empty: the first */
    bool more;                 /* there are more quotas */
    bool any;                  /* the namespace has quotas */
    bool failed, outdated; /* to be counted again: after a failure, because a quota has changed */
    bool is_unknown;       /* a resource has no kind */
    int64_t end_s;         /* when the next pod ends for quotas; 0: none does */
    struct arena arena;    /* memory of the following, and of what it points to */
    struct quota quotas[QUOTAS_MAX];
    size_t quota_count, quota_at;
    const struct kube_kind *sources[SOURCES_MAX];
    size_t source_count, source_at;
    struct kube_kinds *kinds; /* a reference: the sources may be in it */
    int64_t revision;         /* revision of all reads */
    struct buf page_from;     /* the key of the next object; empty: the source begins */
    struct buf large;         /* an object that is counted by the worker */
    struct kube_offload_job offload;
    enum status counted; /* the result for it */
    bool page_open;
    _Alignas(16) uint8_t scratch[SCRATCH_BYTES];
};

static struct controller *controller_of(struct kube_job *job)
{
    return CONTAINER_OF(kube_follower_of(job), struct controller, follower);
}

/* -- Events -- */

/* "n" of "/registry/pods/n/a". A key outside of namespaces gives the name of a kind or a group,
 * which may be that of a namespace: it is counted once too often. */
static struct slice namespace_of(struct slice key)
{
    const uint8_t *end = memrchr(key.ptr, '/', key.len), *start;
    start = end && end > key.ptr ? memrchr(key.ptr, '/', (size_t)(end - key.ptr)) : NULL;
    return start ? slice_of(start + 1, (size_t)(end - start - 1)) : SLICE_EMPTY;
}

static void set_due(struct controller *c, struct kube_agenda_item *item, int64_t delay_ms)
{
    kube_agenda_set(&c->agenda, item,
                    clock_add(loop_now_ns(c->follower.job.api->loop), delay_ms * NS_PER_MS));
}

/* Whether an object that existed before may use more or less than before. */
static bool may_use_another_amount(struct controller *c, const struct watch_event *event)
{
    if (slice_has_prefix(event->key, SLICE_LITERAL("/registry/services/specs/")) ||
        slice_has_prefix(event->key, SLICE_LITERAL("/registry/persistentvolumeclaims/")))
        return true;
    if (!slice_has_prefix(event->key, SLICE_LITERAL("/registry/pods/")))
        return false;
    struct slice prev = watch_cursor_prev(c->follower.cursor, event);
    return !prev.len ||
           !kube_quota_pod_is_same(kube_kv_of(event->field).value, kube_kv_of(prev).value);
}

static bool take_event(struct kube_follower *follower, const struct watch_event *event,
                       int64_t revision)
{
    struct controller *c = controller_of(&follower->job);
    (void)revision;
    if (slice_has_prefix(event->key, SLICE_LITERAL("/registry/events/")))
        return true;
    if (slice_has_prefix(event->key, SLICE_LITERAL(QUOTAS)) && !event->tombstone) {
        struct kube_agenda_item *item = kube_agenda_add(&c->agenda, namespace_of(event->key));
        /* Until a new quota has a status, writes that it concerns are refused. */
        if (item)
            set_due(c, item, event->created ? 0 : DELAY_MS);
        return true;
    }
    /* No namespace has a quota, as in most clusters. */
    if (!c->agenda.items.count)
        return true;
    if (slice_has_prefix(event->key, SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX)))
        c->definitions_changed = true;
    struct kube_agenda_item *item = kube_agenda_find(&c->agenda, namespace_of(event->key));
    /* One that is due soon need not be compared. */
    if (item &&
        !kube_agenda_has(&c->agenda, item,
                         clock_add(loop_now_ns(c->follower.job.api->loop), DELAY_MS * NS_PER_MS)) &&
        (event->tombstone || event->created || may_use_another_amount(c, event)))
        set_due(c, item, DELAY_MS);
    return true;
}

static void take_quota(struct kube_follower *follower, struct kube_kv kv)
{
    struct controller *c = controller_of(&follower->job);
    struct kube_agenda_item *item = kube_agenda_add(&c->agenda, namespace_of(kv.key));
    if (item)
        set_due(c, item, 0);
}

/* -- Counting: the quotas -- */

static void forget_batch(struct controller *c)
{
    if (c->page_open)
        engine_range_close(&c->follower.job.range);
    c->page_open = false;
    c->quota_count = c->quota_at = c->source_count = c->source_at = 0;
    buf_reset(&c->page_from, SIZE_MAX);
    kube_kinds_unref(c->kinds);
    c->kinds = NULL;
    arena_fini(&c->arena);
    arena_init(&c->arena, NULL, 0, BATCH_BYTES_MAX);
}

/* The item has its next time, if it needs one, and the job continues with another. */
static void finish(struct controller *c)
{
    struct kube_agenda_item *item = c->item;
    int64_t now = loop_now_ns(c->follower.job.api->loop), rest_max_ns = REST_MAX_S * NS_PER_S;
    int64_t real_s = clock_real_ns(c->follower.job.api->clock) / NS_PER_S;
    int64_t rest_ns =
        c->took_ns < rest_max_ns / REST_FACTOR ? c->took_ns * REST_FACTOR : rest_max_ns;
    forget_batch(c);
    c->item = NULL;
    kube_agenda_rest(&c->agenda, item, clock_add(now, rest_ns));
    if (c->failed)
        kube_agenda_set(&c->agenda, item, clock_add(now, RETRY_S * NS_PER_S));
    else if (!c->any && !heap_has(&item->in_times))
        kube_agenda_remove(&c->agenda, TAKE(item));
    else if (c->outdated)
        set_due(c, item, DELAY_MS);
    if (item && c->end_s)
        kube_agenda_set(&c->agenda, item,
                        clock_add(now, (c->end_s > real_s ? c->end_s - real_s + 1 : 1) * NS_PER_S));
    if (item && c->is_unknown)
        list_push_back(&c->unknown, &item->in_owner);
    kube_job_next(&c->follower.job);
}

static void fail(struct controller *c, const char *what, enum status status)
{
    if (!c->follower.job.api->jobs->stopped)
        log_warn(what, LOG_SLICE("namespace", kube_agenda_name(c->item)), LOG_STATUS(status));
    /* An object that was stored by a kube-apiserver stays so; the next event is reason enough. */
    c->failed = !kube_is_undecodable(status);
    finish(c);
}

/* Quotas that are not JSON belong to another kube-apiserver; one that is too large is not enforced,
 * and cannot have come through this API. */
static enum status take_stored(struct controller *c, struct kube_kv kv)
{
    struct quota *quota = &c->quotas[c->quota_count];
    struct json_node *tree;
    struct slice text, key;
    struct error error;
    c->any = true;
    if (kv.value.len > KUBE_LOOKUP_OBJECT_BYTES_MAX)
        return ST_OK;
    TRY(arena_dup(&c->arena, kv.value, &text));
    TRY(arena_dup(&c->arena, kv.key, &key));
    enum status status = json_tree_read(&c->arena, text, &tree, &error);
    if (status == ST_NOMEM)
        return status;
    if (status != ST_OK || !kube_quota_is_sound(tree))
        return ST_OK;
    const uint8_t *slash = memrchr(key.ptr, '/', key.len);
    struct slice prefix = slice_of(key.ptr, (size_t)(slash - key.ptr) + 1);
    quota->name = slice_sub(key, prefix.len, key.len - prefix.len);
    quota->revision = kv.mod_revision;
    TRY(kube_quota_count_init(&quota->count, &c->arena, tree));
    c->quota_count++;
    return ST_OK;
}

static enum status add_source(struct controller *c, const struct kube_kind *kind)
{
    for (size_t i = 0; i < c->source_count; i++) {
        /* Another version of the kind. */
        if (strcmp(c->sources[i]->storage_prefix, kind->storage_prefix) == 0)
            return ST_OK;
    }
    if (c->source_count == SOURCES_MAX)
        return ST_LIMIT;
    c->sources[c->source_count++] = kind;
    return ST_OK;
}

static enum status find_builtin(struct controller *c)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t q = 0; q < c->quota_count; q++) {
            if (kube_quota_concerns(&kinds[i]) &&
                kube_quota_count_concerns(&c->quotas[q].count, &kinds[i]))
                TRY(add_source(c, &kinds[i]));
        }
    }
    return ST_OK;
}

static void on_quotas(struct engine_op *op)
{
    struct controller *c = controller_of(kube_job_of_range(op));
    struct engine_range *range = &c->follower.job.range;
    struct slice field;
    enum status status = op->status;
    c->revision = op->revision;
    while (status == ST_OK && engine_range_next(range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        buf_reset(&c->from, SIZE_MAX);
        if (buf_append(&c->from, kv.key) != ST_OK || buf_append(&c->from, slice_of("", 1)) != ST_OK)
            status = ST_NOMEM;
        else
            status = take_stored(c, kv);
    }
    if (status == ST_OK)
        status = range->op.status;
    if (status == ST_OK)
        status = find_builtin(c);
    c->more = range->more;
    engine_range_close(range);
    c->step = READ_KINDS;
    if (status != ST_OK)
        fail(c, "the quotas of a namespace cannot be read", status);
    else if (!c->quota_count && !c->more)
        finish(c);
    else
        kube_job_next(&c->follower.job);
}

static void read_quotas(struct controller *c)
{
    struct kube_job *job = &c->follower.job;
    struct slice prefix, end, from;
    forget_batch(c);
    kube_job_reset_arena(job, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    if (kube_key_make(&job->arena, QUOTAS, kube_agenda_name(c->item), SLICE_EMPTY, &prefix) !=
            ST_OK ||
        kube_prefix_end(&job->arena, prefix, &end) != ST_OK ||
        arena_dup(&job->arena, c->from.len ? buf_slice(&c->from) : prefix, &from) != ST_OK) {
        fail(c, "the quotas of a namespace cannot be read", ST_NOMEM);
        return;
    }
    job->request = (struct pb_range_request){.key = from, .range_end = end, .limit = QUOTAS_MAX};
    kube_job_read(job, on_quotas);
}

/* -- Counting: custom kinds -- */

/* "widgets.example.com" of "count/widgets.example.com", if no kind is known to have it. */
static struct slice custom_name(const struct controller *c, const struct kube_amount *amount)
{
    struct slice prefix = SLICE_LITERAL("count/");
    if (!slice_has_prefix(amount->name, prefix))
        return SLICE_EMPTY;
    for (size_t i = 0; i < c->source_count; i++) {
        if (kube_quota_knows(c->sources[i], amount->name))
            return SLICE_EMPTY;
    }
    return slice_sub(amount->name, prefix.len, amount->name.len - prefix.len);
}

/* Adds the kinds of the resources that no built-in kind has. kinds NULL: only looks for some. */
static bool has_custom(struct controller *c, struct kube_kinds *kinds)
{
    bool any = false;
    for (size_t q = 0; q < c->quota_count; q++) {
        const struct kube_amounts *amounts = &c->quotas[q].count.used;
        for (size_t i = 0; i < amounts->count; i++) {
            struct slice name = custom_name(c, &amounts->items[i]);
            const struct kube_definition *d =
                kinds && name.len ? kube_kinds_definition(kinds, name) : NULL;
            any = any || name.len;
            if (d && d->established && d->version_count &&
                kube_quota_concerns(&d->versions[0].kind))
                (void)!add_source(c, &d->versions[0].kind);
            else if (kinds && name.len)
                c->is_unknown = true;
        }
    }
    return any;
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct controller *c = controller_of(kube_job_of_kinds(wait));
    if (wait->status != ST_OK) {
        fail(c, "the kinds that quotas limit cannot be read", wait->status);
        return;
    }
    c->kinds = kube_kinds_ref(kube_registry_kinds(c->follower.job.api->registry));
    (void)has_custom(c, c->kinds);
    c->step = COUNT;
    kube_job_next(&c->follower.job);
}

static void read_kinds(struct controller *c)
{
    if (has_custom(c, NULL)) {
        kube_job_read_kinds(&c->follower.job, on_kinds);
    } else {
        c->step = COUNT;
        kube_job_next(&c->follower.job);
    }
}

/* -- Counting: the objects of one kind -- */

static void next_source(struct controller *c)
{
    c->source_at++;
    buf_reset(&c->page_from, SIZE_MAX);
    kube_job_next(&c->follower.job);
}

/* ST_MALFORMED: it is not JSON, so that the usage is not known. */
static enum status count_object(struct controller *c, struct slice value)
{
    struct arena arena;
    struct json_node *tree;
    struct error error;
    struct kube_quota_object object = {.kind = c->sources[c->source_at]};
    int64_t end_s;
    arena_init(&arena, c->scratch, sizeof(c->scratch), OBJECT_BYTES_MAX);
    enum status status = json_tree_read(&arena, value, &tree, &error);
    object.object = status == ST_OK ? tree : NULL;
    if (status == ST_OK && kube_quota_pod_end(&object, &end_s)) {
        object.ended = end_s < clock_real_ns(c->follower.job.api->clock) / NS_PER_S;
        if (!object.ended && (!c->end_s || end_s < c->end_s))
            c->end_s = end_s;
    }
    for (size_t i = 0; status == ST_OK && i < c->quota_count; i++)
        status = kube_quota_count_object(&c->quotas[i].count, &arena, &object);
    arena_fini(&arena);
    return status;
}

static void run_large(struct worker_job *job)
{
    struct controller *c = CONTAINER_OF(job, struct controller, offload.worker);
    c->counted = count_object(c, buf_slice(&c->large));
}

static void on_large(struct kube_offload_job *job)
{
    struct controller *c = CONTAINER_OF(job, struct controller, offload);
    enum status status = job->worker.status == ST_OK ? c->counted : job->worker.status;
    if (status == ST_OK)
        kube_job_next(&c->follower.job);
    else
        fail(c, "the objects that a quota limits cannot be counted", status);
}

/* An object that would take this thread from its clients for too long. */
static enum status count_large(struct controller *c, struct slice value)
{
    c->offload =
        (struct kube_offload_job){.worker = {.run = run_large, .must_run = true}, .back = on_large};
    buf_reset(&c->large, KUBE_WORK_BYTES_MAX);
    TRY(buf_append(&c->large, value));
    TRY(kube_offload_send(&c->follower.job.api->offload, 0, NULL, &c->offload));
    kube_job_run(&c->follower.job);
    return ST_OK;
}

static void count_some(struct controller *c)
{
    struct engine_range *range = &c->follower.job.range;
    struct slice field;
    size_t looked = 0;
    enum status status = ST_OK;
    while (status == ST_OK && looked < COUNTED_BYTES_MAX) {
        if (!engine_range_next(range, &field)) {
            bool more = range->more;
            status = range->op.status;
            engine_range_close(range);
            c->page_open = false;
            if (status == ST_OK && !more) {
                next_source(c);
                return;
            }
            break;
        }
        struct kube_kv kv = kube_kv_of(field);
        looked += kube_follower_cost(field);
        buf_reset(&c->page_from, SIZE_MAX);
        if (buf_append(&c->page_from, kv.key) != ST_OK ||
            buf_append(&c->page_from, slice_of("", 1)) != ST_OK)
            status = ST_NOMEM;
        else if (kv.value.len > KUBE_WORK_BYTES_MAX && c->follower.job.api->offload.worker)
            status = count_large(c, kv.value);
        else
            status = count_object(c, kv.value);
        if (c->follower.job.state == KUBE_JOB_RUNNING)
            return;
    }
    if (status != ST_OK)
        fail(c, "the objects that a quota limits cannot be counted", status);
    else
        kube_job_next(&c->follower.job);
}

static void on_page(struct engine_op *op)
{
    struct controller *c = controller_of(kube_job_of_range(op));
    c->page_open = true;
    if (op->status == ST_OK)
        kube_job_next(&c->follower.job);
    else
        fail(c, "the objects that a quota limits cannot be read", op->status);
}

static void on_number(struct engine_op *op)
{
    struct controller *c = controller_of(kube_job_of_range(op));
    enum status status = op->status;
    for (size_t i = 0; status == ST_OK && i < c->quota_count; i++)
        kube_quota_count_number(&c->quotas[i].count, (uint64_t)c->follower.job.range.count);
    engine_range_close(&c->follower.job.range);
    if (status == ST_OK)
        next_source(c);
    else
        fail(c, "the objects that a quota limits cannot be counted", status);
}

/* What the quotas need of the next kind. ST_NOMEM. */
static enum status begin_source(struct controller *c, enum kube_quota_need *ret_need)
{
    *ret_need = KUBE_QUOTA_NOTHING;
    for (size_t i = 0; i < c->quota_count; i++) {
        enum kube_quota_need need;
        TRY(kube_quota_count_kind(&c->quotas[i].count, &c->arena, c->sources[c->source_at], &need));
        if (need > *ret_need)
            *ret_need = need;
    }
    return ST_OK;
}

/* The first read of a kind, or of its next page. */
static void read_source(struct controller *c)
{
    struct kube_job *job = &c->follower.job;
    enum kube_quota_need need = KUBE_QUOTA_OBJECTS;
    struct slice prefix, end, from;
    enum status status = c->page_from.len ? ST_OK : begin_source(c, &need);
    if (status == ST_OK && need == KUBE_QUOTA_NOTHING) {
        next_source(c);
        return;
    }
    kube_job_reset_arena(job, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    if (status != ST_OK ||
        kube_key_make(&job->arena, c->sources[c->source_at]->storage_prefix,
                      kube_agenda_name(c->item), SLICE_EMPTY, &prefix) != ST_OK ||
        kube_prefix_end(&job->arena, prefix, &end) != ST_OK ||
        arena_dup(&job->arena, c->page_from.len ? buf_slice(&c->page_from) : prefix, &from) !=
            ST_OK) {
        fail(c, "the objects that a quota limits cannot be read", ST_NOMEM);
        return;
    }
    bool number = need == KUBE_QUOTA_NUMBER;
    job->request = (struct pb_range_request){
        .key = from,
        .range_end = end,
        .revision = c->revision,
        .count_only = number,
        .limit = number ? 0 : PAGE_KEYS,
    };
    kube_job_read(job, number ? on_number : on_page);
}

static void count(struct controller *c)
{
    if (c->page_open) {
        count_some(c);
    } else if (c->source_at < c->source_count) {
        read_source(c);
    } else {
        c->step = WRITE;
        c->took_ns = loop_now_ns(c->follower.job.api->loop) - c->began_ns;
        kube_job_next(&c->follower.job);
    }
}

/* -- Writing -- */

static void on_written(struct kube_own_request *request, const struct http_local *answer)
{
    struct controller *c = CONTAINER_OF(request, struct controller, request);
    unsigned code = http_local_code(answer);
    c->outdated = c->outdated || code == 409;
    if (code != 200 && code != 404 && code != 409) {
        log_warn("the status of a quota cannot be written now",
                 LOG_SLICE("namespace", kube_agenda_name(c->item)),
                 LOG_SLICE("quota", c->quotas[c->quota_at].name), LOG_U64("code", code),
                 LOG_SLICE("answer", http_local_body(answer)));
        c->failed = true;
    }
    c->quota_at++;
    kube_job_next(&c->follower.job);
}

/* A patch of the whole status, of a quota that has not changed. */
static enum status send_status(struct controller *c, const struct quota *quota,
                               const struct json_node *status)
{
    AUTO(buf_fini) struct buf path = {0}, body = {0};
    TRY(buf_append_format(&path, "/api/v1/namespaces/%.*s/resourcequotas/%.*s/status",
                          SLICE_ARGS(kube_agenda_name(c->item)), SLICE_ARGS(quota->name)));
    TRY(buf_append_format(
        &body,
        "[{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%" PRIi64
        "\"},{\"op\":\"add\",\"path\":\"/status\",\"value\":",
        quota->revision));
    TRY(json_tree_write(status, &body));
    TRY(buf_append_text(&body, "}]"));
    return kube_own_request_send(&c->request,
                                 &(struct http_local_request){
                                     .method = SLICE_LITERAL("PATCH"),
                                     .path = buf_slice(&path),
                                     .query = KUBE_OWN_MANAGER,
                                     .content_type = SLICE_LITERAL("application/json-patch+json"),
                                     .body = buf_slice(&body),
                                 });
}

static void write(struct controller *c)
{
    struct json_node *status = NULL;
    if (c->quota_at < c->quota_count) {
        const struct quota *quota = &c->quotas[c->quota_at];
        enum status made = kube_quota_count_status(&quota->count, &c->arena, &status);
        if (made == ST_OK && status)
            made = send_status(c, quota, status);
        if (made != ST_OK) {
            fail(c, "the status of a quota cannot be written now", made);
        } else if (!status) {
            c->quota_at++;
            kube_job_next(&c->follower.job);
        }
    } else if (c->more) {
        c->step = READ_QUOTAS;
        kube_job_next(&c->follower.job);
    } else {
        finish(c);
    }
}

/* -- The job -- */

static void begin_item(struct controller *c, struct kube_agenda_item *item)
{
    list_remove(&item->in_owner);
    c->item = item;
    c->step = READ_QUOTAS;
    c->began_ns = loop_now_ns(c->follower.job.api->loop);
    c->took_ns = 0;
    c->any = c->failed = c->outdated = c->is_unknown = false;
    c->end_s = 0;
    buf_reset(&c->from, SIZE_MAX);
}

/* Namespaces with a resource of an unknown kind are due, some in each turn; true: all are. */
static bool expand_unknown(struct controller *c)
{
    struct list *link;
    size_t moved = 0;
    while (moved++ < DEFINITION_NAMESPACES_MAX && (link = list_pop_front(&c->unknown)) != NULL)
        set_due(c, LIST_ENTRY(link, struct kube_agenda_item, in_owner), DELAY_MS);
    return list_empty(&c->unknown);
}

static bool work(struct kube_follower *follower, int64_t *ret_next_ns)
{
    static void (*const steps[])(struct controller *) = {
        [READ_QUOTAS] = read_quotas,
        [READ_KINDS] = read_kinds,
        [COUNT] = count,
        [WRITE] = write,
    };
    struct controller *c = controller_of(&follower->job);
    if (!c->agenda.items.count)
        return false;
    if (c->definitions_changed)
        c->definitions_changed = !expand_unknown(c);
    if (!c->item) {
        struct kube_agenda_item *item =
            kube_agenda_pop(&c->agenda, loop_now_ns(c->follower.job.api->loop));
        *ret_next_ns = c->definitions_changed ? loop_now_ns(c->follower.job.api->loop)
                                              : kube_agenda_next_ns(&c->agenda);
        if (!item)
            return false;
        begin_item(c, item);
    }
    steps[c->step](c);
    return true;
}

static void begin(struct kube_follower *follower)
{
    struct controller *c = controller_of(&follower->job);
    kube_agenda_init(&c->agenda, KUBE_AGENDA_NAMESPACE_BYTES_MAX,
                     random_u64(&follower->job.api->random));
    list_init(&c->unknown);
    c->definitions_changed = false;
}

static void drop(struct kube_follower *follower)
{
    struct controller *c = controller_of(&follower->job);
    forget_batch(c);
    c->item = NULL;
    kube_agenda_fini(&c->agenda);
}

static void fini(struct kube_job *job)
{
    struct controller *c = controller_of(job);
    assert(!c->request.local);
    kube_follower_fini(&c->follower);
    arena_fini(&c->arena);
    buf_fini(&c->from);
    buf_fini(&c->page_from);
    buf_fini(&c->large);
}

static const struct kube_follower_type type = {
    .job = {.step = kube_follower_step, .fini = fini},
    .first = QUOTAS,
    .end = "/registry/resourcequotas0",
    .stands_back = "quotas are left to kube-controller-manager, which holds its lease",
    .begin = begin,
    .drop = drop,
    .object = take_quota,
    .event = take_event,
    .work = work,
};

void kube_quota_status_start(struct kube_api *api, const struct http_route *route)
{
    if (!api->config->counts_quotas)
        return;
    struct controller *c = xcalloc(1, sizeof(*c));
    c->request = (struct kube_own_request){.job = &c->follower.job,
                                           .route = route,
                                           .account = "resourcequota-controller",
                                           .done = on_written};
    kube_follower_start(&c->follower, &type, api);
}
