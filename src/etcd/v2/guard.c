#include "etcd/v2/guard.h"

#include "base/log/log.h"
#include "codec/base64.h"
#include "etcd/service/password_queue.h"
#include "etcd/v2/call.h"
#include "etcd/v2/policy_store.h"

enum {
    CREDENTIALS_BYTES_MAX = 4096, /* limit on the length of the Authorization field */
    SHOWN_BYTES = 128,            /* length of a user name in the log */
};

/* In the call's arena. */
struct v2_guard {
    struct v2_policy_store store;
    struct password_job job;
    struct v2_call *call;
    enum v2_need need;
    void (*next)(struct v2_call *call);
    struct slice user, password; /* from the Authorization field, in the arena */
    bool allowed;                /* the user's roles permit it, if the password is right */
    /* What was permitted before, and with users and roles of which revision. */
    bool permitted, permitted_recursive;
    int64_t permitted_revision;
};

/* -- Results -- */

static void refuse(struct v2_guard *g, const char *why, struct slice user)
{
    struct v2_call *call = g->call;
    struct log_field unlogged;
    user.len = size_min(user.len, SHOWN_BYTES);
    if (http_may_log(call->api, &unlogged))
        log_warn("refused a request of the v2 API", LOG_TEXT("reason", why),
                 LOG_SLICE("user-name", user), unlogged);
    if (g->need == V2_NEED_KEY)
        v2_fail(call, V2_UNAUTHORIZED, SLICE_LITERAL("Insufficient credentials"), 0);
    else
        v2_reply_message(call->exchange, call->api, 401, "Insufficient credentials");
}

static void fail(struct v2_guard *g, enum status status)
{
    if (g->need == V2_NEED_KEY || status == ST_NOMEM)
        v2_fail_status(g->call, status);
    else
        v2_reply_message(g->call->exchange, g->call->api, 500, status_text(status));
}

static void permit(struct v2_guard *g)
{
    g->permitted = true;
    g->permitted_recursive = g->call->form.recursive;
    g->permitted_revision = g->store.revision;
    g->next(g->call);
}

/* status: the result of the check itself. */
static void conclude(struct v2_guard *g, enum status status, bool allowed, struct slice user)
{
    if (status != ST_OK)
        fail(g, status);
    else if (allowed)
        permit(g);
    else
        refuse(g, "the user has no role that allows it", user);
}

/* -- Permissions -- */

/* The path as etcd matches it: a slash at its end is kept, and an empty path is not the root. */
static enum status path_of(struct v2_call *call, struct slice *ret_path)
{
    AUTO(buf_fini) struct buf path = {0};
    struct slice asked = http_exchange_request(call->exchange)->path;
    size_t prefix = strlen("/v2/keys");
    *ret_path = SLICE_EMPTY;
    if (asked.len == prefix)
        return ST_OK;
    TRY(v2_key_path(call->key.key, &path));
    if (call->key.depth && asked.ptr[asked.len - 1] == '/')
        TRY(buf_append_text(&path, "/"));
    return arena_dup(&call->arena, buf_slice(&path), ret_path);
}

static enum status roles_allow(struct v2_guard *g, const struct v2_policy *policy,
                               const struct v2_names *roles, bool *ret_allowed)
{
    if (g->need == V2_NEED_ROOT) {
        *ret_allowed = v2_names_contain(roles, SLICE_LITERAL(V2_ROOT_ROLE));
        return ST_OK;
    }
    struct slice method = http_exchange_request(g->call->exchange)->method;
    struct v2_access access = {
        .write = !slice_is(method, "GET") && !slice_is(method, "HEAD"),
        .recursive = g->call->form.recursive,
    };
    TRY(path_of(g->call, &access.path));
    *ret_allowed = v2_policy_allows(policy, roles, &access);
    return ST_OK;
}

static enum status user_may(struct v2_guard *g, const struct v2_policy *policy,
                            struct v2_user *user, bool *ret_allowed)
{
    TRY(v2_user_complete(&g->call->arena, user));
    return roles_allow(g, policy, &user->roles, ret_allowed);
}

static enum status guest_may(struct v2_guard *g, const struct v2_policy *policy, bool *ret_allowed)
{
    struct slice name = SLICE_LITERAL(V2_GUEST_ROLE);
    struct v2_names roles = {.list = &name, .count = 1};
    *ret_allowed = false;
    return g->need == V2_NEED_KEY ? roles_allow(g, policy, &roles, ret_allowed) : ST_OK;
}

/* -- Users -- */

/* Parses "Basic " and, in base64, a name, a colon and a password. ST_MALFORMED, ST_NOMEM. */
static enum status read_basic(struct v2_guard *g, struct slice field)
{
    static const char scheme[] = "Basic ";
    size_t skip = sizeof(scheme) - 1, len;
    if (field.len < skip || field.len > CREDENTIALS_BYTES_MAX ||
        strncasecmp((const char *)field.ptr, scheme, skip) != 0)
        return ST_MALFORMED;
    uint8_t *bytes = arena_alloc(&g->call->arena, field.len);
    if (!bytes)
        return ST_NOMEM;
    if (!base64_decode(slice_sub(field, skip, field.len - skip), bytes, &len))
        return ST_MALFORMED;
    const uint8_t *colon = len ? memchr(bytes, ':', len) : NULL;
    if (!colon)
        return ST_MALFORMED;
    size_t name_len = (size_t)(colon - bytes);
    g->user = slice_of(bytes, name_len);
    g->password = slice_of(colon + 1, len - name_len - 1);
    return ST_OK;
}

static void checked(struct password_job *job)
{
    struct v2_guard *g = CONTAINER_OF(job, struct v2_guard, job);
    g->call->job = NULL;
    if (!v2_call_done(g->call))
        return;
    if (job->hasher.work.status == ST_OK)
        conclude(g, ST_OK, g->allowed, g->user);
    else if (job->hasher.work.status == ST_AUTH_FAILED || job->hasher.work.status == ST_INVALID)
        refuse(g, "the password is wrong, or there is no such user", g->user);
    else
        fail(g, job->hasher.work.status);
}

static void check_password(struct v2_guard *g, const struct v2_policy *policy)
{
    struct v2_user *user = v2_policy_user(policy, g->user);
    struct slice hash =
        user ? user->hash : password_dummy_hash(g->call->api->config->bcrypt_cost, &g->call->arena);
    enum status status = user ? user_may(g, policy, user, &g->allowed) : ST_OK;
    g->job.done = checked;
    if (status == ST_OK)
        status = password_queue_verify(g->call->api->passwords, &g->job,
                                       http_exchange_request(g->call->exchange)->peer, g->password,
                                       hash);
    if (status != ST_OK) {
        fail(g, status);
        return;
    }
    g->call->job = &g->job;
    v2_call_start(g->call);
}

static void identify(struct v2_guard *g, const struct v2_policy *policy)
{
    const struct http_request *request = http_exchange_request(g->call->exchange);
    struct v2_user *user = NULL;
    struct slice field = SLICE_EMPTY, name = SLICE_EMPTY;
    if (http_request_get(request, SLICE_LITERAL("authorization"), &field) && field.len) {
        enum status status = read_basic(g, field);
        if (status == ST_OK)
            check_password(g, policy);
        else if (status == ST_MALFORMED)
            refuse(g, "malformed basic auth encoding", SLICE_EMPTY);
        else
            fail(g, status);
        return;
    }
    if (g->call->api->config->names_from_certificates && request->peer_name) {
        name = slice_from_text(request->peer_name);
        user = v2_policy_user(policy, name);
    }
    bool allowed = false;
    enum status status =
        user ? user_may(g, policy, user, &allowed) : guest_may(g, policy, &allowed);
    conclude(g, status, allowed, name);
}

/* The same request was permitted before, by the same users and roles. */
static bool is_unchanged(const struct v2_guard *g)
{
    return g->permitted && g->permitted_revision == g->store.revision &&
           g->permitted_recursive == g->call->form.recursive;
}

static void read_done(struct engine_op *op)
{
    struct v2_guard *g = CONTAINER_OF(op, struct v2_guard, store.range.op);
    struct v2_policy policy;
    enum status status = v2_policy_store_take(&g->store, &policy);
    if (!v2_call_done(g->call))
        return;
    if (status != ST_OK)
        fail(g, status);
    else if (policy.enabled && !is_unchanged(g))
        identify(g, &policy);
    else
        permit(g);
}

static void start(struct v2_guard *g, void (*next)(struct v2_call *call))
{
    struct v2_call *call = g->call;
    g->next = next;
    v2_call_start(call);
    v2_policy_store_read(&g->store, call->api->shard, &call->arena, read_done);
}

static void admit(struct v2_call *call)
{
    http_authorized(call->exchange);
}

void v2_guard_admit(struct v2_call *call, enum v2_need need)
{
    assert(!call->guard);
    if (need == V2_NEED_NOTHING) {
        admit(call);
        return;
    }
    call->guard = arena_calloc(&call->arena, 1, sizeof(*call->guard));
    if (!call->guard) {
        http_abort(call->exchange);
        return;
    }
    call->guard->call = call;
    call->guard->need = need;
    start(call->guard, admit);
}

void v2_guard_confirm(struct v2_call *call, void (*next)(struct v2_call *call))
{
    struct v2_guard *g = call->guard;
    bool had_body = http_exchange_request(call->exchange)->body.len > 0;
    if (g && (had_body || g->permitted_recursive != call->form.recursive))
        start(g, next);
    else
        next(call);
}
