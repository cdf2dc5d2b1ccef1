#include "cmd/ctl/live/metrics.h"

#include "base/clock.h"
#include "base/xalloc.h"

#include <math.h>

/* -- Reading -- */

/* The end of the labels, which may contain braces in quotes; NULL: there is none. */
static char *labels_end(char *at)
{
    bool quoted = false;
    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (*at == '}' && !quoted)
            return at;
    }
    return NULL;
}

static bool read_line(char *line, struct metrics_sample *ret_sample)
{
    size_t name_len = strcspn(line, "{ \t");
    char *at = line + name_len, *end;
    *ret_sample = (struct metrics_sample){.name = slice_of(line, name_len)};
    if (*line == '#' || name_len == 0)
        return false;
    if (*at == '{') {
        char *close = labels_end(at);
        if (!close)
            return false;
        ret_sample->labels = slice_of(at + 1, (size_t)(close - at) - 1);
        at = close + 1;
    }
    ret_sample->value = strtod(at, &end);
    return end != at && !isnan(ret_sample->value);
}

void metrics_read(struct metrics *metrics, struct slice page, int64_t time_ns)
{
    size_t len = size_min(page.len, METRICS_BYTES_MAX), lines = 1;
    metrics_fini(metrics);
    metrics->text = xmalloc(len + 1);
    slice_copy(metrics->text, slice_of(page.ptr, len));
    metrics->text[len] = '\0';
    for (size_t i = 0; i < len; i++)
        lines += metrics->text[i] == '\n';
    metrics->samples = xcalloc(size_min(lines, METRICS_SAMPLES_MAX), sizeof(*metrics->samples));
    metrics->time_ns = time_ns;
    char *rest = metrics->text, *line;
    while (metrics->count < METRICS_SAMPLES_MAX && (line = strsep(&rest, "\n")))
        if (read_line(line, &metrics->samples[metrics->count]))
            metrics->count++;
}

void metrics_fini(struct metrics *metrics)
{
    free(metrics->text);
    free(metrics->samples);
    *metrics = (struct metrics){0};
}

/* -- Finding -- */

static bool has_label(const struct metrics_sample *sample, const char *label)
{
    struct slice labels = sample->labels;
    size_t len = label ? strlen(label) : 0;
    const uint8_t *at = len && labels.len ? memmem(labels.ptr, labels.len, label, len) : NULL;
    return !label || (at && (at == labels.ptr || at[-1] == ',' || at[-1] == ' '));
}

double metrics_sum(const struct metrics *metrics, const char *name, const char *label)
{
    double sum = 0;
    for (size_t i = 0; i < metrics->count; i++)
        if (slice_is(metrics->samples[i].name, name) && has_label(&metrics->samples[i], label))
            sum += metrics->samples[i].value;
    return sum;
}

bool metrics_has(const struct metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (slice_is(metrics->samples[i].name, name))
            return true;
    return false;
}

struct slice metrics_label(const struct metrics_sample *sample, const char *name)
{
    char wanted[64];
    int len = snprintf(wanted, sizeof(wanted), "%s=\"", name);
    struct slice rest = sample->labels;
    if (len <= 0 || (size_t)len >= sizeof(wanted) || !rest.len)
        return SLICE_EMPTY;
    const uint8_t *at = memmem(rest.ptr, rest.len, wanted, (size_t)len);
    if (!at || (at != rest.ptr && at[-1] != ',' && at[-1] != ' '))
        return SLICE_EMPTY;
    size_t begin = (size_t)(at - rest.ptr) + (size_t)len, end = begin;
    while (end < rest.len && rest.ptr[end] != '"')
        end += rest.ptr[end] == '\\' ? 2 : 1;
    return slice_sub(rest, begin, size_min(end, rest.len) - begin);
}

/* -- Changes -- */

double metrics_rate(const struct metrics *older, const struct metrics *now, const char *name,
                    const char *label)
{
    double seconds = (double)(now->time_ns - older->time_ns) / (double)NS_PER_S;
    double change = metrics_sum(now, name, label) - metrics_sum(older, name, label);
    if (!older->time_ns || !now->time_ns || seconds <= 0 || change < 0)
        return 0;
    return change / seconds;
}

/* The count of one bucket, since the older page. */
static double bucket_change(const struct metrics *older, const struct metrics_sample *bucket)
{
    if (!older)
        return bucket->value;
    for (size_t i = 0; i < older->count; i++)
        if (slice_equal(older->samples[i].name, bucket->name) &&
            slice_equal(older->samples[i].labels, bucket->labels))
            return bucket->value - older->samples[i].value;
    return bucket->value;
}

static double bound_of(const struct metrics_sample *bucket)
{
    char text[40];
    struct slice bound = metrics_label(bucket, "le");
    snprintf(text, sizeof(text), "%.*s", (int)size_min(bound.len, sizeof(text) - 1),
             (const char *)bound.ptr);
    return strtod(text, NULL); /* also "+Inf" */
}

/* The buckets of a series are cumulative and ordered by their bounds. */
double metrics_quantile(const struct metrics *older, const struct metrics *now, const char *name,
                        double part)
{
    char bucket_name[128];
    double all = 0, last_finite = 0;
    snprintf(bucket_name, sizeof(bucket_name), "%s_bucket", name);
    for (size_t i = 0; i < now->count; i++)
        if (slice_is(now->samples[i].name, bucket_name) && isinf(bound_of(&now->samples[i])))
            all = bucket_change(older, &now->samples[i]);
    if (all <= 0)
        return -1;
    for (size_t i = 0; i < now->count; i++) {
        if (!slice_is(now->samples[i].name, bucket_name))
            continue;
        double bound = bound_of(&now->samples[i]);
        if (!isinf(bound))
            last_finite = bound;
        if (bucket_change(older, &now->samples[i]) >= part * all)
            return isinf(bound) ? last_finite : bound;
    }
    return -1;
}
