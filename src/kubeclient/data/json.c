#include "kubeclient/data/json.h"

#include "client/driver/bytes.h"
#include "codec/json/number.h"
#include "codec/json/string.h"

/* -- Paths -- */

static bool read_quoted(const char **at, struct path_step *ret_step)
{
    const char *from = *at + 2, *end = strstr(from, "']");
    if (!end)
        return false;
    *ret_step = (struct path_step){PATH_QUOTED, .key = slice_of(from, (size_t)(end - from))};
    *at = end + 2;
    return true;
}

static bool read_index(const char **at, struct path_step *ret_step)
{
    size_t index = 0, digits = 0;
    const char *p = *at + 1;
    for (; *p >= '0' && *p <= '9' && digits < 9; p++, digits++)
        index = index * 10 + (size_t)(*p - '0');
    if (digits == 0 || *p != ']')
        return false;
    *ret_step = (struct path_step){PATH_INDEX, .index = index};
    *at = p + 1;
    return true;
}

bool path_next(const char **at, bool first, struct path_step *ret_step)
{
    if ((*at)[0] == '[')
        return (*at)[1] == '\'' ? read_quoted(at, ret_step) : read_index(at, ret_step);
    if (!first && *(*at)++ != '.')
        return false;
    size_t len = strcspn(*at, ".[");
    *ret_step = (struct path_step){PATH_KEY, .key = slice_of(*at, len)};
    *at += len;
    return len > 0;
}

/* -- Finding -- */

/* The first token of the member's value; JSON_FAULT: there is none. */
static enum json_token enter_member(struct json_scanner *s, struct slice key)
{
    while (json_next(s) == JSON_KEY) {
        if (json_token_is(s, key))
            return json_next(s);
        if (!json_skip(s, JSON_KEY))
            break;
    }
    return JSON_FAULT;
}

static enum json_token enter_item(struct json_scanner *s, size_t index)
{
    enum json_token token = json_next(s);
    for (; index > 0 && token != JSON_ARRAY_END; index--) {
        if (!json_skip(s, token))
            return JSON_FAULT;
        token = json_next(s);
    }
    return token == JSON_ARRAY_END ? JSON_FAULT : token;
}

static enum json_token enter(struct json_scanner *s, enum json_token outer,
                             const struct path_step *step)
{
    if (step->type == PATH_INDEX)
        return outer == JSON_ARRAY ? enter_item(s, step->index) : JSON_FAULT;
    return outer == JSON_OBJECT ? enter_member(s, step->key) : JSON_FAULT;
}

/* The rest of the value whose first token was just returned. */
static int found(struct json_scanner *s, enum json_token token, vigil_bytes *ret_value)
{
    const uint8_t *from = s->raw.ptr;
    if (token == JSON_FAULT || token == JSON_END || !json_skip(s, token))
        return 0;
    *ret_value = vigil_bytes_of(from, (size_t)(s->at - from));
    return 1;
}

int vigil_json_find(vigil_bytes json, const char *path, vigil_bytes *ret_value)
{
    struct json_scanner s;
    struct path_step step;
    json_scanner_init(&s, slice_of_bytes(json));
    enum json_token token = json_next(&s);
    for (const char *at = path; *at && token != JSON_FAULT;) {
        if (!path_next(&at, at == path, &step))
            return 0;
        token = enter(&s, token, &step);
    }
    return found(&s, token, ret_value);
}

int vigil_json_member(vigil_bytes json, vigil_bytes key, vigil_bytes *ret_value)
{
    struct json_scanner s;
    struct path_step step = {.key = slice_of_bytes(key)};
    json_scanner_init(&s, slice_of_bytes(json));
    return found(&s, enter(&s, json_next(&s), &step), ret_value);
}

/* -- Values -- */

static const unsigned char *skip_space(const unsigned char *at, const unsigned char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Without the white space before it. */
static struct slice trimmed(vigil_bytes value)
{
    const unsigned char *from = value.data;
    if (value.size == 0)
        return SLICE_EMPTY;
    const unsigned char *at = skip_space(from, from + value.size);
    return slice_of(at, value.size - (size_t)(at - from));
}

int vigil_json_type_of(vigil_bytes value)
{
    struct slice text = trimmed(value);
    if (text.len == 0)
        return VIGIL_JSON_NONE;
    switch (text.ptr[0]) {
    case '{':
        return VIGIL_JSON_OBJECT;
    case '[':
        return VIGIL_JSON_ARRAY;
    case '"':
        return VIGIL_JSON_TEXT;
    case 't':
    case 'f':
        return VIGIL_JSON_BOOLEAN;
    case 'n':
        return VIGIL_JSON_NULL;
    case '-':
    case '0' ... '9':
        return VIGIL_JSON_NUMBER;
    default:
        return VIGIL_JSON_NONE;
    }
}

/* Whether the value is one whole string, so that it can be decoded. */
static bool is_string(vigil_bytes value)
{
    struct json_scanner s;
    json_scanner_init(&s, slice_of_bytes(value));
    return json_next(&s) == JSON_STRING && s.raw.len == value.size;
}

int vigil_json_is(vigil_bytes value, const char *text)
{
    return is_string(value) && json_inner_is(slice_sub(slice_of_bytes(value), 1, value.size - 2),
                                             slice_from_text(text));
}

int vigil_json_is_true(vigil_bytes value)
{
    return slice_equal(slice_of_bytes(value), SLICE_LITERAL("true"));
}

int vigil_json_integer(vigil_bytes value, int64_t *ret_number)
{
    struct slice text = slice_of_bytes(value);
    return json_number_valid(text) && json_number_i64(text, ret_number);
}

int vigil_json_text(vigil_bytes value, char *buffer, size_t size, size_t *ret_length)
{
    size_t len;
    struct slice raw = slice_of_bytes(value);
    if (!is_string(value) || json_string_decode(raw, NULL, &len) != JSON_STRING_FINE || len >= size)
        return 0;
    if (json_string_decode(raw, (uint8_t *)buffer, &len) != JSON_STRING_FINE)
        return 0;
    buffer[len] = 0;
    if (ret_length)
        *ret_length = len;
    return 1;
}

vigil_bytes json_plain_text(vigil_bytes json, const char *path)
{
    vigil_bytes value;
    if (!vigil_json_find(json, path, &value) || vigil_json_type_of(value) != VIGIL_JSON_TEXT ||
        memchr(value.data, '\\', value.size))
        return vigil_bytes_of(NULL, 0);
    return vigil_bytes_of((const char *)value.data + 1, value.size - 2);
}

/* -- Iterating -- */

vigil_json_iterator vigil_json_iterate(vigil_bytes container)
{
    int type = vigil_json_type_of(container);
    bool usable = type == VIGIL_JSON_OBJECT || type == VIGIL_JSON_ARRAY;
    struct slice text = trimmed(container);
    vigil_json_iterator iterator = {
        .at = usable ? text.ptr + 1 : text.ptr,
        .end = usable ? text.ptr + text.len : text.ptr,
        .in_object = type == VIGIL_JSON_OBJECT,
    };
    return iterator;
}

/* Cuts the next value off. */
static bool next_value(vigil_json_iterator *iterator, vigil_bytes *ret_value)
{
    struct json_scanner s;
    struct slice value;
    json_scanner_init(&s, slice_of(iterator->at, (size_t)(iterator->end - iterator->at)));
    if (!json_next_value(&s, &value))
        return false;
    iterator->at = skip_space(s.at, iterator->end);
    *ret_value = bytes_of_slice(value);
    return true;
}

static bool passes(vigil_json_iterator *iterator, unsigned char byte)
{
    if (iterator->at == iterator->end || *iterator->at != byte)
        return false;
    iterator->at++;
    return true;
}

static bool next_pair(vigil_json_iterator *iterator, vigil_bytes *ret_key, vigil_bytes *ret_value)
{
    if (iterator->begun && !passes(iterator, ','))
        return false;
    iterator->begun = 1;
    *ret_key = vigil_bytes_of(NULL, 0);
    if (iterator->in_object &&
        (!next_value(iterator, ret_key) || vigil_json_type_of(*ret_key) != VIGIL_JSON_TEXT ||
         !passes(iterator, ':')))
        return false;
    return next_value(iterator, ret_value);
}

int vigil_json_next(vigil_json_iterator *iterator, vigil_bytes *ret_key, vigil_bytes *ret_value)
{
    vigil_bytes key, value;
    iterator->at = skip_space(iterator->at, iterator->end);
    if (!next_pair(iterator, &key, &value)) {
        iterator->at = iterator->end; /* nothing follows */
        return 0;
    }
    if (ret_key)
        *ret_key = key;
    *ret_value = value;
    return 1;
}
