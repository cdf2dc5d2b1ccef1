/*
 * The methods of the Auth service that hash a password: Authenticate, and those that set one.
 * Hashing takes tens of milliseconds, one at a time on a separate thread; when too many calls wait,
 * further ones are refused.
 *
 * The time of an answer does not reveal whether a user exists: for an unknown user, the password is
 * compared with a dummy hash.
 */
#include "auth/token/issuer.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "codec/base64.h"
#include "etcd/service/auth_call.h"

enum {
    LOGIN_TRIES_MAX = 8, /* attempts if users or roles change during a login */
    NAME_BYTES_SHOWN = 128,
};

/* -- The hasher -- */

static void job_done(struct password_job *job)
{
    struct auth_call *a = CONTAINER_OF(job, struct auth_call, job);
    if (!service_call_answered(&a->base))
        service_call_release(&a->base);
    else
        a->hashed(a);
}

/* status: the result of submitting the job. */
static void submitted(struct auth_call *a, enum status status)
{
    if (status == ST_OK)
        service_call_begin(&a->base);
    else
        grpc_call_fail(a->base.call, status);
}

/* -- Setting a password -- */

static void fail_hashing(struct auth_call *a)
{
    if (a->job.hasher.work.status == ST_INVALID &&
        a->job.hasher.password.len > AUTH_PASSWORD_BYTES_MAX)
        grpc_call_fail_text(a->base.call, GRPC_UNKNOWN,
                            SLICE_LITERAL("bcrypt: password length exceeds 72 bytes"));
    else if (a->job.hasher.work.status == ST_INVALID)
        grpc_call_fail_text(a->base.call, GRPC_INVALID_ARGUMENT,
                            SLICE_LITERAL("vigil: a password cannot have a NUL byte"));
    else
        grpc_call_fail(a->base.call, a->job.hasher.work.status);
}

static void password_made(struct auth_call *a)
{
    if (a->job.hasher.work.status != ST_OK) {
        fail_hashing(a);
        return;
    }
    a->auth.hash = slice_of(a->job.hasher.made, sizeof(a->job.hasher.made));
    auth_call_start(a);
}

static void make_password(struct auth_call *a, struct slice password)
{
    a->hashed = password_made;
    a->job.done = job_done;
    submitted(a, password_queue_hash(a->base.api->passwords, &a->job, grpc_call_peer(a->base.call),
                                     password));
}

/* As in etcd, a hash in the request is ignored. */
void auth_start_user_add(struct auth_call *a)
{
    const struct pb_auth_user_add_request *request = &a->request.user_add;
    a->auth.no_password = request->options && request->options->no_password;
    if (a->auth.no_password)
        auth_call_start(a);
    else
        make_password(a, request->password);
}

/* Uses the hash in the request, which is in base64. False: the call was answered with an error. */
static bool take_hash(struct auth_call *a, struct slice text)
{
    size_t len;
    uint8_t *bytes = arena_alloc(grpc_call_arena(a->base.call), text.len / 4 * 3 + 3);
    if (!bytes) {
        grpc_call_fail(a->base.call, ST_NOMEM);
        return false;
    }
    if (!base64_decode(text, bytes, &len)) {
        grpc_call_fail_text(a->base.call, GRPC_UNKNOWN,
                            SLICE_LITERAL("auth: authentication failed, password was given for no "
                                          "password user"));
        return false;
    }
    a->auth.hash = slice_of(bytes, len);
    return true;
}

void auth_start_change_password(struct auth_call *a)
{
    const struct pb_auth_user_change_password_request *request = &a->request.user_change_password;
    if (request->password.len)
        make_password(a, request->password);
    else if (take_hash(a, request->hashed_password))
        auth_call_start(a);
}

/* -- Logging in -- */

static void refuse_login(struct auth_call *a, enum status status)
{
    struct slice name = a->auth.user;
    name.len = size_min(name.len, NAME_BYTES_SHOWN);
    if (status != ST_AUTH_NOT_ENABLED)
        log_warn("invalid authentication was requested", LOG_SLICE("user", name),
                 LOG_STATUS(status));
    grpc_call_fail(a->base.call, status);
}

static uint64_t newest_revision(void *engine)
{
    return engine_auth_revision(engine);
}

static void send_token(struct auth_call *a, struct slice token)
{
    struct pb_response_header header;
    etcd_header_fill(a->base.api, etcd_header_now(a->base.api).revision, &header);
    struct pb_authenticate_response response = {.header = &header, .token = token};
    etcd_call_reply(a->base.call, &pb_authenticate_response_table, &response);
}

static void give_token(struct auth_call *a)
{
    struct engine_status shown;
    engine_status_get(a->base.api->shard, &shown);
    struct auth_login login = {
        .principal = {.user = a->auth.user, .revision = a->auth.auth_revision},
        .index = shown.applied_index,
        .now = {grpc_call_now(a->base.call), clock_real_ns(clock_system()) / NS_PER_S},
        .revision = newest_revision,
        .ctx = a->base.api->engine,
    };
    AUTO(buf_fini) struct buf token = {0};
    enum status status = auth_issuer_give(a->base.api->config->issuer, &login, &token);
    if (status == ST_OK)
        send_token(a, buf_slice(&token));
    else if (status == ST_AUTH_OLD_REVISION && ++a->tries < LOGIN_TRIES_MAX)
        auth_call_start(a); /* the password may have changed */
    else if (status == ST_UNIMPLEMENTED)
        grpc_call_fail_text(a->base.call, GRPC_UNKNOWN,
                            SLICE_LITERAL("auth: token signing attempted with verify-only key"));
    else
        grpc_call_fail(a->base.call, status);
}

static void password_checked(struct auth_call *a)
{
    enum status status = a->job.hasher.work.status;
    if (status == ST_OK && a->unknown_user)
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
    submitted(a,
              password_queue_verify(a->base.api->passwords, &a->job, grpc_call_peer(a->base.call),
                                    a->request.authenticate.password, hash));
}

static void login_done(struct engine_op *op)
{
    struct auth_call *a = CONTAINER_OF(op, struct auth_call, auth.op);
    a->unknown_user = op->status == ST_AUTH_FAILED;
    if (!service_call_answered(&a->base))
        service_call_release(&a->base);
    else if (op->status == ST_OK)
        check_password(a, a->auth.password_hash);
    else if (a->unknown_user)
        check_password(a, password_dummy_hash(a->base.api->config->bcrypt_cost,
                                              grpc_call_arena(a->base.call)));
    else
        refuse_login(a, op->status);
}

void auth_start_login(struct auth_call *a)
{
    a->auth.op.done = login_done;
    auth_call_start(a);
}
