/*
 * Health checks over HTTP: the alarms, and a read like a client's. There is only one member, so
 * there is always a leader and never a learner.
 *
 * In front of another server the mirror is checked too, otherwise whether the disk has space. A
 * server whose cluster is gone or whose disk is full is not ready, but it is alive: ending it would
 * help no client.
 *
 * Every check is answered within a second, whatever the engine does: a read that takes longer is
 * given up, and the check has failed. A probe that hangs is worth less than one that fails.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "codec/json/writer.h"
#include "codec/pb/rpc.pb.h"
#include "engine/forward.h"
#include "etcd/http/health_counts.h"
#include "etcd/http/http.h"
#include "io/loop.h"
#include "wire/http/query.h"

#include <stdio.h>

enum { READ_ARENA_BYTES_MAX = 64 * 1024 };
/* How long the reads of a check may take together. */
#define READ_NS (800 * NS_PER_MS)
#define LATE_TEXT "no answer within 0.8 s"
#define LATE_CLUSTER_TEXT "the cluster has not answered within 0.8 s"

enum health_check {
    CHECK_DATA_CORRUPTION = 1,
    CHECK_SERIALIZABLE_READ = 2,
    CHECK_LINEARIZABLE_READ = 4,
    CHECK_NON_LEARNER = 8,
    CHECK_MIRROR = 16, /* only in front of a cluster, or another server */
    CHECK_DISK = 32,   /* only of a store; etcd has no such check, so it is listed if it fails */
};

static const struct {
    enum health_check check;
    const char *name;
    enum etcd_health_row row; /* row of /readyz */
} check_names[] = {
    {CHECK_DATA_CORRUPTION, "data_corruption", ETCD_READYZ_DATA_CORRUPTION},
    {CHECK_SERIALIZABLE_READ, "serializable_read", ETCD_READYZ_SERIALIZABLE_READ},
    {CHECK_LINEARIZABLE_READ, "linearizable_read", ETCD_READYZ_LINEARIZABLE_READ},
    {CHECK_NON_LEARNER, "non_learner", ETCD_READYZ_NON_LEARNER},
    {CHECK_MIRROR, "mirror", ETCD_READYZ_MIRROR},
    {CHECK_DISK, "disk", ETCD_READYZ_DISK},
};

/*
 * One running check. On the heap; freed when the exchange has ended and the engine has answered.
 *
 *     serializable read ──► linearizable read ──► answered
 *
 * Only the reads that the checks need are made. The limit answers early, with what is known by
 * then.
 */
struct check_call {
    struct engine_range range; /* first */
    struct http_exchange *exchange;
    struct etcd_api *api;
    struct arena arena;
    struct pb_range_request request;
    unsigned checks; /* 0: /health, which answers in JSON */
    bool corrupt;    /* the alarm was raised when the request arrived */
    bool verbose;
    bool pending;
    bool ended;
    bool late;            /* answered by the limit */
    bool is_serializable; /* a serializable read has succeeded */
    struct timer limit;
    /* Why the engine could not answer as well as ever when the request arrived; "": it could. In
     * front of a cluster a linearizable read is then known to fail, and is not tried, since it
     * would only wait. */
    char fault[ENGINE_REASON_BYTES];
};

static void check_call_free(struct check_call *check)
{
    engine_range_close(&check->range);
    arena_fini(&check->arena);
    free(check);
}

/* Why the engine cannot answer as well as ever; "": it can. */
static void engine_fault(const struct etcd_api *api, char ret_fault[ENGINE_REASON_BYTES])
{
    const struct etcd_config *config = api->config;
    bool ready = config->ready ? config->ready(config->ready_ctx, ret_fault)
                               : engine_ready(api->engine, ret_fault);
    if (ready)
        ret_fault[0] = '\0';
}

/* The engine has what another server stores. */
static bool is_mirror(const struct etcd_api *api)
{
    return api->config->ready || engine_forwards(api->engine);
}

/* In front of a cluster that cannot be reached. The reads of a store do not depend on its disk. */
static bool is_cut_off(const struct check_call *check)
{
    return *check->fault && engine_forwards(check->api->engine);
}

/* Why the read failed: the cluster's own text, if it has sent one. */
static struct slice read_fault(const struct check_call *check)
{
    if (check->late)
        return slice_from_text(engine_forwards(check->api->engine) ? LATE_CLUSTER_TEXT : LATE_TEXT);
    const struct engine_op *op = &check->range.op;
    return op->text.len ? op->text : slice_from_text(status_text(op->status));
}

static unsigned alarms_of(const struct etcd_api *api)
{
    struct engine_status status;
    engine_status_get(api->shard, &status);
    return status.alarms;
}

/* -- /health -- */

static void health_reply(struct etcd_api *api, struct http_exchange *x, const char *reason)
{
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    bool healthy = reason[0] == '\0';
    etcd_health_count(api->config->health_counts, healthy);
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_member_text(&w, "health", healthy ? "true" : "false");
    if (!api->config->before_3_5) {
        json_member_text(&w, "reason", reason);
    }
    json_end_object(&w);
    enum status status = json_writer_finish(&w);
    if (status == ST_OK && !healthy)
        status = buf_append_text(&body, "\n");
    if (status != ST_OK) {
        http_abort(x);
    } else if (healthy) {
        http_respond(x, 200, HTTP_TEXT_PLAIN, buf_slice(&body));
    } else {
        struct log_field unlogged;
        if (http_may_log(api, &unlogged))
            log_warn("/health error", LOG_TEXT("output", reason), LOG_I64("status-code", 503),
                     unlogged);
        http_reply_text(x, 503, buf_slice(&body));
    }
}

static const char *alarm_name(unsigned type, char to[16])
{
    if (type == ENGINE_ALARM_NOSPACE)
        return "NOSPACE";
    if (type == ENGINE_ALARM_CORRUPT)
        return "CORRUPT";
    snprintf(to, 16, "%u", type);
    return to;
}

static struct buf room_for(struct slice query)
{
    struct buf room = {0};
    size_t bytes = query.len + 1;
    (void)xalloc_check(buf_reserve(&room, bytes) == ST_OK ? room.ptr : NULL, bytes);
    return room;
}

static bool is_excluded(struct slice query, const char *name)
{
    AUTO(buf_fini) struct buf scratch = room_for(query);
    struct http_field pair;
    while (http_query_next(&query, &scratch, &pair)) {
        if (slice_is(pair.name, "exclude") && slice_is(pair.value, name))
            return true;
    }
    return false;
}

/* The reason of the first alarm that the query does not exclude; "" if there is none. */
static const char *alarm_reason(unsigned alarms, struct slice query)
{
    for (unsigned type = 0; alarms >> type; type++) {
        char number[16];
        if (!(alarms & 1u << type) || is_excluded(query, alarm_name(type, number)))
            continue;
        if (type == ENGINE_ALARM_NOSPACE)
            return "ALARM NOSPACE";
        return type == ENGINE_ALARM_CORRUPT ? "ALARM CORRUPT" : "ALARM UNKNOWN";
    }
    return "";
}

static void health_read_done(const struct check_call *check)
{
    char reason[256] = "";
    if (check->late || check->range.op.status != ST_OK)
        snprintf(reason, sizeof(reason), "RANGE ERROR:%.*s", SLICE_ARGS(read_fault(check)));
    health_reply(check->api, check->exchange, reason);
}

/* -- /livez and /readyz -- */

/* Why the check failed; empty: it passed. */
static struct slice check_fault(const struct check_call *check, enum health_check which)
{
    if (which == CHECK_DATA_CORRUPTION && check->corrupt)
        return SLICE_LITERAL("alarm activated: CORRUPT");
    if (which == CHECK_MIRROR || which == CHECK_DISK ||
        (which == CHECK_LINEARIZABLE_READ && is_cut_off(check)))
        return slice_from_text(check->fault);
    bool is_known = which == CHECK_SERIALIZABLE_READ && check->is_serializable;
    bool reads = which == CHECK_SERIALIZABLE_READ || which == CHECK_LINEARIZABLE_READ;
    if (reads && !is_known && (check->late || check->range.op.status != ST_OK))
        return read_fault(check);
    return SLICE_EMPTY;
}

static bool is_livez(const struct http_request *request)
{
    return slice_has_prefix(request->path, SLICE_LITERAL("/livez"));
}

static enum status list_checks(const struct check_call *check, struct buf *lines, bool *ret_passed)
{
    bool livez = is_livez(http_exchange_request(check->exchange));
    *ret_passed = true;
    for (size_t i = 0; i < COUNT_OF(check_names); i++) {
        if (!(check->checks & check_names[i].check))
            continue;
        struct slice fault = check_fault(check, check_names[i].check);
        const char *name = check_names[i].name;
        etcd_health_count_row(check->api->config->health_counts,
                              livez ? ETCD_LIVEZ_SERIALIZABLE_READ : check_names[i].row,
                              !fault.len);
        if (fault.len) {
            *ret_passed = false;
            TRY(buf_append_format(lines, "[-]%s failed: %.*s\n", name, SLICE_ARGS(fault)));
        } else {
            TRY(buf_append_format(lines, "[+]%s ok\n", name));
        }
    }
    return ST_OK;
}

static void checks_reply(const struct check_call *check)
{
    AUTO(buf_fini) struct buf lines = {0};
    bool passed;
    enum status status = list_checks(check, &lines, &passed);
    if (status == ST_OK && passed && !check->verbose)
        buf_reset(&lines, SIZE_MAX);
    if (status == ST_OK)
        status = buf_append_text(&lines, passed ? "ok\n" : "\n");
    if (status != ST_OK) {
        http_abort(check->exchange);
        return;
    }
    struct log_field unlogged;
    if (!passed && http_may_log(check->api, &unlogged))
        log_warn("Health check error",
                 LOG_SLICE("path", http_exchange_request(check->exchange)->path),
                 LOG_SLICE("reason", buf_slice(&lines)), LOG_I64("status-code", 503), unlogged);
    http_reply_text(check->exchange, passed ? 200 : 503, buf_slice(&lines));
}

/* -- Reads -- */

static void answer(const struct check_call *check)
{
    if (check->checks)
        checks_reply(check);
    else
        health_read_done(check);
}

static void read_key(struct check_call *check, bool serializable);

static void read_done(struct engine_op *op)
{
    struct check_call *check = CONTAINER_OF(op, struct check_call, range.op);
    struct etcd_api *api = check->api;
    check->pending = false;
    api->under_way--;
    if (check->ended) {
        check_call_free(check);
        return;
    }
    if (check->late)
        return;
    if (op->status == ST_OK && check->request.serializable) {
        check->is_serializable = true;
        /* A read that is known to fail is not tried, since it would only wait. */
        if (check->checks & CHECK_LINEARIZABLE_READ && !is_cut_off(check)) {
            read_key(check, false);
            return;
        }
    }
    if (api->loop)
        loop_timer_cancel(api->loop, &check->limit);
    answer(check);
}

/* Reads one key, as etcd does to check that reads work. */
static void read_key(struct check_call *check, bool serializable)
{
    struct etcd_api *api = check->api;
    engine_range_close(&check->range);
    check->request = (struct pb_range_request){
        .key = SLICE_LITERAL("\0"),
        .limit = 1,
        .keys_only = true,
        .serializable = serializable,
    };
    /* etcd, too, is healthy if the read would be refused to a client. */
    check->range = (struct engine_range){
        .op = {.done = read_done, .arena = &check->arena, .principal = ENGINE_SERVER},
    };
    check->pending = true;
    api->under_way++;
    engine_range_start(api->shard, &check->range, &check->request);
}

static void on_limit(struct timer *timer)
{
    struct check_call *check = CONTAINER_OF(timer, struct check_call, limit);
    check->late = true;
    answer(check);
    /* The check is freed when the range is done, which is not before this. */
    engine_give_up(&check->range.op);
}

static void on_end(struct http_exchange *x, void *service)
{
    struct etcd_api *api = service;
    struct check_call *check = http_exchange_user(x);
    if (!check)
        return;
    check->ended = true;
    if (api->loop)
        loop_timer_cancel(api->loop, &check->limit);
    if (!check->pending)
        check_call_free(check);
}

static void start_read(struct http_exchange *x, struct etcd_api *api, unsigned checks,
                       bool serializable)
{
    AUTO(buf_fini) struct buf scratch = room_for(http_exchange_request(x)->query);
    struct slice value, query = http_exchange_request(x)->query;
    struct check_call *check = xcalloc(1, sizeof(*check));
    check->exchange = x;
    check->checks = checks;
    check->corrupt = alarms_of(api) & 1u << ENGINE_ALARM_CORRUPT;
    engine_fault(api, check->fault);
    check->verbose = http_query_get(query, SLICE_LITERAL("verbose"), &scratch, &value);
    check->api = api;
    check->limit.fn = on_limit;
    arena_init(&check->arena, NULL, 0, READ_ARENA_BYTES_MAX);
    http_exchange_set_user(x, check);
    if (api->loop)
        loop_timer_set(api->loop, &check->limit, loop_now_ns(api->loop) + READ_NS);
    read_key(check, serializable || is_cut_off(check));
}

static void health(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_api *api = service;
    AUTO(buf_fini) struct buf scratch = room_for(request->query);
    struct slice value = SLICE_EMPTY;
    if (!http_is_get(x, request))
        return;
    bool serializable =
        http_query_get(request->query, SLICE_LITERAL("serializable"), &scratch, &value) &&
        slice_is(value, "true");
    const char *reason = alarm_reason(alarms_of(api), request->query);
    bool is_space = strcmp(reason, "ALARM NOSPACE") == 0;
    char fault[ENGINE_REASON_BYTES] = "", text[ENGINE_REASON_BYTES + 32];
    /* A store has a fault only if its disk is full, which is an alarm that the query may exclude.
     */
    if (is_mirror(api) ? !serializable : is_space)
        engine_fault(api, fault);
    if (*reason || *fault) {
        snprintf(text, sizeof(text), "%s%s%s", reason, *reason && *fault ? ": " : "", fault);
        health_reply(api, x, text);
        return;
    }
    start_read(x, api, 0, serializable);
}

static void run_checks(struct http_exchange *x, struct etcd_api *api,
                       const struct http_request *request, unsigned checks)
{
    if (!http_is_get(x, request))
        return;
    for (size_t i = 0; i < COUNT_OF(check_names); i++) {
        if (checks & check_names[i].check && is_excluded(request->query, check_names[i].name))
            checks &= ~(unsigned)check_names[i].check;
    }
    if (checks)
        start_read(x, api, checks, checks != CHECK_LINEARIZABLE_READ);
    else
        http_reply_text(x, 200, SLICE_LITERAL("ok\n"));
}

static void livez(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_api *api = service;
    run_checks(x, service, request, engine_forwards(api->engine) ? 0 : CHECK_SERIALIZABLE_READ);
}

static void readyz(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_api *api = service;
    char fault[ENGINE_REASON_BYTES];
    engine_fault(api, fault);
    run_checks(x, service, request,
               CHECK_DATA_CORRUPTION | CHECK_SERIALIZABLE_READ | CHECK_LINEARIZABLE_READ |
                   CHECK_NON_LEARNER |
                   (is_mirror(api) ? CHECK_MIRROR
                    : *fault       ? CHECK_DISK
                                   : 0));
}

/* "/readyz/non_learner": the named check alone, if that path has it. `exclude` has no effect. */
static void single_check(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_api *api = service;
    struct slice path = request->path;
    size_t prefix = is_livez(request) ? strlen("/livez/") : strlen("/readyz/");
    struct slice name = slice_sub(path, prefix, path.len - prefix);
    for (size_t i = 0; i < COUNT_OF(check_names); i++) {
        enum health_check check = check_names[i].check;
        enum health_check foreign = is_mirror(api) ? CHECK_DISK : CHECK_MIRROR;
        bool known = is_livez(request) ? check == CHECK_SERIALIZABLE_READ : check != foreign;
        if (known && slice_is(name, check_names[i].name)) {
            if (http_is_get(x, request))
                start_read(x, service, check, check != CHECK_LINEARIZABLE_READ);
            return;
        }
    }
    http_not_found(x, service, request);
}

static const struct http_route routes_of_health[] = {
    {.path = "/health", .on_request = health, .on_end = on_end},
    {.path = "/livez", .on_request = livez, .on_end = on_end},
    {.path = "/readyz", .on_request = readyz, .on_end = on_end},
    {.path = "/livez/", .on_request = single_check, .on_end = on_end},
    {.path = "/readyz/", .on_request = single_check, .on_end = on_end},
};

enum status http_health_add(struct http_routes *routes, struct etcd_api *api)
{
    return http_routes_add(routes, routes_of_health, COUNT_OF(routes_of_health), api);
}
