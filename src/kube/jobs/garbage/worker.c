#include "kube/jobs/garbage/worker.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/jobs/follower/own_request.h"
#include "kube/jobs/garbage/bodies.h"
#include "kube/jobs/garbage/kinds.h"

enum {
    READ_BYTES_MAX = 1 << 20,    /* memory of the engine for one read */
    OBJECT_BYTES_MAX = 64 << 20, /* memory for one object with its references */
    EXPANDED_MAX = 100,          /* dependents queued in one step */
    DRAIN_NODES = 5000,          /* freed in one turn */
    KINDS_INTERVAL_S = 1,        /* definitions are not read more often for unknown kinds */
};

enum phase { PHASE_TAKE, PHASE_OWNERS, PHASE_DECIDE, PHASE_ANSWER };

struct worker {
    struct kube_job job;
    struct garbage *garbage; /* a reference */
    enum phase phase;
    struct garbage_node *node; /* under examination, or NULL */
    struct kube_kinds *kinds;  /* a reference */
    bool kinds_read;           /* for this node */
    struct arena arena;        /* what follows is in it */
    struct garbage_facts facts;
    int64_t revision; /* revision of the object */
    uint8_t *classes; /* enum garbage_class of each owner */
    size_t owner_at;  /* the next owner to read */
    bool again;       /* after a successful request it is examined once more */
    struct kube_own_request request;
};

static struct worker *worker_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct worker, job);
}

/* -- One node -- */

static void forget_node(struct worker *w, enum garbage_result result)
{
    if (w->node)
        garbage_graph_done(&w->garbage->graph, w->node, result, loop_now_ns(w->job.api->loop));
    w->node = NULL;
    if (result == GARBAGE_FAILED && w->garbage->collector)
        kube_job_hurry(w->garbage->collector); /* which sets the time of the next attempt */
    kube_kinds_unref(w->kinds);
    w->kinds = NULL;
    arena_fini(&w->arena);
}

static void finish(struct worker *w, enum garbage_result result)
{
    forget_node(w, result);
    w->phase = PHASE_TAKE;
    kube_job_next(&w->job);
}

static void fail(struct worker *w, const char *what, enum status status)
{
    log_warn(what, LOG_SLICE("key", w->node->key), LOG_STATUS(status));
    finish(w, GARBAGE_FAILED);
}

/* -- Requests -- */

/* 404: it is gone; 409: it has changed. */
static enum garbage_result result_of(const struct worker *w, unsigned code)
{
    if (code == 404 || code == 200 || code == 202)
        return w->again && code != 404 ? GARBAGE_AGAIN : GARBAGE_EXAMINED;
    return code == 409 ? GARBAGE_AGAIN : GARBAGE_FAILED;
}

static void on_answered(struct kube_own_request *request, const struct http_local *answer)
{
    struct worker *w = CONTAINER_OF(request, struct worker, request);
    enum garbage_result result = result_of(w, http_local_code(answer));
    if (result == GARBAGE_FAILED)
        log_warn("an object cannot be garbage collected now", LOG_SLICE("key", w->node->key),
                 LOG_U64("code", http_local_code(answer)),
                 LOG_SLICE("answer", http_local_body(answer)));
    finish(w, result);
}

static enum status write_path(const struct worker *w, struct buf *to)
{
    const struct garbage_facts *facts = &w->facts;
    const struct kube_kind *kind = garbage_kind_any(w->kinds, facts->api_version, facts->kind);
    if (!kind)
        return ST_NOT_FOUND;
    if (kind->group[0])
        TRY(buf_append_format(to, "/apis/%s/%s", kind->group, kind->version));
    else
        TRY(buf_append_format(to, "/api/%s", kind->version));
    if (kind->flags & KUBE_NAMESPACED)
        TRY(buf_append_format(to, "/namespaces/%.*s", SLICE_ARGS(facts->namespace)));
    return buf_append_format(to, "/%s/%.*s", kind->plural, SLICE_ARGS(facts->name));
}

/* Sends the body that was made; the job runs until it is answered. */
static void send(struct worker *w, const char *method, enum status made, const struct buf *body)
{
    AUTO(buf_fini) struct buf path = {0};
    bool patches = method[0] == 'P';
    enum status status = made == ST_OK ? write_path(w, &path) : made;
    struct http_local_request request = {
        .method = slice_from_text(method),
        .path = buf_slice(&path),
        .query = patches ? KUBE_OWN_MANAGER : SLICE_EMPTY,
        .content_type = patches ? SLICE_LITERAL("application/merge-patch+json")
                                : SLICE_LITERAL("application/json"),
        .body = buf_slice(body),
    };
    w->phase = PHASE_ANSWER;
    if (status == ST_OK)
        status = kube_own_request_send(&w->request, &request);
    if (status == ST_NOT_FOUND)
        finish(w, GARBAGE_EXAMINED); /* the kind is not served: nothing of it can be changed */
    else if (status != ST_OK)
        fail(w, "an object cannot be garbage collected now", status);
}

static void send_delete(struct worker *w, const char *policy)
{
    AUTO(buf_fini) struct buf body = {0};
    enum status made = garbage_write_delete(&w->facts, w->revision, policy, &body);
    send(w, "DELETE", made, &body);
}

static void send_refs(struct worker *w, unsigned removed)
{
    AUTO(buf_fini) struct buf body = {0};
    enum status made = garbage_write_refs(&w->facts, w->revision, w->classes, removed, &body);
    send(w, "PATCH", made, &body);
}

/* -- Deciding -- */

static bool has_class(const struct worker *w, enum garbage_class class)
{
    return memchr(w->classes, (int)class, w->facts.owner_count);
}

static bool blocks(const struct worker *w)
{
    for (size_t i = 0; i < w->facts.owner_count; i++)
        if (w->facts.owners[i].blocks)
            return true;
    return false;
}

/* The object and one of its owners wait for their dependents. If one of its own dependents waits,
 * too, they may wait for each other in a circle: then this one no longer blocks its owners. */
static void delete_waiting(struct worker *w)
{
    AUTO(buf_fini) struct buf body = {0};
    w->again = w->node->waiting && blocks(w);
    if (!w->again) {
        send_delete(w, "Foreground");
        return;
    }
    enum status made = garbage_write_unblocked(&w->facts, w->revision, &body);
    send(w, "PATCH", made, &body);
}

static void decide(struct worker *w)
{
    bool solid = has_class(w, GARBAGE_SOLID), waits = has_class(w, GARBAGE_WAITS);
    bool gone = has_class(w, GARBAGE_GONE);
    w->again = has_class(w, GARBAGE_RELEASES);
    if (w->again) {
        /* An owner is deleted and leaves its dependents alone. */
        send_refs(w, 1u << GARBAGE_RELEASES);
    } else if (solid && (gone || waits)) {
        /* One owner stays, so the object does, without the references to the others. */
        send_refs(w, 1u << GARBAGE_GONE | 1u << GARBAGE_WAITS);
    } else if (solid) {
        finish(w, GARBAGE_EXAMINED);
    } else if (waits && w->node->dependent_count) {
        delete_waiting(w);
    } else {
        /* No owner is left: the object is deleted as its own finalizers ask for. */
        send_delete(w, w->facts.orphans      ? "Orphan"
                       : w->facts.foreground ? "Foreground"
                                             : "Background");
    }
}

/* The object waits for its dependents: the finalizer is removed if the graph has none, and has
 * every object that was written before this one. */
static void end_waiting(struct worker *w)
{
    const struct garbage_node *node = w->node;
    uint32_t left = w->facts.orphans ? node->dependent_count : node->blocking;
    AUTO(buf_fini) struct buf body = {0};
    w->again = false;
    if (left) {
        finish(w, GARBAGE_EXAMINED);
        return;
    }
    /* The graph has not yet seen the object as it was read, nor dependents that are as new. */
    if (node->revision < w->revision) {
        finish(w, GARBAGE_AGAIN);
        return;
    }
    enum status made = garbage_write_finalizers(
        &w->facts, w->revision,
        w->facts.orphans ? SLICE_LITERAL("orphan") : SLICE_LITERAL("foregroundDeletion"), &body);
    send(w, "PATCH", made, &body);
}

/* -- Owners -- */

static enum garbage_class class_of(const struct garbage_facts *owner)
{
    if (!owner->deleting || (!owner->orphans && !owner->foreground))
        return GARBAGE_SOLID;
    return owner->orphans ? GARBAGE_RELEASES : GARBAGE_WAITS;
}

/* Compares what is stored under the owner's name with the reference. */
static enum status classify(struct worker *w, struct kube_kv kv)
{
    const struct garbage_owner *owner = &w->facts.owners[w->owner_at];
    struct garbage_graph *graph = &w->garbage->graph;
    struct garbage_facts found = {0};
    if (kv.mod_revision)
        TRY(garbage_facts_read(&w->job.arena, kv.value, &found));
    bool same = kv.mod_revision && slice_equal(found.uid, owner->uid);
    w->classes[w->owner_at++] = same ? (uint8_t)class_of(&found) : GARBAGE_GONE;
    if (same)
        garbage_graph_found(graph, owner->uid, garbage_place(graph, owner, w->facts.namespace),
                            kv.mod_revision);
    else
        garbage_graph_missing(graph, owner->uid);
    return ST_OK;
}

static struct kube_kv first_of(struct engine_range *range)
{
    struct slice field;
    return engine_range_next(range, &field) ? kube_kv_of(field) : (struct kube_kv){0};
}

static void on_owner(struct engine_op *op)
{
    struct worker *w = worker_of(kube_job_of_range(op));
    enum status status = op->status;
    if (status == ST_OK)
        status = classify(w, first_of(&w->job.range));
    engine_range_close(&w->job.range);
    if (status == ST_OK)
        kube_job_next(&w->job);
    else
        fail(w, "an owner cannot be read", status);
}

static void read_owner(struct worker *w, const struct kube_kind *kind)
{
    const struct garbage_owner *owner = &w->facts.owners[w->owner_at];
    bool namespaced = kind->flags & KUBE_NAMESPACED;
    struct slice key;
    kube_job_reset_arena(&w->job, READ_BYTES_MAX + OBJECT_BYTES_MAX);
    if (kube_key_make(&w->job.arena, kind->storage_prefix,
                      namespaced ? w->facts.namespace : SLICE_EMPTY, owner->name, &key) != ST_OK) {
        fail(w, "an owner cannot be read", ST_NOMEM);
        return;
    }
    w->job.request = (struct pb_range_request){.key = key};
    kube_job_read(&w->job, on_owner);
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct worker *w = worker_of(kube_job_of_kinds(wait));
    kube_kinds_unref(w->kinds);
    w->kinds = kube_kinds_ref(kube_registry_kinds(w->job.api->registry));
    kube_job_next(&w->job);
}

/* The definition of the kind may be new. An owner of an unknown kind may exist, so the object
 * stays, and is examined again later. */
static void unknown_kind(struct worker *w)
{
    struct garbage *garbage = w->garbage;
    int64_t now = loop_now_ns(w->job.api->loop);
    if (!w->kinds_read && now >= garbage->kinds_ns) {
        w->kinds_read = true;
        garbage->kinds_ns = clock_add(now, KINDS_INTERVAL_S * NS_PER_S);
        kube_job_read_kinds(&w->job, on_kinds);
        return;
    }
    finish(w, GARBAGE_FAILED);
}

static void next_owner(struct worker *w)
{
    if (w->owner_at == w->facts.owner_count) {
        decide(w);
        return;
    }
    const struct garbage_owner *owner = &w->facts.owners[w->owner_at];
    const struct kube_kind *kind = garbage_kind(w->kinds, owner->api_version, owner->kind);
    if (!kind) {
        unknown_kind(w);
    } else if (kind->flags & KUBE_NAMESPACED && !w->facts.namespace.len) {
        /* An object outside of namespaces cannot be owned by one within: as in Kubernetes the
         * reference is a mistake, and nothing is done. */
        finish(w, GARBAGE_EXAMINED);
    } else {
        read_owner(w, kind);
    }
}

/* -- The object -- */

static enum status read_facts(struct worker *w, struct kube_kv kv)
{
    struct slice copy;
    arena_init(&w->arena, NULL, 0, OBJECT_BYTES_MAX);
    TRY(arena_dup(&w->arena, kv.value, &copy));
    TRY(garbage_facts_read(&w->arena, copy, &w->facts));
    w->classes = arena_calloc(&w->arena, w->facts.owner_count + 1, 1);
    w->revision = kv.mod_revision;
    w->owner_at = 0;
    w->kinds_read = false;
    w->kinds = kube_kinds_ref(kube_registry_kinds(w->job.api->registry));
    return w->classes ? ST_OK : ST_NOMEM;
}

/* Whether the object is still the one of the node and may be garbage. */
static bool is_to_examine(const struct worker *w)
{
    return garbage_graph_find(&w->garbage->graph, w->facts.uid) == w->node &&
           (w->facts.deleting ? w->facts.orphans || w->facts.foreground : w->facts.owner_count);
}

static void on_object(struct engine_op *op)
{
    struct worker *w = worker_of(kube_job_of_range(op));
    enum status status = op->status;
    struct kube_kv kv = {0};
    if (status == ST_OK)
        kv = first_of(&w->job.range);
    if (kv.mod_revision)
        status = read_facts(w, kv);
    engine_range_close(&w->job.range);
    if (status == ST_MALFORMED || (status == ST_OK && (!kv.mod_revision || !is_to_examine(w)))) {
        finish(w, GARBAGE_EXAMINED);
    } else if (status != ST_OK) {
        fail(w, "an object cannot be examined", status);
    } else {
        w->phase = w->facts.deleting ? PHASE_DECIDE : PHASE_OWNERS;
        kube_job_next(&w->job);
    }
}

static void take(struct worker *w)
{
    struct garbage *garbage = w->garbage;
    if (!garbage->abandoned) {
        (void)!garbage_graph_expand(&garbage->graph, EXPANDED_MAX);
        w->node = garbage_graph_take(&garbage->graph);
        garbage_work(garbage);
    }
    if (!w->node) {
        kube_job_end(&w->job);
        return;
    }
    kube_job_reset_arena(&w->job, READ_BYTES_MAX);
    if (arena_dup(&w->job.arena, w->node->key, &w->job.request.key) != ST_OK) {
        finish(w, GARBAGE_FAILED);
        return;
    }
    w->job.request = (struct pb_range_request){.key = w->job.request.key};
    kube_job_read(&w->job, on_object);
}

static void step(struct kube_job *job)
{
    struct worker *w = worker_of(job);
    if (w->phase == PHASE_TAKE)
        take(w);
    else if (w->phase == PHASE_OWNERS)
        next_owner(w);
    else
        end_waiting(w);
}

static void fini(struct kube_job *job)
{
    struct worker *w = worker_of(job);
    assert(!w->request.local);
    forget_node(w, GARBAGE_EXAMINED);
    w->garbage->workers--;
    garbage_unref(w->garbage);
}

static const struct kube_job_type type = {.step = step, .fini = fini};

void garbage_work(struct garbage *garbage)
{
    const struct list *queue = &garbage->graph.queue, *at = queue->next;
    if (garbage->api->jobs->stopped)
        return;
    for (; garbage->workers < GARBAGE_WORKERS_MAX && at != queue; at = at->next) {
        struct worker *w = xcalloc(1, sizeof(*w));
        w->garbage = garbage;
        w->request = (struct kube_own_request){.job = &w->job,
                                               .route = garbage->route,
                                               .account = "generic-garbage-collector",
                                               .done = on_answered};
        garbage->refs++;
        garbage->workers++;
        kube_job_start(&w->job, &type, garbage->api);
    }
}

/* -- The end of a graph -- */

struct drain {
    struct kube_job job;
    struct garbage *garbage;
};

static void drain_step(struct kube_job *job)
{
    struct garbage *garbage = CONTAINER_OF(job, struct drain, job)->garbage;
    if (garbage_graph_drain(&garbage->graph, DRAIN_NODES))
        kube_job_end(job);
    else
        kube_job_next(job);
}

static void drain_fini(struct kube_job *job)
{
    struct garbage *garbage = CONTAINER_OF(job, struct drain, job)->garbage;
    (void)!garbage_graph_drain(&garbage->graph, SIZE_MAX);
    free(garbage);
}

static const struct kube_job_type drain_type = {.step = drain_step, .fini = drain_fini};

struct garbage *garbage_new(struct kube_api *api, const struct http_route *route)
{
    struct garbage *garbage = xcalloc(1, sizeof(*garbage));
    garbage->refs = 1;
    garbage->api = api;
    garbage->route = route;
    garbage_graph_init(&garbage->graph, random_u64(&api->random));
    return garbage;
}

void garbage_unref(struct garbage *garbage)
{
    if (!garbage || --garbage->refs)
        return;
    if (garbage->api->jobs->stopped) {
        (void)!garbage_graph_drain(&garbage->graph, SIZE_MAX);
        free(garbage);
        return;
    }
    struct drain *drain = xcalloc(1, sizeof(*drain));
    drain->garbage = garbage;
    kube_job_start(&drain->job, &drain_type, garbage->api);
}
