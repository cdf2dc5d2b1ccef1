/*
 * Users, roles and their permissions. Most calls need the role root once authentication is enabled.
 *
 * To enable authentication, create the user root with the role root first:
 *
 *     finish(vigil_user_add(client, "root", "secret"));
 *     finish(vigil_user_grant_role(client, "root", "root"));
 *     finish(vigil_auth_enable(client));
 *
 * Errors: VIGIL_ERROR_PERMISSION_DENIED, VIGIL_ERROR_USER_NOT_FOUND, VIGIL_ERROR_ROLE_NOT_FOUND,
 * VIGIL_ERROR_USER_EXISTS, VIGIL_ERROR_ROLE_EXISTS, and those of every call.
 */
#ifndef VIGIL_AUTH_H
#define VIGIL_AUTH_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a permission allows. */
enum vigil_permission_type {
    VIGIL_PERMISSION_READ,
    VIGIL_PERMISSION_WRITE,
    VIGIL_PERMISSION_READ_WRITE
};

/* A permission of a role for a range of keys. */
typedef struct vigil_permission {
    int32_t type; /* enum vigil_permission_type */
    vigil_bytes key;
    vigil_bytes range_end; /* as in vigil_range_request */
} vigil_permission;

/* Whether authentication is enabled. */
typedef struct vigil_auth_status_response {
    const vigil_header *header;
    uint8_t enabled;
    uint64_t auth_revision; /* grows with every change of users and roles */
} vigil_auth_status_response;

/* The roles of a user, all users, or all roles. */
typedef struct vigil_names_response {
    const vigil_header *header;
    const vigil_bytes *names;
    size_t name_count;
} vigil_names_response;

/* The permissions of a role. */
typedef struct vigil_role_response {
    const vigil_header *header;
    const vigil_permission *permissions;
    size_t permission_count;
} vigil_role_response;

/* Enables authentication: from now on every call needs a user. */
VIGIL_API vigil_call *vigil_auth_enable(vigil_client *client);
/* Disables authentication. Users and roles are kept. */
VIGIL_API vigil_call *vigil_auth_disable(vigil_client *client);
/* Asks whether authentication is enabled. */
VIGIL_API vigil_call *vigil_auth_status(vigil_client *client);
/* The answer to vigil_auth_status. */
VIGIL_API const vigil_auth_status_response *vigil_auth_status_result(const vigil_call *call);

/* Creates a user without roles. If password is NULL, the user can only sign in with a certificate.
 */
VIGIL_API vigil_call *vigil_user_add(vigil_client *client, const char *name, const char *password);
/* Deletes a user. */
VIGIL_API vigil_call *vigil_user_delete(vigil_client *client, const char *name);
/* Gives a user another password. */
VIGIL_API vigil_call *vigil_user_change_password(vigil_client *client, const char *name,
                                                 const char *password);
/* Gives a user a role. */
VIGIL_API vigil_call *vigil_user_grant_role(vigil_client *client, const char *name,
                                            const char *role);
/* Takes a role from a user. */
VIGIL_API vigil_call *vigil_user_revoke_role(vigil_client *client, const char *name,
                                             const char *role);
/* Lists the roles of a user. */
VIGIL_API vigil_call *vigil_user_get(vigil_client *client, const char *name);
/* Lists all users. */
VIGIL_API vigil_call *vigil_user_list(vigil_client *client);

/* Creates a role without permissions. */
VIGIL_API vigil_call *vigil_role_add(vigil_client *client, const char *name);
/* Deletes a role, also from the users that have it. */
VIGIL_API vigil_call *vigil_role_delete(vigil_client *client, const char *name);
/* Lists all roles. */
VIGIL_API vigil_call *vigil_role_list(vigil_client *client);
/* Lists the permissions of a role. The client's prefix is not removed from their keys. */
VIGIL_API vigil_call *vigil_role_get(vigil_client *client, const char *name);
/* Gives a role a permission. The client's prefix is not added to its keys. */
VIGIL_API vigil_call *vigil_role_grant(vigil_client *client, const char *name,
                                       const vigil_permission *permission);
/* Takes from a role its permission for exactly this range. The client's prefix is not added. */
VIGIL_API vigil_call *vigil_role_revoke(vigil_client *client, const char *name, vigil_bytes key,
                                        vigil_bytes range_end);

/* The answer to vigil_user_get, vigil_user_list and vigil_role_list. */
VIGIL_API const vigil_names_response *vigil_names_result(const vigil_call *call);
/* The answer to vigil_role_get. */
VIGIL_API const vigil_role_response *vigil_role_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
