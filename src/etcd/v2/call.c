#include "etcd/v2/call.h"

#include "codec/json/writer.h"
#include "engine/engine.h"
#include "etcd/service/password_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Answers -- */

static unsigned http_status_of(enum v2_code code)
{
    switch (code) {
    case V2_KEY_NOT_FOUND:
        return 404;
    case V2_NOT_FILE:
    case V2_DIR_NOT_EMPTY:
        return 403;
    case V2_TEST_FAILED:
    case V2_NODE_EXIST:
        return 412;
    case V2_UNAUTHORIZED:
        return 401;
    case V2_RAFT_INTERNAL:
        return 500;
    default:
        return 400;
    }
}

static const char *message_of(enum v2_code code)
{
    switch (code) {
    case V2_KEY_NOT_FOUND:
        return "Key not found";
    case V2_TEST_FAILED:
        return "Compare failed";
    case V2_NOT_FILE:
        return "Not a file";
    case V2_NOT_DIR:
        return "Not a directory";
    case V2_NODE_EXIST:
        return "Key already exists";
    case V2_ROOT_READ_ONLY:
        return "Root is read only";
    case V2_DIR_NOT_EMPTY:
        return "Directory not empty";
    case V2_UNAUTHORIZED:
        return "The request requires user authentication";
    case V2_PREV_VALUE_REQUIRED:
        return "PrevValue is Required in POST form";
    case V2_TTL_NAN:
        return "The given TTL in POST form is not a number";
    case V2_INDEX_NAN:
        return "The given index in POST form is not a number";
    case V2_INVALID_FIELD:
        return "Invalid field";
    case V2_INVALID_FORM:
        return "Invalid POST form";
    case V2_REFRESH_VALUE:
        return "Value provided on refresh";
    case V2_REFRESH_TTL_REQUIRED:
        return "A TTL must be provided on refresh";
    case V2_RAFT_INTERNAL:
        return "Raft Internal Error";
    case V2_EVENT_INDEX_CLEARED:
        return "The event in requested index is outdated and cleared";
    }
    return "";
}

static enum status add_number(struct http_exchange *x, const char *name, uint64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIu64, number);
    return http_add_field(x, slice_from_text(name), slice_of(text, (size_t)n));
}

bool v2_add_cluster_id(struct http_exchange *x, const struct etcd_api *api)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIx64, api->identity.cluster_id);
    if (http_add_field(x, SLICE_LITERAL("X-Etcd-Cluster-Id"), slice_of(text, (size_t)n)) == ST_OK)
        return true;
    http_abort(x);
    return false;
}

static enum status add_fields(struct v2_call *call, int64_t index)
{
    struct engine_status status;
    engine_status_get(call->api->shard, &status);
    TRY(add_number(call->exchange, "X-Etcd-Index", (uint64_t)index));
    TRY(add_number(call->exchange, "X-Raft-Index", status.raft_index));
    return add_number(call->exchange, "X-Raft-Term", call->api->identity.raft_term);
}

bool v2_add_index(struct v2_call *call, int64_t index)
{
    if (add_fields(call, index) == ST_OK)
        return true;
    http_abort(call->exchange);
    return false;
}

static enum status write_error(struct buf *to, enum v2_code code, struct slice cause, int64_t index)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_i64(&w, "errorCode", code);
    json_member_text(&w, "message", message_of(code));
    if (cause.len) {
        json_member_string(&w, "cause", cause);
    }
    json_member_i64(&w, "index", index);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    return buf_append_text(to, "\n");
}

void v2_fail(struct v2_call *call, enum v2_code code, struct slice cause, int64_t index)
{
    AUTO(buf_fini) struct buf body = {0};
    if (write_error(&body, code, cause, index) == ST_OK &&
        add_number(call->exchange, "X-Etcd-Index", (uint64_t)index) == ST_OK)
        http_respond(call->exchange, http_status_of(code), SLICE_LITERAL("application/json"),
                     buf_slice(&body));
    else
        http_abort(call->exchange);
}

void v2_fail_key(struct v2_call *call, enum v2_code code, struct slice key, int64_t index)
{
    AUTO(buf_fini) struct buf path = {0};
    if (v2_key_path(key, &path) == ST_OK)
        v2_fail(call, code, buf_slice(&path), index);
    else
        http_abort(call->exchange);
}

void v2_fail_status(struct v2_call *call, enum status status)
{
    if (status == ST_NOMEM) {
        http_abort(call->exchange);
        return;
    }
    v2_fail(call, V2_RAFT_INTERNAL, slice_from_text(status_text(status)), 0);
}

void v2_reply_json(struct http_exchange *x, const struct etcd_api *api, unsigned status,
                   struct slice body)
{
    if (v2_add_cluster_id(x, api))
        http_respond(x, status, SLICE_LITERAL("application/json"), body);
}

void v2_reply_message(struct http_exchange *x, const struct etcd_api *api, unsigned status,
                      const char *message)
{
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_member_text(&w, "message", message);
    json_end_object(&w);
    if (json_writer_finish(&w) == ST_OK)
        v2_reply_json(x, api, status, buf_slice(&body));
    else
        http_abort(x);
}

bool v2_allows(struct http_exchange *x, const struct http_request *request, const char *methods)
{
    for (const char *at = methods; *at;) {
        size_t len = strcspn(at, ",");
        if (slice_equal(request->method, slice_of(at, len)))
            return true;
        at += len + (at[len] == ',');
    }
    if (http_add_field(x, SLICE_LITERAL("Allow"), slice_from_text(methods)) == ST_OK)
        http_reply_text(x, 405, SLICE_LITERAL("Method Not Allowed\n"));
    else
        http_abort(x);
    return false;
}

bool v2_is_blocked(const struct etcd_api *api)
{
    return auth_rights_enabled(engine_auth_rights(api->shard));
}

bool v2_admits(struct http_exchange *x, const struct etcd_api *api,
               const struct http_request *request, const char *methods)
{
    if (!v2_allows(x, request, methods))
        return false;
    if (!v2_is_blocked(api))
        return true;
    v2_reply_message(x, api, 401, "Insufficient credentials");
    return false;
}

/* -- Calls -- */

#define TO(state) (1u << V2_CALL_##state)

/* Drawn in call.h. */
static const unsigned call_moves[] = {
    [V2_CALL_READY] = TO(PENDING) | TO(OVER),
    [V2_CALL_PENDING] = TO(READY) | TO(ABANDONED),
    [V2_CALL_ABANDONED] = TO(OVER),
    [V2_CALL_OVER] = 0,
};

static void call_move(struct v2_call *call, enum v2_call_state next)
{
    assert(call_moves[call->state] & (1u << next));
    call->state = next;
}

static void call_free(struct v2_call *call)
{
    call_move(call, V2_CALL_OVER);
    call->fini(call);
    arena_fini(&call->arena);
    free(call);
}

void v2_call_start(struct v2_call *call)
{
    call_move(call, V2_CALL_PENDING);
    call->api->under_way++;
}

bool v2_call_done(struct v2_call *call)
{
    call->api->under_way--;
    if (v2_call_is_abandoned(call)) {
        call_free(call);
        return false;
    }
    call_move(call, V2_CALL_READY);
    return true;
}

void v2_call_on_end(struct http_exchange *x, void *service)
{
    (void)service;
    struct v2_call *call = http_exchange_user(x);
    if (!call)
        return;
    if (call->state == V2_CALL_READY) {
        call_free(call);
        return;
    }
    call_move(call, V2_CALL_ABANDONED);
    if (call->job)
        password_job_cancel(call->job);
}
