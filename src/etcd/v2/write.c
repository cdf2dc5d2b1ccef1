/*
 * PUT, POST and DELETE of a node. The node and its ancestors are read, the change is decided, and
 * made in one transaction that compares everything that was read; if something has changed
 * meanwhile, it starts again. A node with a time to live has a separate lease, which expires when
 * the node does and is revoked with it.
 *
 *     new ──► reading ──► (granting) ──► changing ──► answer ──► (revoking) ──► finished
 *              ▲ │                         │ │                      ▲              ▲
 *              │ └─────── refused ─────────┼─┴──────────────────────┴──────────────┘
 *              └──── something changed ────┘
 *
 *     reading     the node and its ancestors are read, then the change is decided
 *     granting    a lease is granted for a node with a time to live
 *     revoking    a lease was granted, but no node uses it
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "etcd/v2/ancestors.h"
#include "etcd/v2/call.h"
#include "etcd/v2/handlers.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ATTEMPTS_MAX = 64,
    ATTEMPT_BYTES_MAX = 16 << 20,
    NAMES_AHEAD = 1000000, /* revisions that may pass during a POST */
};
/* Readers treat a node as missing when its expiry has passed. Its lease expires a little later, so
 * that waiting clients see an expiry and not a deletion, and so that the lease still exists when
 * the node is put. */
static const int64_t lease_grace_ns = 100 * NS_PER_MS;

enum v2_write_state {
    V2_WRITE_NEW,
    V2_WRITE_READING,
    V2_WRITE_GRANTING,
    V2_WRITE_CHANGING,
    V2_WRITE_REVOKING,
    V2_WRITE_FINISHED,
};

#define TO(state) (1u << V2_WRITE_##state)

/* Drawn above. */
static const unsigned write_moves[] = {
    [V2_WRITE_NEW] = TO(READING),
    [V2_WRITE_READING] = TO(GRANTING) | TO(CHANGING) | TO(REVOKING) | TO(FINISHED),
    [V2_WRITE_GRANTING] = TO(CHANGING) | TO(FINISHED),
    [V2_WRITE_CHANGING] = TO(READING) | TO(REVOKING) | TO(FINISHED),
    [V2_WRITE_REVOKING] = TO(FINISHED),
    [V2_WRITE_FINISHED] = 0,
};

struct v2_write {
    struct v2_call call; /* first */
    enum v2_write_state state;
    struct arena arena; /* for one attempt */
    unsigned attempts;
    bool post, removal;

    struct v2_ancestors ancestors;
    struct v2_key key; /* key of the node: the call's, or that of the new child of a POST */
    enum v2_action action;
    struct v2_node node; /* to be put */
    int64_t expires_ns;

    struct engine_lease lease;
    int64_t lease_id; /* granted for this request; 0: none */
    bool leased;      /* a node has the lease */

    struct engine_write change;
    struct pb_txn_request txn;
    struct pb_compare compares[V2_DEPTH_MAX + 2];
    struct pb_request_op ops[V2_DEPTH_MAX + 1];
    struct pb_put_request puts[V2_DEPTH_MAX + 1];
    struct pb_delete_range_request deletes;
};

static void read_ancestors(struct v2_write *write);

static void write_fini(struct v2_call *call)
{
    struct v2_write *write = CONTAINER_OF(call, struct v2_write, call);
    arena_fini(&write->arena);
}

struct v2_call *v2_write_new(void)
{
    struct v2_write *write = xcalloc(1, sizeof(*write));
    write->call.fini = write_fini;
    return &write->call;
}

static void write_move(struct v2_write *write, enum v2_write_state next)
{
    assert(write_moves[write->state] & (1u << next));
    write->state = next;
}

static struct engine_shard *shard_of(const struct v2_write *write)
{
    return write->call.api->shard;
}

static const struct v2_node *old_node(const struct v2_write *write)
{
    return &write->ancestors.nodes[write->ancestors.key->depth];
}

/* -- The end: the call is pending from v2_write_run to here -- */

static void revoke_done(struct engine_op *op)
{
    struct v2_write *write = CONTAINER_OF(op, struct v2_write, lease.op);
    write_move(write, V2_WRITE_FINISHED);
    (void)v2_call_done(&write->call); /* it does not matter if the lease has already expired */
}

/* The request was answered, or the exchange has ended. Revokes a lease that no node uses. */
static void finish(struct v2_write *write)
{
    if (!write->lease_id || write->leased) {
        write_move(write, V2_WRITE_FINISHED);
        (void)v2_call_done(&write->call);
        return;
    }
    write_move(write, V2_WRITE_REVOKING);
    write->lease = (struct engine_lease){.id = write->lease_id};
    write->lease.op.done = revoke_done;
    write->lease.op.arena = &write->arena;
    engine_lease_revoke(shard_of(write), &write->lease);
}

static void fail(struct v2_write *write, enum v2_code code, struct slice cause)
{
    if (!v2_call_is_abandoned(&write->call))
        v2_fail(&write->call, code, cause, write->ancestors.revision);
    finish(write);
}

static void fail_status(struct v2_write *write, enum status status)
{
    fail(write, V2_RAFT_INTERNAL, slice_from_text(status_text(status)));
}

static void fail_key(struct v2_write *write, enum v2_code code, struct slice key)
{
    if (!v2_call_is_abandoned(&write->call))
        v2_fail_key(&write->call, code, key, write->ancestors.revision);
    finish(write);
}

static void answer(struct v2_write *write, int64_t revision)
{
    AUTO(buf_fini) struct buf body = {0};
    const struct v2_node *old = old_node(write);
    bool is_new = write->action == V2_CREATE || write->action == V2_SET;
    bool has_prev = !write->post && old->modified && write->action != V2_CREATE;
    bool is_quiet = write->call.form.no_value_on_success && !write->removal;
    write->node.modified = revision;
    write->node.created = is_new ? revision : old->created;
    enum status status =
        v2_event_json(&body, write->action, is_quiet ? NULL : &write->node,
                      has_prev && !is_quiet ? old : NULL, clock_real_ns(clock_system()));
    if (status != ST_OK)
        http_abort(write->call.exchange);
    else if (v2_add_index(&write->call, revision))
        http_respond(write->call.exchange, is_new && !has_prev ? 201 : 200,
                     SLICE_LITERAL("application/json"), buf_slice(&body));
}

/* -- Changing -- */

static void change_done(struct engine_op *op)
{
    struct v2_write *write = CONTAINER_OF(op, struct v2_write, change.op);
    enum status status = op->status;
    bool succeeded = status == ST_OK && write->change.answer.txn.succeeded;
    engine_write_close(&write->change);
    if (status == ST_LEASE_NOT_FOUND) { /* the lease has expired meanwhile */
        write->lease_id = 0;
        read_ancestors(write);
    } else if (status != ST_OK) {
        fail_status(write, status);
    } else if (succeeded) {
        write->leased = true;
        if (!v2_call_is_abandoned(&write->call))
            answer(write, op->revision);
        finish(write);
    } else {
        read_ancestors(write);
    }
}

static void compare_unchanged(struct pb_compare *to, const struct v2_node *node)
{
    *to = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_MOD,
        .key = node->key,
        .target_union_case = PB_COMPARE_MOD_REVISION,
        .mod_revision = node->revision,
    };
}

static void compare_empty(struct pb_compare *to, struct slice key, struct slice end)
{
    *to = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_CREATE,
        .key = key,
        .range_end = end,
        .target_union_case = PB_COMPARE_CREATE_REVISION,
        .create_revision = 0,
    };
}

static void add_compares(struct v2_write *write)
{
    size_t n = 0;
    for (size_t i = 1; i <= write->ancestors.key->depth; i++)
        compare_unchanged(&write->compares[n++], &write->ancestors.nodes[i]);
    write->txn.compare = write->compares;
    write->txn.compare_count = n;
}

static enum status add_put(struct v2_write *write, const struct v2_node *node, int64_t lease)
{
    size_t n = write->txn.success_count++;
    struct pb_put_request *put = &write->puts[n];
    *put = (struct pb_put_request){.key = node->key, .lease = lease};
    write->ops[n] = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_PUT,
        .request_put = put,
    };
    return v2_node_write(&write->arena, node, &put->value);
}

/* Puts the missing directories above the node, then the node. */
static enum status add_puts(struct v2_write *write)
{
    for (size_t i = 1; i < write->key.depth; i++) {
        if (i <= write->ancestors.key->depth && write->ancestors.nodes[i].modified)
            continue;
        struct v2_node dir = {.key = v2_key_part(&write->key, i), .dir = true};
        TRY(add_put(write, &dir, 0));
    }
    return add_put(write, &write->node, write->lease_id);
}

static enum status add_delete(struct v2_write *write)
{
    write->deletes = (struct pb_delete_range_request){.key = write->key.key};
    if (old_node(write)->dir && write->call.form.recursive) {
        TRY(v2_key_end(&write->arena, write->key.key, &write->deletes.range_end));
    } else {
        struct slice first, end;
        TRY(v2_key_first_child(&write->arena, write->key.key, &first));
        TRY(v2_key_end(&write->arena, write->key.key, &end));
        compare_empty(&write->compares[write->txn.compare_count++], first, end);
    }
    write->ops[write->txn.success_count++] = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
        .request_delete_range = &write->deletes,
    };
    return ST_OK;
}

/* The names that POST makes are increasing: no node may have this name or a later one. */
static enum status add_post_compare(struct v2_write *write)
{
    char name[24];
    struct v2_key end;
    snprintf(name, sizeof(name), "%020" PRId64, write->ancestors.revision + 1 + NAMES_AHEAD);
    TRY(v2_key_child(&write->arena, &write->call.key, slice_from_text(name), &end));
    compare_empty(&write->compares[write->txn.compare_count++], write->key.key, end.key);
    return ST_OK;
}

static enum status make_txn(struct v2_write *write)
{
    write->txn = (struct pb_txn_request){.success = write->ops};
    add_compares(write);
    if (write->removal)
        return add_delete(write);
    if (write->post)
        TRY(add_post_compare(write));
    return add_puts(write);
}

static void change(struct v2_write *write)
{
    write_move(write, V2_WRITE_CHANGING);
    enum status status =
        etcd_check_size(write->call.api, write->key.key.len + write->node.value.len);
    if (status == ST_OK)
        status = make_txn(write);
    if (status != ST_OK) {
        fail_status(write, status);
        return;
    }
    write->change = (struct engine_write){0};
    write->change.op.done = change_done;
    write->change.op.arena = &write->arena;
    engine_txn(shard_of(write), &write->change, &write->txn);
}

static void grant_done(struct engine_op *op)
{
    struct v2_write *write = CONTAINER_OF(op, struct v2_write, lease.op);
    if (op->status != ST_OK) {
        fail_status(write, op->status);
        return;
    }
    write->lease_id = write->lease.id;
    change(write);
}

static void grant(struct v2_write *write)
{
    /* Its expiry is a valid time, so the number is not too large. */
    int64_t ttl_s = (int64_t)write->call.form.ttl_s;
    int64_t real_ns = clock_real_ns(clock_system());
    int64_t until_ns = write->expires_ns > real_ns ? write->expires_ns : real_ns;
    write_move(write, V2_WRITE_GRANTING);
    write->lease = (struct engine_lease){
        .ttl_s = ttl_s ? ttl_s : 1,
        .until_ns = clock_add(until_ns, lease_grace_ns),
    };
    write->lease.op.done = grant_done;
    write->lease.op.arena = &write->arena;
    engine_lease_grant(shard_of(write), &write->lease);
}

/* -- Deciding -- */

/* Answers with an error if an ancestor up to this depth is missing or not a directory. */
static bool is_reachable(struct v2_write *write, size_t depth, bool may_be_missing)
{
    size_t at = v2_ancestors_first_gap(&write->ancestors, depth);
    if (at > depth || (may_be_missing && !write->ancestors.nodes[at].modified))
        return true;
    fail_key(write, write->ancestors.nodes[at].modified ? V2_NOT_DIR : V2_KEY_NOT_FOUND,
             v2_key_part(&write->call.key, at));
    return false;
}

static void fail_compare(struct v2_write *write, bool value_differs, bool index_differs)
{
    AUTO(buf_fini) struct buf cause = {0};
    const struct v2_form *form = &write->call.form;
    const struct v2_node *old = old_node(write);
    enum status status = ST_OK;
    if (value_differs)
        status = buf_append_format(&cause, "[%.*s != %.*s]", SLICE_ARGS(form->prev_value),
                                   SLICE_ARGS(old->value));
    if (status == ST_OK && index_differs)
        status = buf_append_format(&cause, "%s[%" PRIu64 " != %" PRId64 "]",
                                   value_differs ? " " : "", form->prev_index, old->modified);
    if (status == ST_OK)
        fail(write, V2_TEST_FAILED, buf_slice(&cause));
    else
        fail_status(write, status);
}

/* Whether the node satisfies prevValue and prevIndex of the request. */
static bool is_as_compared(struct v2_write *write)
{
    const struct v2_form *form = &write->call.form;
    const struct v2_node *old = old_node(write);
    if (!is_reachable(write, write->key.depth, false))
        return false;
    if (old->dir) {
        fail_key(write, V2_NOT_FILE, write->key.key);
        return false;
    }
    bool value_differs = form->prev_value.len && !slice_equal(form->prev_value, old->value);
    bool index_differs = form->prev_index && (int64_t)form->prev_index != old->modified;
    if (!value_differs && !index_differs)
        return true;
    fail_compare(write, value_differs, index_differs);
    return false;
}

static bool may_remove(struct v2_write *write)
{
    const struct v2_form *form = &write->call.form;
    const struct v2_node *old = old_node(write);
    if (write->action == V2_COMPARE_AND_DELETE)
        return is_as_compared(write);
    if (!is_reachable(write, write->key.depth, false))
        return false;
    if (old->dir && !form->dir && !form->recursive) {
        fail_key(write, V2_NOT_FILE, write->key.key);
        return false;
    }
    if (old->dir && !form->recursive && write->ancestors.has_children) {
        fail_key(write, V2_DIR_NOT_EMPTY, write->key.key);
        return false;
    }
    return true;
}

static bool may_create(struct v2_write *write)
{
    const struct v2_node *old = old_node(write);
    if (write->call.form.refresh && write->action == V2_SET &&
        !is_reachable(write, write->key.depth, false))
        return false;
    if (!is_reachable(write, write->key.depth, true))
        return false;
    if (old->modified && write->action == V2_CREATE) {
        fail_key(write, V2_NODE_EXIST, write->key.key);
        return false;
    }
    if (old->dir) {
        fail_key(write, V2_NOT_FILE, write->key.key);
        return false;
    }
    return true;
}

static bool may_update(struct v2_write *write)
{
    if (!is_reachable(write, write->key.depth, false))
        return false;
    if (old_node(write)->dir && write->call.form.value.len) {
        fail_key(write, V2_NOT_FILE, write->key.key);
        return false;
    }
    return true;
}

/* The parent must be a directory or missing. The transaction compares that the name is new. */
static bool may_post(struct v2_write *write)
{
    const struct v2_node *parent = old_node(write);
    char name[24];
    if (!is_reachable(write, write->call.key.depth, true))
        return false;
    if (parent->modified && !parent->dir) {
        fail_key(write, V2_NOT_DIR, parent->key);
        return false;
    }
    snprintf(name, sizeof(name), "%020" PRId64, write->ancestors.revision + 1);
    enum status status =
        v2_key_child(&write->arena, &write->call.key, slice_from_text(name), &write->key);
    if (status == ST_LIMIT)
        fail(write, V2_INVALID_FORM, SLICE_LITERAL("the key is too long or too deep"));
    else if (status != ST_OK)
        fail_status(write, status);
    return status == ST_OK;
}

static bool may_change(struct v2_write *write)
{
    if (write->removal)
        return may_remove(write);
    if (write->post)
        return may_post(write);
    switch (write->action) {
    case V2_COMPARE_AND_SWAP:
        return is_as_compared(write);
    case V2_UPDATE:
        return may_update(write);
    default:
        return may_create(write);
    }
}

static enum v2_action action_of(const struct v2_write *write)
{
    const struct v2_form *form = &write->call.form;
    bool compares = form->prev_index || form->prev_value.len;
    if (write->removal)
        return compares ? V2_COMPARE_AND_DELETE : V2_DELETE;
    if (write->post || form->prev_exist == V2_GIVEN_FALSE)
        return V2_CREATE;
    if (compares)
        return V2_COMPARE_AND_SWAP;
    return form->prev_exist == V2_GIVEN_TRUE ? V2_UPDATE : V2_SET;
}

static void make_node(struct v2_write *write)
{
    const struct v2_form *form = &write->call.form;
    const struct v2_node *old = old_node(write);
    bool is_new = write->action == V2_CREATE || write->action == V2_SET;
    write->node = (struct v2_node){
        .key = write->key.key,
        .action = (uint8_t)write->action,
        .dir = is_new ? form->dir : old->dir,
        .refresh = form->refresh,
        .expires_ns = write->expires_ns,
        .created = is_new ? 0 : old->created,
        .modified = is_new ? 0 : old->modified, /* an update does not change it for a directory */
    };
    if (write->removal)
        write->node.dir = old->dir;
    else if (!write->node.dir)
        write->node.value = form->refresh && !write->post ? old->value : form->value;
}

static void ancestors_done(struct engine_op *op)
{
    struct v2_write *write = CONTAINER_OF(op, struct v2_write, ancestors.write.op);
    enum status status = v2_ancestors_take(&write->ancestors, clock_real_ns(clock_system()));
    bool has_ttl = write->expires_ns && !write->removal;
    if (status != ST_OK) {
        fail_status(write, status);
        return;
    }
    if (v2_call_is_abandoned(&write->call)) {
        finish(write);
        return;
    }
    if (!may_change(write))
        return;
    make_node(write);
    if (write->node.dir && has_ttl) {
        v2_reply_message(write->call.exchange, write->call.api, 501,
                         "a directory cannot have a time to live here");
        finish(write);
    } else if (has_ttl && !write->lease_id) {
        grant(write);
    } else {
        change(write);
    }
}

static void read_ancestors(struct v2_write *write)
{
    if (++write->attempts > ATTEMPTS_MAX) {
        fail(write, V2_RAFT_INTERNAL,
             SLICE_LITERAL("other requests changed the node again and again"));
        return;
    }
    write_move(write, V2_WRITE_READING);
    arena_fini(&write->arena);
    arena_init(&write->arena, NULL, 0, ATTEMPT_BYTES_MAX);
    arena_charge(&write->arena, write->call.arena.account);
    write->ancestors.write = (struct engine_write){0};
    write->ancestors.write.op.done = ancestors_done;
    write->ancestors.write.op.arena = &write->arena;
    if (v2_ancestors_start(shard_of(write), &write->ancestors, &write->call.key) != ST_OK)
        fail_status(write, ST_NOMEM);
}

/* As in etcd, a time that its clock cannot represent is never reached: 0. */
static int64_t expiry_of(uint64_t ttl_s)
{
    int64_t ttl_ns, expires_ns;
    if (ttl_s > INT64_MAX || __builtin_mul_overflow((int64_t)ttl_s, NS_PER_S, &ttl_ns) ||
        __builtin_add_overflow(clock_real_ns(clock_system()), ttl_ns, &expires_ns))
        return 0;
    return expires_ns;
}

void v2_write_run(struct v2_call *call)
{
    struct v2_write *write = CONTAINER_OF(call, struct v2_write, call);
    struct slice method = http_exchange_request(call->exchange)->method;
    write->post = slice_is(method, "POST");
    write->removal = slice_is(method, "DELETE");
    write->key = call->key;
    write->action = action_of(write);
    if (call->form.has_ttl)
        write->expires_ns = expiry_of(call->form.ttl_s);
    if (call->key.depth == 0 && !write->post) {
        struct engine_status now;
        engine_status_get(call->api->shard, &now);
        v2_fail_key(call, V2_ROOT_READ_ONLY, call->key.key, now.revision);
        return;
    }
    v2_call_start(call);
    read_ancestors(write);
}
