#include "cel/library/writer.h"

#include "cel/library/convert.h"
#include "cel/library/library.h"
#include "cel/value/container.h"

#include <stdio.h>

enum { ROOM_MIN = 64, DEPTH_MAX = 1000 };

void cel_write(struct cel_writer *to, struct slice text)
{
    to->work->steps_left -= (int64_t)(text.len / 64);
    to->failed |= to->work->steps_left < 0;
    if (to->failed)
        return;
    if (text.len > to->room - to->length) {
        size_t room = size_max(2 * to->room, to->length + text.len + ROOM_MIN);
        uint8_t *bytes = arena_alloc(to->work->arena, room);
        if (!bytes) {
            to->failed = true;
            return;
        }
        slice_copy(bytes, slice_of(to->bytes, to->length));
        to->bytes = bytes;
        to->room = room;
    }
    slice_copy(to->bytes + to->length, text);
    to->length += text.len;
}

void cel_write_text(struct cel_writer *to, const char *text)
{
    cel_write(to, slice_from_text(text));
}

void cel_write_repeated(struct cel_writer *to, const char *text, size_t times)
{
    for (; times > 0 && !to->failed; times--)
        cel_write_text(to, text);
}

void cel_write_quoted(struct cel_writer *to, struct slice text)
{
    const char *quoted = cel_quoted(to->work, text);
    to->failed |= !quoted[0]; /* there was no memory */
    cel_write_text(to, quoted);
}

struct cel_value cel_written(const struct cel_writer *writer)
{
    if (writer->failed)
        return writer->work->steps_left < 0 ? CEL_TOO_MUCH_WORK : CEL_NO_MEMORY;
    return cel_of_string(slice_of(writer->bytes, writer->length));
}

/* -- Go's %v -- */

static void write_items(struct cel_writer *to, struct cel_value over, bool is_native, int depth)
{
    struct cel_walk walk;
    struct cel_value key, value;
    bool is_list = over.kind == CEL_LIST, is_first = true;
    cel_write_text(to, is_list ? "[" : is_native ? "map[" : "{");
    cel_walk_init(&walk, to->work, over);
    while (!to->failed && cel_walk_next(&walk, &key, &value)) {
        if (!is_first)
            cel_write_text(to, is_native ? " " : ", ");
        is_first = false;
        if (!is_list) {
            cel_write_go(to, key, is_native, depth + 1);
            cel_write_text(to, is_native ? ":" : ": ");
        }
        cel_write_go(to, value, is_native || (is_list && over.is_view), depth + 1);
    }
    cel_write_text(to, is_list || is_native ? "]" : "}");
}

static void write_bytes(struct cel_writer *to, struct slice bytes)
{
    char number[8];
    cel_write_text(to, "[");
    for (size_t i = 0; i < bytes.len && !to->failed; i++) {
        snprintf(number, sizeof(number), "%s%u", i ? " " : "", bytes.ptr[i]);
        cel_write_text(to, number);
    }
    cel_write_text(to, "]");
}

void cel_write_go(struct cel_writer *to, struct cel_value value, bool is_native, int depth)
{
    struct cel_value text;
    to->work->steps_left--;
    if (depth > DEPTH_MAX)
        return;
    switch ((enum cel_value_kind)value.kind) {
    case CEL_NULL:
        cel_write_text(to, is_native ? "<nil>" : "0");
        break;
    case CEL_BYTES:
        write_bytes(to, cel_text(value));
        break;
    case CEL_LIST:
    case CEL_MAP:
        write_items(to, value, is_native, depth);
        break;
    case CEL_TYPE_VALUE:
        cel_write_text(to, value.type->name);
        break;
    case CEL_OPTIONAL:
        cel_write_text(to, value.some ? "optional(" : "optional.none()");
        if (value.some) {
            cel_write_go(to, *value.some, false, depth + 1);
            cel_write_text(to, ")");
        }
        break;
    default:
        text = cel_to_string(to->work, &value);
        if (cel_is_error(text))
            cel_write_text(to, cel_value_type_name(value));
        else
            cel_write(to, cel_text(text));
    }
}
