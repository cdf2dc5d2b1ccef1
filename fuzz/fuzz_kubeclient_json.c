/* Input: a path and a text, separated by a zero byte. What the lazy view finds in the text is a
 * part of it that is valid JSON, and all functions agree about it. A value is set at the path. */
#include "cost.h"

#include "base/buf.h"
#include "codec/json/scanner.h"

#include <assert.h>
#include <stdlib.h>
#include <vigil/kube/edit.h>

static bool is_within(vigil_bytes part, vigil_bytes whole)
{
    const uint8_t *from = part.data, *of = whole.data;
    return from >= of && from + part.size <= of + whole.size;
}

static bool is_json(vigil_bytes value)
{
    struct json_scanner s;
    struct slice first;
    json_scanner_init(&s, slice_of(value.data, value.size));
    return json_next_value(&s, &first) && first.len == value.size;
}

/* A string decodes to a text that it equals. */
static void check_text(vigil_bytes value)
{
    size_t len;
    char *text = malloc(value.size + 1);
    if (!text)
        return;
    if (vigil_json_text(value, text, value.size, &len)) {
        assert(len + 2 <= value.size && text[len] == 0);
        assert(vigil_json_is(value, text) == (strlen(text) == len));
    }
    free(text);
}

/* Any bytes may be given for a value. */
static void check_value(vigil_bytes value)
{
    int64_t number;
    int type = vigil_json_type_of(value);
    check_text(value);
    assert(!vigil_json_integer(value, &number) || type == VIGIL_JSON_NUMBER);
    assert(!vigil_json_is_true(value) || type == VIGIL_JSON_BOOLEAN);
    assert(!vigil_json_is(value, "a") || type == VIGIL_JSON_TEXT);
}

static size_t count_items(vigil_bytes container)
{
    size_t count = 0;
    vigil_bytes value;
    vigil_json_iterator iterator = vigil_json_iterate(container);
    while (vigil_json_next(&iterator, NULL, &value))
        count++;
    return count;
}

static void check_items(vigil_bytes container)
{
    size_t count = 0;
    vigil_bytes key, value, found;
    vigil_json_iterator iterator = vigil_json_iterate(container);
    for (; vigil_json_next(&iterator, &key, &value); count++) {
        assert(is_within(value, container) && is_json(value));
        check_value(value);
        assert(count_items(value) <= value.size);
        bool in_object = vigil_json_type_of(container) == VIGIL_JSON_OBJECT;
        assert(in_object == (vigil_json_type_of(key) == VIGIL_JSON_TEXT));
        if (count == 0 && !in_object)
            assert(vigil_json_find(container, "[0]", &found) && found.data == value.data);
    }
    assert(!vigil_json_next(&iterator, &key, &value));
}

/* A value that was set is found where it was set. */
static void check_set(vigil_bytes json, const char *path)
{
    vigil_bytes changed, found;
    int code = vigil_json_set(json, path, vigil_text(" 17 "), &changed);
    assert(code == VIGIL_OK || code == VIGIL_ERROR_ARGUMENT);
    if (code != VIGIL_OK)
        return;
    assert(is_json(changed) && vigil_json_find(changed, path, &found));
    assert(found.size == 2 && memcmp(found.data, "17", 2) == 0);
    vigil_json_free(changed);
}

FUZZ_INPUT()
{
    AUTO(buf_fini) struct buf path = {0};
    vigil_bytes found;
    struct slice text = slice_of(data, size);
    if (buf_append(&path, slice_cut(&text, '\0')) != ST_OK || buf_append(&path, slice_of("", 1)))
        return 0;
    vigil_bytes json = vigil_bytes_of(text.ptr, text.len);
    check_value(json);
    check_items(json);
    check_set(json, (const char *)path.ptr);
    if (vigil_json_member(json, vigil_bytes_of(path.ptr, path.len - 1), &found))
        assert(is_within(found, json) && is_json(found));
    if (!vigil_json_find(json, (const char *)path.ptr, &found))
        return 0;
    assert(is_within(found, json) && is_json(found));
    check_value(found);
    check_items(found);
    return 0;
}
