#include "trace.h"

#include "actors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool prints;
    uint64_t hash;
} trace;

static void add(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        trace.hash = (trace.hash ^ at[i]) * UINT64_C(0x100000001b3);
}

void trace_begin(bool prints)
{
    trace.prints = prints;
    trace.hash = UINT64_C(0xcbf29ce484222325);
}

uint64_t trace_hash(void)
{
    return trace.hash;
}

void trace_step(const char *name)
{
    int64_t now = actors_now();
    add(name, strlen(name));
    add(&now, sizeof(now));
}

void trace_line(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    int64_t now = actors_now();
    add(&now, sizeof(now));
    add(text, strlen(text));
    if (trace.prints)
        printf("%12.6f  %-10s %s\n", (double)now / 1e9, actor_name(actor_running()), text);
}
