/*
 * One call of the Auth service. Its state is in the call's arena, on the connection's thread.
 *
 *     (hash the password) ──► engine ──► answered       methods that change users or roles
 *     engine ──► verify the password ──► answered       Authenticate
 *
 * The engine decides about users and roles (engine/engine.h). Passwords are hashed on a separate
 * thread (password_queue.h). Tokens that a change makes invalid are revoked here before the change
 * is answered.
 */
#ifndef VIGIL_ETCD_SERVICE_AUTH_CALL_H
#define VIGIL_ETCD_SERVICE_AUTH_CALL_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/service/password_queue.h"
#include "etcd/service/service_call.h"

struct auth_call;

/* A method of the service. */
struct auth_kind {
    const struct pb_message *request;
    enum engine_auth_call call;
    /* Copies the arguments from the decoded request to a->auth. */
    void (*fill)(struct auth_call *a);
    /* Sends the response; NULL: a response with only a header is sent. */
    void (*reply)(struct auth_call *a, struct pb_response_header *header);
    const char *log_text; /* logged after success; NULL for methods that change nothing */
};

struct auth_call {
    struct engine_auth auth; /* first */
    struct password_job job;
    struct service_call base; /* pending: the engine or the hasher works on it */
    const struct auth_kind *kind;
    void (*hashed)(struct auth_call *a); /* the next step after the hasher */
    bool unknown_user;                   /* Authenticate: there is no such user */
    unsigned tries;                      /* Authenticate */
    union {
        struct pb_auth_user_add_request user_add;
        struct pb_auth_user_get_request user_get;
        struct pb_auth_user_list_request user_list;
        struct pb_auth_user_delete_request user_delete;
        struct pb_auth_user_change_password_request user_change_password;
        struct pb_auth_user_grant_role_request user_grant_role;
        struct pb_auth_user_revoke_role_request user_revoke_role;
        struct pb_auth_role_add_request role_add;
        struct pb_auth_role_get_request role_get;
        struct pb_auth_role_list_request role_list;
        struct pb_auth_role_delete_request role_delete;
        struct pb_auth_role_grant_permission_request role_grant;
        struct pb_auth_role_revoke_permission_request role_revoke;
        struct pb_auth_enable_request enable;
        struct pb_auth_disable_request disable;
        struct pb_authenticate_request authenticate;
    } request;
};

/* Decodes the request. NULL: the call was answered with an error. */
struct auth_call *auth_call_new(struct grpc_call *call, struct etcd_api *api, struct slice message,
                                const struct auth_kind *kind);
/* Starts the operation of the engine. */
void auth_call_start(struct auth_call *a);

/* The handlers of Auth.Authenticate, Auth.UserAdd and Auth.UserChangePassword. */
void auth_authenticate_on_message(struct grpc_call *call, void *api, struct slice message);
void auth_user_add_on_message(struct grpc_call *call, void *api, struct slice message);
void auth_user_change_password_on_message(struct grpc_call *call, void *api, struct slice message);

#endif
