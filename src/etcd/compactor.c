#include "etcd/compactor.h"

#include "base/log/log.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"

struct etcd_compactor {
    struct engine_op op;
    struct pb_compaction_request request;
    bool pending;
    bool stopped;
    const _Atomic bool *wanted;
    int64_t begun_ns;
    struct arena arena;
    struct auto_compaction compaction;
    struct engine_shard *shard;
    struct loop *loop;
    struct timer timer;
};

static int64_t revision_now(const struct etcd_compactor *compactor)
{
    struct engine_status status;
    engine_status_get(compactor->shard, &status);
    return status.revision;
}

static bool is_wanted(const struct etcd_compactor *compactor)
{
    return !compactor->wanted || atomic_load_explicit(compactor->wanted, memory_order_relaxed);
}

static void set_timer(struct etcd_compactor *compactor)
{
    if (!compactor->stopped)
        loop_timer_set(compactor->loop, &compactor->timer, compactor->compaction.next_ns);
}

/* The field that etcd logs after the revision, which depends on the mode. */
static struct log_field retention_field(const struct etcd_compactor *compactor, char *scratch)
{
    const struct auto_compaction *compaction = &compactor->compaction;
    if (compaction->mode == AUTO_COMPACTION_PERIODIC)
        return log_duration_field("compact-period", compaction->retention, scratch);
    return LOG_I64("revision-compaction-retention", compaction->retention);
}

static bool is_periodic(const struct etcd_compactor *compactor)
{
    return compactor->compaction.mode == AUTO_COMPACTION_PERIODIC;
}

static void log_end(const struct etcd_compactor *compactor, bool succeeded)
{
    char scratch[32];
    struct log_field revision = LOG_I64("revision", compactor->request.revision);
    struct log_field retention = retention_field(compactor, scratch);
    if (succeeded)
        log_info(is_periodic(compactor) ? "completed auto periodic compaction"
                                        : "completed auto revision compaction",
                 revision, retention,
                 LOG_DURATION("took", loop_now_ns(compactor->loop) - compactor->begun_ns));
    else
        log_warn(is_periodic(compactor) ? "failed auto periodic compaction"
                                        : "failed auto revision compaction",
                 revision, retention,
                 LOG_DURATION("retry-interval", compactor->compaction.interval_ns),
                 LOG_STATUS(compactor->op.status));
}

static void compact_done(struct engine_op *op)
{
    struct etcd_compactor *compactor = CONTAINER_OF(op, struct etcd_compactor, op);
    bool succeeded = op->status == ST_OK || op->status == ST_COMPACTED;
    compactor->pending = false;
    log_end(compactor, succeeded);
    auto_compaction_done(&compactor->compaction, loop_now_ns(compactor->loop),
                         compactor->request.revision, succeeded, revision_now(compactor));
    set_timer(compactor);
}

static void compact(struct etcd_compactor *compactor, int64_t revision)
{
    char scratch[32];
    log_info(is_periodic(compactor) ? "starting auto periodic compaction"
                                    : "starting auto revision compaction",
             LOG_I64("revision", revision), retention_field(compactor, scratch));
    compactor->request = (struct pb_compaction_request){.revision = revision};
    compactor->op = (struct engine_op){
        .done = compact_done, .arena = &compactor->arena, .principal = ENGINE_SERVER};
    compactor->pending = true;
    compactor->begun_ns = loop_now_ns(compactor->loop);
    engine_compact(compactor->shard, &compactor->op, &compactor->request);
}

static void on_timer(struct timer *timer)
{
    struct etcd_compactor *compactor = CONTAINER_OF(timer, struct etcd_compactor, timer);
    struct auto_compaction *compaction = &compactor->compaction;
    int64_t now_ns = loop_now_ns(compactor->loop);
    struct engine_status status;
    engine_status_get(compactor->shard, &status);
    auto_compaction_measure(compaction, status.db_size_in_use_bytes);
    int64_t revision = auto_compaction_step(compaction, now_ns, status.revision);
    if (revision && is_wanted(compactor)) {
        compact(compactor, revision);
        return;
    }
    if (revision)
        auto_compaction_done(compaction, now_ns, revision, false, status.revision);
    set_timer(compactor);
}

struct etcd_compactor *etcd_compactor_new(const struct etcd_compactor_options *options,
                                          struct engine_shard *shard, struct loop *loop)
{
    struct etcd_compactor *compactor = xcalloc(1, sizeof(*compactor));
    compactor->wanted = options->wanted;
    compactor->shard = shard;
    compactor->loop = loop;
    compactor->timer.fn = on_timer;
    arena_init(&compactor->arena, NULL, 0, 1 << 16);
    auto_compaction_init(&compactor->compaction, options->mode, options->retention,
                         clock_mono_ns(loop_clock(loop)), revision_now(compactor));
    auto_compaction_limit(&compactor->compaction, options->bytes_max);
    set_timer(compactor);
    return compactor;
}

void etcd_compactor_stop(struct etcd_compactor *compactor)
{
    loop_timer_cancel(compactor->loop, &compactor->timer);
    compactor->stopped = true;
}

bool etcd_compactor_busy(const struct etcd_compactor *compactor)
{
    return compactor->pending;
}

void etcd_compactor_free(struct etcd_compactor *compactor)
{
    if (!compactor)
        return;
    assert(!compactor->pending);
    loop_timer_cancel(compactor->loop, &compactor->timer);
    auto_compaction_fini(&compactor->compaction);
    arena_fini(&compactor->arena);
    free(compactor);
}
