/*
 * Any bytes as JSON, and as any message in JSON: the first byte picks the table. What is accepted
 * is a message, and written as JSON and read again it is the same bytes.
 */
#include "cost.h"

#include "codec/json/scanner.h"
#include "codec/pb/json_read.h"
#include "codec/pb/json_write.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static void assert_decodes(const struct pb_message *type, struct slice bytes)
{
    void *message = malloc(type->struct_bytes);
    struct arena arena;
    assert(message);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = pb_decode(type, bytes, &arena, message);
    assert(status == ST_OK || status == ST_LIMIT);
    arena_fini(&arena);
    free(message);
}

static void write_json(const struct pb_message *type, struct slice bytes, size_t piece,
                       struct buf *out)
{
    struct pb_json_writer writer = {0};
    enum status status = pb_json_begin(&writer, type, (uint32_t)bytes.len, out);
    while (status == ST_OK && bytes.len) {
        size_t n = size_min(piece, bytes.len);
        status = pb_json_feed(&writer, slice_sub(bytes, 0, n), out);
        bytes = slice_sub(bytes, n, bytes.len - n);
    }
    assert(status == ST_OK && pb_json_ended(&writer));
    pb_json_writer_fini(&writer);
}

static bool read_json(const struct pb_message *type, struct slice json, struct buf *out)
{
    char error[PB_JSON_ERROR_BYTES];
    struct json_scanner scanner;
    struct slice value;
    json_scanner_init(&scanner, json);
    return json_next_value(&scanner, &value) && pb_json_read(type, value, out, error) == ST_OK;
}

static void scan_all(struct slice text)
{
    struct json_scanner scanner;
    struct slice value;
    char words[JSON_FAULT_TEXT_BYTES];
    json_scanner_init(&scanner, text);
    while (json_next_value(&scanner, &value))
        assert(value.len > 0);
    assert(json_fault_text(&scanner, words)[0]);
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    const struct pb_message *type = pb_messages[data[0] % pb_message_count];
    struct slice text = slice_of(data + 1, size - 1);
    AUTO(buf_fini) struct buf bytes = {0}, json = {0}, again = {0};
    scan_all(text);
    if (!read_json(type, text, &bytes))
        return 0;
    assert(bytes.len <= text.len);
    assert_decodes(type, buf_slice(&bytes));
    write_json(type, buf_slice(&bytes), data[0] % 7 + 1, &json);
    bool read = read_json(type, buf_slice(&json), &again);
    assert(read);
    assert(slice_equal(buf_slice(&again), buf_slice(&bytes)));
    return 0;
}
