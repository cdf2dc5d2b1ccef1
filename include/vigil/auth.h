/*
 * Users, roles and their permissions. Most calls need the role root once authentication is enabled.
 */
#ifndef VIGIL_AUTH_H
#define VIGIL_AUTH_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vigil_permission_type {
    VIGIL_PERMISSION_READ,
    VIGIL_PERMISSION_WRITE,
    VIGIL_PERMISSION_READ_WRITE
};

typedef struct vigil_permission {
    int32_t type; /* enum vigil_permission_type */
    vigil_bytes key;
    vigil_bytes range_end; /* as in vigil_range_request */
} vigil_permission;

typedef struct vigil_auth_status_response {
    const vigil_header *header;
    uint8_t enabled;
    uint64_t auth_revision;
} vigil_auth_status_response;

/* The roles of a user, all users, or all roles. */
typedef struct vigil_names_response {
    const vigil_header *header;
    const vigil_bytes *names;
    size_t name_count;
} vigil_names_response;

typedef struct vigil_role_response {
    const vigil_header *header;
    const vigil_permission *permissions;
    size_t permission_count;
} vigil_role_response;

VIGIL_API vigil_call *vigil_auth_enable(vigil_client *client);
VIGIL_API vigil_call *vigil_auth_disable(vigil_client *client);
VIGIL_API vigil_call *vigil_auth_status(vigil_client *client);
VIGIL_API const vigil_auth_status_response *vigil_auth_status_result(const vigil_call *call);

/* password NULL: the user can only sign in with a certificate. */
VIGIL_API vigil_call *vigil_user_add(vigil_client *client, const char *name, const char *password);
VIGIL_API vigil_call *vigil_user_delete(vigil_client *client, const char *name);
VIGIL_API vigil_call *vigil_user_change_password(vigil_client *client, const char *name,
                                                 const char *password);
VIGIL_API vigil_call *vigil_user_grant_role(vigil_client *client, const char *name,
                                            const char *role);
VIGIL_API vigil_call *vigil_user_revoke_role(vigil_client *client, const char *name,
                                             const char *role);
/* The roles of a user. */
VIGIL_API vigil_call *vigil_user_get(vigil_client *client, const char *name);
VIGIL_API vigil_call *vigil_user_list(vigil_client *client);

VIGIL_API vigil_call *vigil_role_add(vigil_client *client, const char *name);
VIGIL_API vigil_call *vigil_role_delete(vigil_client *client, const char *name);
VIGIL_API vigil_call *vigil_role_list(vigil_client *client);
/* The permissions of a role. The client's prefix is not added to their keys. */
VIGIL_API vigil_call *vigil_role_get(vigil_client *client, const char *name);
VIGIL_API vigil_call *vigil_role_grant(vigil_client *client, const char *name,
                                       const vigil_permission *permission);
VIGIL_API vigil_call *vigil_role_revoke(vigil_client *client, const char *name, vigil_bytes key,
                                        vigil_bytes range_end);

/* Of vigil_user_get, vigil_user_list and vigil_role_list. */
VIGIL_API const vigil_names_response *vigil_names_result(const vigil_call *call);
VIGIL_API const vigil_role_response *vigil_role_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
