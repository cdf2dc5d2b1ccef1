#include "load/scale/series.h"

#include "base/error.h"
#include "base/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

/* Between two lines of progress that are not written over each other. */
#define TELL_NS (10 * NS_PER_S)

enum status scale_series_init(struct scale_series *series, const struct scale_world *world,
                              const struct bench_processes *server, const char *path,
                              struct error *error)
{
    *series = (struct scale_series){.world = world,
                                    .server = *server,
                                    .is_terminal = isatty(STDERR_FILENO) != 0,
                                    .begun_ns = bench_now_ns()};
    if (*path && !(series->file = fopen(path, "we")))
        return error_set(error, ST_INVALID, "--series: cannot write %s: %s", path, strerror(errno));
    series->last_ns = series->told_ns = series->begun_ns;
    series->second = xcalloc(1, sizeof(*series->second));
    series->total = xcalloc(1, sizeof(*series->total));
    series->run = xcalloc(1, sizeof(*series->run));
    const struct bench_processes self = {.server = getpid()};
    TRY(bench_usage_read(&self, &series->own));
    series->has_server = server->server && bench_usage_read(server, &series->usage) == ST_OK;
    return ST_OK;
}

void scale_series_fini(struct scale_series *series)
{
    if (series->file)
        fclose(series->file);
    free(series->second);
    free(series->total);
    free(series->run);
}

static double cores(const struct bench_usage *before, const struct bench_usage *after)
{
    uint64_t ns = after->at_ns - before->at_ns;
    return ns ? (double)(after->cpu_ns - before->cpu_ns) / (double)ns : 0;
}

static void read_usage(struct scale_series *series)
{
    const struct bench_processes self = {.server = getpid()};
    struct bench_usage now;
    if (bench_usage_read(&self, &now) == ST_OK) {
        series->own_cores = cores(&series->own, &now);
        series->own = now;
    }
    if (series->has_server && bench_usage_read(&series->server, &now) == ST_OK) {
        series->server_cores = cores(&series->usage, &now);
        series->usage = now;
    }
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void write_line(const struct scale_series *series, double seconds)
{
    const struct scale_world *world = series->world;
    const struct scale_sample *s = series->second;
    FILE *to = series->file;
    fprintf(to, "{\"second\":%.3f,\"phase\":%u,\"started\":%u,\"synced\":%u,\"pods_ready\":%u",
            seconds, atomic_load(&world->phase), atomic_load(&world->started),
            atomic_load(&world->synced), atomic_load(&world->pods_ready));
    for (unsigned i = 0; i < SCALE_MEASURES; i++) {
        const struct bench_histogram *h = &s->durations[i];
        if (h->count)
            fprintf(to,
                    ",\"%s\":%" PRIu64 ",\"%s_p50_ms\":%.3f,\"%s_p99_ms\":%.3f,\"%s_max_ms\":%.3f",
                    scale_measure_name(i), h->count, scale_measure_name(i),
                    ms(bench_histogram_quantile(h, 0.5)), scale_measure_name(i),
                    ms(bench_histogram_quantile(h, 0.99)), scale_measure_name(i), ms(h->max));
    }
    for (unsigned i = 0; i < SCALE_COUNTS; i++)
        if (s->counts[i])
            fprintf(to, ",\"%s\":%" PRIu64, scale_count_name(i), s->counts[i]);
    fprintf(to, ",\"generator_cores\":%.3f,\"generator_resident_kb\":%" PRIu64, series->own_cores,
            series->own.resident_kb);
    if (series->has_server)
        fprintf(to,
                ",\"server_cores\":%.3f,\"server_anonymous_kb\":%" PRIu64
                ",\"server_resident_kb\":%" PRIu64,
                series->server_cores, series->usage.anonymous_kb, series->usage.resident_kb);
    fprintf(to, "}\n");
    fflush(to);
}

/* The highest p99 of these measures, and how many durations they have. */
static double worst_p99_ms(const struct scale_sample *sample, unsigned from, unsigned to,
                           uint64_t *ret_count)
{
    uint64_t worst = 0, sum = 0;
    for (unsigned i = from; i < to; i++) {
        const struct bench_histogram *h = &sample->durations[i];
        uint64_t p99 = bench_histogram_quantile(h, 0.99);
        worst = p99 > worst ? p99 : worst;
        sum += h->count;
    }
    *ret_count = sum;
    return ms(worst);
}

static void tell(struct scale_series *series, double seconds, double passed)
{
    static const char *const phases[] = {"starting", "creating pods", "steady", "settling"};
    const struct scale_world *world = series->world;
    const struct scale_sample *second = series->second, *run = series->run;
    uint64_t writes, delays;
    double write_ms = worst_p99_ms(second, 0, SCALE_WRITES, &writes);
    double delay_ms = worst_p99_ms(second, SCALE_POD_DELAY, SCALE_SLICE_LAST + 1, &delays);
    fprintf(stderr,
            "%s%5.0f s %-13s nodes %u of %u, pods %u of %u; %.0f writes/s, p99 %.1f ms; "
            "%.0f events/s, p99 %.1f ms late; relists %" PRIu64 ", ended %" PRIu64
            ", errors %" PRIu64 "; generator %.2f cores %" PRIu64 " MB",
            series->is_terminal ? "\r\033[K" : "", seconds, phases[atomic_load(&world->phase)],
            atomic_load(&world->synced), world->nodes, atomic_load(&world->pods_ready), world->pods,
            (double)writes / passed, write_ms, (double)second->counts[SCALE_EVENTS] / passed,
            delay_ms, run->counts[SCALE_RELISTS], run->counts[SCALE_WATCHES_ENDED],
            run->counts[SCALE_ERRORS], series->own_cores, series->own.resident_kb / 1024);
    if (series->has_server)
        fprintf(stderr, "; server %.2f cores %" PRIu64 " MB", series->server_cores,
                series->usage.resident_kb / 1024);
    fputs(series->is_terminal ? "" : "\n", stderr);
}

struct scale_sample *scale_series_begin(struct scale_series *series)
{
    memset(series->second, 0, sizeof(*series->second));
    return series->second;
}

void scale_series_complete(struct scale_series *series)
{
    uint64_t now = bench_now_ns();
    double seconds = (double)(now - series->begun_ns) / 1e9;
    double passed = (double)(now - series->last_ns) / 1e9;
    series->last_ns = now;
    scale_sample_merge(series->total, series->second);
    scale_sample_merge(series->run, series->second);
    read_usage(series);
    if (series->file)
        write_line(series, seconds);
    if (!series->is_terminal && now - series->told_ns < TELL_NS)
        return;
    series->told_ns = now;
    tell(series, seconds, passed);
}

void scale_series_measure(struct scale_series *series)
{
    memset(series->total, 0, sizeof(*series->total));
}
