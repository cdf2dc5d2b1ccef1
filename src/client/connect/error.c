#include "client/connect/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CODES(X)                     \
    X(VIGIL_OK)                      \
    X(VIGIL_ERROR_MEMORY)            \
    X(VIGIL_ERROR_ARGUMENT)          \
    X(VIGIL_ERROR_CANCELED)          \
    X(VIGIL_ERROR_TIMEOUT)           \
    X(VIGIL_ERROR_UNAVAILABLE)       \
    X(VIGIL_ERROR_TOO_LARGE)         \
    X(VIGIL_ERROR_PROTOCOL)          \
    X(VIGIL_ERROR_WOULD_BLOCK)       \
    X(VIGIL_ERROR_SYSTEM)            \
    X(VIGIL_ERROR_DECODE)            \
    X(VIGIL_ERROR_SERVER)            \
    X(VIGIL_ERROR_COMPACTED)         \
    X(VIGIL_ERROR_FUTURE_REVISION)   \
    X(VIGIL_ERROR_NO_SPACE)          \
    X(VIGIL_ERROR_LEASE_NOT_FOUND)   \
    X(VIGIL_ERROR_LEASE_EXISTS)      \
    X(VIGIL_ERROR_NO_LEADER)         \
    X(VIGIL_ERROR_PERMISSION_DENIED) \
    X(VIGIL_ERROR_UNAUTHENTICATED)   \
    X(VIGIL_ERROR_REQUEST_TOO_LARGE) \
    X(VIGIL_ERROR_TOO_MANY_REQUESTS) \
    X(VIGIL_ERROR_MEMBER_NOT_FOUND)  \
    X(VIGIL_ERROR_USER_NOT_FOUND)    \
    X(VIGIL_ERROR_ROLE_NOT_FOUND)    \
    X(VIGIL_ERROR_USER_EXISTS)       \
    X(VIGIL_ERROR_ROLE_EXISTS)       \
    X(VIGIL_ERROR_AUTH_NOT_ENABLED)  \
    X(VIGIL_ERROR_UNIMPLEMENTED)

const char *vigil_code_name(int code)
{
    switch (code) {
#define X(name) \
    case name:  \
        return #name;
        CODES(X)
#undef X
    default:
        return "unknown";
    }
}

static const struct {
    enum status status;
    enum vigil_code code;
} server_codes[] = {
    {ST_COMPACTED, VIGIL_ERROR_COMPACTED},
    {ST_FUTURE_REV, VIGIL_ERROR_FUTURE_REVISION},
    {ST_NO_SPACE, VIGIL_ERROR_NO_SPACE},
    {ST_LEASE_NOT_FOUND, VIGIL_ERROR_LEASE_NOT_FOUND},
    {ST_LEASE_EXIST, VIGIL_ERROR_LEASE_EXISTS},
    {ST_NO_LEADER, VIGIL_ERROR_NO_LEADER},
    {ST_PERMISSION_DENIED, VIGIL_ERROR_PERMISSION_DENIED},
    {ST_INVALID_AUTH_TOKEN, VIGIL_ERROR_UNAUTHENTICATED},
    {ST_AUTH_FAILED, VIGIL_ERROR_UNAUTHENTICATED},
    {ST_AUTH_OLD_REVISION, VIGIL_ERROR_UNAUTHENTICATED},
    {ST_USER_EMPTY, VIGIL_ERROR_UNAUTHENTICATED},
    {ST_REQUEST_TOO_LARGE, VIGIL_ERROR_REQUEST_TOO_LARGE},
    {ST_REQUEST_TOO_MANY_REQUESTS, VIGIL_ERROR_TOO_MANY_REQUESTS},
    {ST_MEMBER_NOT_FOUND, VIGIL_ERROR_MEMBER_NOT_FOUND},
    {ST_USER_NOT_FOUND, VIGIL_ERROR_USER_NOT_FOUND},
    {ST_ROLE_NOT_FOUND, VIGIL_ERROR_ROLE_NOT_FOUND},
    {ST_USER_ALREADY_EXIST, VIGIL_ERROR_USER_EXISTS},
    {ST_ROLE_ALREADY_EXIST, VIGIL_ERROR_ROLE_EXISTS},
    {ST_AUTH_NOT_ENABLED, VIGIL_ERROR_AUTH_NOT_ENABLED},
};

bool client_is_deadline(enum grpc_code code, struct slice text)
{
    return code == GRPC_DEADLINE_EXCEEDED ||
           (code == GRPC_UNKNOWN && slice_equal(text, SLICE_LITERAL("context deadline exceeded")));
}

static enum vigil_code code_of(enum grpc_code grpc, struct slice text)
{
    for (size_t i = 0; i < COUNT_OF(server_codes); i++)
        if (slice_equal(text, slice_from_text(status_text(server_codes[i].status))))
            return server_codes[i].code;
    if (client_is_deadline(grpc, text))
        return VIGIL_ERROR_TIMEOUT;
    switch (grpc) {
    case GRPC_CANCELLED:
        return VIGIL_ERROR_CANCELED;
    case GRPC_UNAVAILABLE:
        return VIGIL_ERROR_UNAVAILABLE;
    case GRPC_UNAUTHENTICATED:
        return VIGIL_ERROR_UNAUTHENTICATED;
    case GRPC_UNIMPLEMENTED:
        return VIGIL_ERROR_UNIMPLEMENTED;
    default:
        return VIGIL_ERROR_SERVER;
    }
}

enum status client_status_of(struct slice text)
{
    for (unsigned i = ST_OK + 1; i < ST_COUNT; i++)
        if (slice_equal(text, slice_from_text(status_text((enum status)i))))
            return (enum status)i;
    return ST_COUNT;
}

void client_error_set(vigil_error *error, enum vigil_code code, enum vigil_outcome outcome,
                      const char *format, ...)
{
    va_list args;
    *error = (vigil_error){.code = (int)code, .grpc_code = -1, .outcome = (int)outcome};
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
}

/* The server gave up waiting for a change that the cluster may still make or have made. */
static bool is_undecided(enum grpc_code code, struct slice text)
{
    static const enum status undecided[] = {
        ST_TIMEOUT,
        ST_TIMEOUT_DUE_TO_LEADER_FAIL,
        ST_TIMEOUT_DUE_TO_CONNECTION_LOST,
        ST_LEADER_CHANGED,
        ST_STOPPED,
        /* etcd applies the change that finds the quota exceeded, and answers with this error. */
        ST_NO_SPACE,
    };
    for (size_t i = 0; i < COUNT_OF(undecided); i++)
        if (slice_equal(text, slice_from_text(status_text(undecided[i]))))
            return true;
    /* These codes do not say at which point the call has failed, unless the text does: a passed
     * deadline, the failure of a server in between, or whatever etcd has no code for. */
    static const enum grpc_code vague[] = {
        GRPC_DEADLINE_EXCEEDED, GRPC_CANCELLED, GRPC_UNAVAILABLE, GRPC_UNKNOWN,
        GRPC_INTERNAL,          GRPC_ABORTED,   GRPC_DATA_LOSS,
    };
    bool is_vague = false;
    for (size_t i = 0; i < COUNT_OF(vague); i++)
        is_vague = is_vague || code == vague[i];
    return is_vague && (client_status_of(text) == ST_COUNT || code == GRPC_DEADLINE_EXCEEDED ||
                        code == GRPC_CANCELLED);
}

void client_error_from_server(vigil_error *error, enum grpc_code code, struct slice text)
{
    enum vigil_outcome outcome = is_undecided(code, text) ? VIGIL_UNKNOWN : VIGIL_REFUSED;
    if (text.len)
        client_error_set(error, code_of(code, text), outcome, "%.*s", SLICE_ARGS(text));
    else
        client_error_set(error, code_of(code, text), outcome,
                         "the server answered with the gRPC code %d", (int)code);
    error->grpc_code = (int)code;
}

void client_error_from_reason(vigil_error *error, struct slice reason)
{
    static const char between[] = " desc = "; /* the name of the code and the text */
    struct slice text = reason;
    if (slice_has_prefix(reason, SLICE_LITERAL("rpc error: code = "))) {
        const uint8_t *found = memmem(reason.ptr, reason.len, between, sizeof(between) - 1);
        size_t skipped = found ? (size_t)(found - reason.ptr) + sizeof(between) - 1 : 0;
        text = slice_of(reason.ptr + skipped, reason.len - skipped);
    }
    enum status status = client_status_of(text);
    client_error_from_server(error, status == ST_COUNT ? GRPC_UNKNOWN : status_code(status), text);
}
