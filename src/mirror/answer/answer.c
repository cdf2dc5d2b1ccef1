#include "mirror/answer/answer.h"

#include "client/connect/error.h"
#include "engine/operation.h"

/* For texts that are not in the table. ST_OK: no status means just this code. */
static const enum status by_code[] = {
    [GRPC_CANCELLED] = ST_CANCELED,
    [GRPC_INVALID_ARGUMENT] = ST_INVALID,
    [GRPC_DEADLINE_EXCEEDED] = ST_DEADLINE_EXCEEDED,
    [GRPC_NOT_FOUND] = ST_NOT_FOUND,
    [GRPC_ALREADY_EXISTS] = ST_EXISTS,
    [GRPC_PERMISSION_DENIED] = ST_PERMISSION_DENIED,
    [GRPC_RESOURCE_EXHAUSTED] = ST_LIMIT,
    [GRPC_FAILED_PRECONDITION] = ST_IN_USE,
    [GRPC_UNIMPLEMENTED] = ST_UNIMPLEMENTED,
    [GRPC_INTERNAL] = ST_INTERNAL,
    [GRPC_UNAVAILABLE] = ST_AGAIN,
    [GRPC_DATA_LOSS] = ST_CORRUPT,
    [GRPC_UNAUTHENTICATED] = ST_INVALID_AUTH_TOKEN,
};

enum status cluster_status_of(enum grpc_code code, struct slice text)
{
    enum status status = client_status_of(text);
    if (status != ST_COUNT && status_code(status) == code)
        return status;
    status = (size_t)code < COUNT_OF(by_code) ? by_code[code] : ST_OK;
    return status != ST_OK ? status : ST_UPSTREAM;
}

void cluster_fail(struct engine_op *op, enum grpc_code code, struct slice text)
{
    op->status = cluster_status_of(code, text);
    if (arena_dup(op->arena, text, &op->text) != ST_OK)
        op->text = SLICE_EMPTY; /* the text of the status must do */
}
