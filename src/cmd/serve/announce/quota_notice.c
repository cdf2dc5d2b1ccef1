#include "cmd/serve/announce/quota_notice.h"

#include "base/log/log.h"

#include <stdio.h>

/* etcd suggests no more: not a limit. */
static const int64_t suggested_bytes_max = INT64_C(8) << 30, default_bytes = INT64_C(2) << 30;

void bytes_format(uint64_t bytes, char text[BYTES_TEXT_BYTES])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 10) {
        snprintf(text, BYTES_TEXT_BYTES, "%u B", (unsigned)bytes);
        return;
    }
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < COUNT_OF(units); unit++)
        value /= 1000;
    double rounded = (double)(uint64_t)(value * 10 + 0.5) / 10;
    snprintf(text, BYTES_TEXT_BYTES, rounded < 10 ? "%.1f %s" : "%.0f %s", rounded, units[unit]);
}

void quota_notice_log(int64_t quota_bytes)
{
    char text[BYTES_TEXT_BYTES], suggested[BYTES_TEXT_BYTES];
    struct log_field name = LOG_TEXT("quota-name", "v3-applier");
    if (quota_bytes < 0) {
        log_info("disabled backend quota", name, LOG_I64("quota-size-bytes", quota_bytes));
        return;
    }
    int64_t bytes = quota_bytes ? quota_bytes : default_bytes;
    bytes_format((uint64_t)bytes, text);
    bytes_format((uint64_t)suggested_bytes_max, suggested);
    if (bytes > suggested_bytes_max)
        log_warn("quota exceeds the maximum value", name, LOG_I64("quota-size-bytes", bytes),
                 LOG_TEXT("quota-size", text),
                 LOG_I64("quota-maximum-size-bytes", suggested_bytes_max),
                 LOG_TEXT("quota-maximum-size", suggested));
    log_info(quota_bytes ? "enabled backend quota" : "enabled backend quota with default value",
             name, LOG_I64("quota-size-bytes", bytes), LOG_TEXT("quota-size", text));
}
