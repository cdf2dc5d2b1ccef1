#include "kube/types/object/object.h"

#include "codec/json/string.h"

enum { VERSION_BYTES_MAX = 48 };

static bool is_key(const struct json_scanner *s, const char *name)
{
    return json_token_is(s, slice_from_text(name));
}

/*
 * Reads the value of the key just returned into *ret_text if it is a string, and skips other
 * values.
 */
static bool take_string(struct json_scanner *s, struct slice *ret_text)
{
    enum json_token token = json_next(s);
    if (token == JSON_STRING)
        *ret_text = slice_sub(s->raw, 1, s->raw.len - 2);
    return json_skip(s, token);
}

/* Reads the whole value of the key just returned. */
static bool take_value(struct json_scanner *s, struct slice *ret_value)
{
    enum json_token token = json_next(s);
    const uint8_t *start = s->raw.ptr;
    if (!json_skip(s, token))
        return false;
    *ret_value = slice_of(start, (size_t)(s->at - start));
    return true;
}

static bool take_labels(struct json_scanner *s, struct slice *ret_labels)
{
    struct slice value;
    if (!take_value(s, &value))
        return false;
    if (value.ptr[0] == '{')
        *ret_labels = value;
    return true;
}

/* Called after the key "metadata". */
static bool read_metadata(struct json_scanner *s, struct kube_object *o)
{
    enum json_token token = json_next(s);
    if (token != JSON_OBJECT)
        return false;
    const uint8_t *start = s->raw.ptr;
    o->at_version = json_position(s) + 1;
    o->metadata_empty = true;
    while ((token = json_next(s)) == JSON_KEY) {
        bool fine;
        o->metadata_empty = false;
        if (is_key(s, "name"))
            fine = take_string(s, &o->name);
        else if (is_key(s, "namespace"))
            fine = take_string(s, &o->namespace);
        else if (is_key(s, "uid"))
            fine = take_string(s, &o->uid);
        else if (is_key(s, "labels"))
            fine = take_labels(s, &o->labels);
        else
            fine = json_skip(s, JSON_KEY);
        if (!fine)
            return false;
    }
    if (token != JSON_OBJECT_END)
        return false;
    o->metadata = slice_of(start, (size_t)(s->at - start));
    return true;
}

/* All fields that the caller needs are found, so the rest need not be read. */
static bool is_complete(const struct kube_object *o)
{
    return o->kind.ptr && o->api_version.ptr && o->metadata.ptr;
}

enum status kube_object_parse(struct slice json, struct kube_object *ret_object)
{
    struct kube_object *o = ret_object;
    struct json_scanner s;
    *o = (struct kube_object){.json = json};
    json_scanner_init(&s, json);
    if (json_next(&s) != JSON_OBJECT)
        return ST_MALFORMED;
    enum json_token token = JSON_OBJECT_END;
    for (size_t field = 0; !is_complete(o) && (token = json_next(&s)) == JSON_KEY; field++) {
        bool fine;
        if (field == 2 && o->kind.ptr && o->api_version.ptr) {
            o->leading = true;
            o->at_rest = json_position(&s);
        }
        if (is_key(&s, "kind"))
            fine = take_string(&s, &o->kind);
        else if (is_key(&s, "apiVersion"))
            fine = take_string(&s, &o->api_version);
        else if (is_key(&s, "metadata"))
            fine = read_metadata(&s, o);
        else
            fine = json_skip(&s, JSON_KEY);
        if (!fine)
            return ST_MALFORMED;
    }
    if (token != JSON_KEY && token != JSON_OBJECT_END)
        return ST_MALFORMED;
    return o->metadata.ptr ? ST_OK : ST_MALFORMED;
}

/* Skips a word that must come next. */
static bool take_word(struct slice *rest, const char *word, size_t len)
{
    if (rest->len < len || memcmp(rest->ptr, word, len) != 0)
        return false;
    *rest = slice_sub(*rest, len, rest->len - len);
    return true;
}

/* Reads up to the closing quote. Escapes are not supported: kinds and versions have none. */
static bool take_plain(struct slice *rest, struct slice *ret_text)
{
    const uint8_t *quote = rest->len ? memchr(rest->ptr, '"', rest->len) : NULL;
    size_t len = quote ? (size_t)(quote - rest->ptr) : 0;
    if (!quote || memchr(rest->ptr, '\\', len))
        return false;
    *ret_text = slice_sub(*rest, 0, len);
    *rest = slice_sub(*rest, len + 1, rest->len - len - 1);
    return true;
}

#define TAKE_WORD(rest, word) take_word((rest), (word), sizeof(word) - 1)

enum status kube_object_parse_head(struct slice json, struct kube_object *ret_object)
{
    static const char before[] = ",\"metadata\":{";
    struct kube_object o = {.json = json, .leading = true};
    struct slice rest = json;
    bool usual = TAKE_WORD(&rest, "{\"kind\":\"") && take_plain(&rest, &o.kind) &&
                 TAKE_WORD(&rest, ",\"apiVersion\":\"") && take_plain(&rest, &o.api_version);
    o.at_rest = json.len - rest.len + 1;
    usual = usual && TAKE_WORD(&rest, before) && rest.len && json.ptr[json.len - 1] == '}' &&
            (rest.ptr[0] == '"' || rest.ptr[0] == '}');
    if (!usual)
        return kube_object_parse(json, ret_object);
    o.at_version = json.len - rest.len;
    o.metadata_empty = rest.ptr[0] == '}';
    *ret_object = o;
    return ST_OK;
}

/* -- Fields -- */

/* Returns the path up to its first dot; *path becomes the rest. */
static struct slice path_step(struct slice *path)
{
    const uint8_t *dot = path->len ? memchr(path->ptr, '.', path->len) : NULL;
    size_t len = dot ? (size_t)(dot - path->ptr) : path->len;
    struct slice step = slice_sub(*path, 0, len);
    size_t skip = dot ? len + 1 : len;
    *path = slice_sub(*path, skip, path->len - skip);
    return step;
}

/* Moves within an object to the value of that key. */
static bool find_key(struct json_scanner *s, struct slice name)
{
    while (json_next(s) == JSON_KEY) {
        if (json_token_is(s, name))
            return true;
        if (!json_skip(s, JSON_KEY))
            return false;
    }
    return false;
}

static bool find_field(const struct kube_object *object, struct slice path, struct slice *ret_value)
{
    struct json_scanner s;
    json_scanner_init(&s, object->json);
    enum json_token token = json_next(&s);
    while (path.len) {
        if (token != JSON_OBJECT || !find_key(&s, path_step(&path)))
            return false;
        token = json_next(&s);
    }
    if (token < JSON_STRING || token > JSON_FALSE)
        return false;
    *ret_value = token == JSON_STRING ? slice_sub(s.raw, 1, s.raw.len - 2) : s.raw;
    return true;
}

bool kube_object_field(const struct kube_object *object, struct slice path, struct slice *ret_value)
{
    struct kube_field_memo *memo = object->memo;
    if (!memo || path.len > sizeof(memo->path))
        return find_field(object, path, ret_value);
    if (!memo->known || !slice_equal(path, slice_of(memo->path, memo->path_len))) {
        memo->found = find_field(object, path, &memo->value);
        memo->known = true;
        memo->path_len = (uint8_t)path.len;
        slice_copy(memo->path, path);
    }
    if (memo->found)
        *ret_value = memo->value;
    return memo->found;
}

bool kube_object_is_deleting(const struct kube_object *object)
{
    struct slice time;
    return kube_object_field(object, SLICE_LITERAL("metadata.deletionTimestamp"), &time) &&
           time.len;
}

/* -- Sending -- */

/* The parts of the object as it is sent, in order. */
struct object_parts {
    struct slice part[4];
    char version[VERSION_BYTES_MAX];
};

/*
 * Writes `"resourceVersion":"1234",`. It runs for every object of every list, so it avoids printf.
 */
static size_t write_version(char *to, int64_t revision, bool comma)
{
    static const char name[] = "\"resourceVersion\":\"";
    char digits[20];
    size_t at = sizeof(digits), len = sizeof(name) - 1;
    uint64_t left = (uint64_t)revision;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    memcpy(to, name, len);
    memcpy(to + len, digits + at, sizeof(digits) - at);
    len += sizeof(digits) - at;
    to[len++] = '"';
    to[len] = ',';
    return len + comma;
}

static void parts_of(const struct kube_object *o, int64_t revision, bool item,
                     struct object_parts *parts)
{
    bool skips = item && o->leading && o->at_rest <= o->at_version;
    size_t from = skips ? o->at_rest : 0;
    size_t len = write_version(parts->version, revision, !o->metadata_empty);
    parts->part[0] = skips ? SLICE_LITERAL("{") : SLICE_EMPTY;
    parts->part[1] = slice_sub(o->json, from, o->at_version - from);
    parts->part[2] = slice_of(parts->version, len);
    parts->part[3] = slice_sub(o->json, o->at_version, o->json.len - o->at_version);
}

size_t kube_object_size(const struct kube_object *object, int64_t revision, bool item)
{
    struct object_parts parts;
    size_t size = 0;
    parts_of(object, revision, item, &parts);
    for (size_t i = 0; i < COUNT_OF(parts.part); i++)
        size += parts.part[i].len;
    return size;
}

size_t kube_object_copy(const struct kube_object *object, int64_t revision, bool item, size_t from,
                        uint8_t *dst, size_t room)
{
    struct object_parts parts;
    size_t copied = 0;
    parts_of(object, revision, item, &parts);
    for (size_t i = 0; i < COUNT_OF(parts.part); i++) {
        struct slice part = parts.part[i];
        size_t skip = size_min(from, part.len);
        from -= skip;
        size_t n = size_min(part.len - skip, room - copied);
        slice_copy(dst + copied, slice_sub(part, skip, n));
        copied += n;
    }
    return copied;
}
