#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}

void error_append(struct error *error, const char *format, ...)
{
    va_list args;
    size_t len = strlen(error->text);
    va_start(args, format);
    vsnprintf(error->text + len, sizeof(error->text) - len, format, args);
    va_end(args);
}
