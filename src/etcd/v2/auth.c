/*
 * /v2/auth: users and roles of the v2 API, and whether its authentication is enabled.
 *
 *     guarded ──► (hashing) ──► reading ──► (writing) ──► answered
 *        │            │          ▲ │           │ │            ▲
 *        └────────────┴──────────┼─┴───────────┼─┴────────────┘
 *                                └─────────────┘
 *                               another write won
 *
 *     guarded    the guard checks whether the client may do this (guard.h), before and after the
 *                body arrives; then the body is parsed
 *     hashing    the hasher computes the hash of a new password
 *     reading    users and roles are read; then the change is decided
 */
#include "base/log/log.h"
#include "base/xalloc.h"
#include "etcd/service/password_queue.h"
#include "etcd/v2/call.h"
#include "etcd/v2/guard.h"
#include "etcd/v2/handlers.h"
#include "etcd/v2/policy_change.h"
#include "etcd/v2/policy_store.h"

enum {
    BODY_BYTES_MAX = 64 * 1024,
    ANSWER_BYTES_MAX = 4 << 20, /* the list of users has the permissions of all their roles */
    ATTEMPTS_MAX = 64,
};

enum v2_auth_state {
    V2_AUTH_GUARDED,
    V2_AUTH_HASHING,
    V2_AUTH_READING,
    V2_AUTH_WRITING,
    V2_AUTH_ANSWERED,
};

#define TO(state) (1u << V2_AUTH_##state)

/* Drawn above. */
static const unsigned auth_moves[] = {
    [V2_AUTH_GUARDED] = TO(HASHING) | TO(READING) | TO(ANSWERED),
    [V2_AUTH_HASHING] = TO(READING) | TO(ANSWERED),
    [V2_AUTH_READING] = TO(WRITING) | TO(ANSWERED),
    [V2_AUTH_WRITING] = TO(READING) | TO(ANSWERED),
    [V2_AUTH_ANSWERED] = 0,
};

struct v2_auth;

/* The part of the API for users, for roles, or for enabling them. */
struct v2_auth_area {
    const char *path;
    bool (*read_body)(struct v2_auth *a, struct slice body, struct v2_refusal *refusal);
    /* Write the requested data, or refuse. */
    bool (*list)(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal);
    bool (*get)(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal);
    /* Change the policy and write the answer, or refuse. */
    bool (*put)(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal);
    bool (*remove)(struct v2_auth *a, struct v2_refusal *refusal);
    const char *put_log, *remove_log; /* log messages after success */
};

struct v2_auth {
    struct v2_call call; /* first */
    enum v2_auth_state state;
    const struct v2_auth_area *area;
    struct slice name; /* name of the user or role; empty: all of them, or enabling */
    bool put, removal;
    union {
        struct v2_user_change user;
        struct v2_role_change role;
    };
    struct password_job job;
    struct arena arena; /* memory of this attempt */
    unsigned attempts;
    struct v2_policy_store store;
    struct v2_policy policy;
    bool created;
    struct buf answer;
};

static void auth_fini(struct v2_call *call)
{
    struct v2_auth *a = CONTAINER_OF(call, struct v2_auth, call);
    v2_policy_store_fini(&a->store);
    arena_fini(&a->arena);
    buf_fini(&a->answer);
}

static void auth_move(struct v2_auth *a, enum v2_auth_state next)
{
    assert(auth_moves[a->state] & (1u << next));
    a->state = next;
}

/* -- Answers -- */

static void reply_message(struct v2_auth *a, unsigned code, const char *message)
{
    auth_move(a, V2_AUTH_ANSWERED);
    v2_reply_message(a->call.exchange, a->call.api, code, message);
}

static void reply_refusal(struct v2_auth *a, const struct v2_refusal *refusal)
{
    reply_message(a, refusal->code, refusal->text);
}

static void reply_status(struct v2_auth *a, enum status status)
{
    if (status != ST_NOMEM) {
        reply_message(a, 500, status_text(status));
        return;
    }
    auth_move(a, V2_AUTH_ANSWERED);
    http_abort(a->call.exchange);
}

static void reply(struct v2_auth *a)
{
    auth_move(a, V2_AUTH_ANSWERED);
    v2_reply_json(a->call.exchange, a->call.api, a->created ? 201 : 200, buf_slice(&a->answer));
}

/* -- Users -- */

static bool user_read_body(struct v2_auth *a, struct slice body, struct v2_refusal *refusal)
{
    return v2_user_change_read(&a->call.arena, body, a->name, &a->user, refusal);
}

/* Writes the user with the permissions of those of its roles that exist. strict: all must exist. */
static bool write_user(struct v2_auth *a, struct json_writer *w, struct v2_user *user, bool strict,
                       struct v2_refusal *refusal)
{
    bool has_roles = false;
    if (v2_user_complete(&a->arena, user) != ST_OK)
        return v2_refuse(refusal, 500, "%s", status_text(ST_NOMEM));
    json_begin_object(w);
    json_member_string(w, "user", user->name);
    for (size_t i = 0; i < user->roles.count; i++) {
        const struct v2_role *role = v2_policy_role(&a->policy, user->roles.list[i]);
        if (!role && strict)
            return v2_refuse(refusal, 404, "auth: Role %.*s does not exist.",
                             SLICE_ARGS(user->roles.list[i]));
        if (!role)
            continue;
        if (w->out->len > ANSWER_BYTES_MAX)
            return v2_refuse(refusal, 500, "the users and their roles are too many to be listed");
        if (!has_roles) {
            json_member_array(w, "roles");
        }
        has_roles = true;
        v2_role_json(w, role);
    }
    if (has_roles)
        json_end_array(w);
    json_end_object(w);
    return true;
}

static bool user_list(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    json_begin_object(w);
    json_key(w, "users");
    if (a->policy.user_count) {
        json_begin_array(w);
        for (size_t i = 0; i < a->policy.user_count; i++) {
            if (!write_user(a, w, &a->policy.users[i], false, refusal))
                return false;
        }
        json_end_array(w);
    } else {
        json_null(w);
    }
    json_end_object(w);
    return true;
}

static bool user_get(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    struct v2_user *user = v2_policy_user(&a->policy, a->name);
    if (!user)
        return v2_refuse(refusal, 404, "auth: User %.*s does not exist.", SLICE_ARGS(a->name));
    return write_user(a, w, user, true, refusal);
}

static bool user_put(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    struct v2_user user;
    if (!v2_user_put(&a->arena, &a->policy, &a->user, &user, &a->created, refusal))
        return false;
    json_begin_object(w);
    json_member_string(w, "user", user.name);
    json_key(w, "roles");
    v2_names_json(w, &user.roles);
    json_end_object(w);
    return true;
}

static bool user_remove(struct v2_auth *a, struct v2_refusal *refusal)
{
    return v2_user_delete(&a->policy, a->name, refusal);
}

/* -- Roles -- */

static bool role_read_body(struct v2_auth *a, struct slice body, struct v2_refusal *refusal)
{
    return v2_role_change_read(&a->call.arena, body, a->name, &a->role, refusal);
}

static bool role_list(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    (void)refusal;
    const struct v2_role *root = v2_policy_role(&a->policy, SLICE_LITERAL(V2_ROOT_ROLE));
    bool written = false;
    json_begin_object(w);
    json_member_array(w, "roles");
    for (size_t i = 0; i < a->policy.role_count; i++) {
        if (!written && slice_compare(root->name, a->policy.roles[i].name) < 0) {
            v2_role_json(w, root);
            written = true;
        }
        v2_role_json(w, &a->policy.roles[i]);
    }
    if (!written)
        v2_role_json(w, root);
    json_end_array(w);
    json_end_object(w);
    return true;
}

static bool role_get(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    const struct v2_role *role = v2_policy_role(&a->policy, a->name);
    if (!role)
        return v2_refuse(refusal, 404, "auth: Role %.*s does not exist.", SLICE_ARGS(a->name));
    v2_role_json(w, role);
    return true;
}

static bool role_put(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    struct v2_role role;
    if (!v2_role_put(&a->arena, &a->policy, &a->role, &role, &a->created, refusal))
        return false;
    v2_role_json(w, &role);
    return true;
}

static bool role_remove(struct v2_auth *a, struct v2_refusal *refusal)
{
    return v2_role_delete(&a->policy, a->name, refusal);
}

/* -- Enabling -- */

static bool switch_get(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    (void)refusal;
    json_begin_object(w);
    json_member_bool(w, "enabled", a->policy.enabled);
    json_end_object(w);
    return true;
}

static bool switch_put(struct v2_auth *a, struct json_writer *w, struct v2_refusal *refusal)
{
    (void)w;
    return v2_policy_enable(&a->arena, &a->policy, refusal);
}

static bool switch_remove(struct v2_auth *a, struct v2_refusal *refusal)
{
    return v2_policy_disable(&a->policy, refusal);
}

static const struct v2_auth_area user_area = {
    .path = "/v2/auth/users",
    .read_body = user_read_body,
    .list = user_list,
    .get = user_get,
    .put = user_put,
    .remove = user_remove,
    .put_log = "set a user of the v2 API",
    .remove_log = "deleted a user of the v2 API",
};

static const struct v2_auth_area role_area = {
    .path = "/v2/auth/roles",
    .read_body = role_read_body,
    .list = role_list,
    .get = role_get,
    .put = role_put,
    .remove = role_remove,
    .put_log = "set a role of the v2 API",
    .remove_log = "deleted a role of the v2 API",
};

static const struct v2_auth_area switch_area = {
    .path = "/v2/auth/enable",
    .list = switch_get,
    .put = switch_put,
    .remove = switch_remove,
    .put_log = "enabled authentication of the v2 API; it does not apply to clients of v3",
    .remove_log = "disabled authentication of the v2 API",
};

/* -- Calls -- */

static void load(struct v2_auth *a);

static void written(struct engine_op *op)
{
    struct v2_auth *a = CONTAINER_OF(op, struct v2_auth, store.write.op);
    enum status status = v2_policy_store_written(&a->store);
    if (status == ST_OK)
        log_info(a->put ? a->area->put_log : a->area->remove_log, LOG_SLICE("name", a->name));
    if (!v2_call_done(&a->call))
        return;
    if (status == ST_OK)
        reply(a);
    else if (status == ST_AGAIN && a->attempts < ATTEMPTS_MAX)
        load(a);
    else
        reply_status(a, status);
}

static void write_policy(struct v2_auth *a)
{
    auth_move(a, V2_AUTH_WRITING);
    v2_call_start(&a->call);
    enum status status =
        v2_policy_store_write(&a->store, a->call.api->shard, &a->arena, &a->policy, written);
    if (status == ST_OK || !v2_call_done(&a->call))
        return;
    if (status == ST_LIMIT)
        reply_message(a, 400, "auth: all users and roles together are too long");
    else
        reply_status(a, status);
}

/* Does what the request says, and writes the answer. */
static bool execute(struct v2_auth *a, struct v2_refusal *refusal)
{
    const struct v2_auth_area *area = a->area;
    struct json_writer w;
    a->answer.len = 0;
    if (a->removal)
        return area->remove(a, refusal);
    json_writer_init(&w, &a->answer);
    if (!(a->put ? area->put : a->name.len ? area->get : area->list)(a, &w, refusal))
        return false;
    if (a->answer.len == 0)
        return true;
    if (json_writer_finish(&w) == ST_OK && buf_append_text(&a->answer, "\n") == ST_OK)
        return true;
    return v2_refuse(refusal, 500, "%s", status_text(ST_NOMEM));
}

static void loaded(struct engine_op *op)
{
    struct v2_auth *a = CONTAINER_OF(op, struct v2_auth, store.range.op);
    struct v2_refusal refusal = {0};
    enum status status = v2_policy_store_take(&a->store, &a->policy);
    if (!v2_call_done(&a->call))
        return;
    if (status != ST_OK)
        reply_status(a, status);
    else if (!execute(a, &refusal))
        reply_refusal(a, &refusal);
    else if (a->put || a->removal)
        write_policy(a);
    else
        reply(a);
}

static void load(struct v2_auth *a)
{
    auth_move(a, V2_AUTH_READING);
    a->attempts++;
    arena_fini(&a->arena);
    arena_init(&a->arena, NULL, 0, V2_CALL_BYTES_MAX);
    arena_charge(&a->arena, a->call.arena.account);
    v2_call_start(&a->call);
    v2_policy_store_read(&a->store, a->call.api->shard, &a->arena, loaded);
}

static void hashed(struct password_job *job)
{
    struct v2_auth *a = CONTAINER_OF(job, struct v2_auth, job);
    a->call.job = NULL;
    if (!v2_call_done(&a->call))
        return;
    a->user.user.hash = slice_of(job->hasher.made, sizeof(job->hasher.made));
    if (job->hasher.work.status == ST_OK)
        load(a);
    else if (job->hasher.work.status == ST_INVALID)
        reply_message(a, 400, "auth: a password has at most 72 bytes, none of them zero");
    else
        reply_status(a, job->hasher.work.status);
}

static void hash_password(struct v2_auth *a)
{
    a->job.done = hashed;
    enum status status =
        password_queue_hash(a->call.api->passwords, &a->job,
                            http_exchange_request(a->call.exchange)->peer, a->user.password);
    if (status != ST_OK) {
        reply_status(a, status);
        return;
    }
    auth_move(a, V2_AUTH_HASHING);
    a->call.job = &a->job;
    v2_call_start(&a->call);
}

static void run(struct v2_call *call)
{
    struct v2_auth *a = CONTAINER_OF(call, struct v2_auth, call);
    struct v2_refusal refusal = {0};
    struct slice body = http_exchange_request(call->exchange)->body;
    if (a->put && a->area->read_body && !a->area->read_body(a, body, &refusal))
        reply_refusal(a, &refusal);
    else if (a->put && a->area == &user_area && a->user.password.len)
        hash_password(a);
    else
        load(a);
}

/* The name after the area's path, without a slash at its end. False: it has several parts. */
static bool read_name(const struct v2_auth_area *area, struct slice path, struct slice *ret_name)
{
    size_t prefix = size_min(strlen(area->path) + 1, path.len);
    struct slice name = slice_sub(path, prefix, path.len - prefix);
    if (name.len && name.ptr[name.len - 1] == '/')
        name.len--;
    *ret_name = name;
    return name.len == 0 || !memchr(name.ptr, '/', name.len);
}

static bool admit(struct http_exchange *x, struct etcd_api *api, const struct http_request *request,
                  const struct v2_auth_area *area)
{
    struct slice name;
    if (!read_name(area, request->path, &name)) {
        v2_reply_message(x, api, 400, "Invalid path");
        return false;
    }
    bool has_many = area != &switch_area && name.len == 0;
    return v2_admits(x, api, request, has_many ? "GET" : "GET,PUT,DELETE");
}

/* Makes the call of a request and checks its user. */
static void authorize(struct http_exchange *x, struct etcd_api *api,
                      const struct http_request *request, const struct v2_auth_area *area)
{
    struct slice name;
    bool one = read_name(area, request->path, &name);
    assert(one);
    struct v2_auth *a = xcalloc(1, sizeof(*a));
    *a = (struct v2_auth){
        .call = {.exchange = x, .api = api, .fini = auth_fini},
        .area = area,
        .put = slice_is(request->method, "PUT"),
        .removal = slice_is(request->method, "DELETE"),
    };
    arena_init(&a->call.arena, NULL, 0, V2_CALL_BYTES_MAX);
    arena_charge(&a->call.arena, http_exchange_account(x));
    http_exchange_set_user(x, &a->call);
    if (arena_dup(&a->call.arena, name, &a->name) !=
        ST_OK) { /* it is logged after the exchange has ended, too */
        http_abort(x);
        return;
    }
    bool is_open = area == &switch_area && !a->put && !a->removal;
    v2_guard_admit(&a->call, is_open ? V2_NEED_NOTHING : V2_NEED_ROOT);
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    (void)request;
    v2_guard_confirm(http_exchange_user(x), run);
}

static bool admit_users(struct http_exchange *x, void *api, const struct http_request *request)
{
    return admit(x, api, request, &user_area);
}

static void authorize_users(struct http_exchange *x, void *api, const struct http_request *request)
{
    authorize(x, api, request, &user_area);
}

static bool admit_roles(struct http_exchange *x, void *api, const struct http_request *request)
{
    return admit(x, api, request, &role_area);
}

static void authorize_roles(struct http_exchange *x, void *api, const struct http_request *request)
{
    authorize(x, api, request, &role_area);
}

static bool admit_enable(struct http_exchange *x, void *api, const struct http_request *request)
{
    return admit(x, api, request, &switch_area);
}

static void authorize_enable(struct http_exchange *x, void *api, const struct http_request *request)
{
    authorize(x, api, request, &switch_area);
}

#define ROUTE(at, what)                                                                      \
    {                                                                                        \
        .path = (at), .admit = admit_##what, .authorize = authorize_##what,                  \
        .on_request = on_request, .on_end = v2_call_on_end, .body_bytes_max = BODY_BYTES_MAX \
    }

static const struct http_route routes[] = {
    ROUTE("/v2/auth/users", users),   ROUTE("/v2/auth/users/", users),
    ROUTE("/v2/auth/roles", roles),   ROUTE("/v2/auth/roles/", roles),
    ROUTE("/v2/auth/enable", enable),
};

enum status v2_auth_add(struct etcd_api *api)
{
    return http_routes_add(api->routes, routes, COUNT_OF(routes), api);
}
