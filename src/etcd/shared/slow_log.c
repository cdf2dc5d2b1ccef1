#include "etcd/shared/slow_log.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/text_write.h"

#include <stdio.h>

enum { CONTENT_BYTES = LOG_TEXT_BYTES, SCRATCH_BYTES = 4096, SCRATCH_BYTES_MAX = 16 << 20 };

/* How etcd logs the calls of each method. */
static const struct method_form {
    const char *path;
    const struct pb_message *request, *response;
    const char *prefix;  /* prefix of the apply message; NULL: the method applies nothing */
    const char *applied; /* the name of the request in the apply message; NULL: it has none */
    int64_t request_count;
} forms[] = {
    {"/etcdserverpb.KV/Range", &pb_range_request_table, &pb_range_response_table,
     "read-only range ", NULL, 0},
    {"/etcdserverpb.KV/Put", &pb_put_request_table, &pb_put_response_table, "", "put", 1},
    {"/etcdserverpb.KV/DeleteRange", &pb_delete_range_request_table,
     &pb_delete_range_response_table, "", "delete_range", 0},
    {"/etcdserverpb.KV/Txn", &pb_txn_request_table, &pb_txn_response_table, "", "txn", 0},
    {"/etcdserverpb.KV/Compact", &pb_compaction_request_table, NULL, "", "compaction", -1},
    {"/etcdserverpb.Lease/LeaseGrant", &pb_lease_grant_request_table, NULL, "", "lease_grant", -1},
    {"/etcdserverpb.Lease/LeaseRevoke", &pb_lease_revoke_request_table, NULL, "", "lease_revoke",
     -1},
};
static const struct method_form other = {.request_count = -1};

/* What is logged about one call. -1 in a number: not known. */
struct call_facts {
    const struct method_form *form;
    char content[CONTENT_BYTES];
    int64_t request_count, request_bytes, response_count, response_bytes;
    int64_t returned; /* key-values of a range; -1: not a range */
};

static const struct method_form *form_of(struct slice path)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (slice_is(path, forms[i].path))
            return &forms[i];
    return &other;
}

static void read_response(struct call_facts *facts, const struct grpc_call *call,
                          struct arena *arena)
{
    union {
        struct pb_range_response range;
        struct pb_delete_range_response deleted;
    } answer;
    struct slice message;
    facts->response_count = facts->response_bytes = facts->returned = -1;
    if (!facts->form->response || !grpc_call_response(call, &message))
        return;
    facts->response_bytes = (int64_t)message.len;
    facts->response_count = 0;
    const struct pb_message *type = facts->form->response;
    if (type == &pb_range_response_table &&
        pb_decode(type, message, arena, &answer.range) == ST_OK) {
        facts->response_count = answer.range.count;
        facts->returned = (int64_t)answer.range.kvs_count;
    } else if (type == &pb_delete_range_response_table &&
               pb_decode(type, message, arena, &answer.deleted) == ST_OK) {
        facts->response_count = answer.deleted.deleted;
    }
}

static void read_request(struct call_facts *facts, const struct grpc_call *call,
                         struct arena *arena)
{
    const struct pb_message *type = facts->form->request;
    struct slice message = grpc_call_request(call);
    facts->request_count = facts->form->request_count;
    facts->request_bytes = facts->request_count < 0 ? -1 : (int64_t)message.len;
    facts->content[0] = 0;
    void *decoded = type ? arena_alloc(arena, type->struct_bytes) : NULL;
    if (!decoded || pb_decode(type, message, arena, decoded) != ST_OK)
        return;
    pb_text_write(type, decoded, facts->content, sizeof(facts->content));
    if (type == &pb_txn_request_table) {
        const struct pb_txn_request *txn = decoded;
        facts->request_count = (int64_t)(txn->success_count + txn->failure_count);
    }
}

static void log_apply(const struct slow_log *log, const struct call_facts *facts, int64_t took_ns)
{
    const struct method_form *form = facts->form;
    char request[CONTENT_BYTES + 32], response[64] = "";
    if (form->applied)
        snprintf(request, sizeof(request), "%s:<%s>", form->applied, facts->content);
    else
        snprintf(request, sizeof(request), "%s", facts->content);
    if (facts->returned >= 0)
        snprintf(response, sizeof(response), "range_response_count:%lld size:%lld",
                 (long long)facts->returned, (long long)facts->response_bytes);
    else if (facts->response_bytes >= 0)
        snprintf(response, sizeof(response), "size:%lld", (long long)facts->response_bytes);
    log_warn("apply request took too long", LOG_DURATION("took", took_ns),
             LOG_DURATION("expected-duration", log->apply_ns), LOG_TEXT("prefix", form->prefix),
             LOG_TEXT("request", request), LOG_TEXT("response", response));
}

static void log_call(struct slow_log *log, const struct call_facts *facts,
                     const struct grpc_call *call, int64_t took_ns)
{
    char remote[GRPC_ADDRESS_BYTES];
    grpc_call_peer_address(call, remote);
    log_warn("request stats", LOG_TIME("start time", clock_real_ns(clock_system()) - took_ns),
             LOG_DURATION("time spent", took_ns), LOG_TEXT("remote", remote),
             LOG_SLICE("response type", grpc_call_path(call)),
             LOG_I64("request count", facts->request_count),
             LOG_I64("request size", facts->request_bytes),
             LOG_I64("response count", facts->response_count),
             LOG_I64("response size", facts->response_bytes),
             LOG_TEXT("request content", facts->content),
             log->suppressed ? LOG_U64("suppressed", log->suppressed) : (struct log_field){0});
}

static bool may_log(struct slow_log *log)
{
    bool may = rate_limit_take(&log->lines, SLOW_LOG_BURST, SLOW_LOG_PER_S,
                               log->timing.now_ns(log->timing.now_ctx));
    log->suppressed += !may;
    return may;
}

static void on_slow(void *ctx, const struct grpc_call *call, int64_t took_ns)
{
    struct slow_log *log = ctx;
    uint8_t scratch[SCRATCH_BYTES];
    struct arena arena;
    struct call_facts facts = {.form = form_of(grpc_call_path(call))};
    bool applied = facts.form->prefix && took_ns > log->apply_ns;
    if (applied && log->counts)
        metric_add(log->counts, log->apply_slot, 1);
    if (!log_enabled(LOG_WARN) || !may_log(log))
        return;
    arena_init(&arena, scratch, sizeof(scratch), SCRATCH_BYTES_MAX);
    read_request(&facts, call, &arena);
    read_response(&facts, call, &arena);
    if (applied)
        log_apply(log, &facts, took_ns);
    if (took_ns > log->unary_ns) {
        log_call(log, &facts, call, took_ns);
        log->suppressed = 0;
    }
    arena_fini(&arena);
}

void slow_log_init(struct slow_log *log, struct grpc_services *services, int64_t apply_ns,
                   int64_t unary_ns, int64_t (*now_ns)(void *ctx), void *now_ctx)
{
    *log = (struct slow_log){
        .timing = {.now_ns = now_ns,
                   .now_ctx = now_ctx,
                   .slow_ns = apply_ns < unary_ns ? apply_ns : unary_ns,
                   .on_slow = on_slow,
                   .ctx = log},
        .apply_ns = apply_ns,
        .unary_ns = unary_ns,
    };
    grpc_services_time(services, &log->timing);
}
