/* Users, roles and permissions as calls. */
#include "client/api/methods.h"
#include "client/driver/bytes.h"
#include "codec/pb/auth.pb.h"

#include <vigil/auth.h>

static struct slice from_text(const char *text)
{
    return text ? slice_from_text(text) : SLICE_EMPTY;
}

vigil_call *vigil_auth_enable(vigil_client *client)
{
    struct pb_auth_enable_request message = {0};
    return client_request(client, METHOD_AUTH_ENABLE, &message);
}

vigil_call *vigil_auth_disable(vigil_client *client)
{
    struct pb_auth_disable_request message = {0};
    return client_request(client, METHOD_AUTH_DISABLE, &message);
}

vigil_call *vigil_auth_status(vigil_client *client)
{
    struct pb_auth_status_request message = {0};
    return client_request(client, METHOD_AUTH_STATUS, &message);
}

const vigil_auth_status_response *vigil_auth_status_result(const vigil_call *call)
{
    return client_result(call, METHOD_AUTH_STATUS);
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
    return client_request(client, METHOD_USER_ADD, &message);
}

vigil_call *vigil_user_delete(vigil_client *client, const char *name)
{
    struct pb_auth_user_delete_request message = {.name = from_text(name)};
    return client_request(client, METHOD_USER_DELETE, &message);
}

vigil_call *vigil_user_change_password(vigil_client *client, const char *name, const char *password)
{
    struct pb_auth_user_change_password_request message = {.name = from_text(name),
                                                           .password = from_text(password)};
    return client_request(client, METHOD_USER_CHANGE_PASSWORD, &message);
}

vigil_call *vigil_user_grant_role(vigil_client *client, const char *name, const char *role)
{
    struct pb_auth_user_grant_role_request message = {.user = from_text(name),
                                                      .role = from_text(role)};
    return client_request(client, METHOD_USER_GRANT_ROLE, &message);
}

vigil_call *vigil_user_revoke_role(vigil_client *client, const char *name, const char *role)
{
    struct pb_auth_user_revoke_role_request message = {.name = from_text(name),
                                                       .role = from_text(role)};
    return client_request(client, METHOD_USER_REVOKE_ROLE, &message);
}

vigil_call *vigil_user_get(vigil_client *client, const char *name)
{
    struct pb_auth_user_get_request message = {.name = from_text(name)};
    return client_request(client, METHOD_USER_GET, &message);
}

vigil_call *vigil_user_list(vigil_client *client)
{
    struct pb_auth_user_list_request message = {0};
    return client_request(client, METHOD_USER_LIST, &message);
}

/* -- Roles -- */

vigil_call *vigil_role_add(vigil_client *client, const char *name)
{
    struct pb_auth_role_add_request message = {.name = from_text(name)};
    return client_request(client, METHOD_ROLE_ADD, &message);
}

vigil_call *vigil_role_delete(vigil_client *client, const char *name)
{
    struct pb_auth_role_delete_request message = {.role = from_text(name)};
    return client_request(client, METHOD_ROLE_DELETE, &message);
}

vigil_call *vigil_role_get(vigil_client *client, const char *name)
{
    struct pb_auth_role_get_request message = {.role = from_text(name)};
    return client_request(client, METHOD_ROLE_GET, &message);
}

vigil_call *vigil_role_list(vigil_client *client)
{
    struct pb_auth_role_list_request message = {0};
    return client_request(client, METHOD_ROLE_LIST, &message);
}

vigil_call *vigil_role_grant(vigil_client *client, const char *name,
                             const vigil_permission *permission)
{
    struct pb_permission granted = {0};
    if (permission)
        granted = (struct pb_permission){
            .perm_type = permission->type,
            .key = slice_of_bytes(permission->key),
            .range_end = slice_of_bytes(permission->range_end),
        };
    struct pb_auth_role_grant_permission_request message = {
        .name = from_text(name),
        .perm = &granted,
    };
    return client_request(client, METHOD_ROLE_GRANT_PERMISSION, &message);
}

vigil_call *vigil_role_revoke(vigil_client *client, const char *name, vigil_bytes key,
                              vigil_bytes range_end)
{
    struct pb_auth_role_revoke_permission_request message = {.role = from_text(name),
                                                             .key = slice_of_bytes(key),
                                                             .range_end =
                                                                 slice_of_bytes(range_end)};
    return client_request(client, METHOD_ROLE_REVOKE_PERMISSION, &message);
}

/* -- Results -- */

const vigil_names_response *vigil_names_result(const vigil_call *call)
{
    static const enum client_method_id methods[] = {METHOD_USER_GET, METHOD_USER_LIST,
                                                    METHOD_ROLE_LIST};
    const void *response = NULL;
    for (size_t i = 0; i < COUNT_OF(methods) && !response; i++)
        response = client_result(call, methods[i]);
    return response;
}

const vigil_role_response *vigil_role_result(const vigil_call *call)
{
    return client_result(call, METHOD_ROLE_GET);
}
