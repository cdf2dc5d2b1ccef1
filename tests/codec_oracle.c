/*
 * The C side of codec_oracle.py: decodes messages from standard input and encodes them again.
 *
 *     in:   name length, name, message length, message      (lengths: 32 bits, little-endian)
 *     out:  'y', length, message encoded again | 'n' malformed | 'l' past a limit
 *
 * With --to-json it answers with JSON, with --from-json it reads JSON. With --tables it prints the
 * tables instead, one line for each field and enum value.
 */
#include "codec/json/scanner.h"
#include "codec/pb/json_read.h"
#include "codec/pb/json_write.h"
#include "codec/pb/pb.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20, INPUT_BYTES_MAX = 64 << 20 };

static void fail(const char *why)
{
    fprintf(stderr, "codec_oracle: %s\n", why);
    exit(2);
}

static bool read_block(struct buf *block)
{
    uint8_t head[4];
    if (fread(head, 1, sizeof(head), stdin) != sizeof(head))
        return false;
    size_t len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (len > INPUT_BYTES_MAX)
        fail("a length is invalid");
    block->len = 0;
    if (len && (buf_reserve(block, len) != ST_OK || fread(block->ptr, 1, len, stdin) != len))
        fail("the input ends early");
    block->len = len;
    return true;
}

static const struct pb_message *find_type(struct slice name)
{
    for (size_t i = 0; i < pb_message_count; i++) {
        if (slice_equal(slice_from_text(pb_messages[i]->name), name))
            return pb_messages[i];
    }
    fail("a message has no table");
    return NULL;
}

static void answer_bytes(struct slice out)
{
    uint8_t head[5] = {'y', (uint8_t)out.len, (uint8_t)(out.len >> 8), (uint8_t)(out.len >> 16),
                       (uint8_t)(out.len >> 24)};
    fwrite(head, 1, sizeof(head), stdout);
    if (out.len)
        fwrite(out.ptr, 1, out.len, stdout);
}

static void answer_message(const struct pb_message *type, const void *message)
{
    AUTO(buf_fini) struct buf out = {0};
    if (pb_append(type, message, &out) != ST_OK)
        fail("out of memory");
    answer_bytes(buf_slice(&out));
}

/* Feeds the message in pieces, whose size changes from message to message. */
static void answer_to_json(const struct pb_message *type, struct slice bytes)
{
    static size_t piece;
    struct pb_json_writer writer = {0};
    AUTO(buf_fini) struct buf out = {0};
    enum status status = pb_json_begin(&writer, type, (uint32_t)bytes.len, &out);
    piece = piece % 97 + 1;
    while (status == ST_OK && bytes.len) {
        size_t n = size_min(piece, bytes.len);
        status = pb_json_feed(&writer, slice_sub(bytes, 0, n), &out);
        bytes = slice_sub(bytes, n, bytes.len - n);
    }
    if (status == ST_OK && pb_json_ended(&writer))
        answer_bytes(buf_slice(&out));
    else
        putchar(status == ST_LIMIT ? 'l' : 'n');
    pb_json_writer_fini(&writer);
}

static void answer_from_json(const struct pb_message *type, struct slice json)
{
    char error[PB_JSON_ERROR_BYTES];
    struct json_scanner scanner;
    AUTO(buf_fini) struct buf out = {0};
    json_scanner_init(&scanner, json);
    enum status status = ST_INVALID;
    if (json_next_value(&scanner, &json))
        status = pb_json_read(type, json, &out, error);
    if (status == ST_OK)
        answer_bytes(buf_slice(&out));
    else
        putchar(status == ST_LIMIT ? 'l' : 'n');
}

static void answer(const struct pb_message *type, struct slice bytes)
{
    /* An exact copy of the message, so that a sanitizer detects reads past its end. */
    uint8_t *copy = malloc(bytes.len ? bytes.len : 1);
    void *message = malloc(type->struct_bytes);
    if (!copy || !message)
        fail("out of memory");
    slice_copy(copy, bytes);
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = pb_decode(type, slice_of(copy, bytes.len), &arena, message);
    if (status == ST_OK)
        answer_message(type, message);
    else
        putchar(status == ST_MALFORMED ? 'n' : 'l');
    arena_fini(&arena);
    free(message);
    free(copy);
}

static void print_enum(const struct pb_enum *enumeration)
{
    for (size_t i = 0; i < enumeration->value_count; i++)
        printf("value %s %s %d\n", enumeration->name, enumeration->values[i].name,
               enumeration->values[i].number);
}

static void print_field(const struct pb_message *type, const struct pb_field *field)
{
    static const char *kinds[] = {"bool",   "int32",  "uint32", "enum",   "int64",
                                  "uint64", "string", "bytes",  "message"};
    static const char *labels[] = {"singular", "repeated", "oneof"};
    const char *target = "-";
    if (field->kind == PB_KIND_MESSAGE)
        target = field->message->name;
    if (field->kind == PB_KIND_ENUM)
        target = field->enumeration->name;
    printf("field %s %u %s %s %s %s %s\n", type->name, pb_field_number(field), field->name,
           field->json_name, kinds[field->kind], labels[field->label], target);
    if (field->kind == PB_KIND_ENUM)
        print_enum(field->enumeration);
}

static int print_tables(void)
{
    for (size_t i = 0; i < pb_message_count; i++) {
        printf("message %s\n", pb_messages[i]->name);
        for (size_t k = 0; k < pb_messages[i]->field_count; k++)
            print_field(pb_messages[i], &pb_messages[i]->fields[k]);
    }
    return fflush(stdout) == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--tables") == 0)
        return print_tables();
    void (*handle)(const struct pb_message *, struct slice) = answer;
    if (argc > 1)
        handle = strcmp(argv[1], "--to-json") == 0 ? answer_to_json : answer_from_json;
    AUTO(buf_fini) struct buf name = {0};
    AUTO(buf_fini) struct buf message = {0};
    while (read_block(&name)) {
        if (!read_block(&message))
            fail("a name without a message");
        handle(find_type(buf_slice(&name)), buf_slice(&message));
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
