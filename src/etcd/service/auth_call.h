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

/* A method of the service: a row of auth_service.c. */
struct auth_kind {
    const struct pb_message *request;
    enum engine_auth_call call;
    /* The members of the request with these arguments, as AUTH_MEMBER says it; 0: it has none. */
    size_t user, role, key, range_end;
    void (*start)(struct auth_call *a); /* NULL: auth_call_start */
    const char *log_text;               /* logged after success; NULL: the method changes nothing */
};
#define AUTH_MEMBER(message, member) (1 + offsetof(struct pb_auth_##message##_request, member))

struct auth_call {
    struct engine_auth auth; /* first */
    struct password_job job;
    struct service_call base; /* pending: the engine or the hasher works on it */
    const struct auth_kind *kind;
    void (*hashed)(struct auth_call *a); /* the next step after the hasher */
    bool unknown_user;                   /* Authenticate: there is no such user */
    unsigned tries;                      /* Authenticate */
    union {
        struct pb_auth_enable_request enable; /* empty, as are those that disable and list */
        struct pb_auth_user_add_request user_add;
        struct pb_auth_user_get_request user_get;
        struct pb_auth_user_delete_request user_delete;
        struct pb_auth_user_change_password_request user_change_password;
        struct pb_auth_user_grant_role_request user_grant_role;
        struct pb_auth_user_revoke_role_request user_revoke_role;
        struct pb_auth_role_add_request role_add;
        struct pb_auth_role_get_request role_get;
        struct pb_auth_role_delete_request role_delete;
        struct pb_auth_role_grant_permission_request role_grant;
        struct pb_auth_role_revoke_permission_request role_revoke;
        struct pb_authenticate_request authenticate;
    } request;
};

/* Starts the operation of the engine. */
void auth_call_start(struct auth_call *a);

/* The methods that hash a password. */
void auth_start_login(struct auth_call *a);
void auth_start_user_add(struct auth_call *a);
void auth_start_change_password(struct auth_call *a);

#endif
