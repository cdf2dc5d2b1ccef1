#include "kube/types/go_text.h"

#include "codec/json/field_fault.h"
#include "codec/json/number.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct slice go_trim(struct slice text)
{
    while (text.len && is_space(text.ptr[0]))
        text = slice_sub(text, 1, text.len - 1);
    while (text.len && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

enum status go_quote(struct slice text, struct buf *to)
{
    TRY(buf_append_text(to, "\""));
    TRY(go_escape(slice_sub(text, 0, size_min(text.len, GO_SHOWN_BYTES_MAX)), to));
    return buf_append_text(to, "\"");
}

bool go_is_float(struct slice digits)
{
    int64_t whole;
    for (size_t i = 0; i < digits.len; i++)
        if (strchr(".eE", digits.ptr[i]))
            return true;
    return !json_number_i64(digits, &whole);
}

const char *go_float(double number, char text[GO_FLOAT_BYTES])
{
    int precision = 1;
    do
        snprintf(text, GO_FLOAT_BYTES, "%.*e", precision - 1, number);
    while (strtod(text, NULL) != number && precision++ < 17);
    const char *e = strchr(text, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 21)
        return text;
    int decimals = precision - 1 - exponent;
    snprintf(text, GO_FLOAT_BYTES, "%.*f", decimals > 0 ? decimals : 0, number);
    return text;
}

/* Go's encoding/json writes these characters as escapes, for the sake of HTML and JavaScript. */
static enum status append_json(struct slice json, struct buf *to)
{
    size_t from = 0, i = 0;
    while (i < json.len) {
        uint8_t byte = json.ptr[i];
        bool html = byte == '<' || byte == '>' || byte == '&';
        bool line = byte == 0xe2 && i + 2 < json.len && json.ptr[i + 1] == 0x80 &&
                    (json.ptr[i + 2] & 0xfe) == 0xa8;
        if (!html && !line) {
            i++;
            continue;
        }
        TRY(buf_append(to, slice_sub(json, from, i - from)));
        TRY(buf_append_format(to, "\\u%04x", html ? byte : 0x2028u + (json.ptr[i + 2] & 1u)));
        from = i += html ? 1 : 3;
    }
    return buf_append(to, slice_sub(json, from, json.len - from));
}

enum status go_value_append(const struct json_node *value, struct arena *arena, struct buf *to)
{
    struct slice text;
    char number[GO_FLOAT_BYTES], digits[64];
    switch ((enum json_type)value->type) {
    case JSON_TYPE_STRING:
        TRY(json_node_text(value, arena, &text));
        return go_quote(text, to);
    case JSON_TYPE_NUMBER:
        if (!go_is_float(value->text) || value->text.len >= sizeof(digits))
            return buf_append(to, slice_sub(value->text, 0, size_min(value->text.len, 64)));
        slice_copy(digits, value->text);
        digits[value->text.len] = '\0';
        return buf_append_text(to, go_float(strtod(digits, NULL), number));
    default: {
        AUTO(buf_fini) struct buf json = {0};
        TRY(json_tree_write(value, &json));
        return append_json(slice_sub(buf_slice(&json), 0, size_min(json.len, GO_SHOWN_BYTES_MAX)),
                           to);
    }
    }
}
