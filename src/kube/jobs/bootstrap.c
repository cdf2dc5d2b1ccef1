#include "kube/jobs/bootstrap.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/jobs/start.h"

/* Objects of a transaction: making them takes about 0.3 ms. etcd permits 128. */
enum { BATCH = 32, ATTEMPTS_MAX = 10, ARENA_BYTES_MAX = 4 << 20 };

struct batch {
    size_t places[BATCH];
    size_t count;
    size_t first; /* the place after those of the batch before */
};

struct bootstrap {
    struct kube_job job;
    struct kube_start start;
    struct arena arena; /* memory of start */
    size_t at;          /* the next place to look at */
    struct batch missing;
    unsigned attempts; /* attempts of this batch */
    bool failed;
    struct pb_txn_request txn;
    void (*done)(struct kube_api *api, bool failed);
};

static struct bootstrap *bootstrap_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct bootstrap, job);
}

static void bootstrap_fini(struct kube_job *job)
{
    arena_fini(&bootstrap_of(job)->arena);
}

/* Without memory the process stops. */
static void must(enum status status)
{
    if (status != ST_OK)
        xalloc_check(NULL, ARENA_BYTES_MAX);
}

/* -- Looking -- */

static void on_looked(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_range(op);
    struct bootstrap *b = bootstrap_of(job);
    if (op->status != ST_OK)
        b->failed = true;
    else if (!job->range.count)
        b->missing.places[b->missing.count++] = b->at;
    b->at++;
    engine_range_close(&job->range);
    kube_job_next(job);
}

/* -- Writing -- */

static void on_written(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_write(op);
    struct bootstrap *b = bootstrap_of(job);
    bool wrote = op->status == ST_OK && job->write.engine.answer.txn.succeeded;
    b->failed = op->status != ST_OK || (!wrote && b->attempts == ATTEMPTS_MAX);
    if (b->failed)
        log_warn("cannot make the objects of a new cluster",
                 LOG_TEXT("why", op->status == ST_OK ? "others make them at the same time"
                                                     : status_text(op->status)));
    /* The next batch begins behind this one; one that was not written is made again. */
    b->at = wrote ? b->at : b->missing.first;
    b->missing = (struct batch){.first = b->at};
    b->attempts = wrote ? 0 : b->attempts + 1;
    engine_write_close(&job->write.engine);
    kube_job_next(job);
}

static struct slice make_value(struct bootstrap *b, size_t place)
{
    struct kube_api *api = b->job.api;
    AUTO(arena_fini) struct arena tree;
    AUTO(buf_fini) struct buf text = {0};
    struct slice value;
    arena_init(&tree, NULL, 0, ARENA_BYTES_MAX);
    must(kube_start_value(&b->start, place, &tree, clock_real_ns(api->clock) / NS_PER_S,
                          &api->random, &text));
    must(arena_dup(&b->job.arena, buf_slice(&text), &value));
    return value;
}

static void *take(struct bootstrap *b, size_t bytes)
{
    return xalloc_check(arena_alloc(&b->job.arena, bytes), bytes);
}

static void write(struct bootstrap *b)
{
    struct kube_job *job = &b->job;
    size_t count = b->missing.count;
    kube_job_reset_arena(job, ARENA_BYTES_MAX);
    struct pb_compare *compares = take(b, count * sizeof(*compares));
    struct pb_request_op *ops = take(b, count * sizeof(*ops));
    struct pb_put_request *puts = take(b, count * sizeof(*puts));
    for (size_t i = 0; i < count; i++) {
        puts[i] = (struct pb_put_request){.value = make_value(b, b->missing.places[i])};
        must(kube_start_key(&b->start, b->missing.places[i], &job->arena, &puts[i].key));
        ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                        .request_put = &puts[i]};
        compares[i] = (struct pb_compare){.result = PB_COMPARE_RESULT_EQUAL,
                                          .target = PB_COMPARE_TARGET_MOD,
                                          .key = puts[i].key,
                                          .target_union_case = PB_COMPARE_MOD_REVISION};
    }
    b->txn = (struct pb_txn_request){
        .compare = compares, .compare_count = count, .success = ops, .success_count = count};
    kube_job_begin(job, &job->write.engine.op, on_written);
    engine_txn(job->api->shard, &job->write.engine, &b->txn);
}

/* -- The job -- */

static void bootstrap_step(struct kube_job *job)
{
    struct bootstrap *b = bootstrap_of(job);
    bool all = b->at == kube_start_count(&b->start);
    if (b->failed || (all && !b->missing.count)) {
        struct kube_api *api = b->job.api;
        void (*done)(struct kube_api * api, bool failed) = b->done;
        bool failed = b->failed;
        kube_job_end(&b->job);
        done(api, failed);
    } else if (all || b->missing.count == BATCH) {
        write(b);
    } else {
        /* The mirror of a cluster is enough at first, so that a request that only reads makes no
         * call of the cluster if everything exists. */
        struct slice key;
        kube_job_reset_arena(job, ARENA_BYTES_MAX);
        must(kube_start_key(&b->start, b->at, &job->arena, &key));
        job->request = (struct pb_range_request){
            .key = key, .serializable = b->attempts == 0, .count_only = true};
        kube_job_read(job, on_looked);
    }
}

static const struct kube_job_type bootstrap_type = {
    .step = bootstrap_step, .fini = bootstrap_fini, .finishes = true};

void kube_bootstrap_start(struct kube_api *api, void (*done)(struct kube_api *api, bool failed))
{
    struct bootstrap *b = xcalloc(1, sizeof(*b));
    b->done = done;
    arena_init(&b->arena, NULL, 0, KUBE_START_ARENA_BYTES_MAX);
    must(kube_start_init(&b->start, api->config->start, &b->arena,
                         clock_real_ns(api->clock) / NS_PER_S));
    b->start.owned = api->config->owns_new;
    kube_job_start(&b->job, &bootstrap_type, api);
}
