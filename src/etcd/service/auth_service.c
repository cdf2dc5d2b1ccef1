/*
 * The Auth service: users, roles, and whether authentication is enabled. The engine checks requests
 * and has the texts of errors (auth/store.h). Methods that hash a password are in auth_password.c.
 */
#include "auth/token/issuer.h"
#include "base/log/log.h"
#include "etcd/service/auth_call.h"
#include "etcd/service/services.h"
#include "etcd/shared/authenticator.h"

/* -- Calls -- */

static void end_tokens(struct auth_call *a)
{
    struct auth_issuer *issuer = a->base.api->config->issuer;
    if (!issuer)
        return;
    if (a->auth.ends_all_tokens)
        auth_issuer_end_all(issuer);
    else if (a->auth.ends_tokens_of.len)
        auth_issuer_end_user(issuer, a->auth.ends_tokens_of);
}

/* Methods that list nothing answer with a header alone; the encoding is the same for all. */
static void reply(struct auth_call *a, struct pb_response_header *header)
{
    struct pb_auth_role_get_response permissions = {
        .header = header, .perm = a->auth.permissions, .perm_count = a->auth.permission_count};
    struct pb_auth_user_get_response names = {
        .header = header, .roles = a->auth.names, .roles_count = a->auth.name_count};
    if (a->auth.permission_count)
        etcd_call_reply(a->base.call, &pb_auth_role_get_response_table, &permissions);
    else
        etcd_call_reply(a->base.call, &pb_auth_user_get_response_table, &names);
}

static void tell(const struct auth_call *a)
{
    struct log_field none = {0};
    if (a->kind->log_text)
        log_info(a->kind->log_text, a->auth.user.len ? LOG_SLICE("user-name", a->auth.user) : none,
                 a->auth.role.len ? LOG_SLICE("role-name", a->auth.role) : none);
}

static void auth_done(struct engine_op *op)
{
    struct auth_call *a = CONTAINER_OF(op, struct auth_call, auth.op);
    bool ended = !service_call_answered(&a->base);
    if (op->status == ST_OK) {
        end_tokens(a);
        tell(a);
    }
    if (ended) {
        service_call_release(&a->base);
    } else if (op->status != ST_OK) {
        etcd_call_fail_op(a->base.call, op);
    } else {
        struct pb_response_header header;
        etcd_header_fill(a->base.api, op->revision, &header);
        reply(a, &header);
    }
}

void auth_call_start(struct auth_call *a)
{
    service_call_begin(&a->base);
    engine_auth_start(a->base.api->shard, &a->auth);
}

/* The text of the request at a place that AUTH_MEMBER gave. */
static struct slice argument(const struct auth_call *a, size_t place)
{
    return place ? *(const struct slice *)((const char *)&a->request + place - 1) : SLICE_EMPTY;
}

static void on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    const struct auth_kind *kind = grpc_call_row(call);
    struct auth_call *a = arena_calloc(grpc_call_arena(call), 1, sizeof(*a));
    if (!a) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    if (!etcd_call_decode(call, kind->request, message, &a->request))
        return;
    enum status status = etcd_check_size(api, message.len);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
        return;
    }
    service_call_init(&a->base, call, api, &a->auth.op, auth_done);
    a->kind = kind;
    a->auth.call = kind->call;
    a->auth.user = argument(a, kind->user);
    a->auth.role = argument(a, kind->role);
    a->auth.key = argument(a, kind->key);
    a->auth.range_end = argument(a, kind->range_end);
    if (kind->call == ENGINE_AUTH_ROLE_GRANT)
        a->auth.permission = a->request.role_grant.perm;
    grpc_call_set_user(call, a);
    if (kind->start)
        kind->start(a);
    else
        auth_call_start(a);
}

static void auth_call_on_end(struct grpc_call *call, void *api)
{
    (void)api;
    struct auth_call *a = grpc_call_user(call);
    if (!a)
        return; /* refused before the operation was started */
    if (!service_call_end(&a->base))
        password_job_cancel(&a->job);
}

/* Every client may call it, but an invalid token is an error, as in etcd. */
static void status_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_auth_status_request request;
    struct auth_principal principal;
    struct pb_response_header header;
    if (!etcd_call_decode(call, &pb_auth_status_request_table, message, &request))
        return;
    enum status status = authenticator_find(api->authenticator, call, &principal);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
        return;
    }
    const struct auth_rights *rights = engine_auth_rights(api->shard);
    etcd_header_fill(api, etcd_header_now(api).revision, &header);
    struct pb_auth_status_response response = {
        .header = &header,
        .enabled = auth_rights_enabled(rights),
        .auth_revision = auth_rights_revision(rights),
    };
    etcd_call_reply(call, &pb_auth_status_response_table, &response);
}

/* -- The table -- */

/* The path, the request, the engine's call; then its arguments. */
#define ROW(path, message, call_, ...)                                                     \
    GRPC_METHOD(PB_AUTH_##path##_PATH, on_message, auth_call_on_end,                       \
                .row = &(const struct auth_kind){.request = &pb_##message##_request_table, \
                                                 .call = ENGINE_AUTH_##call_,              \
                                                 __VA_ARGS__})
#define USER(message, member) .user = AUTH_MEMBER(message, member)
#define ROLE(message, member) .role = AUTH_MEMBER(message, member)
#define LOG(text) .log_text = (text)

static const struct grpc_method methods[] = {
    ROW(AUTH_ENABLE, auth_enable, ENABLE, LOG("enabled authentication")),
    ROW(AUTH_DISABLE, auth_disable, DISABLE, LOG("disabled authentication")),
    GRPC_METHOD(PB_AUTH_AUTH_STATUS_PATH, status_on_message, auth_call_on_end),
    ROW(AUTHENTICATE, authenticate, PASSWORD,
        .user = 1 + offsetof(struct pb_authenticate_request, name), .start = auth_start_login),
    ROW(USER_ADD, auth_user_add, USER_ADD, USER(user_add, name), LOG("added a user"),
        .start = auth_start_user_add),
    ROW(USER_GET, auth_user_get, USER_GET, USER(user_get, name)),
    ROW(USER_LIST, auth_user_list, USER_LIST),
    ROW(USER_DELETE, auth_user_delete, USER_DELETE, USER(user_delete, name), LOG("deleted a user")),
    ROW(USER_CHANGE_PASSWORD, auth_user_change_password, USER_CHANGE_PASSWORD,
        USER(user_change_password, name), LOG("changed a password of a user"),
        .start = auth_start_change_password),
    ROW(USER_GRANT_ROLE, auth_user_grant_role, USER_GRANT_ROLE, USER(user_grant_role, user),
        ROLE(user_grant_role, role), LOG("granted a role to a user")),
    ROW(USER_REVOKE_ROLE, auth_user_revoke_role, USER_REVOKE_ROLE, USER(user_revoke_role, name),
        ROLE(user_revoke_role, role), LOG("revoked a role from a user")),
    ROW(ROLE_ADD, auth_role_add, ROLE_ADD, ROLE(role_add, name), LOG("created a role")),
    ROW(ROLE_GET, auth_role_get, ROLE_GET, ROLE(role_get, role)),
    ROW(ROLE_LIST, auth_role_list, ROLE_LIST),
    ROW(ROLE_DELETE, auth_role_delete, ROLE_DELETE, ROLE(role_delete, role), LOG("deleted a role")),
    ROW(ROLE_GRANT_PERMISSION, auth_role_grant_permission, ROLE_GRANT,
        ROLE(role_grant_permission, name), LOG("granted/updated a permission to a role")),
    ROW(ROLE_REVOKE_PERMISSION, auth_role_revoke_permission, ROLE_REVOKE,
        ROLE(role_revoke_permission, role), .key = AUTH_MEMBER(role_revoke_permission, key),
        .range_end = AUTH_MEMBER(role_revoke_permission, range_end),
        LOG("revoked a permission on range")),
};

enum status auth_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
