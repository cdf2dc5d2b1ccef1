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

static void reply_header(struct auth_call *a, struct pb_response_header *header)
{
    /* All responses with only a header have the same encoding. */
    struct pb_auth_enable_response response = {.header = header};
    etcd_call_reply(a->base.call, &pb_auth_enable_response_table, &response);
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
        if (a->kind->reply)
            a->kind->reply(a, &header);
        else
            reply_header(a, &header);
    }
}

struct auth_call *auth_call_new(struct grpc_call *call, struct etcd_api *api, struct slice message,
                                const struct auth_kind *kind)
{
    struct auth_call *a = arena_calloc(grpc_call_arena(call), 1, sizeof(*a));
    if (!a) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    if (!etcd_call_decode(call, kind->request, message, &a->request))
        return NULL;
    enum status status = etcd_check_size(api, message.len);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
        return NULL;
    }
    service_call_init(&a->base, call, api, &a->auth.op, auth_done);
    a->kind = kind;
    a->auth.call = kind->call;
    if (kind->fill)
        kind->fill(a);
    grpc_call_set_user(call, a);
    return a;
}

void auth_call_start(struct auth_call *a)
{
    service_call_begin(&a->base);
    engine_auth_start(a->base.api->shard, &a->auth);
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

static void ask(struct grpc_call *call, struct etcd_api *api, struct slice message,
                const struct auth_kind *kind)
{
    struct auth_call *a = auth_call_new(call, api, message, kind);
    if (a)
        auth_call_start(a);
}

/* Defines the handler of a method that only starts an operation of the engine. */
#define ENGINE_METHOD(method)                                                                \
    static void method##_on_message(struct grpc_call *call, void *api, struct slice message) \
    {                                                                                        \
        ask(call, api, message, &method);                                                    \
    }

/* -- Enabling authentication -- */

static const struct auth_kind enable = {
    .request = &pb_auth_enable_request_table,
    .call = ENGINE_AUTH_ENABLE,
    .log_text = "enabled authentication",
};
ENGINE_METHOD(enable)

static const struct auth_kind disable = {
    .request = &pb_auth_disable_request_table,
    .call = ENGINE_AUTH_DISABLE,
    .log_text = "disabled authentication",
};
ENGINE_METHOD(disable)

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

/* -- Users -- */

static void fill_user_get(struct auth_call *a)
{
    a->auth.user = a->request.user_get.name;
}

static void reply_user_get(struct auth_call *a, struct pb_response_header *header)
{
    struct pb_auth_user_get_response response = {
        .header = header, .roles = a->auth.names, .roles_count = a->auth.name_count};
    etcd_call_reply(a->base.call, &pb_auth_user_get_response_table, &response);
}

static const struct auth_kind user_get = {
    .request = &pb_auth_user_get_request_table,
    .call = ENGINE_AUTH_USER_GET,
    .fill = fill_user_get,
    .reply = reply_user_get,
};
ENGINE_METHOD(user_get)

static void reply_user_list(struct auth_call *a, struct pb_response_header *header)
{
    struct pb_auth_user_list_response response = {
        .header = header, .users = a->auth.names, .users_count = a->auth.name_count};
    etcd_call_reply(a->base.call, &pb_auth_user_list_response_table, &response);
}

static const struct auth_kind user_list = {
    .request = &pb_auth_user_list_request_table,
    .call = ENGINE_AUTH_USER_LIST,
    .reply = reply_user_list,
};
ENGINE_METHOD(user_list)

static void fill_user_delete(struct auth_call *a)
{
    a->auth.user = a->request.user_delete.name;
}

static const struct auth_kind user_delete = {
    .request = &pb_auth_user_delete_request_table,
    .call = ENGINE_AUTH_USER_DELETE,
    .fill = fill_user_delete,
    .log_text = "deleted a user",
};
ENGINE_METHOD(user_delete)

static void fill_user_grant_role(struct auth_call *a)
{
    a->auth.user = a->request.user_grant_role.user;
    a->auth.role = a->request.user_grant_role.role;
}

static const struct auth_kind user_grant_role = {
    .request = &pb_auth_user_grant_role_request_table,
    .call = ENGINE_AUTH_USER_GRANT_ROLE,
    .fill = fill_user_grant_role,
    .log_text = "granted a role to a user",
};
ENGINE_METHOD(user_grant_role)

static void fill_user_revoke_role(struct auth_call *a)
{
    a->auth.user = a->request.user_revoke_role.name;
    a->auth.role = a->request.user_revoke_role.role;
}

static const struct auth_kind user_revoke_role = {
    .request = &pb_auth_user_revoke_role_request_table,
    .call = ENGINE_AUTH_USER_REVOKE_ROLE,
    .fill = fill_user_revoke_role,
    .log_text = "revoked a role from a user",
};
ENGINE_METHOD(user_revoke_role)

/* -- Roles -- */

static void fill_role_add(struct auth_call *a)
{
    a->auth.role = a->request.role_add.name;
}

static const struct auth_kind role_add = {
    .request = &pb_auth_role_add_request_table,
    .call = ENGINE_AUTH_ROLE_ADD,
    .fill = fill_role_add,
    .log_text = "created a role",
};
ENGINE_METHOD(role_add)

static void fill_role_get(struct auth_call *a)
{
    a->auth.role = a->request.role_get.role;
}

static void reply_role_get(struct auth_call *a, struct pb_response_header *header)
{
    struct pb_auth_role_get_response response = {
        .header = header, .perm = a->auth.permissions, .perm_count = a->auth.permission_count};
    etcd_call_reply(a->base.call, &pb_auth_role_get_response_table, &response);
}

static const struct auth_kind role_get = {
    .request = &pb_auth_role_get_request_table,
    .call = ENGINE_AUTH_ROLE_GET,
    .fill = fill_role_get,
    .reply = reply_role_get,
};
ENGINE_METHOD(role_get)

static void reply_role_list(struct auth_call *a, struct pb_response_header *header)
{
    struct pb_auth_role_list_response response = {
        .header = header, .roles = a->auth.names, .roles_count = a->auth.name_count};
    etcd_call_reply(a->base.call, &pb_auth_role_list_response_table, &response);
}

static const struct auth_kind role_list = {
    .request = &pb_auth_role_list_request_table,
    .call = ENGINE_AUTH_ROLE_LIST,
    .reply = reply_role_list,
};
ENGINE_METHOD(role_list)

static void fill_role_delete(struct auth_call *a)
{
    a->auth.role = a->request.role_delete.role;
}

static const struct auth_kind role_delete = {
    .request = &pb_auth_role_delete_request_table,
    .call = ENGINE_AUTH_ROLE_DELETE,
    .fill = fill_role_delete,
    .log_text = "deleted a role",
};
ENGINE_METHOD(role_delete)

static void fill_role_grant(struct auth_call *a)
{
    a->auth.role = a->request.role_grant.name;
    a->auth.permission = a->request.role_grant.perm;
}

static const struct auth_kind role_grant = {
    .request = &pb_auth_role_grant_permission_request_table,
    .call = ENGINE_AUTH_ROLE_GRANT,
    .fill = fill_role_grant,
    .log_text = "granted/updated a permission to a role",
};
ENGINE_METHOD(role_grant)

static void fill_role_revoke(struct auth_call *a)
{
    a->auth.role = a->request.role_revoke.role;
    a->auth.key = a->request.role_revoke.key;
    a->auth.range_end = a->request.role_revoke.range_end;
}

static const struct auth_kind role_revoke = {
    .request = &pb_auth_role_revoke_permission_request_table,
    .call = ENGINE_AUTH_ROLE_REVOKE,
    .fill = fill_role_revoke,
    .log_text = "revoked a permission on range",
};
ENGINE_METHOD(role_revoke)

#define ROW(method, fn)                                                               \
    {                                                                                 \
        .path = PB_AUTH_##method##_PATH, .on_message = fn, .on_end = auth_call_on_end \
    }

static const struct grpc_method methods[] = {
    ROW(AUTH_ENABLE, enable_on_message),
    ROW(AUTH_DISABLE, disable_on_message),
    ROW(AUTH_STATUS, status_on_message),
    ROW(AUTHENTICATE, auth_authenticate_on_message),
    ROW(USER_ADD, auth_user_add_on_message),
    ROW(USER_GET, user_get_on_message),
    ROW(USER_LIST, user_list_on_message),
    ROW(USER_DELETE, user_delete_on_message),
    ROW(USER_CHANGE_PASSWORD, auth_user_change_password_on_message),
    ROW(USER_GRANT_ROLE, user_grant_role_on_message),
    ROW(USER_REVOKE_ROLE, user_revoke_role_on_message),
    ROW(ROLE_ADD, role_add_on_message),
    ROW(ROLE_GET, role_get_on_message),
    ROW(ROLE_LIST, role_list_on_message),
    ROW(ROLE_DELETE, role_delete_on_message),
    ROW(ROLE_GRANT_PERMISSION, role_grant_on_message),
    ROW(ROLE_REVOKE_PERMISSION, role_revoke_on_message),
};

enum status auth_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
