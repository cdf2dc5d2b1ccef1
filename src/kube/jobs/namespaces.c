#include "kube/jobs/namespaces.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "engine/forward.h"
#include "kube/jobs/bootstrap.h"
#include "kube/jobs/definitions.h"
#include "kube/jobs/purge.h"
#include "kube/merge/apply/created.h"
#include "kube/types/object/object.h"
#include "kube/types/object/strategy.h"

#define NAMESPACES_PREFIX "/registry/namespaces/"

enum { PAGE_KEYS = 100, ARENA_BYTES_MAX = 4 << 20, RETRY_S = 10, TAKE_OVER_S = 60 };

static const char *const default_namespaces[] = {"default", "kube-node-lease", "kube-public",
                                                 "kube-system"};

bool kube_is_default_namespace(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(default_namespaces); i++) {
        if (slice_is(name, default_namespaces[i]))
            return true;
    }
    return false;
}

/* -- Resuming deletions -- */

struct resume_job {
    struct kube_job job;
    struct buf from; /* the first key of the next page; empty: the first page */
    bool failed, done;
};

static void resume_fini(struct kube_job *job)
{
    buf_fini(&CONTAINER_OF(job, struct resume_job, job)->from);
}

static void on_page(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_range(op);
    struct resume_job *resume = CONTAINER_OF(job, struct resume_job, job);
    struct slice field, prefix = SLICE_LITERAL(NAMESPACES_PREFIX);
    bool fine = op->status == ST_OK, more = job->range.more;
    while (fine && !job->api->jobs->stopped && engine_range_next(&job->range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        buf_reset(&resume->from, SIZE_MAX);
        fine = buf_append(&resume->from, kv.key) == ST_OK &&
               buf_append(&resume->from, slice_of("", 1)) == ST_OK;
        /* The phase of a namespace says nothing about its deletion: any client may set it. */
        struct kube_object object;
        if (fine && kube_object_parse(kv.value, &object) == ST_OK &&
            kube_object_is_deleting(&object))
            kube_purge_start(job->api, KUBE_PURGE_NAMESPACE,
                             slice_sub(kv.key, prefix.len, kv.key.len - prefix.len), NULL);
    }
    resume->failed = !fine || job->range.op.status != ST_OK;
    resume->done = !resume->failed && !more;
    engine_range_close(&job->range);
    kube_job_next(job);
}

static void read_page(struct resume_job *resume)
{
    struct kube_job *job = &resume->job;
    kube_job_reset_arena(job, ARENA_BYTES_MAX);
    job->request = (struct pb_range_request){
        .key = resume->from.len ? buf_slice(&resume->from) : SLICE_LITERAL(NAMESPACES_PREFIX),
        .range_end = SLICE_LITERAL("/registry/namespaces0"),
        .limit = PAGE_KEYS,
    };
    kube_job_read(job, on_page);
}

static void resume_step(struct kube_job *job)
{
    struct resume_job *resume = CONTAINER_OF(job, struct resume_job, job);
    if (resume->done && engine_forwards(job->api->engine)) {
        resume->done = false;
        buf_reset(&resume->from, SIZE_MAX);
        kube_definitions_check(job->api);
        kube_job_wait(job, TAKE_OVER_S);
    } else if (resume->done) {
        kube_job_end(job);
    } else if (resume->failed) {
        resume->failed = false;
        buf_reset(&resume->from, SIZE_MAX);
        kube_job_wait(job, RETRY_S);
    } else {
        read_page(resume);
    }
}

static const struct kube_job_type resume_type = {.step = resume_step, .fini = resume_fini};

void kube_namespaces_resume(struct kube_api *api)
{
    struct resume_job *resume = xcalloc(1, sizeof(*resume));
    kube_job_start(&resume->job, &resume_type, api);
}

/* -- Creating the default namespaces -- */

struct default_job {
    struct kube_job job;
    struct buf value;
    size_t at;    /* in default_namespaces */
    bool missing; /* this one is not in the mirror of a cluster */
    bool failed;  /* one could not be created */
};

static void default_fini(struct kube_job *job)
{
    buf_fini(&CONTAINER_OF(job, struct default_job, job)->value);
}

static void on_created(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_write(op);
    struct default_job *creation = CONTAINER_OF(job, struct default_job, job);
    if (op->status != ST_OK) {
        log_warn("cannot make a default namespace",
                 LOG_TEXT("namespace", default_namespaces[creation->at]),
                 LOG_TEXT("why", status_text(op->status)));
        creation->failed = true;
    }
    bool gives_up = creation->failed && engine_forwards(job->api->engine);
    engine_write_close(&job->write.engine);
    creation->at = gives_up ? COUNT_OF(default_namespaces) : creation->at + 1;
    creation->missing = false;
    kube_job_next(job);
}

static void on_looked_up(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_range(op);
    struct default_job *creation = CONTAINER_OF(job, struct default_job, job);
    creation->missing = op->status != ST_OK || !job->range.count;
    creation->at += !creation->missing;
    engine_range_close(&job->range);
    kube_job_next(job);
}

static bool make_value(struct default_job *creation, const char *name)
{
    struct kube_job *job = &creation->job;
    struct kube_status status = {0};
    struct kube_meta meta = {
        .arena = &job->arena,
        .kind = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces")),
        .now_s = clock_real_ns(job->api->clock) / NS_PER_S,
        .random = &job->api->random,
        .status = &status,
    };
    struct json_node *metadata, *object = json_node_new(&job->arena, JSON_TYPE_OBJECT);
    buf_reset(&creation->value, SIZE_MAX);
    return object && kube_meta_object(&meta, object, "metadata", &metadata) &&
           kube_meta_set_text(&meta, metadata, "name", slice_from_text(name)) &&
           kube_meta_check(&meta, object) && kube_strategy_decode(&meta, object) &&
           (!job->api->config->owns_new ||
            created_by_server(meta.arena, meta.kind, meta.now_s, object) == ST_OK) &&
           kube_meta_create(&meta, object) && kube_strategy_create(&meta, object) &&
           kube_meta_order(&meta, object) && json_tree_write(object, &creation->value) == ST_OK;
}

/* Tries again after a failure, without a request: a client that waits until the server is ready
 * sends none before. */
struct again_job {
    struct kube_job job;
    bool waited;
};

static void again_fini(struct kube_job *job)
{
    (void)job;
}

static void again_step(struct kube_job *job)
{
    struct again_job *again = CONTAINER_OF(job, struct again_job, job);
    struct kube_api *api = job->api;
    char reason[ENGINE_REASON_BYTES];
    if (api->namespaces->made) {
        kube_job_end(job);
    } else if (again->waited && !api->namespaces->making && engine_ready(api->engine, reason)) {
        kube_job_end(job);
        kube_namespaces_make(api, NULL);
    } else {
        again->waited = true;
        kube_job_wait(job, RETRY_S);
    }
}

static const struct kube_job_type again_type = {.step = again_step, .fini = again_fini};

static void make_again_later(struct kube_api *api)
{
    if (api->jobs->stopped || kube_jobs_find(api->jobs, &again_type, NULL))
        return;
    struct again_job *again = xcalloc(1, sizeof(*again));
    kube_job_start(&again->job, &again_type, api);
}

static void release(struct kube_api *api, bool failed)
{
    struct kube_namespaces *n = api->namespaces;
    struct list ready, *link;
    n->making = false;
    n->made = !failed;
    /* All threads report it: another one may be asked for the server's health. */
    if (api->config->unmade)
        atomic_store_explicit(api->config->unmade, failed, memory_order_relaxed);
    n->retry_ns = clock_add(clock_mono_ns(api->clock), RETRY_S * NS_PER_S);
    if (failed)
        make_again_later(api);
    list_init(&ready);
    while ((link = list_pop_front(&n->waiting)) != NULL)
        list_push_back(&ready, link);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_namespaces_wait *wait =
            LIST_ENTRY(link, struct kube_namespaces_wait, in_namespaces);
        wait->go(wait);
    }
}

/* Creates one after the other, on the condition that it does not exist: another thread may be
 * faster. */
static void default_step(struct kube_job *job)
{
    struct default_job *creation = CONTAINER_OF(job, struct default_job, job);
    struct slice key;
    if (creation->at == COUNT_OF(default_namespaces)) {
        struct kube_api *api = creation->job.api;
        bool failed = creation->failed;
        kube_job_end(&creation->job);
        if (failed || !api->config->start)
            release(api, failed);
        else
            kube_bootstrap_start(api, release);
        return;
    }
    kube_job_reset_arena(job, ARENA_BYTES_MAX);
    const char *name = default_namespaces[creation->at];
    if (!make_value(creation, name) || kube_key_make(&job->arena, NAMESPACES_PREFIX, SLICE_EMPTY,
                                                     slice_from_text(name), &key) != ST_OK) {
        xalloc_check(NULL, ARENA_BYTES_MAX);
        return;
    }
    /* In front of a cluster the mirror is read first, so that a request that only reads makes no
     * call of the cluster if the namespaces exist. */
    if (engine_forwards(job->api->engine) && !creation->missing) {
        job->request =
            (struct pb_range_request){.key = key, .serializable = true, .count_only = true};
        kube_job_read(job, on_looked_up);
        return;
    }
    job->write = (struct kube_write){.key = key, .value = buf_slice(&creation->value)};
    kube_job_put(job, on_created);
}

static const struct kube_job_type default_type = {
    .step = default_step, .fini = default_fini, .finishes = true};

void kube_namespaces_init(struct kube_namespaces *n)
{
    list_init(&n->waiting);
}

bool kube_namespaces_ready(const struct kube_api *api)
{
    const struct kube_namespaces *n = api->namespaces;
    return n->made || (!n->making && n->retry_ns && clock_mono_ns(api->clock) < n->retry_ns);
}

void kube_namespaces_make(struct kube_api *api, struct kube_namespaces_wait *wait)
{
    struct kube_namespaces *n = api->namespaces;
    if (wait)
        list_push_back(&n->waiting, &wait->in_namespaces);
    if (n->making)
        return;
    n->making = true;
    struct default_job *creation = xcalloc(1, sizeof(*creation));
    kube_job_start(&creation->job, &default_type, api);
}
