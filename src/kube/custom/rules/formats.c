#include "kube/custom/rules/formats.h"

#include "codec/base64.h"
#include "codec/go_duration.h"
#include "codec/kube_time.h"

enum { DAY_S = 86400, SHOWN_BYTES_MAX = 4096 };

static struct cel_value refuse(struct cel_work *work, const char *what, struct slice text)
{
    return cel_of_error_format(work, "Invalid %s %.*s", what,
                               (int)size_min(text.len, SHOWN_BYTES_MAX), (const char *)text.ptr);
}

/* -- Durations -- */

#define US INT64_C(1000)
#define S INT64_C(1000000000)

/* A unit, and what a longer name of it begins with. */
static const struct {
    const char *names[2];
    const char *prefix;
    int64_t ns;
} units[] = {
    {{"ns", NULL}, "nano", 1},          {{"us", "\xc2\xb5s"}, "micro", US},
    {{"ms", NULL}, "milli", 1000 * US}, {{"s", NULL}, "sec", S},
    {{"m", NULL}, "min", 60 * S},       {{"h", "hr"}, "hour", 3600 * S},
    {{"d", NULL}, "day", DAY_S *S},     {{"w", "wk"}, "week", 7 * DAY_S *S},
};

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

static bool begins(struct slice text, const char *with)
{
    size_t len = strlen(with);
    for (size_t i = 0; i < len; i++)
        if (i >= text.len || lower(text.ptr[i]) != (uint8_t)with[i])
            return false;
    return true;
}

static int64_t unit_of(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (begins(name, units[i].prefix))
            return units[i].ns;
        for (size_t j = 0; j < COUNT_OF(units[i].names); j++)
            if (units[i].names[j] && name.len == strlen(units[i].names[j]) &&
                begins(name, units[i].names[j]))
                return units[i].ns;
    }
    return 0;
}

static bool is_unit_byte(struct slice text, size_t at)
{
    uint8_t c = lower(text.ptr[at]);
    bool is_mu = (c == 0xc2 && at + 1 < text.len && text.ptr[at + 1] == 0xb5) ||
                 (c == 0xb5 && at && text.ptr[at - 1] == 0xc2);
    return (c >= 'a' && c <= 'z') || is_mu;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* Numbers with units, "2 days", wherever they are in the text; everything else is ignored. */
static bool read_units(struct slice text, int64_t *ret_ns)
{
    bool found = false;
    uint64_t sum = 0;
    size_t at = 0;
    while (at < text.len) {
        uint64_t number = 0;
        size_t begin = at;
        for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++)
            if (__builtin_mul_overflow(number, 10, &number) ||
                __builtin_add_overflow(number, text.ptr[at] - '0', &number))
                return false;
        if (at == begin) {
            at++;
            continue;
        }
        while (at < text.len && is_space(text.ptr[at]))
            at++;
        size_t unit = at;
        while (at < text.len && is_unit_byte(text, at))
            at++;
        if (at > unit && number > INT64_MAX)
            return false;
        int64_t ns = unit_of(slice_sub(text, unit, at - unit));
        found |= ns;
        sum += number * (uint64_t)ns; /* Go wraps around, too */
    }
    *ret_ns = (int64_t)sum;
    return found;
}

static struct cel_value read_duration(struct cel_work *work, struct slice text)
{
    int64_t ns;
    work->steps_left -= (int64_t)(text.len / 64);
    if (!go_duration_read(text, &ns) && !read_units(text, &ns))
        return cel_of_error_format(work, "Invalid duration %.*s: unable to parse %.*s as duration",
                                   SLICE_ARGS(text), SLICE_ARGS(text));
    return (struct cel_value){.kind = CEL_DURATION, .nanoseconds = ns};
}

/* -- Times -- */

static struct cel_value read_date(struct cel_work *work, struct slice text)
{
    char time[] = "2006-01-02T00:00:00Z";
    int64_t seconds;
    int32_t nanos;
    if (text.len == strlen("2006-01-02"))
        slice_copy(time, text);
    if (text.len != strlen("2006-01-02") ||
        !kube_time_read(slice_from_text(time), &seconds, &nanos))
        return refuse(work, "date formatted string", text);
    return (struct cel_value){.kind = CEL_TIMESTAMP, .i64 = seconds};
}

/* A time may lack its zone, which is UTC then; no text is the beginning of 1970. */
static struct cel_value read_time(struct cel_work *work, struct slice text)
{
    uint8_t with_zone[64];
    int64_t seconds, offset_s = 0;
    int32_t nanos = 0;
    if (!text.len)
        return (struct cel_value){.kind = CEL_TIMESTAMP};
    bool fine = kube_time_read_offset(text, &seconds, &nanos, &offset_s);
    if (!fine && text.len < sizeof(with_zone)) {
        slice_copy(with_zone, text);
        with_zone[text.len] = 'Z';
        fine =
            kube_time_read_offset(slice_of(with_zone, text.len + 1), &seconds, &nanos, &offset_s);
    }
    if (!fine)
        return refuse(work, "date-time formatted string", text);
    return (struct cel_value){.kind = CEL_TIMESTAMP,
                              .i64 = seconds,
                              .nanoseconds = nanos,
                              .zone_minutes = (int32_t)(offset_s / 60)};
}

/* -- Bytes -- */

/* kube-openapi checks the first alphabet of Base64, and decodes the second one; so a text with
 * characters in which they differ is an error, and so is one without padding. */
static struct cel_value read_bytes(struct cel_work *work, struct slice text)
{
    size_t len = 0, count = 0;
    uint8_t *bytes = arena_alloc(work->arena, text.len / 4 * 3 + 4);
    if (!bytes)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)(text.len / 64);
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] != '\n' && text.ptr[i] != '\r';
        if (text.ptr[i] == '+' || text.ptr[i] == '/')
            return cel_of_error_format(
                work, "Invalid byte formatted string %.*s: illegal base64 data at input byte %zu",
                SLICE_ARGS(text), i);
    }
    if (count % 4 || !base64_decode(text, bytes, &len))
        return cel_of_error_format(
            work, "Invalid byte formatted string %.*s: illegal base64 data at input byte %zu",
            SLICE_ARGS(text), text.len);
    return cel_of_bytes(slice_of(bytes, len));
}

rule_reader *rule_format_reader(struct slice format)
{
    static const struct {
        const char *name;
        rule_reader *read;
    } readers[] = {
        {"byte", read_bytes},
        {"date", read_date},
        {"date-time", read_time},
        {"duration", read_duration},
    };
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        if (slice_is(format, readers[i].name))
            return readers[i].read;
    return NULL;
}
