/*
 * The methods of the Auth service that need a password to be hashed: Authenticate, and those that
 * set one. Hashing takes tens of milliseconds, on a thread of its own and one at a time; who comes
 * when too many wait is sent away.
 *
 * Whether there is a user cannot be told from the time that the answer takes: for one that is not
 * there something else is hashed.
 */
#include "auth/token/issuer.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "codec/base64.h"
#include "etcd/service/auth_call.h"

enum {
    LOGIN_TRIES_MAX = 8, /* users and roles change while somebody logs in: once more */
    NAME_BYTES_SHOWN = 128,
};

/* -- The hasher -- */

static void job_done(struct desk_job *job)
{
    struct auth_call *a = CONTAINER_OF(job, struct auth_call, job);
    a->pending = false;
    if (a->ended)
        grpc_call_release(a->call);
    else
        a->hashed(a);
}

/* The status is of what was to be submitted. */
static void submitted(struct auth_call *a, enum status status)
{
    if (status == ST_OK)
        a->pending = true;
    else
        grpc_call_fail(a->call, status);
}

/* -- Setting one -- */

static void fail_hashing(struct auth_call *a)
{
    if (a->job.hasher.work.status == ST_INVALID &&
        a->job.hasher.password.len > AUTH_PASSWORD_BYTES_MAX)
        grpc_call_fail_text(a->call, GRPC_UNKNOWN,
                            SLICE_LITERAL("bcrypt: password length exceeds 72 bytes"));
    else if (a->job.hasher.work.status == ST_INVALID)
        grpc_call_fail_text(a->call, GRPC_INVALID_ARGUMENT,
                            SLICE_LITERAL("vigil: a password cannot have a NUL byte"));
    else
        grpc_call_fail(a->call, a->job.hasher.work.status);
}

static void password_made(struct auth_call *a)
{
    if (a->job.hasher.work.status != ST_OK) {
        fail_hashing(a);
        return;
    }
    a->auth.hash = slice_of(a->job.hasher.made, sizeof(a->job.hasher.made));
    auth_call_ask(a);
}

static void make_password(struct auth_call *a, struct slice password)
{
    a->hashed = password_made;
    a->job.done = job_done;
    submitted(a, desk_make(a->face, &a->job, grpc_call_peer(a->call), password));
}

static void fill_user_add(struct auth_call *a)
{
    const struct pb_auth_user_add_request *request = &a->request.user_add;
    a->auth.user = request->name;
    a->auth.no_password = request->options && request->options->no_password;
}

static const struct auth_kind user_add = {
    .request = &pb_auth_user_add_request_table,
    .call = ENGINE_AUTH_USER_ADD,
    .fill = fill_user_add,
    .told = "added a user",
};

/* As in etcd a hash that the client brings does not count here. */
void auth_user_add_on_message(struct grpc_call *call, void *face, struct slice message)
{
    struct auth_call *a = auth_call_new(call, face, message, &user_add);
    if (!a)
        return;
    if (a->auth.no_password)
        auth_call_ask(a);
    else
        make_password(a, a->request.user_add.password);
}

static void fill_change_password(struct auth_call *a)
{
    a->auth.user = a->request.user_change_password.name;
}

static const struct auth_kind change_password = {
    .request = &pb_auth_user_change_password_request_table,
    .call = ENGINE_AUTH_USER_CHANGE_PASSWORD,
    .fill = fill_change_password,
    .told = "changed a password of a user",
};

/* A hash that the client has made, in base64. False: the call was answered. */
static bool take_hash(struct auth_call *a, struct slice text)
{
    size_t len;
    uint8_t *bytes = arena_alloc(grpc_call_arena(a->call), text.len / 4 * 3 + 3);
    if (!bytes) {
        grpc_call_fail(a->call, ST_NOMEM);
        return false;
    }
    if (!base64_decode(text, bytes, &len)) {
        grpc_call_fail_text(a->call, GRPC_UNKNOWN,
                            SLICE_LITERAL("auth: authentication failed, password was given for no "
                                          "password user"));
        return false;
    }
    a->auth.hash = slice_of(bytes, len);
    return true;
}

void auth_user_change_password_on_message(struct grpc_call *call, void *face, struct slice message)
{
    struct auth_call *a = auth_call_new(call, face, message, &change_password);
    if (!a)
        return;
    const struct pb_auth_user_change_password_request *request = &a->request.user_change_password;
    if (request->password.len)
        make_password(a, request->password);
    else if (take_hash(a, request->hashed_password))
        auth_call_ask(a);
}

/* -- Logging in -- */

static void refuse_login(struct auth_call *a, enum status status)
{
    struct slice name = a->auth.user;
    name.len = size_min(name.len, NAME_BYTES_SHOWN);
    if (status != ST_AUTH_NOT_ENABLED)
        log_warn("invalid authentication was requested", LOG_SLICE("user", name),
                 LOG_STATUS(status));
    grpc_call_fail(a->call, status);
}

static uint64_t newest_revision(void *engine)
{
    return engine_auth_revision(engine);
}

static void send_token(struct auth_call *a, struct slice token)
{
    struct pb_response_header header;
    etcd_header_fill(a->face, etcd_header_now(a->face).revision, &header);
    struct pb_authenticate_response response = {.header = &header, .token = token};
    etcd_call_reply(a->call, &pb_authenticate_response_table, &response);
}

static void give_token(struct auth_call *a)
{
    struct engine_status shown;
    engine_status_get(a->face->shard, &shown);
    struct auth_login login = {
        .principal = {.user = a->auth.user, .revision = a->auth.auth_revision},
        .index = shown.applied_index,
        .now = {grpc_call_now(a->call), clock_real_ns(clock_system()) / NS_PER_S},
        .revision = newest_revision,
        .ctx = a->face->engine,
    };
    AUTO(buf_fini) struct buf token = {0};
    enum status status = auth_issuer_give(a->face->config->issuer, &login, &token);
    if (status == ST_OK)
        send_token(a, buf_slice(&token));
    else if (status == ST_AUTH_OLD_REVISION && ++a->tries < LOGIN_TRIES_MAX)
        auth_call_ask(a); /* with another password, maybe */
    else if (status == ST_UNIMPLEMENTED)
        grpc_call_fail_text(a->call, GRPC_UNKNOWN,
                            SLICE_LITERAL("auth: token signing attempted with verify-only key"));
    else
        grpc_call_fail(a->call, status);
}

static void password_checked(struct auth_call *a)
{
    enum status status = a->job.hasher.work.status;
    if (status == ST_OK && a->nobody)
        status = ST_AUTH_FAILED;
    if (status == ST_OK)
        give_token(a);
    else
        refuse_login(a, status);
}

static void check_password(struct auth_call *a, struct slice hash)
{
    a->hashed = password_checked;
    a->job.done = job_done;
    submitted(a, desk_check(a->face, &a->job, grpc_call_peer(a->call),
                            a->request.authenticate.password, hash));
}

static void login_done(struct engine_op *op)
{
    struct auth_call *a = CONTAINER_OF(op, struct auth_call, auth.op);
    a->pending = false;
    a->face->under_way--;
    a->nobody = op->status == ST_AUTH_FAILED;
    if (a->ended)
        grpc_call_release(a->call);
    else if (op->status == ST_OK)
        check_password(a, a->auth.password_hash);
    else if (a->nobody)
        check_password(a, desk_hash_of_nobody(a->face, grpc_call_arena(a->call)));
    else
        refuse_login(a, op->status);
}

static void fill_authenticate(struct auth_call *a)
{
    a->auth.user = a->request.authenticate.name;
    a->auth.op.done = login_done;
}

static const struct auth_kind authenticate = {
    .request = &pb_authenticate_request_table,
    .call = ENGINE_AUTH_PASSWORD,
    .fill = fill_authenticate,
};

void auth_authenticate_on_message(struct grpc_call *call, void *face, struct slice message)
{
    struct auth_call *a = auth_call_new(call, face, message, &authenticate);
    if (a)
        auth_call_ask(a);
}
