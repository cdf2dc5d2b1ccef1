#include "base/status.h"

#include <errno.h>
#include <string.h>

struct status_entry {
    const char *name;
    const char *text;
    enum grpc_code code;
};

static const struct status_entry rows[ST_COUNT] = {
#define X(name_, code_, text_) [ST_##name_] = {.name = #name_, .text = (text_), .code = (code_)},
    STATUS_TABLE(X)
#undef X
};

static const struct status_entry *row_of(enum status status)
{
    assert((unsigned)status < ST_COUNT);
    return &rows[status];
}

enum grpc_code status_code(enum status status)
{
    return row_of(status)->code;
}

const char *status_text(enum status status)
{
    return row_of(status)->text;
}

const char *status_reason(enum status status)
{
    static const char ours[] = "vigil: ";
    const char *text = status_text(status);
    return strncmp(text, ours, sizeof(ours) - 1) == 0 ? text + sizeof(ours) - 1 : text;
}

const char *status_name(enum status status)
{
    return row_of(status)->name;
}

enum status status_from_errno(int error_number)
{
    switch (error_number) {
    case 0:
        return ST_OK;
    case ENOMEM:
        return ST_NOMEM;
    case ENOSPC:
    case EDQUOT:
        return ST_DISK_FULL;
    case ENOENT:
        return ST_NOT_FOUND;
    case EEXIST:
        return ST_EXISTS;
    case EAGAIN:
        return ST_AGAIN;
    default:
        return ST_IO;
    }
}
