#include "load/pod.h"

#define TIME_NAME "\"bench/sent\":\""

void bench_digits_write(uint8_t *at, unsigned digits, uint64_t number)
{
    for (unsigned i = digits; i > 0; i--, number /= 10)
        at[i - 1] = (uint8_t)('0' + number % 10);
}

/* The text up to its digits, then zeros for them. */
static enum status append_digits(struct buf *out, const char *before, unsigned digits,
                                 size_t *ret_at)
{
    TRY(buf_append_text(out, before));
    *ret_at = out->len;
    return buf_append_format(out, "%0*d", (int)digits, 0);
}

static enum status append_variables(struct buf *out, size_t until)
{
    for (unsigned i = 0; out->len < until; i++)
        TRY(buf_append_format(out,
                              "%s{\"name\":\"VARIABLE_%04u\",\"value\":\"value-of-variable-%04u\"}",
                              i ? "," : "", i, i));
    return ST_OK;
}

enum status bench_pod_append(struct buf *out, size_t bytes, struct bench_pod_places *ret_places)
{
    static const char end[] =
        "]}],\"restartPolicy\":\"Always\"},\"status\":{\"phase\":\"Running\"}}";
    struct bench_pod_places places;
    size_t from = out->len;
    TRY(append_digits(
        out, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" BENCH_POD_NAME,
        BENCH_POD_DIGITS, &places.name));
    TRY(append_digits(out,
                      "\",\"namespace\":\"default\",\"labels\":{\"app\":\"bench\"},"
                      "\"annotations\":{" TIME_NAME,
                      BENCH_POD_TIME_DIGITS, &places.time));
    TRY(append_digits(out, "\"}},\"spec\":{\"nodeName\":\"" BENCH_NODE_NAME, BENCH_POD_DIGITS,
                      &places.node));
    TRY(buf_append_text(out,
                        "\",\"containers\":[{\"name\":\"bench\",\"image\":\"bench:1\",\"env\":["));
    TRY(append_variables(out, from + bytes - sizeof(end)));
    TRY(buf_append_text(out, end));
    places.name -= from;
    places.node -= from;
    places.time -= from;
    *ret_places = places;
    return ST_OK;
}

enum status bench_config_append(struct buf *out, size_t bytes, struct bench_pod_places *ret_places)
{
    static const char end[] = "\"}}";
    struct bench_pod_places places = {0};
    size_t from = out->len;
    TRY(append_digits(out,
                      "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                      "\"" BENCH_CONFIG_NAME,
                      BENCH_POD_DIGITS, &places.name));
    TRY(append_digits(out, "\",\"namespace\":\"default\",\"annotations\":{" TIME_NAME,
                      BENCH_POD_TIME_DIGITS, &places.time));
    TRY(buf_append_text(out, "\"}},\"data\":{\"text\":\""));
    while (out->len - from + sizeof(end) < bytes)
        TRY(buf_append_text(out, "some text, "));
    TRY(buf_append_text(out, end));
    places.name -= from;
    places.time -= from;
    *ret_places = places;
    return ST_OK;
}

bool bench_pod_time(struct slice text, uint64_t *ret_time)
{
    struct slice name = SLICE_LITERAL(TIME_NAME);
    const uint8_t *at = memmem(text.ptr, text.len, name.ptr, name.len);
    uint64_t value = 0;
    if (!at || (size_t)(text.ptr + text.len - at) < name.len + BENCH_POD_TIME_DIGITS)
        return false;
    at += name.len;
    for (unsigned i = 0; i < BENCH_POD_TIME_DIGITS; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(at[i] - '0');
    }
    *ret_time = value;
    return true;
}
