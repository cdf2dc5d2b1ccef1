/* The Election service: etcd's leader elections. Campaigns are in claim.c. */
#include "base/memory/budget.h"
#include "codec/pb/election.pb.h"
#include "etcd/service/claim.h"
#include "etcd/service/key_change.h"
#include "etcd/service/key_reader.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"

#include <string.h>

/* These errors have no code in etcd: they are texts of its client library. */
static void fail_text(struct grpc_call *call, const char *text)
{
    grpc_call_fail_text(call, GRPC_UNKNOWN, slice_from_text(text));
}

static const char no_leader_given[] = "\"leader\" field must be provided";
static const char not_leader[] = "election: not leader";
static const char no_leader[] = "election: no leader";

/* -- Campaign -- */

static void campaign_reply(const struct claim_result *result,
                           void (*send)(void *ctx, const struct pb_message *type,
                                        const void *message),
                           void *ctx)
{
    struct pb_leader_key leader = {
        .name = result->name,
        .key = result->key,
        .rev = result->create_revision,
        .lease = result->lease,
    };
    struct pb_campaign_response response = {.header = result->header, .leader = &leader};
    send(ctx, &pb_campaign_response_table, &response);
}

static const struct claim_kind candidacy = {.proclaims = true, .reply = campaign_reply};

static void campaign_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_campaign_request request;
    if (etcd_call_decode(call, &pb_campaign_request_table, message, &request) &&
        claim_admit(call, service, message))
        claim_start(call, service, &candidacy, request.name, request.value, request.lease);
}

/* -- Proclaim and Resign -- */

/* In the call's arena, on the connection's thread. */
struct leader_call {
    struct key_change change; /* first */
    struct service_call base;
    const struct pb_message *response; /* both responses are a header alone */
    bool must_lead;                    /* it is an error if the key does not lead */
};

static void leader_done(struct engine_op *op)
{
    struct leader_call *l = CONTAINER_OF(op, struct leader_call, change.write.op);
    enum status status = op->status;
    bool leads = status == ST_OK && l->change.write.answer.txn.succeeded;
    struct pb_response_header header;
    etcd_header_fill(l->base.api, op->revision, &header);
    engine_write_close(&l->change.write);
    if (!service_call_answered(&l->base)) {
        service_call_release(&l->base);
    } else if (status != ST_OK) {
        fail_text(l->base.call, status_text(status));
    } else if (l->must_lead && !leads) {
        fail_text(l->base.call, not_leader);
    } else {
        struct pb_resign_response response = {.header = &header};
        etcd_call_reply(l->base.call, l->response, &response);
    }
}

static void leader_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct leader_call *l = grpc_call_user(call);
    if (l)
        service_call_end(&l->base);
}

/* NULL: the call was answered with an error. */
static struct leader_call *leader_call_new(struct grpc_call *call, struct etcd_api *api,
                                           const struct pb_leader_key *leader)
{
    if (!leader || leader->key.len == 0) {
        fail_text(call, leader ? status_text(ST_EMPTY_KEY) : no_leader_given);
        return NULL;
    }
    struct leader_call *l = arena_calloc(grpc_call_arena(call), 1, sizeof(*l));
    if (!l) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&l->base, call, api, &l->change.write.op, leader_done);
    service_call_begin(&l->base);
    grpc_call_set_user(call, l);
    return l;
}

static void proclaim_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_proclaim_request request;
    if (!etcd_call_decode(call, &pb_proclaim_request_table, message, &request) ||
        !claim_admit(call, api, message))
        return;
    const struct pb_leader_key *leader = request.leader;
    struct leader_call *l = leader_call_new(call, api, leader);
    if (!l)
        return;
    l->must_lead = true;
    l->response = &pb_proclaim_response_table;
    key_change_put(api->shard, &l->change, leader->key, leader->rev, request.value, leader->lease);
}

static void resign_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_resign_request request;
    if (!etcd_call_decode(call, &pb_resign_request_table, message, &request) ||
        !claim_admit(call, api, message))
        return;
    const struct pb_leader_key *leader = request.leader;
    struct leader_call *l = leader_call_new(call, api, leader);
    if (!l)
        return;
    l->response = &pb_resign_response_table;
    key_change_delete(api->shard, &l->change, leader->key, leader->rev);
}

/* -- Leader and Observe -- */

/*
 * Sends the leader's key-value, once (Leader) or after every change (Observe). The newest value is
 * always sent; values that were replaced before they could be sent are skipped, as by etcd's
 * client.
 */
struct observe_call {
    struct grpc_source source; /* Observe */
    struct grpc_call *call;
    struct etcd_api *api;
    struct key_reader reader;
    struct slice prefix, prefix_end;
    bool follows; /* Observe */
    bool ended;
    bool held;
    int64_t sent_revision; /* revision of the value that was sent last */
    struct buf out;        /* a framed response */
    size_t out_at;         /* bytes of it sent */
};

static void observe_finish(struct observe_call *o)
{
    key_reader_fini(&o->reader);
    account_buf_fini(grpc_call_arena(o->call)->account, &o->out);
    if (o->held)
        grpc_call_release(o->call);
}

static enum status observe_encode(struct observe_call *o, const struct pb_leader_response *response)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    struct account *account = grpc_call_arena(o->call)->account;
    size_t bytes = pb_size(&pb_leader_response_table, response);
    grpc_prefix_write(prefix, (uint32_t)bytes);
    account_buf_reset(account, &o->out, 0);
    o->out_at = 0;
    TRY(account_reserve(account, &o->out, sizeof(prefix) + bytes));
    TRY(buf_append(&o->out, slice_of(prefix, sizeof(prefix))));
    return pb_append(&pb_leader_response_table, response, &o->out);
}

/* Waits for the next change, and encodes the value that was found if it is new. */
static enum status observe_found(struct observe_call *o, const struct pb_leader_response *response)
{
    struct key_reader *reader = &o->reader;
    if (!reader->found)
        return key_reader_wait(reader, o->prefix, o->prefix_end, true);
    TRY(key_reader_wait(reader, reader->kv.key, SLICE_EMPTY, true));
    if (reader->kv.mod_revision == o->sent_revision)
        return ST_OK;
    o->sent_revision = reader->kv.mod_revision;
    return observe_encode(o, response);
}

static void observe_next(struct observe_call *o, const struct pb_leader_response *response)
{
    enum status status = observe_found(o, response);
    if (status != ST_OK)
        grpc_call_fail(o->call, status);
    else
        grpc_call_wake(o->call); /* changes during the read cause no wake-up of their own */
}

static void observe_done(struct key_reader *reader)
{
    struct observe_call *o = CONTAINER_OF(reader, struct observe_call, reader);
    enum status status = reader->range.op.status;
    struct pb_response_header header;
    struct pb_leader_response response = {.header = &header, .kv = &reader->kv};
    etcd_header_fill(o->api, reader->range.op.revision, &header);
    if (o->ended) {
        observe_finish(o);
        return;
    }
    if (status != ST_OK)
        fail_text(o->call, status_text(status));
    else if (o->follows)
        observe_next(o, &response);
    else if (reader->found)
        etcd_call_reply(o->call, &pb_leader_response_table, &response);
    else
        fail_text(o->call, no_leader);
}

static enum grpc_fill observe_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                   size_t *ret_len)
{
    struct observe_call *o = CONTAINER_OF(source, struct observe_call, source);
    /* Each read may begin to wait for another key, and a wait wakes the call only once drained. */
    while (o->out_at == o->out.len && !o->reader.pending && key_reader_drain(&o->reader))
        key_reader_get_oldest(&o->reader, o->prefix, o->prefix_end);
    size_t n = size_min(room, o->out.len - o->out_at);
    if (n)
        memcpy(dst, o->out.ptr + o->out_at, n);
    o->out_at += n;
    *ret_len = n;
    if (n && o->out_at == o->out.len)
        grpc_call_sent(o->call, 1);
    /* After a whole message, the next fill checks what has changed meanwhile. */
    return n ? GRPC_FILL_MORE : GRPC_FILL_PARKED;
}

static void observe_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct observe_call *o = grpc_call_user(call);
    if (!o)
        return;
    o->ended = true;
    if (o->reader.pending) {
        grpc_call_hold(call);
        o->held = true;
    } else {
        observe_finish(o);
    }
}

static enum status observe_name(struct observe_call *o, struct slice name)
{
    struct arena *arena = grpc_call_arena(o->call);
    uint8_t *bytes = arena_alloc(arena, name.len + 1);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, name);
    bytes[name.len] = '/';
    o->prefix = slice_of(bytes, name.len + 1);
    return key_prefix_end(arena, o->prefix, &o->prefix_end);
}

static void observe_start(struct grpc_call *call, struct etcd_api *api, struct slice message,
                          bool follows)
{
    struct pb_leader_request request;
    if (!etcd_call_decode(call, &pb_leader_request_table, message, &request))
        return;
    struct observe_call *o = arena_calloc(grpc_call_arena(call), 1, sizeof(*o));
    if (!o) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    o->call = call;
    o->api = api;
    o->follows = follows;
    key_reader_init(&o->reader, call, api, observe_done);
    grpc_call_set_user(call, o);
    enum status status = observe_name(o, request.name);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
        return;
    }
    if (follows) {
        o->source.fill = observe_fill;
        grpc_call_set_source(call, &o->source);
    }
    key_reader_get_oldest(&o->reader, o->prefix, o->prefix_end);
}

static void leader_on_message(struct grpc_call *call, void *service, struct slice message)
{
    observe_start(call, service, message, false);
}

static void observe_on_message(struct grpc_call *call, void *service, struct slice message)
{
    observe_start(call, service, message, true);
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_ELECTION_CAMPAIGN_PATH, campaign_on_message, claim_on_end, .parks = true),
    GRPC_METHOD(PB_ELECTION_PROCLAIM_PATH, proclaim_on_message, leader_on_end),
    GRPC_METHOD(PB_ELECTION_LEADER_PATH, leader_on_message, observe_on_end),
    GRPC_METHOD(PB_ELECTION_OBSERVE_PATH, observe_on_message, observe_on_end,
                .server_streams = true, .parks = true),
    GRPC_METHOD(PB_ELECTION_RESIGN_PATH, resign_on_message, leader_on_end),
};

enum status election_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
