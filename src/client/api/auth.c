/* Users, roles and permissions as calls. */
#include "client/call/call.h"
#include "codec/pb/auth.pb.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/auth.h>

static const struct client_method enable_method = {
    .path = "/etcdserverpb.Auth/AuthEnable",
    .response = &pb_auth_enable_response_table,
};
static const struct client_method disable_method = {
    .path = "/etcdserverpb.Auth/AuthDisable",
    .response = &pb_auth_disable_response_table,
};
static const struct client_method status_method = {
    .path = "/etcdserverpb.Auth/AuthStatus",
    .response = &pb_auth_status_response_table,
    .reads = true,
};
static const struct client_method user_add_method = {
    .path = "/etcdserverpb.Auth/UserAdd",
    .response = &pb_auth_user_add_response_table,
};
static const struct client_method user_delete_method = {
    .path = "/etcdserverpb.Auth/UserDelete",
    .response = &pb_auth_user_delete_response_table,
};
static const struct client_method user_password_method = {
    .path = "/etcdserverpb.Auth/UserChangePassword",
    .response = &pb_auth_user_change_password_response_table,
};
static const struct client_method user_grant_method = {
    .path = "/etcdserverpb.Auth/UserGrantRole",
    .response = &pb_auth_user_grant_role_response_table,
};
static const struct client_method user_revoke_method = {
    .path = "/etcdserverpb.Auth/UserRevokeRole",
    .response = &pb_auth_user_revoke_role_response_table,
};
static const struct client_method user_get_method = {
    .path = "/etcdserverpb.Auth/UserGet",
    .response = &pb_auth_user_get_response_table,
    .reads = true,
};
static const struct client_method user_list_method = {
    .path = "/etcdserverpb.Auth/UserList",
    .response = &pb_auth_user_list_response_table,
    .reads = true,
};
static const struct client_method role_add_method = {
    .path = "/etcdserverpb.Auth/RoleAdd",
    .response = &pb_auth_role_add_response_table,
};
static const struct client_method role_delete_method = {
    .path = "/etcdserverpb.Auth/RoleDelete",
    .response = &pb_auth_role_delete_response_table,
};
static const struct client_method role_get_method = {
    .path = "/etcdserverpb.Auth/RoleGet",
    .response = &pb_auth_role_get_response_table,
    .reads = true,
};
static const struct client_method role_list_method = {
    .path = "/etcdserverpb.Auth/RoleList",
    .response = &pb_auth_role_list_response_table,
    .reads = true,
};
static const struct client_method role_grant_method = {
    .path = "/etcdserverpb.Auth/RoleGrantPermission",
    .response = &pb_auth_role_grant_permission_response_table,
};
static const struct client_method role_revoke_method = {
    .path = "/etcdserverpb.Auth/RoleRevokePermission",
    .response = &pb_auth_role_revoke_permission_response_table,
};

static struct slice from_text(const char *text)
{
    return text ? slice_from_text(text) : SLICE_EMPTY;
}

static struct slice from_bytes(vigil_bytes bytes)
{
    return slice_of(bytes.data, bytes.size);
}

vigil_call *vigil_auth_enable(vigil_client *client)
{
    struct pb_auth_enable_request message = {0};
    return client_call_with(client_call_new(client, &enable_method), &pb_auth_enable_request_table,
                            &message);
}

vigil_call *vigil_auth_disable(vigil_client *client)
{
    struct pb_auth_disable_request message = {0};
    return client_call_with(client_call_new(client, &disable_method),
                            &pb_auth_disable_request_table, &message);
}

vigil_call *vigil_auth_status(vigil_client *client)
{
    struct pb_auth_status_request message = {0};
    return client_call_with(client_call_new(client, &status_method), &pb_auth_status_request_table,
                            &message);
}

const vigil_auth_status_response *vigil_auth_status_result(const vigil_call *call)
{
    return client_call_response(call, &status_method);
}

/* -- Users -- */

vigil_call *vigil_user_add(vigil_client *client, const char *name, const char *password)
{
    struct pb_user_add_options options = {.no_password = password == NULL};
    struct pb_auth_user_add_request message = {
        .name = from_text(name),
        .password = from_text(password),
        .options = &options,
    };
    return client_call_with(client_call_new(client, &user_add_method),
                            &pb_auth_user_add_request_table, &message);
}

vigil_call *vigil_user_delete(vigil_client *client, const char *name)
{
    struct pb_auth_user_delete_request message = {.name = from_text(name)};
    return client_call_with(client_call_new(client, &user_delete_method),
                            &pb_auth_user_delete_request_table, &message);
}

vigil_call *vigil_user_change_password(vigil_client *client, const char *name, const char *password)
{
    struct pb_auth_user_change_password_request message = {.name = from_text(name),
                                                           .password = from_text(password)};
    return client_call_with(client_call_new(client, &user_password_method),
                            &pb_auth_user_change_password_request_table, &message);
}

vigil_call *vigil_user_grant_role(vigil_client *client, const char *name, const char *role)
{
    struct pb_auth_user_grant_role_request message = {.user = from_text(name),
                                                      .role = from_text(role)};
    return client_call_with(client_call_new(client, &user_grant_method),
                            &pb_auth_user_grant_role_request_table, &message);
}

vigil_call *vigil_user_revoke_role(vigil_client *client, const char *name, const char *role)
{
    struct pb_auth_user_revoke_role_request message = {.name = from_text(name),
                                                       .role = from_text(role)};
    return client_call_with(client_call_new(client, &user_revoke_method),
                            &pb_auth_user_revoke_role_request_table, &message);
}

vigil_call *vigil_user_get(vigil_client *client, const char *name)
{
    struct pb_auth_user_get_request message = {.name = from_text(name)};
    return client_call_with(client_call_new(client, &user_get_method),
                            &pb_auth_user_get_request_table, &message);
}

vigil_call *vigil_user_list(vigil_client *client)
{
    struct pb_auth_user_list_request message = {0};
    return client_call_with(client_call_new(client, &user_list_method),
                            &pb_auth_user_list_request_table, &message);
}

/* -- Roles -- */

vigil_call *vigil_role_add(vigil_client *client, const char *name)
{
    struct pb_auth_role_add_request message = {.name = from_text(name)};
    return client_call_with(client_call_new(client, &role_add_method),
                            &pb_auth_role_add_request_table, &message);
}

vigil_call *vigil_role_delete(vigil_client *client, const char *name)
{
    struct pb_auth_role_delete_request message = {.role = from_text(name)};
    return client_call_with(client_call_new(client, &role_delete_method),
                            &pb_auth_role_delete_request_table, &message);
}

vigil_call *vigil_role_get(vigil_client *client, const char *name)
{
    struct pb_auth_role_get_request message = {.role = from_text(name)};
    return client_call_with(client_call_new(client, &role_get_method),
                            &pb_auth_role_get_request_table, &message);
}

vigil_call *vigil_role_list(vigil_client *client)
{
    struct pb_auth_role_list_request message = {0};
    return client_call_with(client_call_new(client, &role_list_method),
                            &pb_auth_role_list_request_table, &message);
}

vigil_call *vigil_role_grant(vigil_client *client, const char *name,
                             const vigil_permission *permission)
{
    struct pb_permission granted = {
        .perm_type = permission->type,
        .key = from_bytes(permission->key),
        .range_end = from_bytes(permission->range_end),
    };
    struct pb_auth_role_grant_permission_request message = {
        .name = from_text(name),
        .perm = &granted,
    };
    return client_call_with(client_call_new(client, &role_grant_method),
                            &pb_auth_role_grant_permission_request_table, &message);
}

vigil_call *vigil_role_revoke(vigil_client *client, const char *name, vigil_bytes key,
                              vigil_bytes range_end)
{
    struct pb_auth_role_revoke_permission_request message = {
        .role = from_text(name), .key = from_bytes(key), .range_end = from_bytes(range_end)};
    return client_call_with(client_call_new(client, &role_revoke_method),
                            &pb_auth_role_revoke_permission_request_table, &message);
}

/* -- Results -- */

const vigil_names_response *vigil_names_result(const vigil_call *call)
{
    static const struct client_method *const methods[] = {&user_get_method, &user_list_method,
                                                          &role_list_method};
    const void *response = NULL;
    for (size_t i = 0; i < COUNT_OF(methods) && !response; i++)
        response = client_call_response(call, methods[i]);
    return response;
}

const vigil_role_response *vigil_role_result(const vigil_call *call)
{
    return client_call_response(call, &role_get_method);
}
