#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}
