#include "base/log/line.h"

#include "base/clock.h"
#include "base/options/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Kept free for the closing brace, the marker of a truncated line, and the newline. */
enum { RESERVE = 32 };

static const char *const level_names[] = {"debug", "info", "warn", "error", "fatal"};

static void put(struct log_line *line, const char *bytes, size_t len)
{
    if (line->full || len > sizeof(line->text) - RESERVE - line->len) {
        line->full = true;
        return;
    }
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
}

static void put_text(struct log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void put_format(struct log_line *line, const char *format, ...) PRINTF_LIKE(2, 3);

static void put_format(struct log_line *line, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof(text));
    put(line, text, (size_t)len);
}

/* Writes into the reserve. */
static void put_last(struct log_line *line, const char *text)
{
    size_t len = strlen(text);
    assert(line->len + len <= sizeof(line->text));
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

/* The length of the UTF-8 sequence at the start of s, 0 when there is none. */
static size_t sequence_len(struct slice s)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t smallest;
    } forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t len = 1; len <= COUNT_OF(forms) && len <= s.len; len++) {
        if ((s.ptr[0] & forms[len - 1].mask) != forms[len - 1].lead)
            continue;
        uint32_t point = s.ptr[0] & (uint8_t)~forms[len - 1].mask;
        for (size_t i = 1; i < len; i++) {
            if ((s.ptr[i] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (s.ptr[i] & 0x3f);
        }
        bool fits = point >= forms[len - 1].smallest && point <= 0x10ffff &&
                    (point < 0xd800 || point > 0xdfff);
        return fits ? len : 0;
    }
    return 0;
}

static void put_character(struct log_line *line, struct slice character)
{
    uint8_t c = character.ptr[0];
    if (c == '"' || c == '\\')
        put_format(line, "\\%c", c);
    else if (c == '\n')
        put_text(line, "\\n");
    else if (c == '\r')
        put_text(line, "\\r");
    else if (c == '\t')
        put_text(line, "\\t");
    else if (c < 0x20 || c == 0x7f)
        put_format(line, "\\u%04x", c);
    else if (c == 0xc2 &&
             character.ptr[1] < 0xa0) /* U+0080 to U+009F: terminals interpret them too */
        put_format(line, "\\u%04x", character.ptr[1]);
    else
        put(line, (const char *)character.ptr, character.len);
}

/* A JSON string. Long texts are truncated, and bytes that are not UTF-8 are replaced. */
static void put_string(struct log_line *line, struct slice text)
{
    bool cut = text.len > LOG_TEXT_BYTES;
    if (cut)
        text.len = LOG_TEXT_BYTES;
    put_text(line, "\"");
    for (size_t at = 0; at < text.len;) {
        struct slice rest = slice_sub(text, at, text.len - at);
        size_t len = sequence_len(rest);
        if (len == 0)
            put_text(line, "\\ufffd");
        else
            put_character(line, slice_sub(rest, 0, len));
        at += len ? len : 1;
    }
    put_text(line, cut ? "...\"" : "\"");
}

static void put_list(struct log_line *line, const char *list)
{
    struct slice item;
    const char *separator = "";
    put_text(line, "[");
    while (option_list_next(&list, &item)) {
        put_text(line, separator);
        put_string(line, item);
        separator = ",";
    }
    put_text(line, "]");
}

static void put_slices(struct log_line *line, const struct slice *items, size_t count)
{
    put_text(line, "[");
    for (size_t i = 0; i < count; i++) {
        put_text(line, i ? "," : "");
        put_string(line, items[i]);
    }
    put_text(line, "]");
}

static void put_time(struct log_line *line, int64_t real_ns)
{
    time_t seconds = (time_t)(real_ns / NS_PER_S);
    struct tm t;
    gmtime_r(&seconds, &t);
    put_format(line, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", t.tm_year + 1900, t.tm_mon + 1,
               t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)(real_ns % NS_PER_S / NS_PER_US));
}

static void put_value(struct log_line *line, const struct log_field *field)
{
    switch (field->kind) {
    case FIELD_I64:
        put_format(line, "%lld", (long long)field->as.i64);
        break;
    case FIELD_U64:
        put_format(line, "%llu", (unsigned long long)field->as.u64);
        break;
    case FIELD_F64:
        if (field->as.f64 - field->as.f64 == 0)
            put_format(line, "%.9g", field->as.f64);
        else /* JSON has no infinity and no NaN */
            put_format(line, "\"%f\"", field->as.f64);
        break;
    case FIELD_BOOL:
        put_text(line, field->as.u64 ? "true" : "false");
        break;
    case FIELD_TEXT:
        put_string(line, field->as.text);
        break;
    case FIELD_LIST:
        put_list(line, (const char *)field->as.text.ptr);
        break;
    case FIELD_SLICES:
        put_slices(line, field->as.slices.items, field->as.slices.count);
        break;
    case FIELD_TIME:
        put_text(line, "\"");
        put_time(line, field->as.i64);
        put_text(line, "\"");
        break;
    case FIELD_HEX:
        put_format(line, "\"%llx\"", (unsigned long long)field->as.u64);
        break;
    }
}

/* separator "key":value, complete or not at all. */
static void put_field(struct log_line *line, const char *separator, const struct log_field *field)
{
    size_t start = line->len;
    put_text(line, separator);
    put_string(line, slice_from_text(field->key));
    put_text(line, ":");
    put_value(line, field);
    if (line->full)
        line->len = start;
}

/* Returns the separator for the next field. */
static const char *put_fields(struct log_line *line, const struct log_event *event,
                              const char *separator)
{
    for (size_t i = 0; i < event->count && !line->full; i++) {
        if (!event->fields[i].key)
            continue;
        put_field(line, separator, &event->fields[i]);
        separator = line->full ? separator : ",";
    }
    if (event->dropped && !line->full) {
        struct log_field dropped = LOG_U64("dropped-lines", event->dropped);
        put_field(line, separator, &dropped);
        separator = ",";
    }
    return separator;
}

/* "store/open.c:73", wherever the sources were when they were compiled. */
static void put_caller(struct log_line *line, const struct log_event *event)
{
    const char *file = event->file;
    for (const char *at = file; (at = strstr(at, "src/"));)
        file = at += strlen("src/");
    put_format(line, "%.64s:%d", file, event->line);
}

void log_line_json(struct log_line *line, const struct log_event *event)
{
    line->len = 0;
    line->full = false;
    put_format(line, "{\"level\":\"%s\",\"ts\":\"", level_names[event->level]);
    put_time(line, event->real_ns);
    put_text(line, "\",\"caller\":\"");
    put_caller(line, event);
    put_text(line, "\",\"msg\":");
    put_string(line, slice_from_text(event->message));
    put_fields(line, event, ",");
    put_last(line, line->full ? ",\"cut\":true}\n" : "}\n");
}

void log_line_console(struct log_line *line, const struct log_event *event, bool colour)
{
    static const char *const colours[] = {"\033[35m", "\033[34m", "\033[33m", "\033[31m",
                                          "\033[1;31m"};
    line->len = 0;
    line->full = false;
    put_time(line, event->real_ns);
    put_format(line, "\t%s%s%s\t", colour ? colours[event->level] : "", level_names[event->level],
               colour ? "\033[0m" : "");
    put_caller(line, event);
    put_text(line, "\t");
    size_t message_at = line->len;
    put_string(line, slice_from_text(event->message)); /* escaped, but without its quotes */
    memmove(line->text + message_at, line->text + message_at + 1, line->len - message_at - 2);
    line->len -= 2;
    const char *separator = put_fields(line, event, "\t{");
    if (separator[0] == ',')
        put_last(line, "}");
    put_last(line, line->full ? "\t(cut)\n" : "\n");
}
