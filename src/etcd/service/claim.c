#include "etcd/service/claim.h"

#include "engine/engine.h"
#include "etcd/service/key_change.h"
#include "etcd/service/key_reader.h"
#include "etcd/shared/authenticator.h"

#include <stdio.h>
#include <string.h>

enum claim_state {
    CLAIM_GRANTING,
    CLAIM_CLAIMING,
    CLAIM_PROCLAIMING,
    CLAIM_READING,
    CLAIM_WAITING,
    CLAIM_CONFIRMING,
    CLAIM_ANSWERED,
    CLAIM_FAILED,
    CLAIM_WITHDRAWING,
    CLAIM_OVER,
};

#define TO(state) (1u << CLAIM_##state)

static const unsigned claim_moves[] = {
    [CLAIM_GRANTING] = TO(CLAIMING) | TO(FAILED) | TO(OVER),
    [CLAIM_CLAIMING] = TO(PROCLAIMING) | TO(READING) | TO(FAILED) | TO(WITHDRAWING) | TO(OVER),
    [CLAIM_PROCLAIMING] = TO(READING) | TO(FAILED) | TO(WITHDRAWING) | TO(OVER),
    [CLAIM_READING] =
        TO(WAITING) | TO(CONFIRMING) | TO(ANSWERED) | TO(FAILED) | TO(WITHDRAWING) | TO(OVER),
    [CLAIM_WAITING] = TO(READING) | TO(FAILED) | TO(WITHDRAWING),
    [CLAIM_CONFIRMING] = TO(ANSWERED) | TO(FAILED) | TO(WITHDRAWING),
    [CLAIM_ANSWERED] = TO(OVER),
    [CLAIM_FAILED] = TO(WITHDRAWING) | TO(OVER),
    [CLAIM_WITHDRAWING] = TO(OVER),
    [CLAIM_OVER] = 0,
};

struct claim {
    struct grpc_source source; /* used after the first wait */
    struct grpc_call *call;
    struct etcd_api *api;
    const struct claim_kind *kind;
    enum claim_state state;
    bool ended;   /* the call has ended */
    bool held;    /* the call's memory is held for an operation under way */
    bool sourced; /* the response is sent through the source */
    bool mine;    /* this call created the key or waited with it, so it deletes it if it gives up */
    struct slice name, value;
    struct slice prefix, prefix_end, key;
    int64_t lease_id;
    int64_t create_revision; /* revision of the key */
    int64_t revision;        /* for the answer's header */
    struct key_reader reader;
    union {
        struct engine_lease lease;
        struct key_change change;
    };
    struct buf out; /* the framed response */
    size_t out_at;  /* bytes of it sent */
};

static void claim_move(struct claim *c, enum claim_state next)
{
    assert(claim_moves[c->state] & (1u << next));
    c->state = next;
}

/* -- The end -- */

/* An operation is under way that uses the call's memory. */
static bool busy(const struct claim *c)
{
    return c->state == CLAIM_GRANTING || c->state == CLAIM_CLAIMING ||
           c->state == CLAIM_PROCLAIMING || c->state == CLAIM_WITHDRAWING || c->reader.pending;
}

static void over(struct claim *c)
{
    claim_move(c, CLAIM_OVER);
    key_reader_fini(&c->reader);
    buf_fini(&c->out);
    if (c->held)
        grpc_call_release(c->call);
}

static void change_done(struct engine_op *op);

static void change_prepare(struct claim *c)
{
    c->change = (struct key_change){
        .write.op = {.done = change_done,
                     .arena = grpc_call_arena(c->call),
                     .principal = authenticator_refresh(c->api->authenticator, c->call)},
    };
    c->api->under_way++;
}

/* Deletes the key of a call that ended unanswered. */
static void withdraw(struct claim *c)
{
    if (!c->mine || c->state == CLAIM_ANSWERED) {
        over(c);
        return;
    }
    claim_move(c, CLAIM_WITHDRAWING);
    change_prepare(c);
    key_change_delete(c->api->shard, &c->change, c->key, c->create_revision);
}

void claim_on_end(struct grpc_call *call, void *api)
{
    (void)api;
    struct claim *c = grpc_call_user(call);
    if (!c)
        return; /* refused before it began */
    c->ended = true;
    if (!busy(c))
        withdraw(c);
    if (c->state != CLAIM_OVER) {
        grpc_call_hold(call);
        c->held = true;
    }
}

static void fail_text(struct claim *c, const char *text)
{
    claim_move(c, CLAIM_FAILED);
    grpc_call_fail_text(c->call, GRPC_UNKNOWN, slice_from_text(text));
}

/* etcd implements these services with its own client, whose errors have no codes. */
static void fail(struct claim *c, enum status status)
{
    fail_text(c, status_text(status));
}

/* -- The answer -- */

static void send_now(void *ctx, const struct pb_message *type, const void *message)
{
    struct claim *c = ctx;
    etcd_call_reply(c->call, type, message);
}

static void send_later(void *ctx, const struct pb_message *type, const void *message)
{
    struct claim *c = ctx;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_prefix_write(prefix, (uint32_t)pb_size(type, message));
    if (buf_append(&c->out, slice_of(prefix, sizeof(prefix))) != ST_OK ||
        pb_append(type, message, &c->out) != ST_OK)
        buf_fini(&c->out); /* the source reports ST_NOMEM */
    grpc_call_wake(c->call);
}

static void answer(struct claim *c)
{
    struct pb_response_header header;
    etcd_header_fill(c->api, c->revision, &header);
    struct claim_result result = {
        .header = &header,
        .name = c->name,
        .key = c->key,
        .create_revision = c->create_revision,
        .lease = c->lease_id,
    };
    claim_move(c, CLAIM_ANSWERED);
    c->kind->reply(&result, c->sourced ? send_later : send_now, c);
}

static void read_previous(struct claim *c);

static enum grpc_fill fill(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct claim *c = CONTAINER_OF(source, struct claim, source);
    *ret_len = 0;
    /* Each read may begin to wait for another key, and a wait wakes the call only once drained. */
    while (c->state == CLAIM_WAITING && key_reader_drain(&c->reader))
        read_previous(c);
    if (c->state != CLAIM_ANSWERED)
        return GRPC_FILL_PARKED;
    if (c->out.len == 0) {
        grpc_call_fail(c->call, ST_NOMEM);
        return GRPC_FILL_PARKED;
    }
    size_t n = size_min(room, c->out.len - c->out_at);
    memcpy(dst, c->out.ptr + c->out_at, n);
    c->out_at += n;
    *ret_len = n;
    return c->out_at < c->out.len ? GRPC_FILL_MORE : GRPC_FILL_DONE;
}

/* -- Waiting -- */

static void wait_for(struct claim *c, struct slice key)
{
    enum status status = key_reader_wait(&c->reader, key, SLICE_EMPTY, false);
    if (status != ST_OK) { /* a limit that etcd does not have, so its client has no text for it */
        claim_move(c, CLAIM_FAILED);
        grpc_call_fail(c->call, status);
        return;
    }
    claim_move(c, CLAIM_WAITING);
    c->mine = true; /* as in etcd: a waiter that gives up deletes the key, even an earlier one */
    if (!c->sourced) {
        c->sourced = true;
        c->source.fill = fill;
        grpc_call_set_source(c->call, &c->source);
    }
    /* Changes during the read cause no wake-up of their own. */
    grpc_call_wake(c->call);
}

static void read_previous(struct claim *c)
{
    claim_move(c, CLAIM_READING);
    key_reader_get_before(&c->reader, c->prefix, c->prefix_end, c->create_revision);
}

/* An older key existed after the claim, or perhaps until just before the first read: at the
 * revision of the claim, another call may have been the owner. */
static bool may_have_waited(const struct claim *c)
{
    return c->sourced || c->reader.range.op.revision > c->revision;
}

static void read_done(struct key_reader *reader)
{
    struct claim *c = CONTAINER_OF(reader, struct claim, reader);
    enum status status = reader->range.op.status;
    if (c->ended)
        withdraw(c);
    else if (status != ST_OK)
        fail(c, status);
    else if (c->state == CLAIM_READING && reader->found)
        wait_for(c, reader->kv.key);
    else if (c->state == CLAIM_READING && c->kind->gone_text && may_have_waited(c)) {
        claim_move(c, CLAIM_CONFIRMING);
        key_reader_get(reader, c->key);
    } else if (c->state == CLAIM_CONFIRMING && !reader->found) {
        fail_text(c, c->kind->gone_text);
    } else {
        if (c->state == CLAIM_CONFIRMING)
            c->revision = reader->range.op.revision;
        answer(c);
    }
}

/* -- Claiming -- */

static const char not_leader[] = "election: not leader";

/* The lease already has a key under the prefix, which keeps its place. False: out of memory. */
static bool take_older(struct claim *c, const struct kv_txn_answer *txn, bool *ret_same)
{
    struct pb_key_value kv;
    assert(txn->answer_count == 1 && txn->answers[0].range.field_count == 1);
    enum status status =
        key_value_decode(txn->answers[0].range.fields[0], grpc_call_arena(c->call), &kv);
    if (status != ST_OK)
        return false;
    c->create_revision = kv.create_revision;
    *ret_same = slice_equal(kv.value, c->value);
    return true;
}

static void claimed(struct claim *c, const struct kv_txn_answer *txn)
{
    bool same = true;
    if (txn->succeeded) {
        c->create_revision = c->revision;
        c->mine = true;
    } else if (!take_older(c, txn, &same)) {
        engine_write_close(&c->change.write);
        if (c->ended)
            withdraw(c);
        else
            fail(c, ST_NOMEM);
        return;
    }
    engine_write_close(&c->change.write);
    if (c->ended) {
        withdraw(c);
    } else if (c->kind->proclaims && !same) {
        claim_move(c, CLAIM_PROCLAIMING);
        change_prepare(c);
        key_change_put(c->api->shard, &c->change, c->key, c->create_revision, c->value,
                       c->lease_id);
    } else {
        read_previous(c);
    }
}

static void change_done(struct engine_op *op)
{
    struct claim *c = CONTAINER_OF(op, struct claim, change.write.op);
    c->api->under_way--;
    if (c->state == CLAIM_WITHDRAWING) {
        engine_write_close(&c->change.write);
        over(c);
        return;
    }
    if (op->status != ST_OK) {
        enum status status = op->status;
        engine_write_close(&c->change.write);
        if (c->ended)
            withdraw(c);
        else
            fail(c, status);
        return;
    }
    bool succeeded = c->change.write.answer.txn.succeeded;
    if (c->state == CLAIM_CLAIMING) {
        c->revision = op->revision;
        claimed(c, &c->change.write.answer.txn);
        return;
    }
    engine_write_close(&c->change.write);
    if (c->ended)
        withdraw(c);
    else if (!succeeded)
        fail_text(c, not_leader);
    else
        read_previous(c);
}

bool claim_admit(struct grpc_call *call, const struct etcd_api *api, struct slice message)
{
    enum status status = etcd_check_size(api, message.len);
    if (status != ST_OK)
        grpc_call_fail_text(call, GRPC_UNKNOWN, slice_from_text(status_text(status)));
    return status == ST_OK;
}

/* The key is the prefix and the lease in hexadecimal. */
static enum status name_key(struct claim *c)
{
    char hex[2 + 16 + 1];
    int n = snprintf(hex, sizeof(hex), "%llx", (unsigned long long)c->lease_id);
    uint8_t *bytes = arena_alloc(grpc_call_arena(c->call), c->prefix.len + (size_t)n);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, c->prefix);
    memcpy(bytes + c->prefix.len, hex, (size_t)n);
    c->key = slice_of(bytes, c->prefix.len + (size_t)n);
    return ST_OK;
}

static void claim(struct claim *c)
{
    enum status status = name_key(c);
    if (status != ST_OK) {
        fail(c, status);
        return;
    }
    claim_move(c, CLAIM_CLAIMING);
    change_prepare(c);
    key_change_put(c->api->shard, &c->change, c->key, 0, c->value, c->lease_id);
}

static void grant_done(struct engine_op *op)
{
    struct claim *c = CONTAINER_OF(op, struct claim, lease.op);
    c->api->under_way--;
    c->lease_id = c->lease.id;
    if (c->ended)
        over(c);
    else if (op->status != ST_OK)
        fail(c, op->status);
    else
        claim(c);
}

static enum status name_prefix(struct claim *c)
{
    struct arena *arena = grpc_call_arena(c->call);
    uint8_t *bytes = arena_alloc(arena, c->name.len + 1);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, c->name);
    bytes[c->name.len] = '/';
    c->prefix = slice_of(bytes, c->name.len + 1);
    return key_prefix_end(arena, c->prefix, &c->prefix_end);
}

void claim_start(struct grpc_call *call, struct etcd_api *api, const struct claim_kind *kind,
                 struct slice name, struct slice value, int64_t lease)
{
    struct claim *c = arena_calloc(grpc_call_arena(call), 1, sizeof(*c));
    if (!c) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    c->call = call;
    c->api = api;
    c->kind = kind;
    c->name = name;
    c->value = value;
    c->lease_id = lease;
    key_reader_init(&c->reader, call, api, read_done);
    grpc_call_set_user(call, c);
    enum status status = name_prefix(c);
    if (status != ST_OK) {
        fail(c, status);
    } else if (lease) {
        claim(c);
    } else {
        c->lease.op.done = grant_done;
        c->lease.op.arena = grpc_call_arena(call);
        c->lease.op.principal = etcd_call_principal(call);
        c->lease.ttl_s = CLAIM_LEASE_S;
        api->under_way++;
        engine_lease_grant(api->shard, &c->lease);
    }
}
