#include "load/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void bench_report_fini(struct bench_report *report)
{
    buf_fini(&report->json);
    buf_fini(&report->text);
}

static void check(struct bench_report *report, enum status status)
{
    report->failed |= status != ST_OK;
}

static void begin(struct bench_report *report, const char *name)
{
    check(report,
          buf_append_format(&report->json, "%s\"%s\": ", report->json.len ? ", " : "{", name));
    check(report, buf_append_format(&report->text, "  %-32s ", name));
}

/* Texts may come from a server: whatever is not plain is escaped. */
static enum status append_quoted(struct buf *out, const char *text)
{
    TRY(buf_append_text(out, "\""));
    for (const uint8_t *c = (const uint8_t *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c < 0x20 || *c > 0x7e)
            TRY(buf_append_format(out, "\\u%04x", *c));
        else
            TRY(buf_append(out, slice_of(c, 1)));
    }
    return buf_append_text(out, "\"");
}

void bench_report_text(struct bench_report *report, const char *name, const char *value)
{
    begin(report, name);
    check(report, append_quoted(&report->json, value));
    check(report, buf_append_format(&report->text, "%s\n", value));
}

void bench_report_count(struct bench_report *report, const char *name, uint64_t value)
{
    begin(report, name);
    check(report, buf_append_format(&report->json, "%" PRIu64, value));
    check(report, buf_append_format(&report->text, "%" PRIu64 "\n", value));
}

void bench_report_number(struct bench_report *report, const char *name, double value)
{
    if (!isfinite(value))
        return;
    begin(report, name);
    check(report, buf_append_format(&report->json, "%.3f", value));
    check(report, buf_append_format(&report->text, "%.3f\n", value));
}

void bench_report_latency(struct bench_report *report, const char *name,
                          const struct bench_histogram *histogram)
{
    static const struct {
        const char *name;
        double fraction;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    char full[64];
    snprintf(full, sizeof(full), "%s_mean_us", name);
    bench_report_number(report, full, bench_histogram_mean(histogram) / 1e3);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        snprintf(full, sizeof(full), "%s_%s_us", name, quantiles[i].name);
        uint64_t ns = bench_histogram_quantile(histogram, quantiles[i].fraction);
        bench_report_number(report, full, (double)ns / 1e3);
    }
}

void bench_report_usage(struct bench_report *report, const struct bench_usage *before,
                        const struct bench_usage *after, double operations_per_second)
{
    /* Readings come a little late on a busy machine; as rates, both sides cover their own time. */
    double seconds = (double)(after->at_ns - before->at_ns) / 1e9;
    double cpu_seconds = (double)(after->cpu_ns - before->cpu_ns) / 1e9;
    bench_report_number(report, "server_cpu_seconds", cpu_seconds);
    bench_report_number(report, "server_cores", cpu_seconds / seconds);
    bench_report_number(report, "server_cpu_us_per_operation",
                        cpu_seconds / seconds / operations_per_second * 1e6);
    bench_report_count(report, "server_cpu_ticks", after->cpu_ticks - before->cpu_ticks);
    bench_report_count(report, "server_anonymous_kb_before", before->anonymous_kb);
    bench_report_count(report, "server_anonymous_kb_after", after->anonymous_kb);
    bench_report_count(report, "server_resident_kb_after", after->resident_kb);
    bench_report_count(report, "server_threads", after->threads);
}

void bench_report_outcome(struct bench_report *report, const struct bench_outcome *outcome)
{
    double rate = (double)outcome->latency.count / outcome->seconds;
    bench_report_number(report, "seconds", outcome->seconds);
    bench_report_count(report, "operations", outcome->latency.count);
    bench_report_count(report, "errors", outcome->errors);
    bench_report_count(report, "connections_lost", outcome->connections_lost);
    bench_report_number(report, "operations_per_second", rate);
    bench_report_latency(report, "latency", &outcome->latency);
    bench_report_count(report, "bytes_in", outcome->bytes_in);
    bench_report_count(report, "bytes_out", outcome->bytes_out);
    bench_report_number(report, "generator_cpu_us_per_operation",
                        (double)outcome->own_cpu_ns / outcome->seconds / rate / 1e3);
    if (outcome->has_usage)
        bench_report_usage(report, &outcome->before, &outcome->after, rate);
    if (outcome->first_error[0])
        bench_report_text(report, "first_error", outcome->first_error);
}

enum status bench_report_print(struct bench_report *report, bool json)
{
    check(report, buf_append_text(&report->json, "}\n"));
    if (report->failed)
        return ST_NOMEM;
    struct slice all = buf_slice(json ? &report->json : &report->text);
    return fwrite(all.ptr, 1, all.len, stdout) == all.len && fflush(stdout) == 0 ? ST_OK : ST_IO;
}
