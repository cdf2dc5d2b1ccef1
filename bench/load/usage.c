#include "load/usage.h"

#include "base/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PROC_BYTES_MAX = 8192 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t bench_usage_own_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static enum status proc_read(pid_t pid, const char *name, char text[static PROC_BYTES_MAX])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return ST_NOT_FOUND;
    size_t n = fread(text, 1, PROC_BYTES_MAX - 1, file);
    text[n] = 0;
    fclose(file);
    return n ? ST_OK : ST_NOT_FOUND;
}

/* The number behind "Name:" in /proc/PID/status, 0 when it has no such line. */
static uint64_t line_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* utime and stime: the 12th and 13th number behind the command's closing bracket. */
static uint64_t stat_ticks(const char *text)
{
    const char *at = strrchr(text, ')');
    if (!at)
        return 0;
    at++;
    for (int field = 3; field < 14 && at; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    char *end;
    uint64_t user = strtoull(at, &end, 10);
    return user + strtoull(end, NULL, 10);
}

static enum status read_one(pid_t pid, struct bench_usage *ret_usage)
{
    char status[PROC_BYTES_MAX], stat[PROC_BYTES_MAX];
    clockid_t cpu_clock;
    TRY(proc_read(pid, "status", status));
    TRY(proc_read(pid, "stat", stat));
    if (clock_getcpuclockid(pid, &cpu_clock) != 0)
        return ST_NOT_FOUND;
    *ret_usage = (struct bench_usage){
        .anonymous_kb = line_number(status, "\nRssAnon:"),
        .resident_kb = line_number(status, "\nVmRSS:"),
        .threads = line_number(status, "\nThreads:"),
        .cpu_ticks = stat_ticks(stat),
        .cpu_ns = clock_ns(cpu_clock),
        .at_ns = bench_now_ns(),
    };
    return ST_OK;
}

enum status bench_usage_read(const struct bench_processes *processes, struct bench_usage *ret_usage)
{
    struct bench_usage usage, store = {0};
    TRY(read_one(processes->server, &usage));
    if (processes->store)
        TRY(read_one(processes->store, &store));
    usage.anonymous_kb += store.anonymous_kb;
    usage.resident_kb += store.resident_kb;
    usage.threads += store.threads;
    usage.cpu_ticks += store.cpu_ticks;
    usage.cpu_ns += store.cpu_ns;
    *ret_usage = usage;
    return ST_OK;
}
