/*
 * One call of the Auth service. In the call's arena; the connection's thread.
 *
 *     (hashing) ──► asking ──► answered             a password that is set is hashed before
 *     asking ──► hashing ──► answered               Authenticate: what is it held against, is it
 * that
 *
 * The engine decides on users and roles (engine/auth.h); passwords are hashed on a thread of their
 * own (engine/hasher.h), and what tokens a change ends is ended here before it is answered.
 */
#ifndef VIGIL_ETCD_SERVICE_AUTH_CALL_H
#define VIGIL_ETCD_SERVICE_AUTH_CALL_H

#include "codec/pb/rpc.pb.h"
#include "engine/auth.h"
#include "etcd/service.h"
#include "etcd/service/password_queue.h"

struct auth_call;

/* What a method asks, and how it answers. */
struct auth_kind {
    const struct pb_message *request;
    enum engine_auth_call call;
    /* From the request to the question. */
    void (*fill)(struct auth_call *a);
    /* Without one: the header alone. */
    void (*reply)(struct auth_call *a, struct pb_response_header *header);
    const char *told; /* to the log when it was done; NULL: nothing has changed */
};

struct auth_call {
    struct engine_auth auth; /* first */
    struct desk_job job;
    struct grpc_call *call;
    struct etcd_face *face;
    const struct auth_kind *kind;
    void (*hashed)(struct auth_call *a); /* what comes after the hasher */
    bool pending;                        /* the engine or the hasher has it */
    bool ended;                          /* the peer is gone; held until they are done */
    bool nobody;                         /* Authenticate: there is no such user */
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

/* Decodes and fills it; NULL: the call was answered with an error. */
struct auth_call *auth_call_new(struct grpc_call *call, struct etcd_face *face,
                                struct slice message, const struct auth_kind *kind);
/* Asks the engine. */
void auth_call_ask(struct auth_call *a);
void auth_call_on_end(struct grpc_call *call, void *face);

/* The rows for Auth.Authenticate, Auth.UserAdd and Auth.UserChangePassword. */
void auth_authenticate_on_message(struct grpc_call *call, void *face, struct slice message);
void auth_user_add_on_message(struct grpc_call *call, void *face, struct slice message);
void auth_user_change_password_on_message(struct grpc_call *call, void *face, struct slice message);

#endif
