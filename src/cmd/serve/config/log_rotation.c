#include "cmd/serve/config/log_rotation.h"

#include "base/options/value.h"
#include "codec/json/number.h"
#include "codec/json/scanner.h"

#define MEGABYTE (INT64_C(1) << 20)

enum { SIZE_MB_DEFAULT = 100, SIZE_MB_MAX = 1 << 20 };

struct wanted {
    uint64_t size_mb, age_days, backups;
    bool local_time, compress;
};

/* One key and its value. As in Go, keys match in any case and unknown keys are skipped. */
static bool read_key(struct json_scanner *scanner, struct wanted *wanted)
{
    const struct {
        const char *key;
        uint64_t *number;
        bool *truth;
    } fields[] = {
        {"\"maxsize\"", &wanted->size_mb, NULL},    {"\"maxage\"", &wanted->age_days, NULL},
        {"\"maxbackups\"", &wanted->backups, NULL}, {"\"localtime\"", NULL, &wanted->local_time},
        {"\"compress\"", NULL, &wanted->compress},
    };
    struct slice key = scanner->raw;
    enum json_token token = json_next(scanner);
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (key.len != strlen(fields[i].key) ||
            strncasecmp((const char *)key.ptr, fields[i].key, key.len) != 0)
            continue;
        if (fields[i].number)
            return token == JSON_NUMBER && json_number_u64(scanner->raw, fields[i].number) &&
                   *fields[i].number <= SIZE_MB_MAX;
        *fields[i].truth = token == JSON_TRUE;
        return token == JSON_TRUE || token == JSON_FALSE;
    }
    return json_skip(scanner, token);
}

static bool read_object(struct json_scanner *scanner, struct wanted *wanted)
{
    enum json_token token = json_next(scanner);
    if (token != JSON_OBJECT)
        return false;
    while ((token = json_next(scanner)) == JSON_KEY)
        if (!read_key(scanner, wanted))
            return false;
    return token == JSON_OBJECT_END && json_next(scanner) == JSON_END;
}

static enum status check_outputs(const char *outputs, struct error *error)
{
    unsigned files = 0;
    struct slice name;
    while (option_list_next(&outputs, &name))
        files +=
            !slice_is(name, "default") && !slice_is(name, "stderr") && !slice_is(name, "stdout");
    /* Rotation renames one file, and there is one set of limits for it. */
    if (files == 1)
        return ST_OK;
    return error_set(error, ST_INVALID,
                     "--log-outputs requires a single file path when --enable-log-rotation is set");
}

enum status log_rotation_read(const char *json, const char *outputs,
                              struct log_rotation *ret_rotation, bool *ret_compress,
                              struct error *error)
{
    struct wanted wanted = {0};
    struct json_scanner scanner;
    TRY(check_outputs(outputs, error));
    json_scanner_init(&scanner, slice_from_text(json));
    if (!read_object(&scanner, &wanted)) {
        char why[JSON_FAULT_TEXT_BYTES];
        if (scanner.fault != JSON_FINE)
            return error_set(error, ST_INVALID, "improperly formatted log rotation config: %s",
                             json_fault_text(&scanner, why));
        return error_set(error, ST_INVALID,
                         "invalid log rotation config: maxsize, maxage and maxbackups are whole "
                         "numbers, localtime and compress true or false");
    }
    *ret_rotation = (struct log_rotation){
        .file_bytes_max = (int64_t)(wanted.size_mb ? wanted.size_mb : SIZE_MB_DEFAULT) * MEGABYTE,
        .age_days_max = (unsigned)wanted.age_days,
        .backups_max = (unsigned)wanted.backups,
        .local_time = wanted.local_time,
    };
    *ret_compress = wanted.compress;
    return ST_OK;
}
