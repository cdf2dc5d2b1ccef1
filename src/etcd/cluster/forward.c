#include "etcd/cluster/forward.h"

#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/forward.h"
#include "etcd/shared/authenticator.h"
#include "etcd/shared/service.h"
#include "wire/grpc/call.h"

#include <stdlib.h>

/* What is known of a method beside its name. */
struct forwarded {
    struct grpc_method method;
    bool reads; /* see struct engine_forward */
    bool lasts;
    /* Changes an answer before it is sent; NULL: none is changed. False: it cannot be read. */
    bool (*rewrite)(struct grpc_call *call, const struct etcd_api *api, struct slice answer);
};

/* The service of one method. */
struct forward_row {
    struct etcd_api *api;
    const struct forwarded *forwarded;
};

struct forward_rows {
    size_t count;
    struct forward_row rows[];
};

/* One call. In its arena, on the connection's thread. */
struct forward_call {
    struct engine_forward forward; /* first */
    struct grpc_call *call;
    const struct forward_row *row;
    /* For a stream, or for one long answer: */
    struct grpc_source source;
    struct buf queue; /* framed messages; owned until the end, charged to the connection */
    size_t sent;      /* bytes of the queue */
    uint64_t messages;
    bool paused, ended;
    bool in_parts; /* one answer that is sent as a stream is */
    enum grpc_code code;
    struct slice text; /* in the arena */
};

bool forward_requires_leader(const struct grpc_call *call)
{
    struct slice value;
    return grpc_call_metadata(call, SLICE_LITERAL("hasleader"), &value) && slice_is(value, "true");
}

struct slice forward_via(const struct grpc_call *call)
{
    struct slice value;
    bool has = grpc_call_metadata(call, SLICE_LITERAL("grpcgateway-accept"), &value);
    return has ? value : SLICE_EMPTY;
}

/* -- The end -- */

#define NO_CERTIFICATES                                                                     \
    "etcdserver: user name is empty (the name in a certificate cannot be passed on to the " \
    "cluster: log in with a user and a password)"

struct slice forward_text(const struct grpc_call *call, const struct etcd_api *api,
                          struct slice text)
{
    bool nameless = slice_is(text, status_text(ST_USER_EMPTY));
    if (nameless && api->config->names_from_certificates && grpc_call_peer_name(call) &&
        !etcd_call_token(call).len)
        return SLICE_LITERAL(NO_CERTIFICATES);
    return text;
}

void forward_fail(struct grpc_call *call, const struct etcd_api *api, enum grpc_code code,
                  struct slice text)
{
    grpc_call_fail_text(call, code, forward_text(call, api, text));
}

static void finish(struct forward_call *f, enum grpc_code code, struct slice text)
{
    if (code == GRPC_OK)
        grpc_call_finish(f->call);
    else
        forward_fail(f->call, f->row->api, code, text);
}

/* -- Answers -- */

static bool copy_answer(struct grpc_call *call, struct slice answer)
{
    uint8_t *to = grpc_call_message(call, answer.len);
    if (to)
        slice_copy(to, answer);
    return to;
}

/* The write was done, but its answer cannot be sent. */
static void lose_answer(struct forward_call *f)
{
    engine_forward_cancel(&f->forward);
    grpc_call_fail_text(f->call, GRPC_UNKNOWN, SLICE_LITERAL("the answer does not fit in memory"));
}

/* -- Streams -- */

static struct account *account_of(const struct forward_call *f)
{
    return grpc_call_arena(f->call)->account;
}

static size_t queued(const struct forward_call *f)
{
    return f->queue.len - f->sent;
}

static void set_paused(struct forward_call *f, bool paused)
{
    if (f->paused == paused)
        return;
    f->paused = paused;
    engine_forward_pause(&f->forward, paused);
}

static enum grpc_fill fill(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct forward_call *f = CONTAINER_OF(source, struct forward_call, source);
    size_t n = size_min(room, queued(f));
    slice_copy(dst, slice_sub(buf_slice(&f->queue), f->sent, n));
    f->sent += n;
    *ret_len = n;
    if (queued(f) <= FORWARD_QUEUED_BYTES_LOW)
        set_paused(f, false);
    if (queued(f))
        return GRPC_FILL_MORE;
    account_buf_reset(account_of(f), &f->queue, FORWARD_QUEUED_BYTES_LOW);
    f->sent = 0;
    if (!f->ended)
        return GRPC_FILL_PARKED;
    grpc_call_sent(f->call, f->messages);
    if (f->code == GRPC_OK)
        return GRPC_FILL_DONE;
    forward_fail(f->call, f->row->api, f->code, f->text);
    return GRPC_FILL_PARKED;
}

static enum status queue_message(struct forward_call *f, struct slice message)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    if (f->sent > f->queue.len / 2) {
        buf_consume(&f->queue, f->sent);
        f->sent = 0;
    }
    grpc_prefix_write(prefix, (uint32_t)message.len);
    TRY(account_append(account_of(f), &f->queue, slice_of(prefix, sizeof(prefix))));
    return account_append(account_of(f), &f->queue, message);
}

static void on_part(struct engine_forward *forward, struct slice message)
{
    struct forward_call *f = CONTAINER_OF(forward, struct forward_call, forward);
    if (queue_message(f, message) != ST_OK) {
        lose_answer(f);
        return;
    }
    f->messages++;
    if (queued(f) >= FORWARD_QUEUED_BYTES_MAX)
        set_paused(f, true);
    grpc_call_wake(f->call);
}

static void on_part_end(struct engine_forward *forward, enum grpc_code code, struct slice text)
{
    struct forward_call *f = CONTAINER_OF(forward, struct forward_call, forward);
    f->ended = true;
    f->code = code;
    if (arena_dup(grpc_call_arena(f->call), text, &f->text) != ST_OK)
        f->text = SLICE_EMPTY;
    grpc_call_wake(f->call);
}

/* -- One answer -- */

/* A long one is queued as a stream is, so that it can be taken back. */
static bool send_in_parts(struct forward_call *f, struct slice answer)
{
    if (queue_message(f, answer) != ST_OK)
        return false;
    f->in_parts = true;
    grpc_call_set_source(f->call, &f->source);
    return true;
}

static bool send_answer(struct forward_call *f, struct slice answer)
{
    const struct forward_row *row = f->row;
    if (row->forwarded->rewrite && row->api->config->client_urls_given)
        return row->forwarded->rewrite(f->call, row->api, answer);
    if (answer.len <= FORWARD_QUEUED_BYTES_MAX)
        return copy_answer(f->call, answer);
    return send_in_parts(f, answer);
}

static void on_answer(struct engine_forward *forward, struct slice answer)
{
    struct forward_call *f = CONTAINER_OF(forward, struct forward_call, forward);
    if (f->messages++) {
        engine_forward_cancel(&f->forward);
        grpc_call_fail_text(f->call, GRPC_INTERNAL,
                            SLICE_LITERAL("vigil: the cluster has answered more than once"));
    } else if (!send_answer(f, answer)) {
        lose_answer(f);
    }
}

static void on_answer_end(struct engine_forward *forward, enum grpc_code code, struct slice text)
{
    struct forward_call *f = CONTAINER_OF(forward, struct forward_call, forward);
    if (f->in_parts)
        on_part_end(forward, code, text);
    else
        finish(f, code, text);
}

/* The client does not read its long answer, and other clients wait for the room that it takes. */
static void on_overdue(struct engine_forward *forward)
{
    struct forward_call *f = CONTAINER_OF(forward, struct forward_call, forward);
    engine_forward_cancel(&f->forward);
    account_buf_fini(account_of(f), &f->queue);
    f->sent = 0;
    grpc_call_fail_text(f->call, GRPC_UNKNOWN, SLICE_LITERAL("the answer was not read in time"));
}

/* -- Calls -- */

static struct forward_call *call_new(struct grpc_call *call, const struct forward_row *row)
{
    static const struct engine_forward_ops one = {
        .on_message = on_answer, .on_end = on_answer_end, .on_overdue = on_overdue};
    static const struct engine_forward_ops many = {.on_message = on_part, .on_end = on_part_end};
    const struct forwarded *forwarded = row->forwarded;
    struct forward_call *f = arena_calloc(grpc_call_arena(call), 1, sizeof(*f));
    if (!f)
        return NULL;
    f->call = call;
    f->row = row;
    f->source.fill = fill;
    f->forward = (struct engine_forward){
        .ops = forwarded->method.server_streams ? &many : &one,
        .path = slice_from_text(forwarded->method.path),
        .principal.token = etcd_call_token(call),
        .via = forward_via(call),
        .deadline_ns = grpc_call_deadline(call),
        .reads = forwarded->reads,
        .lasts = forwarded->lasts,
        .waits = forwarded->method.parks || forwarded->method.server_streams,
        .require_leader = forward_requires_leader(call),
    };
    grpc_call_set_user(call, f);
    return f;
}

static void on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct forward_row *row = service;
    struct forward_call *f = call_new(call, row);
    if (!f) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    engine_forward_start(row->api->shard, &f->forward);
    enum status status = engine_forward_send(&f->forward, message);
    if (status != ST_OK) {
        engine_forward_cancel(&f->forward);
        grpc_call_fail(call, status == ST_LIMIT ? ST_REQUEST_TOO_MANY_REQUESTS : status);
        return;
    }
    engine_forward_half_close(&f->forward);
    if (row->forwarded->method.server_streams)
        grpc_call_set_source(call, &f->source);
}

static void on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct forward_call *f = grpc_call_user(call);
    if (!f)
        return;
    engine_forward_cancel(&f->forward);
    account_buf_fini(account_of(f), &f->queue);
}

/* -- Members -- */

/*
 * A client that asks for the members to use their addresses would leave this server. If addresses
 * were given for clients, they are shown instead of those of every member that has some.
 */
static bool show_own_urls(struct grpc_call *call, const struct etcd_api *api, struct slice answer)
{
    const struct etcd_config *config = api->config;
    struct pb_member_list_response response;
    if (pb_decode(&pb_member_list_response_table, answer, grpc_call_arena(call), &response) !=
        ST_OK)
        return false;
    for (size_t i = 0; i < response.members_count; i++) {
        struct pb_member *member = &response.members[i];
        if (!member->client_urls_count)
            continue; /* it was added and has not started */
        member->client_urls = (struct slice *)config->client_urls;
        member->client_urls_count = config->client_url_count;
    }
    size_t size = pb_size(&pb_member_list_response_table, &response);
    uint8_t *to = grpc_call_message(call, size);
    if (to)
        pb_encode(&pb_member_list_response_table, &response, to, size);
    return to;
}

/* -- The table -- */

#define METHOD(name, ...)                                                                       \
    {                                                                                           \
        .method = {                                                                             \
            .path = PB_##name##_PATH, .on_message = on_message, .on_end = on_end, __VA_ARGS__}, \
    }
#define READ(name)                                                                        \
    {                                                                                     \
        .method = {.path = PB_##name##_PATH, .on_message = on_message, .on_end = on_end}, \
        .reads = true,                                                                    \
    }

static const struct forwarded table[] = {
    METHOD(KV_PUT),
    METHOD(KV_DELETE_RANGE),
    METHOD(KV_TXN),
    METHOD(KV_COMPACT),
    METHOD(LEASE_LEASE_GRANT),
    METHOD(LEASE_LEASE_REVOKE),
    READ(LEASE_LEASE_TIME_TO_LIVE),
    READ(LEASE_LEASE_LEASES),
    METHOD(CLUSTER_MEMBER_ADD),
    METHOD(CLUSTER_MEMBER_REMOVE),
    METHOD(CLUSTER_MEMBER_UPDATE),
    METHOD(CLUSTER_MEMBER_PROMOTE),
    {
        .method = {.path = PB_CLUSTER_MEMBER_LIST_PATH, .on_message = on_message, .on_end = on_end},
        .reads = true,
        .rewrite = show_own_urls,
    },
    METHOD(MAINTENANCE_ALARM),
    READ(MAINTENANCE_STATUS),
    METHOD(MAINTENANCE_DEFRAGMENT),
    READ(MAINTENANCE_HASH),
    READ(MAINTENANCE_HASH_KV),
    {
        .method = {.path = PB_MAINTENANCE_SNAPSHOT_PATH,
                   .server_streams = true,
                   .bulk = true,
                   .on_message = on_message,
                   .on_end = on_end},
        .reads = true,
    },
    METHOD(MAINTENANCE_MOVE_LEADER),
    METHOD(MAINTENANCE_DOWNGRADE),
    METHOD(AUTH_AUTH_ENABLE),
    METHOD(AUTH_AUTH_DISABLE),
    READ(AUTH_AUTH_STATUS),
    METHOD(AUTH_AUTHENTICATE),
    METHOD(AUTH_USER_ADD),
    READ(AUTH_USER_GET),
    READ(AUTH_USER_LIST),
    METHOD(AUTH_USER_DELETE),
    METHOD(AUTH_USER_CHANGE_PASSWORD),
    METHOD(AUTH_USER_GRANT_ROLE),
    METHOD(AUTH_USER_REVOKE_ROLE),
    METHOD(AUTH_ROLE_ADD),
    READ(AUTH_ROLE_GET),
    READ(AUTH_ROLE_LIST),
    METHOD(AUTH_ROLE_DELETE),
    METHOD(AUTH_ROLE_GRANT_PERMISSION),
    METHOD(AUTH_ROLE_REVOKE_PERMISSION),
    METHOD(LOCK_LOCK, .parks = true),
    METHOD(LOCK_UNLOCK),
    METHOD(ELECTION_CAMPAIGN, .parks = true),
    METHOD(ELECTION_PROCLAIM),
    READ(ELECTION_LEADER),
    {
        .method = {.path = PB_ELECTION_OBSERVE_PATH,
                   .server_streams = true,
                   .parks = true,
                   .on_message = on_message,
                   .on_end = on_end},
        .reads = true,
        .lasts = true,
    },
    METHOD(ELECTION_RESIGN),
};

enum status forward_add(struct etcd_api *api, struct forward_rows **ret_rows)
{
    struct forward_rows *rows = xcalloc(1, sizeof(*rows) + COUNT_OF(table) * sizeof(rows->rows[0]));
    rows->count = COUNT_OF(table);
    *ret_rows = rows;
    for (size_t i = 0; i < rows->count; i++) {
        rows->rows[i] = (struct forward_row){.api = api, .forwarded = &table[i]};
        TRY(grpc_services_add(api->services, &table[i].method, 1, &rows->rows[i]));
    }
    return ST_OK;
}

void forward_rows_free(struct forward_rows *rows)
{
    free(rows);
}
