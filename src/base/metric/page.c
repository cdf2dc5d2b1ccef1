#include "base/metric/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void metric_page_fini(struct metric_page *page)
{
    buf_fini(&page->text);
}

static void put(struct metric_page *page, const char *text)
{
    if (page->status == ST_OK)
        page->status = buf_append_text(&page->text, text);
}

/* Without printf: a page has a thousand numbers, and clients may request it often. */
static void put_count(struct metric_page *page, uint64_t value)
{
    char text[24], *first = text + sizeof(text);
    *--first = '\0';
    *--first = '\n';
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    *--first = ' ';
    put(page, first);
}

static bool reads_back(double value, int digits, char dst[32])
{
    snprintf(dst, 32, "%.*g", digits, value);
    return strtod(dst, NULL) == value;
}

/* The shortest text that reads back as the same number. As in Go, numbers below a million have no
 * exponent: 10, and not 1e+01. */
static const char *real_text(double value, char dst[32])
{
    enum { WITHOUT_EXPONENT = 6, ENOUGH_FOR_DECIMALS = 15, ENOUGH_FOR_ALL = 17 };
    if (isnan(value))
        return "NaN";
    if (isinf(value))
        return value > 0 ? "+Inf" : "-Inf";
    int digits =
        reads_back(value, ENOUGH_FOR_DECIMALS, dst) ? WITHOUT_EXPONENT : ENOUGH_FOR_DECIMALS + 1;
    while (!reads_back(value, digits, dst) && digits < ENOUGH_FOR_ALL)
        digits++;
    return dst;
}

void metric_page_head(struct metric_page *page, const char *name, enum metric_kind kind,
                      const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    put(page, "# HELP ");
    put(page, name);
    put(page, " ");
    put(page, help);
    put(page, "\n# TYPE ");
    put(page, name);
    put(page, " ");
    put(page, kinds[kind]);
    put(page, "\n");
}

/* name{labels}, with a suffix of the name and possibly one more label. */
static void put_name(struct metric_page *page, const char *name, const char *suffix,
                     const char *labels, const char *bound)
{
    put(page, name);
    put(page, suffix);
    if (!*labels && !bound)
        return;
    put(page, "{");
    put(page, labels);
    if (bound) {
        put(page, *labels ? ",le=\"" : "le=\"");
        put(page, bound);
        put(page, "\"");
    }
    put(page, "}");
}

void metric_page_row(struct metric_page *page, const char *name, const char *labels, uint64_t value)
{
    put_name(page, name, "", labels, NULL);
    put_count(page, value);
}

static void put_real(struct metric_page *page, const char *name, const char *suffix,
                     const char *labels, double value)
{
    char text[32];
    put_name(page, name, suffix, labels, NULL);
    put(page, " ");
    put(page, real_text(value, text));
    put(page, "\n");
}

void metric_page_row_real(struct metric_page *page, const char *name, const char *labels,
                          double value)
{
    put_real(page, name, "", labels, value);
}

static double in_units(const struct metric_buckets *buckets, uint64_t value)
{
    return (double)value / (double)buckets->per_unit;
}

static void write_bounds(struct metric_page *page, const struct metric_buckets *buckets)
{
    assert(buckets->count <= METRIC_BOUNDS_MAX);
    if (page->bounds_of == buckets)
        return;
    page->bounds_of = buckets;
    for (unsigned i = 0; i < buckets->count; i++)
        real_text(in_units(buckets, (uint64_t)buckets->bounds[i]), page->bounds[i]);
}

void metric_page_row_histogram(struct metric_page *page, const char *name, const char *labels,
                               const struct metric_buckets *buckets,
                               const uint64_t slots[METRIC_SLOTS])
{
    uint64_t below = 0;
    write_bounds(page, buckets);
    for (unsigned i = 0; i <= buckets->count; i++) {
        below += slots[i];
        put_name(page, name, "_bucket", labels, i < buckets->count ? page->bounds[i] : "+Inf");
        put_count(page, below);
    }
    put_real(page, name, "_sum", labels, in_units(buckets, slots[METRIC_SUM_SLOT]));
    put_name(page, name, "_count", labels, NULL);
    put_count(page, below);
}

void metric_page_counter(struct metric_page *page, const char *name, const char *help,
                         uint64_t value)
{
    metric_page_head(page, name, METRIC_COUNTER, help);
    metric_page_row(page, name, "", value);
}

void metric_page_gauge(struct metric_page *page, const char *name, const char *help, uint64_t value)
{
    metric_page_head(page, name, METRIC_GAUGE, help);
    metric_page_row(page, name, "", value);
}

const char *metric_page_escape(const char *text, char *dst, size_t room)
{
    assert(room > 0);
    size_t n = 0;
    for (; *text && n + 2 < room; text++) {
        char c = *text;
        if (c == '"' || c == '\\' || c == '\n')
            dst[n++] = '\\';
        dst[n++] = c == '\n' ? 'n' : c;
    }
    dst[n] = '\0';
    return dst;
}
