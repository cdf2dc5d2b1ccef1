#include "kube/jobs/definitions.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "kube/call/conversion_metrics.h"
#include "kube/call/converter_states.h"
#include "kube/custom/definition_rules.h"
#include "kube/jobs/job.h"
#include "kube/jobs/purge.h"

enum { RETRY_S = 10, CONVERTERS_S = 5 };

struct definition_job {
    struct kube_job job;
    struct kube_offload_job offload; /* decides about a definition on the worker */
    struct slice text;               /* the definition, in the job's arena */
    struct random random;
    int64_t now_s;
    struct kube_kinds *kinds; /* a reference; NULL: to be read */
    size_t at;                /* position in its definitions */
    bool is_accepted;         /* the names of the definition that is read are, */
    bool converter_differs;   /* and its status has to report this */
    struct kube_converter_state converter;
    struct buf value; /* what replaces the definition that was read, */
    int64_t revision; /* if it still has this revision; 0: nothing is to be written */
    bool failed;      /* for one of them */
    bool again;       /* a definition has been removed since the job has begun */
};

static void definition_fini(struct kube_job *job)
{
    struct definition_job *check = CONTAINER_OF(job, struct definition_job, job);
    kube_kinds_unref(check->kinds);
    buf_fini(&check->value);
}

static void on_written(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_write(op);
    /* If its condition has failed, another write has decided about the names, too. */
    CONTAINER_OF(job, struct definition_job, job)->failed |= op->status != ST_OK;
    engine_write_close(&job->write.engine);
    kube_job_next(job);
}

static bool say_conversion(const struct kube_meta *meta, struct json_node *object,
                           const struct kube_converter_state *converter)
{
    return kube_definition_report_conversion(
        meta, object, converter->fails ? converter->failure : CONVERSION_FINE, converter->from,
        converter->to);
}

/* On the worker, or on the I/O thread. False: nothing changes, or it cannot be changed. */
static bool revise(struct definition_job *check)
{
    struct kube_job *job = &check->job;
    struct kube_status status = {0};
    struct json_node *object, *was;
    struct error error;
    struct kube_meta meta = {
        .arena = &job->arena,
        .kind = kube_builtin_find(SLICE_LITERAL("apiextensions.k8s.io"), SLICE_LITERAL("v1"),
                                  SLICE_LITERAL("customresourcedefinitions")),
        .now_s = check->now_s,
        .random = &check->random,
        .status = &status,
    };
    buf_reset(&check->value, SIZE_MAX);
    return json_tree_read(&job->arena, check->text, &object, &error) == ST_OK &&
           json_node_path(object, "metadata.name") && json_node_path(object, "spec.names") &&
           (was = json_node_copy(&job->arena, object)) != NULL &&
           (check->is_accepted || kube_definition_accept_names(&meta, object, check->kinds)) &&
           (!check->converter_differs || say_conversion(&meta, object, &check->converter)) &&
           !json_node_equal(was, object) && kube_meta_check(&meta, object) &&
           kube_meta_order(&meta, object) && json_tree_write(object, &check->value) == ST_OK;
}

static void decide(struct worker_job *job)
{
    struct definition_job *check = CONTAINER_OF(job, struct definition_job, offload.worker);
    turn_work("changing the status of", check->job.request.key);
    if (!revise(check))
        check->revision = 0;
}

static void on_decided(struct kube_offload_job *offload)
{
    struct definition_job *check = CONTAINER_OF(offload, struct definition_job, offload);
    if (offload->worker.status != ST_OK)
        check->revision = 0;
    check->failed |= offload->worker.status != ST_OK || arena_ran_out(&check->job.arena);
    kube_job_next(&check->job);
}

/* Parsing and comparing a large definition takes too long for an I/O thread. */
static bool decide_on_worker(struct definition_job *check)
{
    struct kube_offload *worker = &check->job.api->offload;
    check->offload =
        (struct kube_offload_job){.back = on_decided, .worker = {.run = decide, .must_run = true}};
    return worker->worker && kube_offload_send(worker, 0, NULL, &check->offload) == ST_OK;
}

static void on_read(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_range(op);
    struct definition_job *check = CONTAINER_OF(job, struct definition_job, job);
    struct slice field;
    struct kube_kv kv = {0};
    if (op->status == ST_OK && engine_range_next(&job->range, &field))
        kv = kube_kv_of(field);
    check->revision = kv.mod_revision;
    check->now_s = clock_real_ns(job->api->clock) / NS_PER_S;
    random_init(&check->random, random_u64(&job->api->random));
    bool kept = arena_dup(&job->arena, kv.value, &check->text) == ST_OK;
    check->failed |= op->status != ST_OK || !kept;
    engine_range_close(&job->range);
    if (check->revision && kept && decide_on_worker(check))
        return;
    if (!check->revision || !kept || !revise(check))
        check->revision = 0;
    check->failed |= arena_ran_out(&job->arena);
    kube_job_next(job);
}

static void read_definition(struct definition_job *check, struct slice name)
{
    struct kube_job *job = &check->job;
    kube_job_reset_arena(job, SCHEMA_BYTES_MAX);
    job->request = (struct pb_range_request){0};
    if (kube_key_make(&job->arena, KUBE_DEFINITIONS_PREFIX, SLICE_EMPTY, name, &job->request.key) ==
        ST_OK) {
        kube_job_read(job, on_read);
        return;
    }
    check->failed = true;
    kube_job_next(job);
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct kube_job *job = kube_job_of_kinds(wait);
    struct definition_job *check = CONTAINER_OF(job, struct definition_job, job);
    check->kinds = kube_kinds_ref(kube_registry_kinds(job->api->registry));
    check->failed = wait->status != ST_OK;
    kube_job_next(job);
}

/* NULL: they are not known. */
static struct kube_converter_states *converters_of(const struct kube_api *api)
{
    const struct kube_conversion_metrics *metrics = kube_counter_conversions(&api->counter);
    return metrics ? metrics->states : NULL;
}

static bool converter_differs(struct definition_job *check, const struct kube_definition *d)
{
    struct kube_converter_states *states = converters_of(check->job.api);
    return states && kube_converter_states_differ(states, d, clock_mono_ns(check->job.api->clock),
                                                  &check->converter);
}

/* True: an operation has been started for a definition. */
static bool visit_next(struct definition_job *check)
{
    size_t count;
    struct kube_definition *const *all = kube_kinds_definitions(check->kinds, &count);
    while (check->at < count) {
        struct kube_definition *d = all[check->at++];
        if (d->terminating) {
            kube_definitions_purge(check->job.api, d->name);
            continue;
        }
        check->is_accepted = d->established && d->accepted;
        check->converter_differs = converter_differs(check, d);
        if (!check->is_accepted || check->converter_differs) {
            read_definition(check, d->name);
            return true;
        }
    }
    if (!check->failed && converters_of(check->job.api))
        kube_converter_states_prune(converters_of(check->job.api));
    return false;
}

static void finish_round(struct definition_job *check)
{
    bool failed = check->failed, again = check->again;
    kube_kinds_unref(check->kinds);
    check->kinds = NULL;
    check->at = 0;
    check->failed = check->again = false;
    if (failed)
        kube_job_wait(&check->job, RETRY_S);
    else if (again)
        kube_job_next(&check->job);
    else
        kube_job_end(&check->job);
}

static void definition_step(struct kube_job *job)
{
    struct definition_job *check = CONTAINER_OF(job, struct definition_job, job);
    if (!check->kinds) {
        kube_job_read_kinds(job, on_kinds);
    } else if (check->revision) {
        job->write = (struct kube_write){.key = job->request.key,
                                         .value = buf_slice(&check->value),
                                         .expected = check->revision};
        check->revision = 0;
        kube_job_put(job, on_written);
    } else if (!visit_next(check)) {
        finish_round(check);
    }
}

static const struct kube_job_type definition_type = {.step = definition_step,
                                                     .fini = definition_fini};

void kube_definitions_check(struct kube_api *api)
{
    if (api->jobs->stopped)
        return;
    struct kube_job *job = kube_jobs_find(api->jobs, &definition_type, NULL);
    if (job) {
        CONTAINER_OF(job, struct definition_job, job)->again = job->state != KUBE_JOB_WAITING;
        kube_job_hurry(job);
        return;
    }
    struct definition_job *check = xcalloc(1, sizeof(*check));
    kube_job_start(&check->job, &definition_type, api);
}

/* -- Conversion webhooks -- */

static void watch_converters(struct kube_job *job)
{
    struct kube_converter_states *states = converters_of(job->api);
    if (states && kube_converter_states_have_news(states, clock_mono_ns(job->api->clock)))
        kube_definitions_check(job->api);
    kube_job_wait(job, CONVERTERS_S);
}

static void watch_fini(struct kube_job *job)
{
    (void)job;
}

static const struct kube_job_type watch_type = {.step = watch_converters, .fini = watch_fini};

void kube_definitions_start(struct kube_api *api)
{
    kube_definitions_check(api);
    kube_job_start(xcalloc(1, sizeof(struct kube_job)), &watch_type, api);
}

void kube_definitions_purge(struct kube_api *api, struct slice name)
{
    kube_purge_start(api, KUBE_PURGE_DEFINITION, name, kube_definitions_check);
}
