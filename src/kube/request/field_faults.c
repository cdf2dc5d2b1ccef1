#include "kube/request/field_faults.h"

#include "codec/json/field_fault.h"
#include "codec/json/string.h"
#include "codec/json/tree.h"

#include <stdlib.h>

struct slice field_faults_take(struct slice *faults)
{
    static const char *const joints[] = {"\", unknown field \"", "\", duplicate field \"",
                                         "\", json patch "};
    size_t end = faults->len, skip = end;
    for (size_t i = 0; i < COUNT_OF(joints); i++) {
        const uint8_t *at = memmem(faults->ptr, end, joints[i], strlen(joints[i]));
        if (!at)
            continue;
        end = (size_t)(at - faults->ptr) + strlen("\"");
        skip = end + strlen(", ");
    }
    struct slice first = slice_sub(*faults, 0, end);
    *faults = slice_sub(*faults, skip, faults->len - skip);
    return first;
}

/* -- Order -- */

struct fault {
    struct slice text, path;
    bool unknown;
    unsigned met; /* how often its path has occurred */
    bool told;
};

/* An open object or array: the end of its path, and the number of the next item. */
struct open {
    size_t path_len, item;
    bool array;
};

struct sorter {
    bool maps; /* an unknown field does not hide errors within it */
    struct fault faults[FIELD_FAULTS_MAX];
    size_t count;
    struct open open[JSON_TREE_DEPTH_MAX + 1];
    size_t depth;
    struct buf key;  /* decoded */
    struct buf path; /* path of the current value, with the escapes of a fault's path */
    struct buf out;
};

static void sorter_free(struct sorter **sorter)
{
    if (*sorter) {
        buf_fini(&(*sorter)->key);
        buf_fini(&(*sorter)->path);
        buf_fini(&(*sorter)->out);
    }
    free(*sorter);
}

static void add_fault(struct sorter *s, struct slice text)
{
    struct slice unknown = SLICE_LITERAL("unknown field \"");
    struct slice duplicate = SLICE_LITERAL("duplicate field \"");
    bool is_unknown = slice_has_prefix(text, unknown);
    size_t head = is_unknown ? unknown.len : duplicate.len;
    if (text.len <= head)
        return;
    struct slice path = slice_sub(text, head, text.len - head - 1);
    s->faults[s->count++] = (struct fault){.text = text, .path = path, .unknown = is_unknown};
}

/* The same was reported, or it is part of an unknown field. */
static bool is_moot(const struct sorter *s, const struct fault *fault)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct fault *other = &s->faults[i];
        if ((other->told && slice_equal(other->text, fault->text)) ||
            (!s->maps && !fault->unknown && other->unknown &&
             slice_has_prefix(fault->path, other->path) &&
             (fault->path.len == other->path.len || fault->path.ptr[other->path.len] == '.' ||
              fault->path.ptr[other->path.len] == '[')))
            return true;
    }
    return false;
}

static enum status tell(struct sorter *s, struct fault *fault)
{
    if (!is_moot(s, fault)) {
        TRY(buf_append_text(&s->out, s->out.len ? ", " : ""));
        TRY(buf_append(&s->out, fault->text));
    }
    fault->told = true;
    return ST_OK;
}

static enum status on_key(struct sorter *s, struct slice raw)
{
    size_t len;
    s->path.len = s->open[s->depth - 1].path_len;
    s->key.len = 0;
    TRY(buf_reserve(&s->key, raw.len));
    if (json_string_decode(raw, s->key.ptr, &len) != JSON_STRING_FINE)
        return ST_OK;
    TRY(buf_append_text(&s->path, s->path.len ? "." : ""));
    TRY(go_escape(slice_of(s->key.ptr, len), &s->path));
    struct slice path = buf_slice(&s->path);
    for (size_t i = 0; i < s->count; i++) {
        struct fault *fault = &s->faults[i];
        if (fault->told || !slice_equal(fault->path, path))
            continue;
        fault->met++;
        /* A duplicate is reported where its name occurs for the second time. */
        if (fault->unknown || fault->met == 2)
            TRY(tell(s, fault));
    }
    return ST_OK;
}

/* A value begins: an item gets its own path, a member has that of its key. */
static enum status on_value(struct sorter *s, enum json_token token)
{
    struct open *in = s->depth ? &s->open[s->depth - 1] : NULL;
    if (in && in->array) {
        s->path.len = in->path_len;
        TRY(buf_append_format(&s->path, "[%zu]", in->item++));
    }
    if (token != JSON_OBJECT && token != JSON_ARRAY)
        return ST_OK;
    if (s->depth == COUNT_OF(s->open))
        return ST_LIMIT;
    s->open[s->depth++] = (struct open){.path_len = s->path.len, .array = token == JSON_ARRAY};
    return ST_OK;
}

static enum status scan(struct sorter *s, struct slice json)
{
    struct json_scanner scanner;
    json_scanner_init(&scanner, json);
    for (;;) {
        enum json_token token = json_next(&scanner);
        if (token == JSON_END || token == JSON_FAULT)
            return ST_OK;
        if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
            s->depth--;
        else
            TRY(token == JSON_KEY ? on_key(s, scanner.raw) : on_value(s, token));
    }
}

static void sorter_add_all(struct sorter *s, struct slice *rest)
{
    while (rest->len && s->count < FIELD_FAULTS_MAX)
        add_fault(s, field_faults_take(rest));
}

/* Appends what was not found, such as errors of a text that is not JSON, and what exceeds the
 * limit. */
static enum status sorter_finish(struct sorter *s, struct slice rest, struct buf *faults)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->faults[i].told)
            TRY(tell(s, &s->faults[i]));
    if (rest.len) {
        TRY(buf_append_text(&s->out, ", "));
        TRY(buf_append(&s->out, rest));
    }
    struct buf before = *faults;
    *faults = s->out;
    s->out = before;
    return ST_OK;
}

enum status field_faults_sort(struct slice json, struct buf *faults)
{
    struct slice rest = buf_slice(faults);
    AUTO(sorter_free) struct sorter *s = calloc(1, sizeof(*s));
    if (!s)
        return ST_NOMEM;
    sorter_add_all(s, &rest);
    /* One fault is in order. */
    if (s->count < 2)
        return ST_OK;
    TRY(scan(s, json));
    return sorter_finish(s, rest, faults);
}

/* -- By name -- */

/* The next part of a path: a name, or an item with its brackets. */
static struct slice take_step(struct slice *path)
{
    size_t len = path->len && path->ptr[0] == '.' ? 1 : 0;
    struct slice rest = slice_sub(*path, len, path->len - len);
    for (len = 1; len < rest.len && !(rest.ptr[len] == '.' || rest.ptr[len] == '[');)
        len++;
    len = size_min(len, rest.len);
    *path = slice_sub(rest, len, rest.len - len);
    return slice_sub(rest, 0, len);
}

/* Numbers have no leading zeros: the longer one is larger. */
static int compare_steps(struct slice a, struct slice b)
{
    bool items = a.len && b.len && a.ptr[0] == '[' && b.ptr[0] == '[';
    if (items && a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return slice_compare(a, b);
}

static int compare_faults(const void *left, const void *right)
{
    const struct fault *one = left, *other = right;
    struct slice a = one->path, b = other->path;
    if (one->unknown != other->unknown)
        return one->unknown ? 1 : -1;
    if (!one->unknown)
        return one->text.ptr < other->text.ptr ? -1 : 1;
    while (a.len && b.len) {
        int order = compare_steps(take_step(&a), take_step(&b));
        if (order)
            return order;
    }
    return (a.len > 0) - (b.len > 0);
}

enum status field_faults_sort_by_name(struct buf *faults)
{
    struct slice rest = buf_slice(faults);
    AUTO(sorter_free) struct sorter *s = calloc(1, sizeof(*s));
    if (!s)
        return ST_NOMEM;
    s->maps = true;
    sorter_add_all(s, &rest);
    qsort(s->faults, s->count, sizeof(s->faults[0]), compare_faults);
    return sorter_finish(s, rest, faults);
}
