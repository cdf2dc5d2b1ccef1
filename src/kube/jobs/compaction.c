#include "kube/jobs/compaction.h"

#include "base/log/log.h"
#include "base/xalloc.h"
#include "engine/forward.h"
#include "kube/jobs/job.h"

#include <inttypes.h>
#include <stdio.h>

enum { ARENA_BYTES_MAX = 1 << 20 };

/* Without a prefix, as kube-apiservers have it. */
#define KEY SLICE_LITERAL("compact_rev_key")

struct compaction_job {
    struct kube_job job;
    bool waited;      /* an interval has passed: the next step claims */
    int64_t version;  /* version of the key, as it was last seen; 0: it does not exist */
    int64_t noted;    /* the newest revision at that time; 0: none */
    int64_t revision; /* what the next step compacts to; 0: nothing */

    char text[24]; /* for a claim: the value of the key */
    struct pb_txn_request txn;
    struct pb_compare compare;
    struct pb_request_op success, failure;
    struct pb_put_request put;
    struct pb_range_request get;
    struct engine_op compact;
    struct pb_compaction_request request;
};

static void compaction_fini(struct kube_job *job)
{
    (void)job;
}

/* -- The claim -- */

/* After a failure the version is not known, so the next claim fails, too, and finds it. */
static void on_claimed(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_write(op);
    struct compaction_job *c = CONTAINER_OF(job, struct compaction_job, job);
    const struct kv_txn_answer *txn = &job->write.engine.answer.txn;
    if (op->status == ST_OK && txn->succeeded) {
        c->revision = c->noted;
        c->version++;
        c->noted = op->revision;
    } else if (op->status == ST_OK) {
        /* Another server has claimed this compaction. The next claim compares the version that was
         * found instead. */
        const struct kv_range_answer *range = &txn->answers[0].range;
        c->revision = 0;
        c->version = range->field_count ? kube_kv_of(range->fields[0]).version : 0;
        c->noted = op->revision;
    } else {
        log_warn("cannot claim the next compaction of the cluster", LOG_STATUS(op->status));
    }
    engine_write_close(&job->write.engine);
    kube_job_next(job);
}

static void claim(struct compaction_job *c)
{
    struct kube_job *job = &c->job;
    kube_job_reset_arena(job, ARENA_BYTES_MAX);
    snprintf(c->text, sizeof(c->text), "%" PRIi64, c->noted);
    c->compare = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_VERSION,
        .key = KEY,
        .target_union_case = PB_COMPARE_VERSION,
        .version = c->version,
    };
    c->put = (struct pb_put_request){.key = KEY, .value = slice_from_text(c->text)};
    c->get = (struct pb_range_request){.key = KEY};
    c->success =
        (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &c->put};
    c->failure = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                        .request_range = &c->get};
    c->txn = (struct pb_txn_request){
        .compare = &c->compare,
        .compare_count = 1,
        .success = &c->success,
        .success_count = 1,
        .failure = &c->failure,
        .failure_count = 1,
    };
    kube_job_begin(job, &job->write.engine.op, on_claimed);
    engine_txn(job->api->shard, &job->write.engine, &c->txn);
}

/* -- The compaction -- */

static void on_compacted(struct engine_op *op)
{
    struct compaction_job *c = CONTAINER_OF(op, struct compaction_job, compact);
    if (op->status == ST_OK)
        log_info("compacted the cluster", LOG_I64("revision", c->request.revision));
    else if (op->status != ST_COMPACTED)
        log_warn("cannot compact the cluster", LOG_I64("revision", c->request.revision),
                 LOG_STATUS(op->status));
    kube_job_next(&c->job);
}

static void compact(struct compaction_job *c)
{
    kube_job_reset_arena(&c->job, ARENA_BYTES_MAX);
    c->request = (struct pb_compaction_request){.revision = c->revision};
    c->revision = 0;
    kube_job_begin(&c->job, &c->compact, on_compacted);
    engine_compact(c->job.api->shard, &c->compact, &c->request);
}

/* -- Steps -- */

static bool is_wanted(const struct kube_api *api)
{
    const _Atomic bool *written = api->config->written;
    return !written || atomic_load_explicit(written, memory_order_relaxed);
}

static void step(struct kube_job *job)
{
    struct compaction_job *c = CONTAINER_OF(job, struct compaction_job, job);
    if (c->revision) {
        compact(c);
    } else if (c->waited && is_wanted(job->api)) {
        c->waited = false;
        claim(c);
    } else {
        c->waited = true;
        kube_job_wait(job, job->api->config->compaction_s);
    }
}

static const struct kube_job_type type = {.step = step, .fini = compaction_fini};

void kube_compaction_start(struct kube_api *api)
{
    if (!engine_forwards(api->engine) || !api->config->compaction_s)
        return;
    struct compaction_job *c = xcalloc(1, sizeof(*c));
    kube_job_start(&c->job, &type, api);
}
