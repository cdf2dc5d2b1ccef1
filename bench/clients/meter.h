/* What a program has used: CPU, time and memory, printed as one JSON object. For the benchmarks of
 * clients. */
#ifndef VIGIL_BENCH_CLIENTS_METER_H
#define VIGIL_BENCH_CLIENTS_METER_H

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static inline double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline double heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd);
}

static inline double resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%ld %ld", &pages, &resident) != 2)
        abort();
    fclose(statm);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* What had been used when the measurement began. */
struct meter {
    double cpu, seconds, resident, heap;
};

static inline struct meter start_meter(void)
{
    return (struct meter){cpu_seconds(), now_seconds(), resident_bytes(), heap_bytes()};
}

static inline void report(const struct meter *since, long count)
{
    double each = (double)count;
    printf("{\"count\": %ld, \"cpu_us\": %.4f, \"seconds\": %.4f, \"bytes\": %.1f, "
           "\"heap_bytes\": %.1f}\n",
           count, (cpu_seconds() - since->cpu) / each * 1e6, now_seconds() - since->seconds,
           (resident_bytes() - since->resident) / each, (heap_bytes() - since->heap) / each);
}

#endif
